// See `indirection.h`. Microkernels get the pointers that they get from XNNPACK, so that results are the same.

#include "hooks/indirection.h"

#include "xnnpack/allocator.h"
#include "xnnpack/config.h"
#include "xnnpack/math.h"

static size_t greatest_common_divisor(size_t a, size_t b) {
  while (b != 0) {
    const size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Rows of outputs without padding above or below: [start, end).
struct rows {
  size_t start;
  size_t end;
};

static struct rows rows_inside(xnn_operator_t op) {
  const size_t reach = ((size_t) op->kernel_height - 1) * op->dilation_height;
  const size_t last = op->padding_top + op->input_height;
  struct rows rows = {.start = divide_round_up(op->padding_top, op->stride_height), .end = 0};
  if (last > reach) {
    rows.end = min((last - 1 - reach) / op->stride_height + 1, op->output_height);
  }
  return rows;
}

// Allocates memory for pointers. Returns false on failure.
static bool allocate(xnn_operator_t op, size_t bytes) {
  const void** buffer = xnn_reallocate_memory((void*) op->indirection_buffer, bytes);
  if (buffer == NULL) {
    // Otherwise the next image of this size would pass for one whose pointers exist.
    op->last_input_height = 0;
    return false;
  }
  op->indirection_buffer = buffer;
  return true;
}

// Allocates memory for the pointers of `count` outputs (or rows), of which some repeat.
static bool allocate_repeating(xnn_operator_t op, size_t count, struct xnnpack_sys_pointers pointers) {
  const size_t kept = count - (pointers.end - pointers.start - pointers.period);
  if (!allocate(op, sizeof(pointers) + kept * pointers.stride * sizeof(void*))) {
    return false;
  }
  struct xnnpack_sys_pointers* all = (struct xnnpack_sys_pointers*) op->indirection_buffer;
  *all = pointers;
  const uint64_t one = UINT64_C(1) << XNNPACK_SYS_RECIPROCAL_BITS;
  all->reciprocal = pointers.period == 0 ? 0 : (one + pointers.period - 1) / pointers.period;
  return true;
}

// Returns the start to pass to XNNPACK's functions: they write the pointers of output (or row) `at` behind those of all outputs
// before it.
static const void** origin_of(const void** buffer, size_t at) {
  const struct xnnpack_sys_pointers* all = (const struct xnnpack_sys_pointers*) buffer;
  const uintptr_t place = (uintptr_t) xnnpack_sys_place_of(buffer, at).pointers;
  return (const void**) (place - at * all->stride * sizeof(void*));
}

static void write_conv2d(
    xnn_operator_t op, const void** origin, size_t start, size_t end, size_t tile, size_t pixel_bytes)
{
  xnn_indirection_init_conv2d(
      tile, start, end, origin, op->input, op->zero_buffer, pixel_bytes, op->input_height, op->input_width,
      op->output_height, op->output_width, op->kernel_height, op->kernel_width, op->stride_height, op->stride_width,
      op->dilation_height, op->dilation_width, op->padding_top, op->padding_left);
}

static size_t taps_of(xnn_operator_t op) {
  return (size_t) op->kernel_height * op->kernel_width;
}

static bool repeat(struct xnnpack_sys_pointers pointers) {
  return pointers.end > pointers.start && pointers.end - pointers.start > pointers.period && pointers.end < (size_t) 1 << 24 &&
         pointers.period < (size_t) 1 << 16;
}

static struct xnnpack_sys_pointers of_tiles(xnn_operator_t op, size_t tile, size_t pixel_bytes) {
  const struct rows rows = rows_inside(op);
  // Rows after which tiles begin at the same column again.
  const size_t period = tile / greatest_common_divisor(op->output_width, tile);
  return (struct xnnpack_sys_pointers) {
      .start = round_up(rows.start * op->output_width, tile),
      .period = period * op->output_width,
      .end = rows.end * op->output_width / tile * tile,
      .step = period * op->stride_height * op->input_width * pixel_bytes,
      .stride = taps_of(op),
  };
}

bool xnnpack_sys_tiles_repeat(xnn_operator_t op, size_t tile) {
#if XNN_MAX_UARCH_TYPES > 1
  if (xnn_is_hmp_igemm_ukernel(op->ukernel.igemm.igemm_cases[tile - 1])) {
    return false;
  }
#endif
  return op->groups == 1 && repeat(of_tiles(op, tile, 0));
}

bool xnnpack_sys_point_conv2d(xnn_operator_t op, size_t bytes, size_t tile, uint32_t log2_input_element_size) {
  const size_t pixel_bytes = op->input_pixel_stride << log2_input_element_size;
  const size_t count = round_up(op->output_height * op->output_width, tile);
  if (!xnnpack_sys_tiles_repeat(op, tile)) {
    if (!allocate(op, bytes)) {
      return false;
    }
    write_conv2d(op, op->indirection_buffer, 0, count, tile, pixel_bytes);
    return true;
  }
  const struct xnnpack_sys_pointers pointers = of_tiles(op, tile, pixel_bytes);
  if (!allocate_repeating(op, count, pointers)) {
    return false;
  }
  const void** buffer = op->indirection_buffer;
  write_conv2d(op, origin_of(buffer, 0), 0, pointers.start + pointers.period, tile, pixel_bytes);
  write_conv2d(op, origin_of(buffer, pointers.end), pointers.end, count, tile, pixel_bytes);
  return true;
}

static void write_dwconv2d(
    xnn_operator_t op, const void** origin, size_t start, size_t end, size_t tile, size_t step_height,
    size_t step_width, size_t pixel_bytes)
{
  xnn_indirection_init_dwconv2d(
      start, end, origin, op->input, pixel_bytes, op->zero_buffer, op->input_height, op->input_width,
      op->output_height, op->output_width, op->kernel_height, op->kernel_width, op->stride_height, op->stride_width,
      op->dilation_height, op->dilation_width, op->padding_top, op->padding_left, step_height, step_width, tile);
}

size_t xnnpack_sys_step_width(xnn_operator_t op, uint32_t log2_input_element_size) {
  const size_t tile = op->ukernel.dwconv.tile_size;
  const bool are_floats = log2_input_element_size != 0;
  if (are_floats && tile > taps_of(op)) {
    return divide_round_up(tile, op->kernel_height);
  }
  return op->dilation_width == 1 ? min(op->stride_width, op->kernel_width) : op->kernel_width;
}

static void point_to_zeros(xnn_operator_t op, const void** pointers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pointers[i] = op->zero_buffer;
  }
}

bool xnnpack_sys_point_dwconv2d(
    xnn_operator_t op, size_t bytes, size_t tile, size_t step_height, size_t step_width, uint32_t log2_input_element_size)
{
  const size_t pixel_bytes = op->input_pixel_stride << log2_input_element_size;
  if (op->ukernel.dwconv.last_tile != 0) {
    if (!allocate(op, bytes)) {
      return false;
    }
    write_dwconv2d(op, op->indirection_buffer, 0, op->output_height, tile, step_height, step_width, pixel_bytes);
    return true;
  }
  const struct rows rows = rows_inside(op);
  // Microkernels for more taps read beyond those of the last pixel.
  const size_t taps = taps_of(op);
  const size_t spare = tile - taps;
  struct xnnpack_sys_pointers pointers = {
      .start = rows.start,
      .period = 1,
      .end = rows.end,
      .step = op->stride_height * op->input_width * pixel_bytes,
      .stride = step_height + spare,
  };
  if (!repeat(pointers)) {
    pointers.start = op->output_height;
    pointers.end = op->output_height;
    pointers.period = 0;
  }
  if (!allocate_repeating(op, op->output_height, pointers)) {
    return false;
  }
  const void** buffer = op->indirection_buffer;
  const size_t ranges[2][2] = {{0, pointers.start + pointers.period}, {pointers.end, op->output_height}};
  for (size_t i = 0; i < 2; i++) {
    for (size_t row = ranges[i][0]; spare != 0 && row < ranges[i][1]; row++) {
      point_to_zeros(op, xnnpack_sys_place_of(buffer, row).pointers, pointers.stride);
    }
    write_dwconv2d(
        op, origin_of(buffer, ranges[i][0]), ranges[i][0], ranges[i][1], taps, pointers.stride, step_width, pixel_bytes);
  }
  return true;
}

// Operands and the output of a tile of an image.
struct operands {
  struct xnnpack_sys_place input;
  const void* weights;
  void* output;
};

static XNN_INLINE struct operands operands_of(const struct igemm_context* context, size_t image, size_t m, size_t n) {
  struct xnnpack_sys_place input = xnnpack_sys_place_of(context->indirect_a, m);
  input.offset += context->a_offset + image * context->ba_stride;
  return (struct operands) {
      .input = input,
      .weights = (const void*) ((uintptr_t) context->packed_w + n * context->w_stride),
      .output = (void*) ((uintptr_t) context->c + image * context->bc_stride + m * context->cm_stride +
                         (n << context->log2_csize)),
  };
}

static XNN_INLINE void compute_igemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels)
{
  const struct operands of = operands_of(context, image, m, n);
  context->ukernel.function[XNN_UARCH_DEFAULT](
      rows, channels, context->kc, context->ks_scaled, of.input.pointers, of.weights, of.output, context->cm_stride,
      context->cn_stride, of.input.offset, context->zero, &context->params);
}

