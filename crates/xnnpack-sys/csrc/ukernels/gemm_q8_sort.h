// Sorts the steps of packed weights by form: a part of `gemm_q8_bytes.h`, which includes it.

// The fastest exact form of a step, whose weights get 128 subtracted if they are unsigned.
static enum form form_of(bool is_unsigned, uint8_t* weights) {
  vint saturating = vint_zero();
  vint least = vint_zero();
  for (size_t v = 0; v < CHANNELS * DEPTH; v += sizeof(vint)) {
    vint bytes = vint_load(weights + v);
    if (is_unsigned) {
      bytes = VINT_BITS(xor, bytes, VINT(set1_epi8, (int8_t) OFFSET));
      vint_store(weights + v, bytes);
    }
    // Weights of different signs have a small sum.
    const vint pairs = VINT(abs_epi16, VINT(maddubs_epi16, VINT(set1_epi8, 1), bytes));
    saturating = VINT_BITS(or, saturating, VINT(subs_epu16, pairs, VINT(set1_epi16, 128)));
    least = VINT_BITS(or, least, VINT(subs_epu8, VINT(abs_epi8, bytes), VINT(set1_epi8, INT8_MAX)));
  }
  return !SATURATES || !vint_any(saturating) ? FAST : vint_any(least) ? WIDE : SIGNS;
}

// Adds OFFSET times the sum of each channel's four weights in a step.
static void add_corrections(const uint8_t* weights, int32_t corrections[CHANNELS]) {
  for (size_t v = 0; v < VECTORS; v++) {
    const vint pairs = VINT(maddubs_epi16, VINT(set1_epi8, 1), vint_load(weights + v * sizeof(vint)));
    int32_t* to = corrections + v * VECTOR_LANES;
    vint_store(to, VINT(add_epi32, vint_load(to), VINT(madd_epi16, pairs, VINT(set1_epi16, OFFSET))));
  }
}

static void exchange(uint8_t* a, uint8_t* b) {
  for (size_t i = 0; i < CHANNELS * DEPTH; i += sizeof(vint)) {
    const vint left = vint_load(a + i);
    vint_store(a + i, vint_load(b + i));
    vint_store(b + i, left);
  }
}

// Moves the steps of a form to the front, from step `first` on, and returns their number.
static size_t bring_forward(
    enum form form, uint8_t forms[BUFFER / DEPTH], size_t first, size_t steps, uint8_t* weights, uint16_t* places)
{
  size_t next = first;
  for (size_t i = first; i < steps; i++) {
    if (forms[i] != form) {
      continue;
    }
    if (i != next) {
      exchange(weights + i * CHANNELS * DEPTH, weights + next * CHANNELS * DEPTH);
      const uint16_t place = places[i];
      places[i] = places[next];
      places[next] = place;
      forms[i] = forms[next];
      forms[next] = (uint8_t) form;
    }
    next++;
  }
  return next - first;
}

// Sorts the steps of a tile by form, block by block.
static void sort_steps(bool is_unsigned, uint8_t* weights, size_t depth, uint8_t* more) {
  int32_t* corrections = (int32_t*) more;
  memset(more, 0, xnnpack_sys_q8_order_size(CHANNELS, depth));
  struct q8_bytes_order* order = (struct q8_bytes_order*) (corrections + CHANNELS);
  while (depth > 0) {
    const size_t some = min(depth, BUFFER);
    const size_t steps = some / DEPTH;
    uint8_t forms[BUFFER / DEPTH];
    for (size_t i = 0; i < steps; i++) {
      uint8_t* at = weights + i * CHANNELS * DEPTH;
      forms[i] = (uint8_t) form_of(is_unsigned, at);
      order->places[i] = (uint16_t) (i * DEPTH);
      if (forms[i] == SIGNS) {
        add_corrections(at, corrections);
      }
    }
    order->wide = (uint16_t) bring_forward(WIDE, forms, 0, steps, weights, order->places);
    order->signs = (uint16_t) bring_forward(SIGNS, forms, order->wide, steps, weights, order->places);
    weights += some * CHANNELS;
    depth -= some;
    order = (struct q8_bytes_order*) (order->places + BUFFER / DEPTH);
  }
}

void WITH_ISA(xnnpack_sys_sort_q8_)(
    bool is_unsigned, size_t groups, size_t channels, size_t depth, void* packed, size_t extra_bytes)
{
  const size_t more = xnnpack_sys_q8_order_size(CHANNELS, depth);
  assert(extra_bytes >= more);
  uint8_t* at = packed;
  for (; groups > 0; groups--) {
    for (size_t channel = 0; channel < channels; channel += CHANNELS) {
      at += CHANNELS * sizeof(int32_t);
      uint8_t* end = at + depth * CHANNELS + extra_bytes;
      sort_steps(is_unsigned, at, depth, end - more);
      at = end;
    }
  }
}
