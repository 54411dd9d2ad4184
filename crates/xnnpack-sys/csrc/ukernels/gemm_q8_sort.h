// Sorts the steps of packed weights by form: a part of `gemm_q8_bytes.h`, which includes it.

// Subtracts 128 from whole vectors of weights.
static void make_signed(uint8_t* weights, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(vint)) {
    vint_store(weights + i, VINT_BITS(xor, vint_load(weights + i), VINT(set1_epi8, (int8_t) OFFSET)));
  }
}

// Returns the first of `pairings` pairings in which no sum of two products of a step saturates, or PAIRINGS.
static XNN_INLINE size_t exact_pairing(size_t pairings, const uint8_t* weights) {
  for (size_t pairing = 0; pairing < pairings; pairing++) {
    vint saturating = vint_zero();
    UNROLL for (size_t v = 0; v < VECTORS; v++) {
      const vint bytes = pair_bytes(vint_load(weights + v * sizeof(vint)), pairing);
      // Weights of different signs have a small sum.
      const vint pairs = VINT(abs_epi16, VINT(maddubs_epi16, VINT(set1_epi8, 1), bytes));
      saturating = VINT_BITS(or, saturating, VINT(subs_epu16, pairs, VINT(set1_epi16, 128)));
    }
    if (!SATURATES || !vint_any(saturating)) {
      return pairing;
    }
  }
  return PAIRINGS;
}

// Whether pairings make so many steps of a tile FAST that the buffer should have inputs in the order of each: one for each vector
// that is copied, or for 32 bytes. To copy a vector in two more orders takes four instructions for a row, and a FAST step saves three.
// Several tiles share a copy. Other tiles do not matter, so that weights are packed alike in slices and as a whole.
static bool is_worth_pairing(size_t positions, size_t depth, const uint8_t* pairings) {
  const size_t vector = max(sizeof(vint), 2 * sizeof(__m128i));
  // Short positions are copied together.
  const size_t inputs = depth / positions;
  const size_t enough = inputs < sizeof(__m128i) ? divide_round_up(depth, vector) : positions * divide_round_up(inputs, vector);
  size_t gained = 0;
  for (size_t i = 0; i < depth / DEPTH; i++) {
    gained += pairings[i] != 0 && pairings[i] != PAIRINGS;
  }
  return gained >= enough;
}

static bool has_least_weights(const uint8_t* weights) {
  vint least = vint_zero();
  for (size_t v = 0; v < VECTORS; v++) {
    const vint bytes = vint_load(weights + v * sizeof(vint));
    least = VINT_BITS(or, least, VINT(subs_epu8, VINT(abs_epi8, bytes), VINT(set1_epi8, INT8_MAX)));
  }
  return vint_any(least);
}

// Returns the fastest form of a step that is exact with a pairing, or with none.
static enum form form_of(size_t pairing, const uint8_t* weights) {
  return pairing != PAIRINGS ? FAST : has_least_weights(weights) ? WIDE : SIGNS;
}

