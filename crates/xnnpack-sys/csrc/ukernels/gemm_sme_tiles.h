// Loops over the tiles of a product, see `gemm_sme.h`. Included by a file for each type, which defines
//
// - `enum kind`, a constant wherever functions are inlined
// - `struct output` with `at`, the address of the first output
// - `layout_of`: how weights are packed
// - `start_sums`: sets all sums before products are added
// - `store_rows`: stores sums as outputs from an address on

#include "ukernels/gemm_sme.h"

// Bytes of transposed inputs, and of sums.
#define INPUT_BYTES (32 * 1024)
#define SUM_BYTES (32 * 1024)

struct buffers {
  uint8_t inputs[INPUT_BYTES] __attribute__((aligned(64)));
  uint8_t sums[SUM_BYTES] __attribute__((aligned(64)));
};

// A product, and the vectors of this thread.
struct product {
  const struct sme_input* input;
  // Words of a row, at all positions.
  size_t words;
  const void* weights;
  struct sme_layout layout;
  const struct output* output;
  size_t vector;
  // Words of a vector.
  size_t lanes;
};

// Words of inputs that are in the buffer.
struct part {
  size_t start;
  size_t count;
};

static XNN_INLINE const void* weights_of_channel(const struct product* product, size_t channel) {
  const struct sme_layout* layout = &product->layout;
  const size_t of_tile = channel / layout->channels * layout->tile_bytes;
  return sme_behind(product->weights, of_tile + channel % layout->channels * sizeof(uint32_t));
}

static XNN_INLINE void store_sums(
    enum kind kind, const struct product* product, size_t channel, struct sme_sums sums)
{
  const size_t rows = product->input->rows;
  uint8_t* const to = product->output->at + channel * product->layout.output_bytes;
  sums.are_first = true;
  sums.row = 0;
  sums.rows = min(rows, product->lanes);
  store_rows(kind, product->output, &sums, to);
  if (rows > sums.rows) {
    sums.are_first = false;
    sums.row = sums.rows;
    sums.rows = rows - sums.rows;
    store_rows(kind, product->output, &sums, to + sums.row * product->output->row_stride);
  }
}

// Computes up to two vectors of channels. `sums` has those of earlier parts, and then those of this one if it is not the last.
static XNN_INLINE void compute_channels(
    enum kind kind, const struct product* product, size_t channel, size_t channels, struct part part, const uint8_t* inputs,
    void* sums)
{
  const void* first = weights_of_channel(product, channel);
  const void* further = channels > product->lanes ? weights_of_channel(product, channel + product->lanes) : first;
  if (part.start == 0) {
    start_sums(kind, product->output, first, further);
  } else {
    sme_restore_sums(product->vector, sums);
  }
  const size_t at = (1 + part.start) * product->layout.word_bytes;
  const struct sme_weights weights = {
      .first = sme_behind(first, at), .further = sme_behind(further, at), .stride = product->layout.word_bytes};
  sme_multiply(product->lanes, product->input->rows, channels, inputs, weights, part.count);
  if (part.start + part.count < product->words) {
    sme_save_sums(product->vector, sums);
  } else {
    store_sums(
        kind, product, channel, (struct sme_sums) {.channels = channels, .first = first, .further = further});
  }
}

// Inputs that do not fit into the buffer are transposed in parts, each for as many channels as there is space for sums.
static XNN_INLINE void compute(
    enum kind kind, const struct sme_input* input, size_t nc, const void* weights, const struct output* output)
{
  struct buffers buffers;
  struct sme_saved saved;
  const size_t vector = sme_vector_bytes();
  const size_t words = input->positions * input->words;
  const struct product product = {
      .input = input, .words = words, .weights = weights, .layout = layout_of(kind, vector, words), .output = output,
      .vector = vector, .lanes = vector / sizeof(uint32_t)};
  const size_t step = 2 * product.lanes;
  const size_t most = INPUT_BYTES / (2 * vector);
  const size_t channels_of_part = words <= most ? nc : SUM_BYTES / (vector * vector) * step;
  sme_start(&saved);
  for (size_t start = 0; start < nc; start += channels_of_part) {
    const size_t end = start + min(nc - start, channels_of_part);
    for (struct part part = {.start = 0}; part.start < words; part.start += part.count) {
      part.count = min(words - part.start, most);
      sme_transpose(input, product.lanes, part.start, part.count, buffers.inputs);
      uint8_t* sums = buffers.sums;
      for (size_t channel = start; channel < end; channel += step) {
        compute_channels(kind, &product, channel, min(end - channel, step), part, buffers.inputs, sums);
        sums += vector * vector;
      }
    }
  }
  sme_stop(&saved);
}
