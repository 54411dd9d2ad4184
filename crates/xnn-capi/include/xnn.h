/* C API of xnn-delegate, which runs and converts TFLite and Circle models on XNNPACK.
 *
 * Generated from crates/xnn-capi by cbindgen. Do not edit; see CONTRIBUTING.md.
 *
 *   xnnd_model_t *model = NULL;
 *   xnnd_session_t *session = NULL;
 *   const xnnd_tensor_t *input = NULL, *output = NULL;
 *   xnnd_error_t *error = xnnd_model_open("model.tflite", NULL, &model);
 *   if (!error) error = xnnd_session_new(model, NULL, &session);
 *   if (!error) error = xnnd_session_input(session, 0, &input);
 *   if (!error) error = xnnd_tensor_write(input, pixels, sizeof pixels);
 *   if (!error) error = xnnd_session_run(session);
 *   if (!error) error = xnnd_session_output(session, 0, &output);
 *   if (!error) error = xnnd_tensor_read_reals(output, scores, 1000);
 *   if (error) fprintf(stderr, "%s\n", xnnd_error_message(error));
 *   xnnd_error_delete(error);
 *   xnnd_session_delete(session);
 *   xnnd_model_delete(model);
 *
 * Errors. A function that can fail returns NULL on success, or an error that the caller deletes. The text travels with the
 * error: there is no state of a thread or of the process that later calls overwrite, and compilers warn of results that are
 * ignored. wasmtime and ONNX Runtime use this style, too. Results have a parameter `out`, which comes last if it is the only
 * one. It is NULL, or 0, after an error.
 *
 * NULL. Functions accept NULL for every pointer: it is an error, or a default where that is said. NULL can be deleted.
 *
 * Ownership. The caller deletes what a function creates, with the function `..._delete` of its type, in any order. Pointers
 * to tensors, names, dimensions and data belong to the object that they come from. Arguments are copied, except for
 * xnnd_model_from_memory and xnnd_tensor_bind.
 *
 * Text. Strings are UTF-8 with a terminating NUL. Paths are in the encoding of the file system.
 *
 * Threads. The description of each type says who may use it. Different objects may be used at the same time.
 *
 * Symbols begin with xnnd_, because those of XNNPACK begin with xnn_.
 */


#ifndef XNN_H_
#define XNN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of this header. xnnd_version() is that of the library. Versions with another major number, or before
 * 1.0 with another minor number, are not compatible. */
#define XNND_VERSION "0.1.0"

/* Results that must not be ignored. */
#if defined(__GNUC__) || defined(__clang__)
#define XNND_NODISCARD __attribute__((warn_unused_result))
#else
#define XNND_NODISCARD
#endif


/**
 * Fail if the model is not fully delegated.
 */
#define XNND_CONVERT_REQUIRE_FULL 1

/**
 * Also store the weights as XNNPACK packs them for this processor. The file is about twice as large, and loads without
 * packing on such processors. The only flag for a blob, which gets packed weights then.
 */
#define XNND_CONVERT_PACK 2

/**
 * Write only nodes that ExecuTorch 0.4 and later support. Implies `XNND_CONVERT_REQUIRE_FULL`.
 */
#define XNND_CONVERT_EXECUTORCH 4

/**
 * Number of bytes after the elements of an input that is bound, which XNNPACK reads but does not use.
 */
#define XNND_PADDING 64

/**
 * Kind of an error, for programs that react to it.
 */
typedef enum {
  /**
   * No error: the code of NULL.
   */
  XNND_OK = 0,
  /**
   * An argument is NULL, is not valid UTF-8, names something that does not exist, or does not fit the model. Correct the
   * call.
   */
  XNND_ERROR_INVALID_ARGUMENT = 1,
  /**
   * A file cannot be read or written.
   */
  XNND_ERROR_IO = 2,
  /**
   * The content of a model or blob is damaged, or of another kind.
   */
  XNND_ERROR_INVALID_MODEL = 3,
  /**
   * An operator or type is supported neither by XNNPACK nor by a reference kernel, or the operation needs a fully
   * delegated model.
   */
  XNND_ERROR_UNSUPPORTED = 4,
  /**
   * The model exceeds a limit. `xnnd_options_set_limit` raises it for trusted models.
   */
  XNND_ERROR_LIMIT = 5,
  /**
   * Memory is exhausted.
   */
  XNND_ERROR_OUT_OF_MEMORY = 6,
  /**
   * The run was cancelled by `xnnd_session_set_cancelled`.
   */
  XNND_ERROR_CANCELLED = 7,
  /**
   * The object is not in a state that allows the call: outputs before the first run, a session that another thread uses.
   */
  XNND_ERROR_INVALID_STATE = 8,
  /**
   * The values of inputs do not fit an operator, such as an index outside of its table.
   */
  XNND_ERROR_EXECUTION = 9,
  /**
   * A defect of the library. Please report it.
   */
  XNND_ERROR_INTERNAL = 10,
} xnnd_error_code_t;