static XNN_INLINE void compute_dqigemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels)
{
  const struct operands of = operands_of(context, image, m, n);
  context->dq_ukernel.function[XNN_UARCH_DEFAULT](
      rows, channels, context->kc, context->ks_scaled, of.input.pointers, of.weights, of.output, context->cm_stride,
      context->cn_stride, of.input.offset, context->zero, context->zero_buffers[image], &context->params,
      &context->quantization_params[image]);
}

void xnnpack_sys_compute_igemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels)
{
  compute_igemm(context, 0, m, n, rows, channels);
}

void xnnpack_sys_compute_igemm_tiles(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels, size_t tile_rows)
{
  for (size_t at = 0; at < rows; at += tile_rows) {
    compute_igemm(context, 0, m + at, n, min(tile_rows, rows - at), channels);
  }
}

void xnnpack_sys_compute_batch_igemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels)
{
  compute_igemm(context, image, m, n, rows, channels);
}

void xnnpack_sys_compute_dqigemm(
    const struct igemm_context* context, size_t m, size_t n, size_t rows, size_t channels)
{
  compute_dqigemm(context, 0, m, n, rows, channels);
}

void xnnpack_sys_compute_batch_dqigemm(
    const struct igemm_context* context, size_t image, size_t m, size_t n, size_t rows, size_t channels)
{
  compute_dqigemm(context, image, m, n, rows, channels);
}

void xnnpack_sys_compute_dwconv_unipass(const struct dwconv_context* context, size_t image, size_t y) {
  const struct xnnpack_sys_place place = xnnpack_sys_place_of(context->indirect_input, y);
  context->unipass_ukernel(
      context->groups, context->output_width, place.pointers, context->packed_weights,
      (void*) ((uintptr_t) context->output + image * context->output_batch_stride + y * context->output_height_stride),
      context->indirect_input_width_stride, context->output_increment,
      context->input_offset + image * context->input_batch_stride + place.offset, context->zero, &context->params);
}
