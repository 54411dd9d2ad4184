// Definitions of microkernels that multiply with `multiply_tiles`, see `gemm_q8_neon.h`.

#define UNSIGNED_OUTPUT \
  {.at = c, .row_stride = cm_stride, .requantization = requantization(params)}

#define SIGNED_OUTPUT \
  {.at = (uint8_t*) c, .row_stride = cm_stride, .int8 = int8_output(params)}

// Rows behind the last one repeat it.
#define GEMM_ROWS(tile_rows) \
  const uint8_t* rows[tile_rows]; \
  for (size_t row = 0; row < (tile_rows); row++) { \
    rows[row] = (const uint8_t*) a + min(row, mr - 1) * a_stride; \
  }

#define DEFINE_UNSIGNED(tile_rows, type, suffix) \
  QU8_GEMM(xnnpack_sys_##type##_gemm_minmax_ukernel_##suffix) { \
    ASSERT_GEMM(tile_rows, 1); \
    GEMM_ROWS(tile_rows) \
    const struct product product = { \
        .input = {.rows = rows, .rows_of_position = tile_rows, .positions = 1, .depth = kc}, \
        .zero_point = params->rndnu_scalar.kernel_zero_point, \
        .output = UNSIGNED_OUTPUT}; \
    multiply_tiles(UNSIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  } \
  QU8_IGEMM(xnnpack_sys_##type##_igemm_minmax_ukernel_##suffix) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct product product = { \
        .input = \
            {.rows = a, .rows_of_position = tile_rows, .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, \
             .offset = a_offset, .zero = zero, .padding = zero}, \
        .zero_point = params->rndnu_scalar.kernel_zero_point, \
        .output = UNSIGNED_OUTPUT}; \
    multiply_tiles(UNSIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  }

#define DEFINE_SIGNED(tile_rows, suffix) \
  QS8_GEMM(xnnpack_sys_qs8_gemm_minmax_ukernel_##suffix) { \
    ASSERT_GEMM(tile_rows, 1); \
    GEMM_ROWS(tile_rows) \
    const struct product product = { \
        .input = {.rows = rows, .rows_of_position = tile_rows, .positions = 1, .depth = kc}, .output = SIGNED_OUTPUT}; \
    multiply_tiles(SIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  } \
  QS8_IGEMM(xnnpack_sys_qs8_igemm_minmax_ukernel_##suffix) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct product product = { \
        .input = \
            {.rows = (const uint8_t* const*) a, .rows_of_position = tile_rows, \
             .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, .offset = a_offset, \
             .zero = (const uint8_t*) zero, .padding = (const uint8_t*) zero}, \
        .output = SIGNED_OUTPUT}; \
    multiply_tiles(SIGNED, tile_rows, mr, nc, product, w, cn_stride); \
  }

#define DEFINE_DYNAMIC(tile_rows, suffix) \
  QC8W_IGEMM(xnnpack_sys_qd8_f32_qc8w_igemm_minmax_ukernel_##suffix) { \
    ASSERT_IGEMM(tile_rows, 1); \
    const struct product product = { \
        .input = \
            {.rows = (const uint8_t* const*) a, .rows_of_position = tile_rows, \
             .positions = ks / ((tile_rows) * sizeof(void*)), .depth = kc, .offset = a_offset, \
             .zero = (const uint8_t*) zero, .padding = (const uint8_t*) zero_data}, \
        .zero_point = quantization_params->zero_point, \
        .output = \
            {.at = (uint8_t*) c, .row_stride = cm_stride, .scale = vdupq_n_f32(quantization_params->inv_scale), \
             .min = vdupq_n_f32(params->scalar.min), .max = vdupq_n_f32(params->scalar.max)}}; \
    multiply_tiles(DYNAMIC, tile_rows, mr, nc, product, w, cn_stride); \
  }

// XNNPACK has parameters of as many rows as a tile.
#define DEFINE_DYNAMIC_ROWS(tile_rows, suffix) \
  QC8W_GEMM(xnnpack_sys_qd8_f32_qc8w_gemm_minmax_ukernel_##suffix) { \
    ASSERT_GEMM(tile_rows, 1); \
    GEMM_ROWS(tile_rows) \
    const struct product product = { \
        .input = {.rows = rows, .rows_of_position = tile_rows, .positions = 1, .depth = kc}, \
        .output = \
            {.at = (uint8_t*) c, .row_stride = cm_stride, .of_rows = quantization_params, \
             .min = vdupq_n_f32(params->scalar.min), .max = vdupq_n_f32(params->scalar.max)}}; \
    multiply_tiles(DYNAMIC_ROWS, tile_rows, mr, nc, product, w, cn_stride); \
  }