/**
 * Format of a model's file.
 */
typedef enum {
  /**
   * TFLite.
   */
  XNND_FORMAT_TFLITE = 0,
  /**
   * Circle.
   */
  XNND_FORMAT_CIRCLE = 1,
  /**
   * A blob: an `.xnn` file, or a bare XN01 graph.
   */
  XNND_FORMAT_BLOB = 2,
} xnnd_format_t;

/**
 * Element type of a tensor.
 */
typedef enum {
  /**
   * A type without elements for programs: resources, variants, types of later schemas.
   */
  XNND_TYPE_OTHER = 0,
  /**
   * IEEE 754 single precision.
   */
  XNND_TYPE_F32 = 1,
  /**
   * IEEE 754 half precision.
   */
  XNND_TYPE_F16 = 2,
  /**
   * bfloat16: the upper half of a single.
   */
  XNND_TYPE_BF16 = 3,
  /**
   * IEEE 754 double precision.
   */
  XNND_TYPE_F64 = 4,
  /**
   * Signed 8-bit integer.
   */
  XNND_TYPE_I8 = 5,
  /**
   * Signed 16-bit integer.
   */
  XNND_TYPE_I16 = 6,
  /**
   * Signed 32-bit integer.
   */
  XNND_TYPE_I32 = 7,
  /**
   * Signed 64-bit integer.
   */
  XNND_TYPE_I64 = 8,
  /**
   * Unsigned 8-bit integer.
   */
  XNND_TYPE_U8 = 9,
  /**
   * Unsigned 16-bit integer.
   */
  XNND_TYPE_U16 = 10,
  /**
   * Unsigned 32-bit integer.
   */
  XNND_TYPE_U32 = 11,
  /**
   * Unsigned 64-bit integer.
   */
  XNND_TYPE_U64 = 12,
  /**
   * One byte, 0 or 1.
   */
  XNND_TYPE_BOOL = 13,
  /**
   * Strings of any length: `xnnd_tensor_write_strings`, `xnnd_tensor_read_strings`.
   */
  XNND_TYPE_STRING = 14,
  /**
   * Signed 4-bit integers, two in a byte, the first in the low bits.
   */
  XNND_TYPE_I4 = 15,
  /**
   * Unsigned 4-bit integers, two in a byte, the first in the low bits.
   */
  XNND_TYPE_U4 = 16,
  /**
   * Signed 2-bit integers, four in a byte, the first in the low bits.
   */
  XNND_TYPE_I2 = 17,
  /**
   * Pairs of singles.
   */
  XNND_TYPE_COMPLEX64 = 18,
  /**
   * Pairs of doubles.
   */
  XNND_TYPE_COMPLEX128 = 19,
} xnnd_type_t;

/**
 * Level of a log message.
 */
typedef enum {
  /**
   * No message has this level: `xnnd_set_log` turns messages off with it.
   */
  XNND_LOG_OFF = 0,
  /**
   * Something failed.
   */
  XNND_LOG_ERROR = 1,
  /**
   * Something works differently than the caller may expect.
   */
  XNND_LOG_WARN = 2,
  /**
   * Progress of the library.
   */
  XNND_LOG_INFO = 3,
  /**
   * Details for users of the library.
   */
  XNND_LOG_DEBUG = 4,
  /**
   * Details for its developers.
   */
  XNND_LOG_TRACE = 5,
} xnnd_log_level_t;

/**
 * A limit for what a file may request. Limits protect programs that open untrusted files.
 */
