// Functions of floats that XNNPACK's microkernels compute wrongly for NaN, infinities, denormals or very large values. Results are
// those of TFLite's reference kernels. These run on any processor; `unary_f32.c` and `unary_f32_x86.h` have faster ones.
//
// - Logarithm: XNNPACK's is 88.8 for NaN.
// - Maximum and minimum: XNNPACK exchanges the operands if the first is one element, which matters if either is NaN. On processors
//   other than x86-64 its result is NaN if either operand is.
// - Square roots: XNNPACK's are approximations that multiply infinity by 0.
// - Range of a row to quantize: XNNPACK's ignores NaN, and the row would give plausible results.

#include "ukernels/special_f32.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "xnnpack/common.h"
#include "xnnpack/config.h"
#include "xnnpack/math.h"

// Floats that are computed together.
#define BLOCK 256

// Four floats, whether a condition holds for each, and their bits, in the notation of the compilers: every processor has
// instructions for them.
typedef float floats __attribute__((vector_size(16)));
typedef int32_t conditions __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));

enum { FLOATS = sizeof(floats) / sizeof(float) };

// Sign bits are set where bits are those of an element that is negative, 0, denormal, not finite or near the largest float.
static XNN_INLINE words outside_of_ordinary(words bits) {
  const uint32_t least = UINT32_C(0x00800000);
  const uint32_t most = UINT32_C(0x7E7FFFFF);
  return (bits - least) | (most - bits);
}

// Whether none of up to a BLOCK of elements has such a bit.
static bool are_ordinary(const float* x, size_t count) {
  words outside = {0};
  for (; count >= FLOATS; count -= FLOATS, x += FLOATS) {
    words bits;
    memcpy(&bits, x, sizeof(bits));
    outside |= outside_of_ordinary(bits);
  }
  for (; count != 0; count--, x++) {
    uint32_t bits;
    memcpy(&bits, x, sizeof(bits));
    outside |= outside_of_ordinary((words) {bits, bits, bits, bits});
  }
  return (outside[0] | outside[1] | outside[2] | outside[3]) <= INT32_MAX;
}

void xnnpack_sys_f32_vlog_ukernel__scalar(size_t batch, const void* input, void* output, const void* params) {
  const xnn_vunary_ukernel_fn logarithm = xnn_init_f32_log_config()->ukernel;
  const float* from = input;
  float* to = output;
  for (size_t left = batch / sizeof(float); left != 0;) {
    const size_t count = min(left, BLOCK);
    if (are_ordinary(from, count)) {
      logarithm(count * sizeof(float), from, to, params);
    } else {
      for (size_t i = 0; i < count; i++) {
        to[i] = logf(from[i]);
      }
    }
    from += count;
    to += count;
    left -= count;
  }
}

// Loads FLOATS elements, or repeats the first if the operand has just one.
static XNN_INLINE floats load(const float* from, bool is_one) {
  if (is_one) {
    return (floats) {*from, *from, *from, *from};
  }
  floats some;
  memcpy(&some, from, sizeof(some));
  return some;
}

// Writes `x > y ? x : y`, or `x < y ? x : y`: the second operand if either is NaN, which is the order of TFLite's reference kernels.
static XNN_INLINE void select_extremes(
    bool largest, size_t batch, const float* x, bool is_one_x, const float* y, bool is_one_y, float* to)
{
  assert(batch != 0 && batch % sizeof(float) == 0);
  size_t left = batch / sizeof(float);
  for (; left >= FLOATS; left -= FLOATS) {
    const floats xs = load(x, is_one_x);
    const floats ys = load(y, is_one_y);
    const conditions takes_x = largest ? xs > ys : xs < ys;
    const floats some = (floats) ((takes_x & (conditions) xs) | (~takes_x & (conditions) ys));
    memcpy(to, &some, sizeof(some));
    x += is_one_x ? 0 : FLOATS;
    y += is_one_y ? 0 : FLOATS;
    to += FLOATS;
  }
  for (; left != 0; left--) {
    const bool takes_x = largest ? *x > *y : *x < *y;
    *to++ = takes_x ? *x : *y;
    x += is_one_x ? 0 : 1;
    y += is_one_y ? 0 : 1;
  }
}

// XNNPACK calls a microkernel with the single element behind the tensor, also where that element is the first operand.
#define SELECTION(name, largest, x, is_one_x, y, is_one_y) \
  void xnnpack_sys_f32_##name##_ukernel__vector( \
      size_t batch, const void* a, const void* b, void* output, const void* params) \
  { \
    select_extremes(largest, batch, x, is_one_x, y, is_one_y, output); \
  }

SELECTION(vrmaxc, true, b, true, a, false)
SELECTION(vrminc, false, b, true, a, false)

#if !XNN_ARCH_X86_64
SELECTION(vmax, true, a, false, b, false)
SELECTION(vmaxc, true, a, false, b, true)
SELECTION(vmin, false, a, false, b, false)
SELECTION(vminc, false, a, false, b, true)
#endif

#if XNN_ARCH_X86_64

#include <xmmintrin.h>

#define LANES 4

static XNN_INLINE __m128 root(__m128 x) { return _mm_sqrt_ps(x); }

static XNN_INLINE __m128 reciprocal_root(__m128 x) { return _mm_div_ps(_mm_set1_ps(1.0f), _mm_sqrt_ps(x)); }

// Applies `function` to one vector after the other, and to the rest one by one.
static XNN_INLINE void apply(__m128 (*function)(__m128), size_t batch, const float* from, float* to) {
  assert(batch != 0 && batch % sizeof(float) == 0);
  size_t count = batch / sizeof(float);
  for (; count >= LANES; count -= LANES, from += LANES, to += LANES) {
    _mm_storeu_ps(to, function(_mm_loadu_ps(from)));
  }
  for (; count != 0; count--) {
    _mm_store_ss(to++, function(_mm_set1_ps(*from++)));
  }
}

void xnnpack_sys_f32_vsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params) {
  apply(root, batch, input, output);
}

void xnnpack_sys_f32_vrsqrt_ukernel__sse(size_t batch, const void* input, void* output, const void* params) {
  apply(reciprocal_root, batch, input, output);
}

static bool are_numbers(const float* x, size_t count) {
  __m128 unordered = _mm_setzero_ps();
  for (; count >= LANES; count -= LANES, x += LANES) {
    const __m128 some = _mm_loadu_ps(x);
    unordered = _mm_or_ps(unordered, _mm_cmpunord_ps(some, some));
  }
  bool are = _mm_movemask_ps(unordered) == 0;
  for (; count != 0; count--, x++) {
    are &= *x == *x;
  }
  return are;
}

void xnnpack_sys_f32_rminmax_ukernel__sse(size_t batch, const void* input, void* output, const void* params) {
  xnn_init_f32_rminmax_config()->ukernel(batch, input, output, params);
  if (!are_numbers(input, batch / sizeof(float))) {
    const float range[] = {NAN, NAN};
    memcpy(output, range, sizeof(range));
  }
}

#endif
