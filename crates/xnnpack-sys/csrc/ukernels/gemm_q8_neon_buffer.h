// A copy of inputs of several rows in the order in which they are multiplied: a part of `gemm_q8_neon.h`'s microkernels that compute many
// channels with it. Those define `DEPTH`, the inputs of a row that are multiplied in a step, MAX_ROWS, and STEPS, as many as are copied at
// once.

// Inputs of a step for each row, and after them those of the next step.
struct buffer {
  uint8_t inputs[STEPS * MAX_ROWS * DEPTH];
};

// Where the next inputs are.
struct cursor {
  size_t position;
  size_t at;
};

#if DEPTH == 8
#define OF_STEP(operation) v##operation##_u8
static XNN_INLINE uint8x8_t first_of_step(size_t count) { return vget_low_u8(first_bytes(count)); }
#else
_Static_assert(DEPTH == STEP, "a step is a vector");
#define OF_STEP(operation) v##operation##q_u8
static XNN_INLINE uint8x16_t first_of_step(size_t count) { return first_bytes(count); }
#endif

// Copies inputs of as many positions as fit, for convolutions with few inputs, such as the colours of an image.
static XNN_INLINE XNN_OOB_READS size_t fill_shallow(
    size_t rows, const struct input* input, struct cursor* cursor, struct buffer* buffer)
{
  uint8_t* to = buffer->inputs;
  const size_t steps = min(input->positions - cursor->position, STEPS);
  const uint8_t* const* from = input->rows + cursor->position * input->rows_of_position;
  for (size_t step = 0; step < steps; step++) {
    UNROLL for (size_t row = 0; row < rows; row++) {
      const uint8_t* at = address_of(input, from[row]);
      OF_STEP(st1)(to + row * DEPTH, OF_STEP(and)(OF_STEP(ld1)(at), first_of_step(input->depth)));
    }
    from += input->rows_of_position;
    to += rows * DEPTH;
  }
  cursor->position += steps;
  return steps;
}

// Copies the next inputs to the buffer, and returns the number of steps. Zeros complete the last step of a position.
static XNN_INLINE XNN_OOB_READS size_t fill(
    size_t rows, const struct input* input, struct cursor* cursor, struct buffer* buffer)
{
  if (input->depth <= DEPTH) {
    return fill_shallow(rows, input, cursor, buffer);
  }
  uint8_t* to = buffer->inputs;
  size_t steps = 0;
  while (cursor->position < input->positions && steps < STEPS) {
    const uint8_t* from[MAX_ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, cursor->position * input->rows_of_position + row);
    }
    const size_t end = min(input->depth, cursor->at + (STEPS - steps) * DEPTH);
    steps += divide_round_up(end - cursor->at, DEPTH);
    size_t at = cursor->at;
    for (; at + DEPTH <= end; at += DEPTH) {
      UNROLL for (size_t row = 0; row < rows; row++) {
        OF_STEP(st1)(to + row * DEPTH, OF_STEP(ld1)(from[row] + at));
      }
      to += rows * DEPTH;
    }
    if (at != end) {
      UNROLL for (size_t row = 0; row < rows; row++) {
        OF_STEP(st1)(to + row * DEPTH, OF_STEP(and)(OF_STEP(ld1)(from[row] + at), first_of_step(end - at)));
      }
      to += rows * DEPTH;
    }
    cursor->at = end;
    if (end == input->depth) {
      *cursor = (struct cursor) {.position = cursor->position + 1};
    }
  }
  return steps;
}
