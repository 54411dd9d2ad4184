// C++17 layer over xnn.h: objects that delete themselves, and exceptions instead of errors.
//
//   xnnd::Session session(xnnd::Model("model.tflite"), xnnd::Options().threads(2));
//   for (float &pixel : session.input(0).data<float>()) pixel = 0.5f;
//   session.run();
//   for (float score : session.output(0).reals()) std::printf("%f\n", score);
//
// xnn.h describes units, layouts, lifetimes and threads. The functions here throw xnnd::Error where those of xnn.h return
// an error. Header only: programs link to the C library alone.
#ifndef XNN_HPP_
#define XNN_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xnn.h"

namespace xnnd {

// An error of the library: its text, and its code.
class Error : public std::runtime_error {
 public:
  Error(xnnd_error_code_t code, const std::string &message) : std::runtime_error(message), code_(code) {}
  xnnd_error_code_t code() const noexcept { return code_; }

 private:
  xnnd_error_code_t code_;
};

namespace detail {

// Throws an error, if it is one.
inline void check(xnnd_error_t *error) {
  if (error == nullptr) return;
  const std::unique_ptr<xnnd_error_t, void (*)(xnnd_error_t *)> owner(error, xnnd_error_delete);
  throw Error(xnnd_error_code(error), xnnd_error_message(error));
}

struct Delete {
  void operator()(xnnd_bytes_t *it) const noexcept { xnnd_bytes_delete(it); }
  void operator()(xnnd_options_t *it) const noexcept { xnnd_options_delete(it); }
  void operator()(xnnd_model_t *it) const noexcept { xnnd_model_delete(it); }
  void operator()(xnnd_session_t *it) const noexcept { xnnd_session_delete(it); }
};

template <typename T>
using Owned = std::unique_ptr<T, Delete>;

// The element type of a C++ type, for types that have one.
template <typename T>
struct TypeOf;
template <>
struct TypeOf<float> { static constexpr xnnd_type_t value = XNND_TYPE_F32; };
template <>
struct TypeOf<double> { static constexpr xnnd_type_t value = XNND_TYPE_F64; };
template <>
struct TypeOf<std::int8_t> { static constexpr xnnd_type_t value = XNND_TYPE_I8; };
template <>
struct TypeOf<std::int16_t> { static constexpr xnnd_type_t value = XNND_TYPE_I16; };
template <>
struct TypeOf<std::int32_t> { static constexpr xnnd_type_t value = XNND_TYPE_I32; };
template <>
struct TypeOf<std::int64_t> { static constexpr xnnd_type_t value = XNND_TYPE_I64; };
template <>
struct TypeOf<std::uint8_t> { static constexpr xnnd_type_t value = XNND_TYPE_U8; };
template <>
struct TypeOf<std::uint16_t> { static constexpr xnnd_type_t value = XNND_TYPE_U16; };
template <>
struct TypeOf<std::uint32_t> { static constexpr xnnd_type_t value = XNND_TYPE_U32; };
template <>
struct TypeOf<std::uint64_t> { static constexpr xnnd_type_t value = XNND_TYPE_U64; };
template <>
struct TypeOf<bool> { static constexpr xnnd_type_t value = XNND_TYPE_BOOL; };

}  // namespace detail

// Elements in memory that belongs to something else.
template <typename T>
class View {
 public:
  View(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  T *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  T *begin() const noexcept { return data_; }
  T *end() const noexcept { return data_ + size_; }
  T &operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T *data_;
  std::size_t size_;
};

// Bytes of a converted file, or text.
class Bytes {
 public:
  explicit Bytes(xnnd_bytes_t *bytes) noexcept : bytes_(bytes) {}
  const std::uint8_t *data() const noexcept { return xnnd_bytes_data(bytes_.get()); }
  std::size_t size() const noexcept { return xnnd_bytes_size(bytes_.get()); }
  std::string_view text() const noexcept { return {xnnd_bytes_text(bytes_.get()), size()}; }

 private:
  detail::Owned<xnnd_bytes_t> bytes_;
};

// Options of models, sessions and conversions. Setters can be chained.
class Options {
 public:
  Options() : options_(xnnd_options_new()) {
    if (!options_) throw std::bad_alloc();
  }
  Options &threads(std::size_t threads) { return done(xnnd_options_set_threads(get(), threads)); }
  Options &profile(bool profile) { return done(xnnd_options_set_profile(get(), profile)); }
  Options &cache_dir(const std::string &folder) {
    return done(xnnd_options_set_cache_dir(get(), folder.c_str()));
  }
  Options &signature(std::string_view key) {
    return done(xnnd_options_set_signature(get(), std::string(key).c_str()));
  }
  Options &limit(xnnd_limit_t limit, std::uint64_t value) {
    return done(xnnd_options_set_limit(get(), static_cast<std::uint32_t>(limit), value));
  }
  Options &set(std::string_view name, std::string_view value) {
    return done(xnnd_options_set(get(), std::string(name).c_str(), std::string(value).c_str()));
  }
  xnnd_options_t *get() const noexcept { return options_.get(); }

