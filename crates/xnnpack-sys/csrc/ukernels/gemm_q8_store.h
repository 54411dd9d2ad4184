// Stores the sums of a tile: a part of `gemm_q8_bytes.h`, which includes it.

struct output {
  uint8_t* at;
  size_t row_stride;
  size_t tile_stride;
  struct requantization requantization;
  // DYNAMIC: the image's scale. DYNAMIC_ROWS: that of each row, and its zero point.
  vfloat scale;
  const struct xnn_qd8_quantization_params* of_rows;
  // Bounds of floats.
  vfloat min;
  vfloat max;
};

static XNN_INLINE void store_row(
    enum kind kind, const struct output* output, size_t row, const vint sums[VECTORS], const float* scales, size_t channels)
{
  uint8_t* at = output->at + row * output->row_stride;
  vfloat scale[VECTORS];
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    scale[v] = kind == SIGNED ? VINT(loadu_ps, scales + v * VECTOR_LANES) : VINT(setzero_ps);
  }
#ifdef __AVX512BW__
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const size_t first = v * VECTOR_LANES;
    if (channels > first) {
      const __mmask16 lanes = channels - first < VECTOR_LANES ? (1 << (channels - first)) - 1 : ALL_LANES;
      requantize(kind, &output->requantization, sums[v], scale[v], at + first, lanes);
    }
  }
#else
  uint8_t bytes[sizeof(__m128i)];
  _mm_storeu_si128((__m128i*) bytes, requantize_row(kind, &output->requantization, sums, scale));
  if XNN_LIKELY(channels >= CHANNELS) {
    memcpy(at, bytes, CHANNELS);
  } else {
    memcpy(at, bytes, channels);
  }
#endif
}

static XNN_INLINE bool has_float_outputs(enum kind kind) { return kind == DYNAMIC || kind == DYNAMIC_ROWS; }

// Scales sums in the order of TFLite's reference kernels, on which the last bits depend, or rows in that of XNNPACK.
static XNN_INLINE void store_floats(
    enum kind kind, const struct output* output, size_t row, const vint sums[VECTORS], const float* scales, size_t channels)
{
  float* at = (float*) (output->at + row * output->row_stride);
  const float* biases = scales + CHANNELS;
  float some[CHANNELS];
  float* to = channels >= CHANNELS ? at : some;
  UNROLL for (size_t v = 0; v < VECTORS; v++) {
    const vfloat scale = VINT(loadu_ps, scales + v * VECTOR_LANES);
    const vfloat bias = VINT(loadu_ps, biases + v * VECTOR_LANES);
    vfloat sum = VINT(cvtepi32_ps, sums[v]);
    if (kind == DYNAMIC) {
      sum = VINT(add_ps, VINT(mul_ps, VINT(mul_ps, sum, scale), output->scale), bias);
    } else {
      sum = vfloat_add_product(bias, VINT(mul_ps, sum, VINT(set1_ps, output->of_rows[row].inv_scale)), scale);
    }
    // Bounds are first, so that NaN stays NaN.
    VINT(storeu_ps, to + v * VECTOR_LANES, VINT(min_ps, output->max, VINT(max_ps, output->min, sum)));
  }
  if (to == some) {
    memcpy(at, some, channels * sizeof(float));
  }
}