typedef enum {
  /**
   * Bytes of all tensors together. Default: 1 GiB, or 4096 bytes for each byte of the file and of resized inputs if that
   * is more.
   */
  XNND_LIMIT_MEMORY = 0,
  /**
   * Multiplications of a run. Default: 2^37, or 2^22 for each byte of the file and of resized inputs if that is more.
   */
  XNND_LIMIT_WORK = 1,
  /**
   * Bytes of one tensor. Default: 2^34.
   */
  XNND_LIMIT_TENSOR_BYTES = 2,
  /**
   * Iterations of one WHILE operator. Default: 10^7.
   */
  XNND_LIMIT_LOOP_ITERATIONS = 3,
} xnnd_limit_t;

/**
 * Bytes that the library gives to the caller: a converted file, or a text such as JSON in UTF-8.
 *
 * Threads: the bytes are immutable. Any thread may read them or delete the object.
 */
typedef struct xnnd_bytes_t xnnd_bytes_t;

/**
 * An error: a code and a sentence that names the file, operator or tensor, and the fix.
 *
 * Functions that can fail return NULL on success, or an error that the caller deletes with `xnnd_error_delete`.
 *
 * Threads: an error is immutable. Any thread may read or delete it.
 */
typedef struct xnnd_error_t xnnd_error_t;

/**
 * A model (TFLite or Circle) or a blob (`.xnn`), from which any number of sessions are created.
 *
 * Threads: a model is immutable. Any number of threads may use it at the same time. Sessions keep what they need of it, so
 * that it may be deleted before them.
 */
typedef struct xnnd_model_t xnnd_model_t;

/**
 * Options of models, sessions and conversions. New options have defaults; functions take NULL for defaults, too.
 *
 * The functions that take options copy them: later changes do not affect existing models and sessions.
 *
 * Threads: only one thread at a time may change options, and no other may use them meanwhile.
 */
typedef struct xnnd_options_t xnnd_options_t;

/**
 * A model with the memory to run it.
 *
 * Operators that XNNPACK does not support run on reference kernels.
 *
 * Threads: only one thread at a time may use a session and its tensors, but it need not always be the same one. A second
 * one gets `XNND_ERROR_INVALID_STATE`. Only `xnnd_session_set_cancelled` may be called at any time until the session is
 * deleted. Threads that run the same model at the same time need a session each: `xnnd_session_fork`.
 */
typedef struct xnnd_session_t xnnd_session_t;

/**
 * An input or output of a session.
 *
 * Threads: those of its session. Name, type and quantization never change, so that any thread may read them.
 */
typedef struct xnnd_tensor_t xnnd_tensor_t;

/**
 * Function that is called when the library has finished with borrowed memory, with the context of its owner.
 */
typedef void (*xnnd_release_t)(void *context);

/**
 * New dimensions of an input, for `xnnd_session_resize`.
 */
typedef struct {
  /**
   * Index of the input.
   */
  size_t input;
  /**
   * Dimensions, outermost first. May be NULL if `rank` is 0.
   */
  const size_t *dims;
  /**
   * Number of dimensions.
   */
  size_t rank;
} xnnd_shape_t;

/**
 * An element of a tensor of strings: any bytes, without a terminating NUL.
 */
typedef struct {
  /**
   * The bytes. May be NULL if `size` is 0.
   */
  const char *data;
  /**
   * Number of bytes.
   */
  size_t size;
} xnnd_string_t;

/**
 * Function that gets log messages, in UTF-8 and without a final newline. The message exists during the call only.
 *
 * Any thread that uses the library calls it, several at the same time. It may use the library, except for `xnnd_set_log`;
 * messages of these calls are dropped.
 */