 private:
  Options &done(xnnd_error_t *error) {
    detail::check(error);
    return *this;
  }

  detail::Owned<xnnd_options_t> options_;
};

// A converted model.
struct Converted {
  xnnd_format_t format;
  Bytes bytes;
};

// A model or blob.
class Model {
 public:
  // Opens a file.
  explicit Model(const std::string &path, const Options &options = Options()) {
    xnnd_model_t *model = nullptr;
    detail::check(xnnd_model_open(path.c_str(), options.get(), &model));
    model_.reset(model);
  }

  // Opens a copy of the content of a file.
  static Model copy(const void *data, std::size_t size, const Options &options = Options()) {
    xnnd_model_t *model = nullptr;
    detail::check(xnnd_model_from_copy(data, size, options.get(), &model));
    return Model(model);
  }

  // Opens the content of a file in memory that `owner` keeps alive and unchanged. The model and its sessions share the
  // owner. Only data at a multiple of 64 bytes is used in place.
  static Model in_memory(const void *data, std::size_t size, std::shared_ptr<const void> owner,
                         const Options &options = Options()) {
    using Owner = std::shared_ptr<const void>;
    const auto release = [](void *context) { delete static_cast<Owner *>(context); };
    xnnd_model_t *model = nullptr;
    detail::check(xnnd_model_from_memory(data, size, release, new Owner(std::move(owner)), options.get(), &model));
    return Model(model);
  }

  xnnd_format_t format() const noexcept { return xnnd_model_format(get()); }

  std::vector<std::string> signatures() const {
    std::vector<std::string> keys;
    for (std::size_t index = 0; index < xnnd_model_signature_count(get()); ++index) {
      keys.emplace_back(xnnd_model_signature(get(), index));
    }
    return keys;
  }

  // `flags` is a combination of XNND_CONVERT_*.
  Converted convert(std::uint32_t flags = 0, const Options &options = Options()) const {
    xnnd_bytes_t *bytes = nullptr;
    xnnd_format_t format = XNND_FORMAT_BLOB;
    detail::check(xnnd_model_convert(get(), options.get(), flags, &format, &bytes));
    return Converted{format, Bytes(bytes)};
  }

  xnnd_format_t convert_to_file(const std::string &path, std::uint32_t flags = 0,
                                const Options &options = Options()) const {
    xnnd_format_t format = XNND_FORMAT_BLOB;
    detail::check(xnnd_model_convert_to_file(get(), options.get(), flags, path.c_str(), &format));
    return format;
  }

  std::string explain_json(const Options &options = Options()) const {
    xnnd_bytes_t *json = nullptr;
    detail::check(xnnd_model_explain_json(get(), options.get(), &json));
    return std::string(Bytes(json).text());
  }

  const xnnd_model_t *get() const noexcept { return model_.get(); }

 private:
  explicit Model(xnnd_model_t *model) noexcept : model_(model) {}

  detail::Owned<xnnd_model_t> model_;
};

// An input or output. It belongs to its session.
class Tensor {
 public:
  explicit Tensor(const xnnd_tensor_t *tensor) noexcept : tensor_(tensor) {}
  std::string_view name() const noexcept { return xnnd_tensor_name(tensor_); }
  xnnd_type_t type() const noexcept { return xnnd_tensor_type(tensor_); }

  std::vector<std::size_t> dims() const {
    const std::size_t *dims = nullptr;
    std::size_t rank = 0;
    detail::check(xnnd_tensor_dims(tensor_, &dims, &rank));
    return std::vector<std::size_t>(dims, dims + rank);
  }

  std::size_t element_count() const {
    std::size_t count = 1;
    for (const std::size_t dim : dims()) count *= dim;
    return count;
  }

  std::size_t byte_size() const {
    std::size_t size = 0;
    detail::check(xnnd_tensor_byte_size(tensor_, &size));
    return size;
  }

  // Whether the tensor is quantized, with scale and zero point.
  bool quantization(float &scale, std::int64_t &zero_point) const noexcept {
    return xnnd_tensor_quantization(tensor_, &scale, &zero_point);
  }

  // The elements, without a copy. Throws if they have another type.
  template <typename T>
  View<T> data() const {
    if (type() != detail::TypeOf<T>::value) {
      throw Error(XNND_ERROR_INVALID_ARGUMENT, std::string(name()) + ": the elements have another type");
    }
    void *data = nullptr;
    std::size_t size = 0;
    detail::check(xnnd_tensor_data(tensor_, &data, &size));
    return View<T>(static_cast<T *>(data), size / sizeof(T));
  }

