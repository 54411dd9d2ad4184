// Copies the inputs of a tile to the buffer: a part of `gemm_q8_bytes.h`, which includes it.

// Copies `count` bytes, without reading beyond them.
static XNN_INLINE void copy(uint8_t* to, const uint8_t* from, size_t count) {
  if (count >= sizeof(vint)) {
    for (size_t i = 0;; i += sizeof(vint)) {
      // The last vector overlaps the one before.
      i = min(i, count - sizeof(vint));
      vint_store(to + i, vint_load(from + i));
      if (i + sizeof(vint) == count) {
        return;
      }
    }
  }
  size_t i = 0;
  for (; i + sizeof(uint32_t) <= count; i += sizeof(uint32_t)) {
    memcpy(to + i, from + i, sizeof(uint32_t));
  }
  for (; i < count; i++) {
    to[i] = from[i];
  }
}

// Completes a row whose `inputs` are those of the tensor.
static XNN_INLINE void complete(enum kind kind, struct buffer_row* row, size_t count) {
  const vint offset = VINT(set1_epi8, (int8_t) OFFSET);
  for (size_t i = 0; i < count; i += sizeof(vint)) {
    const vint inputs = vint_load(row->inputs + i);
    const vint flipped = VINT_BITS(xor, inputs, offset);
    const vint signs = kind == UNSIGNED ? flipped : inputs;
    if (kind != UNSIGNED) {
      vint_store(row->inputs + i, flipped);
    }
    vint_store(row->signs + i, signs);
    vint_store(row->magnitudes + i, VINT(abs_epi8, signs));
  }
}

// Fills the buffer with the next inputs, each position padded with zeros to whole steps. Returns the bytes of a row.
static XNN_INLINE size_t fill(
    enum kind kind, size_t rows, const struct input* input, struct cursor* cursor, struct buffer* buffer)
{
  size_t filled = 0;
  while (cursor->position < input->positions && filled < BUFFER) {
    const size_t count = min(input->depth - cursor->at, BUFFER - filled);
    const size_t padded = round_up_po2(count, DEPTH);
    for (size_t row = 0; row < rows; row++) {
      const uint8_t* from = row_at(input, cursor->position * input->rows_of_position + row);
      uint8_t* to = buffer->rows[row].inputs + filled;
      copy(to, from + cursor->at, count);
      for (size_t i = count; i < padded; i++) {
        to[i] = 0;
      }
    }
    filled += padded;
    cursor->at += count;
    if (cursor->at == input->depth) {
      *cursor = (struct cursor) {.position = cursor->position + 1};
    }
  }
  for (size_t row = 0; row < rows; row++) {
    complete(kind, &buffer->rows[row], filled);
  }
  return filled;
}

// Returns the sum of `count` bytes.
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
  for (; i < count; i++) {
    sum += bytes[i];
  }
  return (uint32_t) sum;
}
