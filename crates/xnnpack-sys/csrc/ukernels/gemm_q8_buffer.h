// Copies the inputs of a tile to the buffer: a part of `gemm_q8_bytes.h`, which includes it.

// Inputs in the forms that steps need: those with signs only where sums saturate.
struct forms {
  __m128i inputs;
  __m128i signs;
  __m128i magnitudes;
};

// Returns the places from which a pairing takes the bytes of a vector: the first byte of each step is added to its second, third or
// fourth one.
static XNN_INLINE __m128i places_of(size_t pairing) {
  return pairing == 0 ? _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
       : pairing == 1 ? _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15)
                      : _mm_setr_epi8(0, 3, 1, 2, 4, 7, 5, 6, 8, 11, 9, 10, 12, 15, 13, 14);
}

static XNN_INLINE vint pair_bytes(vint bytes, size_t pairing) {
  return VINT(shuffle_epi8, bytes, vint_set1_128(places_of(pairing)));
}

// Returns the operand of `with_signs` for signed inputs: all ones where they are negative with AVX512, whose masks take longer, the
// inputs themselves otherwise.
#ifdef __AVX512BW__
static XNN_INLINE __m128i signs_of(__m128i inputs) { return _mm_cmpgt_epi8(_mm_setzero_si128(), inputs); }
static XNN_INLINE vint signs_of_vector(vint inputs) { return _mm512_movm_epi8(_mm512_movepi8_mask(inputs)); }
#else
static XNN_INLINE __m128i signs_of(__m128i inputs) { return inputs; }
static XNN_INLINE vint signs_of_vector(vint inputs) { return inputs; }
#endif

static XNN_INLINE struct forms forms_of(enum kind kind, __m128i inputs) {
  const __m128i flipped = _mm_xor_si128(inputs, _mm_set1_epi8((int8_t) OFFSET));
  const __m128i signs = kind == UNSIGNED ? flipped : inputs;
  return (struct forms) {
      .inputs = kind == UNSIGNED ? inputs : flipped, .signs = signs_of(signs), .magnitudes = _mm_abs_epi8(signs)};
}

// Writes a vector of inputs, in the order of each pairing if `paired`.
static XNN_INLINE void put_vector(enum kind kind, bool paired, struct buffer_row* row, size_t at, const uint8_t* from) {
  const vint inputs = vint_load(from);
  const vint flipped = VINT_BITS(xor, inputs, VINT(set1_epi8, (int8_t) OFFSET));
  const vint signs = kind == UNSIGNED ? flipped : inputs;
  const vint bytes = kind == UNSIGNED ? inputs : flipped;
  vint_store(row->inputs + at, bytes);
  if (paired) {
    UNROLL for (size_t i = 1; i < PAIRINGS; i++) {
      vint_store(row->paired[i - 1] + at, pair_bytes(bytes, i));
    }
  }
  if (SATURATES) {
    vint_store(row->signs + at, signs_of_vector(signs));
    vint_store(row->magnitudes + at, VINT(abs_epi8, signs));
  }
}

// Stores the first 16, 8 or 4 bytes, a constant number.
static XNN_INLINE void store_some(void* to, __m128i bytes, size_t count) {
  if (count == sizeof(__m128i)) {
    _mm_storeu_si128((__m128i*) to, bytes);
  } else if (count == sizeof(uint64_t)) {
    _mm_storel_epi64((__m128i*) to, bytes);
  } else {
    const int32_t step = _mm_cvtsi128_si32(bytes);
    memcpy(to, &step, DEPTH);
  }
}

// Writes the first 16, 8 or 4 inputs as `put_vector` does.
static XNN_INLINE void put_some(enum kind kind, bool paired, struct buffer_row* row, size_t at, __m128i inputs, size_t count) {
  const struct forms forms = forms_of(kind, inputs);
  store_some(row->inputs + at, forms.inputs, count);
  if (paired) {
    UNROLL for (size_t i = 1; i < PAIRINGS; i++) {
      store_some(row->paired[i - 1] + at, _mm_shuffle_epi8(forms.inputs, places_of(i)), count);
    }
  }
  if (SATURATES) {
    store_some(row->signs + at, forms.signs, count);
    store_some(row->magnitudes + at, forms.magnitudes, count);
  }
}