// Moves the weights of a step to the order of a pairing, and returns how far behind its inputs the buffer has them in that order.
static size_t pair_weights(size_t pairing, uint8_t* weights) {
  if (pairing == 0) {
    return 0;
  }
  for (size_t v = 0; v < VECTORS; v++) {
    uint8_t* at = weights + v * sizeof(vint);
    vint_store(at, pair_bytes(vint_load(at), pairing));
  }
  const struct buffer_row* row = NULL;
  return offsetof(struct buffer_row, paired) + (pairing - 1) * sizeof(row->paired[0]);
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

// Finds the steps of a position before and behind which a vector of channels has no weights other than 0 at any position.
static struct q8_bytes_steps nonzero_steps(size_t positions, size_t steps, const uint8_t* weights) {
  struct q8_bytes_steps nonzero = {(uint16_t) steps, 0};
  for (size_t i = 0; i < positions * steps; i++) {
    const uint16_t step = (uint16_t) (i % steps);
    if (vint_any(vint_load(weights + i * CHANNELS * DEPTH))) {
      nonzero.first = min(nonzero.first, step);
      nonzero.end = max(nonzero.end, step + 1);
    }
  }
  return nonzero;
}

// Makes a tile DIRECT if that takes less time: if half of its steps have no weights other than 0, as in groups that were merged, or if
// inputs would be copied for few products. Of its vectors, `vectors` have channels; `is_alone` if no other tile needs its inputs.
static bool make_direct(
    size_t positions, size_t vectors, bool is_alone, const uint8_t* weights, size_t depth, struct q8_bytes_order* order)
{
  enum { FEW_STEPS = 4 };
  const size_t steps = depth / DEPTH / positions;
  // Vectors of 512 bits have no instruction for signs.
  if (!SATURATES || sizeof(vint) > sizeof(__m256i) || depth > BUFFER) {
    return false;
  }
  for (size_t i = 0; i < depth / DEPTH; i++) {
    if (has_least_weights(weights + i * CHANNELS * DEPTH)) {
      return false;
    }
  }
  size_t taken = 0;
  for (size_t v = 0; v < vectors; v++) {
    order->nonzero[v] = nonzero_steps(positions, steps, weights + v * sizeof(vint));
    taken += order->nonzero[v].end - min(order->nonzero[v].first, order->nonzero[v].end);
  }
  order->direct = 2 * taken <= vectors * steps || (is_alone && (vectors == 1 || steps <= FEW_STEPS));
  return order->direct != 0;
}

// Sorts the steps of a tile by form, block by block.
static void sort_steps(
    bool is_unsigned, size_t positions, size_t vectors, bool is_alone, uint8_t* weights, size_t depth, uint8_t* more)
{
  int32_t* corrections = (int32_t*) more;
  memset(more, 0, xnnpack_sys_q8_order_size(CHANNELS, depth));
  struct q8_bytes_order* order = (struct q8_bytes_order*) (corrections + CHANNELS);
  if (!is_unsigned && make_direct(positions, vectors, is_alone, weights, depth, order)) {
    order->signs = (uint16_t) (depth / DEPTH);
    for (size_t i = 0; i < depth / DEPTH; i++) {
      order->places[i] = (uint16_t) (i * DEPTH);
      add_corrections(weights + i * CHANNELS * DEPTH, corrections);
    }
    return;
  }
  const bool fits = SATURATES && depth <= PAIRED;
  while (depth > 0) {
    const size_t some = min(depth, BUFFER);
    const size_t steps = some / DEPTH;
    uint8_t pairings[BUFFER / DEPTH];
    uint8_t forms[BUFFER / DEPTH];
    for (size_t i = 0; i < steps; i++) {
      const uint8_t* at = weights + i * CHANNELS * DEPTH;
      // Two calls, so that the number is a constant in each.
      pairings[i] = (uint8_t) (fits ? exact_pairing(PAIRINGS, at) : exact_pairing(1, at));
    }
    order->paired = fits && is_worth_pairing(positions, depth, pairings);
    for (size_t i = 0; i < steps; i++) {
      uint8_t* at = weights + i * CHANNELS * DEPTH;
      const size_t pairing = order->paired || pairings[i] == 0 ? pairings[i] : PAIRINGS;
      forms[i] = (uint8_t) form_of(pairing, at);
      order->places[i] = (uint16_t) (i * DEPTH);
      if (forms[i] == FAST) {
        order->places[i] += (uint16_t) pair_weights(pairing, at);
      } else if (forms[i] == SIGNS) {
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
    bool is_unsigned, size_t groups, size_t channels, size_t positions, size_t depth, void* packed, size_t extra_bytes)
{
  const size_t more = xnnpack_sys_q8_order_size(CHANNELS, depth);
  assert(extra_bytes >= more);
  // A layer of one group may be packed in slices, of which none has fewer channels than a tile.
  const bool are_all = groups > 1 || channels <= VECTOR_LANES;
  uint8_t* at = packed;
  for (; groups > 0; groups--) {
    for (size_t channel = 0; channel < channels; channel += CHANNELS) {
      at += CHANNELS * sizeof(int32_t);
      uint8_t* end = at + depth * CHANNELS + extra_bytes;
      if (is_unsigned) {
        make_signed(at, depth * CHANNELS);
      }
      const size_t vectors = channels - channel > VECTOR_LANES ? VECTORS : 1;
      sort_steps(is_unsigned, positions, vectors, are_all && channels <= CHANNELS, at, depth, end - more);
      at = end;
    }
  }
}

// Whether the buffer has inputs for a step of this form at `place`, where `some` bytes of a row are in it.
static bool is_place(enum form form, bool paired, size_t place, size_t some) {
  const size_t first = offsetof(struct buffer_row, paired);
  if (form == FAST && place >= first) {
    const struct buffer_row* row = NULL;
    if (!paired || place - first >= sizeof(row->paired)) {
      return false;
    }
    place = (place - first) % sizeof(row->paired[0]);
  }
  return place % DEPTH == 0 && place < some;
}

// Whether an order of steps, of which the buffer has `some` bytes of a row at once, reads and writes the buffer alone.
static bool is_sound(const struct q8_bytes_order* order, size_t depth, size_t some) {
  const size_t steps = some / DEPTH;
  const bool paired = order->paired != 0;
  if (order->wide > steps || order->signs > steps - order->wide || (paired && depth > PAIRED)) {
    return false;
  }
  if (order->direct != 0 && (depth > BUFFER || order->signs != steps)) {
    return false;
  }
  for (size_t i = 0; i < steps; i++) {
    const enum form form = i < order->wide ? WIDE : i < (size_t) order->wide + order->signs ? SIGNS : FAST;
    if (!is_place(form, paired, order->places[i], some)) {
      return false;
    }
  }
  return true;
}

bool WITH_ISA(xnnpack_sys_are_orders_sound_q8_)(size_t tiles, size_t depth, const void* packed, size_t stride) {
  const uint8_t* end = packed;
  for (; tiles > 0; tiles--) {
    end += stride;
    const uint8_t* at = end - xnnpack_sys_q8_order_size(CHANNELS, depth) + CHANNELS * sizeof(int32_t);
    for (size_t done = 0; done < depth; done += BUFFER) {
      const struct q8_bytes_order* order = (const struct q8_bytes_order*) at;
      if (!is_sound(order, depth, min(depth - done, BUFFER))) {
        return false;
      }
      at = (const uint8_t*) (order->places + BUFFER / DEPTH);
    }
  }
  return true;
}
