// A copy of inputs of several rows in the order in which they are multiplied: a part of `gemm_q8_neon.h`'s microkernels that compute many
// channels with it. Those define `DEPTH`, the inputs of a row that are multiplied in a step, MAX_ROWS, and STEPS, as many as are copied at
// once.
//
// `flip` is combined with each input by exclusive or: 0x80 subtracts 128 from uint8.

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
#define OF_STEP_TYPE uint8x8_t
#define OF_STEP_DUP vdup_n_u8
static XNN_INLINE uint8x8_t first_of_step(size_t count) { return vget_low_u8(first_bytes(count)); }
#else
_Static_assert(DEPTH == STEP, "a step is a vector");
#define OF_STEP(operation) v##operation##q_u8
#define OF_STEP_TYPE uint8x16_t
#define OF_STEP_DUP vdupq_n_u8
static XNN_INLINE uint8x16_t first_of_step(size_t count) { return first_bytes(count); }
#endif

// Copies inputs of a step for each row. Zeros complete them if there are fewer.
static XNN_INLINE XNN_OOB_READS void copy_step(
    size_t rows, const uint8_t* const from[MAX_ROWS], size_t at, size_t count, uint8_t flip, uint8_t* to)
{
  UNROLL for (size_t row = 0; row < rows; row++) {
    OF_STEP_TYPE inputs = OF_STEP(ld1)(from[row] + at);
    inputs = flip == 0 ? inputs : OF_STEP(eor)(inputs, OF_STEP_DUP(flip));
    OF_STEP(st1)(to + row * DEPTH, count >= DEPTH ? inputs : OF_STEP(and)(inputs, first_of_step(count)));
  }
}

static XNN_INLINE size_t steps_of(const struct input* input) {
  return input->positions * divide_round_up(input->depth, DEPTH);
}

// Copies all inputs, which fit.
static XNN_INLINE void fill_with_all(size_t rows, const struct input* input, uint8_t flip, struct buffer* buffer) {
  uint8_t* to = buffer->inputs;
  const uint8_t* const* rows_of_position = input->rows;
  for (size_t position = 0; position < input->positions; position++) {
    const uint8_t* from[MAX_ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = address_of(input, rows_of_position[row]);
    }
    rows_of_position += input->rows_of_position;
    size_t at = 0;
    for (; at + DEPTH <= input->depth; at += DEPTH) {
      copy_step(rows, from, at, DEPTH, flip, to);
      to += rows * DEPTH;
    }
    if (at != input->depth) {
      copy_step(rows, from, at, input->depth % DEPTH, flip, to);
      to += rows * DEPTH;
    }
  }
}

// Copies the next inputs, and returns the number of steps.
static XNN_INLINE size_t fill(
    size_t rows, const struct input* input, struct cursor* cursor, uint8_t flip, struct buffer* buffer)
{
  size_t steps = 0;
  while (cursor->position < input->positions && steps < STEPS) {
    const uint8_t* from[MAX_ROWS];
    UNROLL for (size_t row = 0; row < rows; row++) {
      from[row] = row_at(input, cursor->position * input->rows_of_position + row);
    }
    for (; cursor->at < input->depth && steps < STEPS; cursor->at += DEPTH) {
      const size_t count = input->depth - cursor->at;
      copy_step(rows, from, cursor->at, count, flip, buffer->inputs + steps * rows * DEPTH);
      steps++;
    }
    if (cursor->at >= input->depth) {
      *cursor = (struct cursor) {.position = cursor->position + 1};
    }
  }
  return steps;
}
