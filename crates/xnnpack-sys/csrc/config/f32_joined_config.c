// Convolutions of floats with fewer than four inputs at a position, as in the first layer of most models, see `operators.h`.
//
// The inputs of all positions are copied one behind the other, and multiplied as a row of a matrix, for which weights are packed in the
// same order: once for all tiles of channels. Results are the same bit for bit. On ARM, XNNPACK's microkernels take four inputs in a step,
// and fewer one by one, so that a single tile gains, too.

#include "config/config.h"

#include "config/operators.h"
#include "ukernels/gemm_f32.h"
#include "ukernels/microkernel.h"
#include "xnnpack/microfnptr.h"

// Inputs of a row that are copied, and rows of the largest tile.
enum { MAX_INPUTS = 512, MAX_ROWS = 6, FEW = F32_GEMM_STEP };

// Microkernels of the configuration by the rows of their tile.
static xnn_gemm_ukernel_fn products[MAX_ROWS];
static xnn_igemm_ukernel_fn convolutions[MAX_ROWS];

// XNNPACK lets microkernels read up to 16 bytes behind inputs.
static XNN_INLINE XNN_OOB_READS void copy_few(float* to, const float* from) { memcpy(to, from, FEW * sizeof(float)); }

// `rows` is a constant where this is inlined. Rows behind the last of a tile have addresses, too.
static XNN_INLINE void join(
    size_t rows, size_t depth, size_t inputs, const float* const* from, size_t offset, const float* zero,
    float to[MAX_ROWS][MAX_INPUTS + FEW])
{
  for (size_t at = 0; at < inputs; at += depth) {
    _Pragma("GCC unroll 6") for (size_t row = 0; row < rows; row++) {
      // Inputs behind the position are written again, or not multiplied.
      copy_few(to[row] + at, input_at(from[row], zero, offset));
    }
    from += rows;
  }
}

#define JOINED(rows) \
  static F32_IGEMM(joined_##rows) { \
    ASSERT_IGEMM(rows, sizeof(float)); \
    const size_t depth = kc / sizeof(float); \
    const size_t all = ks / (rows * sizeof(void*)) * depth; \
    if (depth > FEW || all > MAX_INPUTS) { \
      convolutions[rows - 1](mr, nc, kc, ks, (const void**) a, w, c, cm_stride, cn_stride, a_offset, zero, params); \
      return; \
    } \
    float inputs[MAX_ROWS][MAX_INPUTS + FEW]; \
    join(rows, depth, all, a, a_offset, zero, inputs); \
    products[rows - 1](mr, nc, all * sizeof(float), inputs, sizeof(inputs[0]), w, c, cm_stride, cn_stride, params); \
  }

JOINED(1)
JOINED(4)
JOINED(5)
JOINED(6)

static void replace(struct xnn_gemm_config* config, size_t rows, xnn_igemm_ukernel_fn joined) {
  convolutions[rows - 1] = config->minmax.igemm[rows - 1].function[XNN_UARCH_DEFAULT];
  products[rows - 1] = config->minmax.gemm[rows - 1].function[XNN_UARCH_DEFAULT];
  if (convolutions[rows - 1] != NULL && products[rows - 1] != NULL) {
    config->minmax.igemm[rows - 1] = xnn_init_hmp_igemm_ukernel(joined);
  }
}

static void choose_joined(struct xnn_gemm_config* config) {
  replace(config, 1, (xnn_igemm_ukernel_fn) joined_1);
  replace(config, 4, (xnn_igemm_ukernel_fn) joined_4);
  replace(config, 5, (xnn_igemm_ukernel_fn) joined_5);
  replace(config, 6, (xnn_igemm_ukernel_fn) joined_6);
}

// Microkernels of some processors read weights in another order, or differ from core to core.
static bool joins(void) {
  const struct xnn_gemm_config* config = xnnpack_sys_f32_gemm_config();
  return config != NULL && config->log2_kr == 0 && config->log2_sr == 0 && config->mr <= MAX_ROWS &&
         !xnn_is_hmp_igemm_ukernel(config->minmax.igemm[config->mr - 1]);
}

CHOICE(f32_joined_gemm, xnn_gemm_config, 1, xnnpack_sys_f32_gemm_config, joins(), choose_joined(f32_joined_gemm_configs))