typedef void (*xnnd_log_callback_t)(void *context, xnnd_log_level_t level, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Version of the library, such as "0.1.0". The string is static.
 *
 * `XNND_VERSION` is the version of the header that a program was compiled with.
 */
const char *xnnd_version(void);

/**
 * Code of an error. `error` may be NULL, which is no error: `XNND_OK`.
 */
xnnd_error_code_t xnnd_error_code(const xnnd_error_t *error);

/**
 * Text of an error in UTF-8, one or several lines without a final newline. It belongs to the error. Empty if `error` is
 * NULL.
 */
const char *xnnd_error_message(const xnnd_error_t *error);

/**
 * Deletes an error. `error` may be NULL.
 */
void xnnd_error_delete(xnnd_error_t *error);

/**
 * The bytes. A NUL, which is not counted in the size, follows them, so that a text is a
 * C string. They belong to the object. NULL if `bytes` is NULL.
 */
const uint8_t *xnnd_bytes_data(const xnnd_bytes_t *bytes);

/**
 * The bytes as a C string, for texts. NULL if `bytes` is NULL.
 */
const char *xnnd_bytes_text(const xnnd_bytes_t *bytes);

/**
 * Number of bytes. 0 if `bytes` is NULL.
 */
size_t xnnd_bytes_size(const xnnd_bytes_t *bytes);

/**
 * Deletes bytes. `bytes` may be NULL.
 */
void xnnd_bytes_delete(xnnd_bytes_t *bytes);

/**
 * Creates options with defaults. The caller deletes them with `xnnd_options_delete`.
 */
xnnd_options_t *xnnd_options_new(void);

/**
 * Sets the number of threads that compute, including the one that calls `xnnd_session_run`. There are never more than
 * processors, and small models use fewer. Default: 1.
 *
 * Errors: `threads` is 0 or greater than 1024.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set_threads(xnnd_options_t *options,
                                       size_t threads);

/**
 * Sets whether sessions measure the time of each operator, for `xnnd_session_profile_json`. Default: false.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set_profile(xnnd_options_t *options,
                                       bool profile);

/**
 * Sets the folder in which packed weights are stored for later processes. Any number of processes and models may share it,
 * and it may be emptied at any time. A user who can write to it can change what models compute. NULL: none, the default.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set_cache_dir(xnnd_options_t *options,
                                         const char *folder);

/**
 * Sets the signature that sessions run, and that is explained. Inputs and outputs have the signature's names. NULL: the
 * main subgraph, the default.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set_signature(xnnd_options_t *options,
                                         const char *key);

/**
 * Sets a limit, one of `xnnd_limit_t`. Models are checked when they are opened, so that the same options belong to
 * `xnnd_model_open` and to `xnnd_session_new`.
 *
 * Errors: there is no such limit.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set_limit(xnnd_options_t *options,
                                     uint32_t limit,
                                     uint64_t value);

/**
 * Sets an option of numerics or partitioning by name. These do not apply to blobs, which are partitioned already.
 *
 * | name | value | default |
 * |---|---|---|
 * | `u8_as_s8` | compute uint8 layers as int8 layers: `exact` where weights fit, `approx` rounds others, `off`, `auto` | `auto` |
 * | `dynamic_range` | activations of layers with 8-bit weights: `reference` quantizes whole images like TFLite, `rows` is closer to fp32, `auto` | `auto` |
 * | `disable` | names of operators that are not delegated, separated by commas | none |
 * | `disable_pass` | names of optimizations to skip, separated by commas | none |
 * | `no_optimize` | `true`: do not optimize graphs | `false` |
 * | `keep_small` | `true`: delegate partitions even if they save less time than their boundary copies cost | `false` |
 * | `max_partitions` | largest number of partitions | unlimited |
 * | `min_partition_macs` | smallest number of multiply-accumulates of a partition | 0 |
 *
 * Errors: there is no such option, operator or optimization, or the value is not valid.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_options_set(xnnd_options_t *options,
                               const char *name,
                               const char *value);

/**
 * Deletes options. `options` may be NULL.
 */
void xnnd_options_delete(xnnd_options_t *options);

/**
 * Opens a model or blob. The content of the file tells which of them it is. The file is mapped into memory and must not be
 * changed in place while it is used; replacing it by another file is fine. The caller deletes the model with
 * `xnnd_model_delete`.
 *
 * Errors: the file cannot be read, is of another kind, or is damaged; a limit is exceeded.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_open(const char *path,
                              const xnnd_options_t *options,
                              xnnd_model_t **out);

/**
 * Opens a copy of the content of a model or blob, `size` bytes at `data`, which may change afterwards.
 *
 * Errors: see `xnnd_model_open`.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_from_copy(const void *data,
                                   size_t size,
                                   const xnnd_options_t *options,
                                   xnnd_model_t **out);

/**
 * Opens the content of a model or blob in the caller's memory, `size` bytes at `data`, without a copy if `data` is a
 * multiple of 64. Other content is copied.
 *
 * The bytes must not change until `release(context)` is called, exactly once, when the library no longer needs them: after
 * the model and all its sessions are deleted, or earlier, also before this function returns and if it fails. The call may
 * come from any thread that uses the library, and must not use the library. `release` may be NULL for memory that exists
 * until the program ends, or that the caller frees after it has deleted the model and all its sessions.
 *
 * Errors: see `xnnd_model_open`.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_from_memory(const void *data,
                                     size_t size,
                                     xnnd_release_t release,
                                     void *context,
                                     const xnnd_options_t *options,
                                     xnnd_model_t **out);

/**
 * Format of the model's file. TFLite if `model` is NULL.
 */
xnnd_format_t xnnd_model_format(const xnnd_model_t *model);

/**
 * Number of signatures, which are named entry points. Blobs have none. 0 if `model` is NULL.
 */
size_t xnnd_model_signature_count(const xnnd_model_t *model);

/**
 * Key of a signature, for `xnnd_options_set_signature`. It belongs to the model. NULL if `model` is NULL or has no such
 * signature.
 */
const char *xnnd_model_signature(const xnnd_model_t *model,
                                 size_t index);

/**
 * Deletes a model. `model` may be NULL.
 */
void xnnd_model_delete(xnnd_model_t *model);

/**
 * Converts a fully delegated model to a blob, and another model to a model of the same format, in which blobs replace the
 * partitions. `flags` is 0 or a combination of `XNND_CONVERT_*`. The caller deletes `*out` with `xnnd_bytes_delete`.
 *
 * `format` may be NULL. On success, it is set to the format of the result.
 *
 * Errors: an operator is not delegated, if all must be or none is; ExecuTorch does not support a node, if it must; the
 * file is a blob already.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_convert(const xnnd_model_t *model,
                                 const xnnd_options_t *options,
                                 uint32_t flags,
                                 xnnd_format_t *format,
                                 xnnd_bytes_t **out);

/**
 * Converts as `xnnd_model_convert` to a file, which is written atomically and replaced if it exists.
 *
 * Errors: those of `xnnd_model_convert`; the file cannot be written, or is the model's own.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_convert_to_file(const xnnd_model_t *model,
                                         const xnnd_options_t *options,
                                         uint32_t flags,
                                         const char *path,
                                         xnnd_format_t *format);

/**
 * Explains how the model is delegated, as JSON like that of `xnn explain --json`: a summary; for each operator its types,
 * shapes, partition, or the reason why it is not delegated; and what the optimization did. The main subgraph is explained,
 * or that of the signature in `options`. The caller deletes `*out` with `xnnd_bytes_delete`.
 *
 * Errors: the file is a blob; shapes contradict each other, or exceed a limit; there is no such signature.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_model_explain_json(const xnnd_model_t *model,
                                      const xnnd_options_t *options,
                                      xnnd_bytes_t **out);

/**
 * Creates a session of a model or blob: partitions it and packs weights. The caller deletes it with
 * `xnnd_session_delete`.
 *
 * Errors: an operator is supported neither by XNNPACK nor by a reference kernel; a limit is exceeded; there is no such
 * signature.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_new(const xnnd_model_t *model,
                               const xnnd_options_t *options,
                               xnnd_session_t **out);

/**
 * Creates another session of the same model and options, for another thread. It shares weights with the first, and has
 * inputs, outputs, state, bindings and a cancel flag of its own.
 *
 * Errors: another thread uses the session; memory is exhausted.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_fork(const xnnd_session_t *session,
                                xnnd_session_t **out);

/**
 * Number of inputs. 0 if `session` is NULL.
 */
size_t xnnd_session_input_count(const xnnd_session_t *session);

/**
 * Number of outputs. 0 if `session` is NULL.
 */
size_t xnnd_session_output_count(const xnnd_session_t *session);

/**
 * Finds an input by its index, in the model's order. It belongs to the session, and is valid until the session is deleted.
 *
 * Errors: there is no such input.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_input(const xnnd_session_t *session,
                                 size_t index,
                                 const xnnd_tensor_t **out);

/**
 * Finds an output by its index, in the model's order. It belongs to the session, and is valid until the session is deleted.
 *
 * Errors: there is no such output.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_output(const xnnd_session_t *session,
                                  size_t index,
                                  const xnnd_tensor_t **out);

/**
 * Finds an input by its name in the model, or in the signature that is run.
 *
 * Errors: there is no such input; the text lists the names of all inputs.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_input_named(const xnnd_session_t *session,
                                       const char *name,
                                       const xnnd_tensor_t **out);

/**
 * Finds an output by its name in the model, or in the signature that is run.
 *
 * Errors: there is no such output; the text lists the names of all outputs.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_output_named(const xnnd_session_t *session,
                                        const char *name,
                                        const xnnd_tensor_t **out);

/**
 * Computes the outputs from the inputs. Inputs keep their values. Variables and the state of recurrent operators continue
 * from the last run.
 *
 * Errors: values do not fit an operator; a limit is exceeded; the session is cancelled.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_run(const xnnd_session_t *session);

/**
 * Gives inputs other dimensions, all at once, because the shape of one may depend on that of another.
 *
 * Resized inputs lose their values, others keep them; state is reset, all bindings end, and pointers to data and dimensions
 * become invalid. A model is lowered again, which may take as long as creating the session. Blobs cannot be lowered again,
 * and accept only shapes that suit their constants.
 *
 * Errors: there is no such input; the model cannot be computed with these dimensions; a limit is exceeded. The session is
 * unchanged then.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_resize(const xnnd_session_t *session,
                                  const xnnd_shape_t *shapes,
                                  size_t count);

/**
 * Sets variables and the state of recurrent operators to their initial values.
 *
 * Errors: another thread uses the session.
 */
XNND_NODISCARD xnnd_error_t *xnnd_session_reset(const xnnd_session_t *session);

/**
 * Sets whether the run in progress, and later ones, end with `XNND_ERROR_CANCELLED`. A run ends before the next reference
 * kernel or partition. XNNPACK cannot be interrupted: a partition that has started runs to its end, and so does a fully
 * delegated model.
 *
 * Threads: any thread may call it at any time until the session is deleted.
 *
 * Errors: `session` is NULL.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_set_cancelled(const xnnd_session_t *session,
                                         bool cancelled);

/**
 * Number of threads that compute: at most that of the options, as far as there are processors and enough work. 0 if
 * `session` is NULL or another thread uses it.
 */
size_t xnnd_session_threads(const xnnd_session_t *session);

/**
 * Number of operators that run on XNNPACK, as JSON: `{"delegated": 60, "operators": 64, "partitions": 3, "deferred": 0,
 * "fully_delegated": false}`. Deferred operators may be delegated during a run, when their shapes are known. The caller
 * deletes `*out` with `xnnd_bytes_delete`.
 *
 * Errors: another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_coverage_json(const xnnd_session_t *session,
                                         xnnd_bytes_t **out);

/**
 * Time of each operator in the last run, in microseconds, as JSON: `[{"operator": "Convolution (NHWC, F32)", "node": 0,
 * "origin": "CONV_2D#0", "us": 25}]`. `node` is the index in the graph and `origin` the model's operator; both may be null.
 * The caller deletes `*out` with `xnnd_bytes_delete`.
 *
 * Errors: the session has not run; the options do not ask for a profile (`xnnd_options_set_profile`); the model is not
 * fully delegated.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_session_profile_json(const xnnd_session_t *session,
                                        xnnd_bytes_t **out);

/**
 * Deletes a session and its tensors. It must not be running. `session` may be NULL.
 */
void xnnd_session_delete(xnnd_session_t *session);

/**
 * Name of a tensor in the model, or in the signature that is run; empty if it has none. It belongs to the session. NULL if
 * `tensor` is NULL.
 */
const char *xnnd_tensor_name(const xnnd_tensor_t *tensor);

/**
 * Element type of a tensor. `XNND_TYPE_OTHER` if `tensor` is NULL.
 */
xnnd_type_t xnnd_tensor_type(const xnnd_tensor_t *tensor);

/**
 * Quantization of a tensor: an element `q` stands for the real number `(q - zero_point) * scale`. Returns false, and sets
 * scale 1 and zero point 0, if the tensor is not quantized or `tensor` is NULL. `scale` and `zero_point` may be NULL.
 */
bool xnnd_tensor_quantization(const xnnd_tensor_t *tensor,
                              float *scale,
                              int64_t *zero_point);

/**
 * Present dimensions of a tensor, outermost first. The elements are row-major: the last dimension varies fastest. Images
 * are NHWC. The dimensions belong to the session, and are valid until it is resized; those of outputs until it runs. `*dims`
 * is NULL if `*rank` is 0, for a scalar. If only a run tells the shape of an output, it is `{0}` before.
 *
 * Errors: another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_dims(const xnnd_tensor_t *tensor,
                               const size_t **dims,
                               size_t *rank);

/**
 * Present size of the elements in bytes.
 *
 * Errors: elements have no fixed size; another thread uses the session.
 */
XNND_NODISCARD xnnd_error_t *xnnd_tensor_byte_size(const xnnd_tensor_t *tensor, size_t *size);

/**
 * Gives access to the elements of a tensor without a copy: dense, row-major, in native byte order. Inputs may be written
 * and keep their values from run to run. Outputs may only be read.
 *
 * The pointer is valid until the session is resized or deleted or the tensor is bound; that of an output also only until
 * the next run. It is that of the caller if the tensor is bound. Memory of the session is aligned to 64 bytes. `size`, the
 * number of bytes, may be NULL.
 *
 * Errors: no run has computed the output; elements have no fixed size; another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_data(const xnnd_tensor_t *tensor,
                               void **data,
                               size_t *size);

/**
 * Copies `size` bytes to an input, which must be all of it.
 *
 * Errors: the tensor is an output, or has another size; another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_write(const xnnd_tensor_t *tensor,
                                const void *data,
                                size_t size);

/**
 * Copies all elements of an input or output, `size` bytes, to `data`.
 *
 * Errors: no run has computed the output; the tensor has another size; another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_read(const xnnd_tensor_t *tensor,
                               void *data,
                               size_t size);

/**
 * Copies the elements of a tensor as real numbers: converted to fp32, and dequantized if they are quantized. `count` must
 * be the number of elements. Integers above 2^24 are rounded.
 *
 * Errors: no run has computed the output; the tensor has another number of elements, or elements that are not numbers;
 * another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_read_reals(const xnnd_tensor_t *tensor,
                                     float *values,
                                     size_t count);

/**
 * Makes runs use the caller's memory for a tensor: `size` bytes at `data`. NULL ends that: the session's own memory is used
 * again. `xnnd_session_resize` ends it, too.
 *
 * The memory must be aligned for the elements; 64 bytes are best. An input needs the bytes of its elements and
 * `XNND_PADDING` readable bytes after them, whose values do not matter. An output needs the bytes of its elements. The
 * memory belongs to the caller, must exist while it is bound, at most until the session is deleted, and must not be used by
 * others during a run. Memory of an output must not overlap memory of another bound tensor.
 *
 * Nothing is copied if the model is fully delegated. Otherwise elements are copied from and to the session's memory in
 * each run. After a binding of an output has changed, outputs can be read when the session has run again.
 *
 * Errors: the memory is too small, is not aligned, or overlaps that of another tensor; elements have no fixed size; another
 * thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_bind(const xnnd_tensor_t *tensor,
                               void *data,
                               size_t size);

/**
 * Gives one input other dimensions. See `xnnd_session_resize`.
 *
 * Errors: those of `xnnd_session_resize`; the tensor is an output.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_resize(const xnnd_tensor_t *tensor,
                                 const size_t *dims,
                                 size_t rank);

/**
 * Copies strings to an input of type `XNND_TYPE_STRING`, in row-major order. `count` must be its number of elements.
 *
 * Errors: the tensor is an output, has another type, or another number of elements; another thread uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_write_strings(const xnnd_tensor_t *tensor,
                                        const xnnd_string_t *strings,
                                        size_t count);

/**
 * Gives access to the elements of an output of type `XNND_TYPE_STRING`, in row-major order. `count` must be its number of
 * elements. The bytes belong to the session, and are valid until its next run, or until it is resized or deleted.
 *
 * Errors: the tensor is an input, has another type, or another number of elements; no run has computed it; another thread
 * uses the session.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_tensor_read_strings(const xnnd_tensor_t *tensor,
                                       xnnd_string_t *strings,
                                       size_t count);

/**
 * Sets the function that gets the log messages of the process, up to `level`, one of `xnnd_log_level_t`. NULL, or
 * `XNND_LOG_OFF`: none, the default. When this function returns, the previous callback is not running and is not called
 * again.
 *
 * Threads: any thread may call it, but not the callback itself.
 *
 * Errors: there is no such level; the call comes from the callback.
 */
XNND_NODISCARD
xnnd_error_t *xnnd_set_log(uint32_t level,
                           xnnd_log_callback_t callback,
                           void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* XNN_H_ */
