// Tiles of the products of `gemm_q8_neon.h`.

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend.
static XNN_INLINE void store_scaled(
    const struct output* output, uint8_t* to, const int32x4_t sums[VECTORS], const float* scales, size_t channels)
{
  float32x4_t values[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const float32x4_t product = vmulq_f32(vmulq_f32(vcvtq_f32_s32(sums[v]), vld1q_f32(scales + v * 4)), output->scale);
    const float32x4_t sum = vaddq_f32(product, vld1q_f32(scales + CHANNELS + v * 4));
    values[v] = vminq_f32(vmaxq_f32(sum, output->min), output->max);
  }
  store_floats((float*) to, values, channels);
}

// Computes the first `channels` channels of a tile, and returns the end of its weights.
static XNN_INLINE const uint8_t* tile(
    enum kind kind, size_t rows, size_t mr, size_t channels, const struct product* product,
    const int32_t offsets[ROWS], const uint8_t* weights)
{
  int32x4_t start[VECTORS];
  load_block(weights, start);
  weights += CHANNELS * sizeof(int32_t);
  if (kind == DYNAMIC) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      start[v] = vmulq_n_s32(start[v], product->zero_point);
    }
  }
  int32x4_t sums[ROWS][VECTORS];
  UNROLL for (size_t row = 0; row < rows; row++) {
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      sums[row][v] = vaddq_s32(start[v], vdupq_n_s32(offsets[row]));
    }
  }
  const struct input* input = &product->input;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, position * rows + row);
    }
    weights = multiply(kind, rows, sums, from, input->depth, weights, product->zero_point);
  }
  UNROLL for (size_t row = 0; row < rows; row++) {
    if (row < mr) {
      uint8_t* to = product->output.at + row * product->output.row_stride;
      if (kind == UNSIGNED) {
        store_bytes(to, requantize(&product->output.requantization, sums[row]), channels);
      } else {
        store_scaled(&product->output, to, sums[row], (const float*) weights, channels);
      }
    }
  }
  return kind == UNSIGNED ? weights : weights + 2 * CHANNELS * sizeof(float);
}

static XNN_INLINE void multiply_tiles(
    enum kind kind, size_t rows, size_t mr, size_t nc, struct product product, const uint8_t* weights,
    size_t tile_stride)
{
  int32_t offsets[ROWS];
  find_offsets(kind, rows, &product, offsets);
  for (;;) {
    weights = tile(kind, rows, mr, nc, &product, offsets, weights);
    if (nc <= CHANNELS) {
      return;
    }
    nc -= CHANNELS;
    product.output.at += tile_stride;
  }
}

#define UNSIGNED_OUTPUT \
  {.at = c, .row_stride = cm_stride, .requantization = requantization(params)}

#define DEFINE_UNSIGNED(tile_rows, type, suffix) \
  QU8_GEMM(xnnpack_sys_##type##_gemm_minmax_ukernel_##suffix) { \
    ASSERT_GEMM(tile_rows, 1); \
    const uint8_t* rows[tile_rows]; \
    for (size_t row = 0; row < (tile_rows); row++) { \
      rows[row] = a + min(row, mr - 1) * a_stride; \
    } \
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