// Writes `count` inputs, padded with zeros to whole steps, without reading beyond them. Each vector is written in all forms at once:
// reading it again from several smaller stores would wait for them.
static XNN_INLINE void put(
    enum kind kind, bool paired, struct buffer_row* row, size_t at, const uint8_t* from, size_t count)
{
  const size_t whole = count - count % DEPTH;
  size_t i = 0;
  for (; i + sizeof(vint) <= whole; i += sizeof(vint)) {
    put_vector(kind, paired, row, at + i, from + i);
  }
  // With vectors of 512 bits, up to 60 bytes.
  for (; i + sizeof(__m128i) <= whole; i += sizeof(__m128i)) {
    put_some(kind, paired, row, at + i, _mm_loadu_si128((const __m128i*) (from + i)), sizeof(__m128i));
  }
  if (i + sizeof(uint64_t) <= whole) {
    put_some(kind, paired, row, at + i, _mm_loadl_epi64((const __m128i*) (from + i)), sizeof(uint64_t));
    i += sizeof(uint64_t);
  }
  for (; i < count; i += DEPTH) {
    const uint32_t step = load_up_to_4(from + i, min(count - i, DEPTH));
    put_some(kind, paired, row, at + i, _mm_cvtsi32_si128((int32_t) step), DEPTH);
  }
}

// Copies all positions, of `steps` steps each, without reading beyond them.
static XNN_INLINE void copy_steps(size_t steps, size_t rows, const struct input* input, struct buffer* buffer) {
  const size_t last = (steps - 1) * DEPTH;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* const* addresses = input->rows + position * input->rows_of_position;
    for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = address_of(input, addresses[row]);
      uint8_t* to = buffer->rows[row].inputs + position * steps * DEPTH;
      memcpy(to, from, last);
      const uint32_t step = load_up_to_4(from + last, input->depth - last);
      memcpy(to + last, &step, DEPTH);
    }
  }
}

// Copies all positions, which have fewer inputs than 16 bytes. Not inlined, because each microkernel would have a copy.
static __attribute__((noinline)) void copy_positions(size_t rows, const struct input* input, struct buffer* buffer) {
  switch (divide_round_up(input->depth, DEPTH)) {
    case 1:
      copy_steps(1, rows, input, buffer);
      break;
    case 2:
      copy_steps(2, rows, input, buffer);
      break;
    case 3:
      copy_steps(3, rows, input, buffer);
      break;
    default:
      copy_steps(4, rows, input, buffer);
  }
}

// Fills the buffer with all inputs, as `fill` does, if positions have few, as in the first layer of most models. Forms are
// written as whole vectors after the last position has been copied, so that no vector waits for its parts to be stored.
static XNN_INLINE size_t fill_with_short_positions(
    enum kind kind, bool paired, size_t rows, const struct input* input, size_t depth, struct buffer* buffer)
{
  copy_positions(rows, input, buffer);
  for (size_t row = 0; row < rows; row++) {
    for (size_t i = 0; i < depth; i += sizeof(vint)) {
      put_vector(kind, paired, &buffer->rows[row], i, buffer->rows[row].inputs + i);
    }
  }
  return depth;
}

// Fills the buffer with the next inputs of `depth`, each position padded with zeros to whole steps. Returns the bytes of a row.
static XNN_INLINE size_t fill(
    enum kind kind, bool paired, size_t rows, const struct input* input, size_t depth, struct cursor* cursor, struct buffer* buffer)
{
  if (input->depth < sizeof(__m128i) && depth <= BUFFER) {
    return fill_with_short_positions(kind, paired, rows, input, depth, buffer);
  }
  size_t filled = 0;
  while (cursor->position < input->positions && filled < BUFFER) {
    const size_t count = min(input->depth - cursor->at, BUFFER - filled);
    for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = row_at(input, cursor->position * input->rows_of_position + row);
      put(kind, paired, &buffer->rows[row], filled, from + cursor->at, count);
    }
    filled += round_up_po2(count, DEPTH);
    cursor->at += count;
    if (cursor->at == input->depth) {
      *cursor = (struct cursor) {.position = cursor->position + 1};
    }
  }
  return filled;
}

// Returns the sum of `count` bytes, a multiple of `DEPTH`.
static XNN_INLINE uint32_t sum_of(const uint8_t* bytes, size_t count) {
  vint sums = vint_zero();
  size_t i = 0;
  for (; i + sizeof(vint) <= count; i += sizeof(vint)) {
    sums = VINT(add_epi64, sums, VINT(sad_epu8, vint_load(bytes + i), vint_zero()));
  }
  uint64_t parts[sizeof(vint) / sizeof(uint64_t)];
  vint_store(parts, sums);
  uint64_t sum = 0;
  for (size_t part = 0; part < sizeof(vint) / sizeof(uint64_t); part++) {
    sum += parts[part];
  }
  for (; i < count; i += DEPTH) {
    int32_t few;
    memcpy(&few, bytes + i, DEPTH);
    sum += (uint32_t) _mm_cvtsi128_si32(_mm_sad_epu8(_mm_cvtsi32_si128(few), _mm_setzero_si128()));
  }
  return (uint32_t) sum;
}
