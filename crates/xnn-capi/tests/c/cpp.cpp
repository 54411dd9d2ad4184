// The C++ layer: objects, exceptions, views.
#include <cstring>
#include <thread>
#include <type_traits>

#include "check.h"
#include "xnn.hpp"

static_assert(!std::is_copy_constructible_v<xnnd::Session> && std::is_move_constructible_v<xnnd::Session>);
static_assert(!std::is_copy_constructible_v<xnnd::Model> && std::is_move_constructible_v<xnnd::Model>);

template <typename F>
static void throws(F call, xnnd_error_code_t code, const char *text) {
  try {
    call();
  } catch (const xnnd::Error &error) {
    CHECK(error.code() == code);
    CHECK(std::strstr(error.what(), text) != nullptr);
    return;
  }
  CHECK(!"an exception is thrown");
}

static std::vector<float> scores(xnnd::Session &session) {
  float value = -1;
  for (float &pixel : session.input(0).data<float>()) pixel = value = value >= 1 ? -1 : value + 0.125f;
  session.run();
  return session.output(0).reals();
}

int main(int argc, char **argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s MODELS\n", argv[0]), 2;
  const std::string folder = argv[1], path = folder + "/" FP32;

  const xnnd::Model model(path);
  CHECK(model.format() == XNND_FORMAT_TFLITE);
  CHECK(model.signatures() == std::vector<std::string>{"serving_default"});
  CHECK(model.explain_json().find("\"subgraph\":0") != std::string::npos);
  xnnd::Session session(model, xnnd::Options().threads(2).profile(true).set("keep_small", "true"));
  CHECK(session.input_count() == 1 && session.output_count() == 1);
  const auto expected = scores(session);
  CHECK(expected.size() == 10);
  CHECK(session.profile_json().front() == '[');
  CHECK(session.coverage_json().find("\"fully_delegated\":true") != std::string::npos);

  const xnnd::Tensor input = session.input(0);
  CHECK((input.dims() == std::vector<std::size_t>{1, 48, 48, 3}) && input.byte_size() == 27648);
  CHECK(session.input_named(input.name()).get() == input.get());
  float scale = 0;
  std::int64_t zero_point = 0;
  CHECK(!input.quantization(scale, zero_point) && scale == 1 && zero_point == 0);

  throws([&] { xnnd::Model("missing.tflite"); }, XNND_ERROR_IO, "missing.tflite");
  throws([&] { session.output_named("scores"); }, XNND_ERROR_INVALID_ARGUMENT, "scores");
  throws([&] { input.data<std::int8_t>(); }, XNND_ERROR_INVALID_ARGUMENT, "another type");
  throws([&] { xnnd::Options().threads(0); }, XNND_ERROR_INVALID_ARGUMENT, "1 to 1024");

  session.resize({{0, {2, 48, 48, 3}}});
  CHECK(scores(session).size() == 20);
  input.resize({1, 48, 48, 3});
  CHECK(scores(session) == expected);

  std::vector<float> other;
  std::thread thread([&other, fork = session.fork()]() mutable { other = scores(fork); });
  CHECK(scores(session) == expected);
  thread.join();
  CHECK(other == expected);

  // A blob in memory, which its session keeps alive.
  auto blob = std::make_shared<xnnd::Converted>(model.convert(XNND_CONVERT_REQUIRE_FULL));
  CHECK(blob->format == XNND_FORMAT_BLOB);
  const void *const bytes = blob->bytes.data();
  const std::size_t size = blob->bytes.size();
  xnnd::Session converted(xnnd::Model::in_memory(bytes, size, std::move(blob)));
  CHECK(scores(converted) == expected);

  session.set_cancelled(true);
  throws([&] { session.run(); }, XNND_ERROR_CANCELLED, "cancelled");
  std::printf("cpp: %d checks\n", checks);
  return 0;
}