  // Copies of the elements as real numbers, dequantized if they are quantized.
  std::vector<float> reals() const {
    std::vector<float> values(element_count());
    detail::check(xnnd_tensor_read_reals(tensor_, values.data(), values.size()));
    return values;
  }

  void write(const void *data, std::size_t size) const { detail::check(xnnd_tensor_write(tensor_, data, size)); }
  void read(void *data, std::size_t size) const { detail::check(xnnd_tensor_read(tensor_, data, size)); }

  // Uses the caller's memory, which must outlive the binding; see xnnd_tensor_bind.
  void bind(void *data, std::size_t size) const { detail::check(xnnd_tensor_bind(tensor_, data, size)); }
  void unbind() const { detail::check(xnnd_tensor_bind(tensor_, nullptr, 0)); }

  void resize(const std::vector<std::size_t> &dims) const {
    detail::check(xnnd_tensor_resize(tensor_, dims.data(), dims.size()));
  }

  void write_strings(const std::vector<std::string> &strings) const {
    std::vector<xnnd_string_t> views;
    for (const std::string &string : strings) views.push_back({string.data(), string.size()});
    detail::check(xnnd_tensor_write_strings(tensor_, views.data(), views.size()));
  }

  std::vector<std::string> strings() const {
    std::vector<xnnd_string_t> views(element_count());
    detail::check(xnnd_tensor_read_strings(tensor_, views.data(), views.size()));
    std::vector<std::string> strings;
    for (const xnnd_string_t &view : views) strings.emplace_back(view.data, view.size);
    return strings;
  }

  const xnnd_tensor_t *get() const noexcept { return tensor_; }

 private:
  const xnnd_tensor_t *tensor_;
};

// A model with the memory to run it, for one thread at a time.
class Session {
 public:
  explicit Session(const Model &model, const Options &options = Options()) {
    xnnd_session_t *session = nullptr;
    detail::check(xnnd_session_new(model.get(), options.get(), &session));
    session_.reset(session);
  }

  // Another session of the same model, for another thread.
  Session fork() const {
    xnnd_session_t *session = nullptr;
    detail::check(xnnd_session_fork(get(), &session));
    return Session(session);
  }

  std::size_t input_count() const noexcept { return xnnd_session_input_count(get()); }
  std::size_t output_count() const noexcept { return xnnd_session_output_count(get()); }

  Tensor input(std::size_t index) const {
    const xnnd_tensor_t *tensor = nullptr;
    detail::check(xnnd_session_input(get(), index, &tensor));
    return Tensor(tensor);
  }
  Tensor output(std::size_t index) const {
    const xnnd_tensor_t *tensor = nullptr;
    detail::check(xnnd_session_output(get(), index, &tensor));
    return Tensor(tensor);
  }
  Tensor input_named(std::string_view name) const {
    const xnnd_tensor_t *tensor = nullptr;
    detail::check(xnnd_session_input_named(get(), std::string(name).c_str(), &tensor));
    return Tensor(tensor);
  }
  Tensor output_named(std::string_view name) const {
    const xnnd_tensor_t *tensor = nullptr;
    detail::check(xnnd_session_output_named(get(), std::string(name).c_str(), &tensor));
    return Tensor(tensor);
  }

  void run() { detail::check(xnnd_session_run(get())); }

  // Gives several inputs other dimensions, all at once.
  void resize(const std::vector<std::pair<std::size_t, std::vector<std::size_t>>> &shapes) {
    std::vector<xnnd_shape_t> views;
    for (const auto &[input, dims] : shapes) views.push_back({input, dims.data(), dims.size()});
    detail::check(xnnd_session_resize(get(), views.data(), views.size()));
  }

  void reset() { detail::check(xnnd_session_reset(get())); }

  // May be called from any thread.
  void set_cancelled(bool cancelled) const { detail::check(xnnd_session_set_cancelled(get(), cancelled)); }

  std::size_t threads() const noexcept { return xnnd_session_threads(get()); }

  std::string coverage_json() const {
    xnnd_bytes_t *json = nullptr;
    detail::check(xnnd_session_coverage_json(get(), &json));
    return std::string(Bytes(json).text());
  }
  std::string profile_json() const {
    xnnd_bytes_t *json = nullptr;
    detail::check(xnnd_session_profile_json(get(), &json));
    return std::string(Bytes(json).text());
  }

  const xnnd_session_t *get() const noexcept { return session_.get(); }

 private:
  explicit Session(xnnd_session_t *session) noexcept : session_(session) {}

  detail::Owned<xnnd_session_t> session_;
};

}  // namespace xnnd

#endif  // XNN_HPP_
