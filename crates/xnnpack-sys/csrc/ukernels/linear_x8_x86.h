// Linear functions of bytes, see `linear_x8.c`: included by a file for each instruction set, which defines `ISA`.

#include "ukernels/linear_x8.h"

#include <stdbool.h>
#include <string.h>

#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

// Computes whole vectors, and returns their bytes. `has_masks` and `takes_off` are constants wherever this is inlined: few forms need all
// steps.
static XNN_INLINE size_t compute_vectors(
    const struct linear_form* form, bool has_masks, bool takes_off, size_t batch, const uint8_t* input, uint8_t* output)
{
  const vint input_mask = VINT(set1_epi8, (char) form->input_mask);
  const vint output_mask = VINT(set1_epi8, (char) form->output_mask);
  const vint start = VINT(set1_epi8, (char) form->start);
  const vint factor = VINT(set1_epi16, (int16_t) form->factor);
  const vint more = VINT(set1_epi16, (int16_t) form->more);
  const vint less = VINT(set1_epi16, (int16_t) form->less);
  const vint unit = VINT(set1_epi16, (int16_t) form->unit);
  size_t at = 0;
  for (; at + sizeof(vint) <= batch; at += sizeof(vint)) {
    const vint bytes = vint_load(input + at);
    const vint x = has_masks ? VINT_BITS(xor, bytes, input_mask) : bytes;
    vint halves[] = {VINT(unpacklo_epi8, start, x), VINT(unpackhi_epi8, start, x)};
    for (size_t i = 0; i < 2; i++) {
      const vint product = VINT(mulhi_epu16, halves[i], factor);
      const vint sum = takes_off ? VINT(subs_epu16, product, less) : VINT(adds_epu16, product, more);
      halves[i] = VINT(mulhi_epu16, sum, unit);
    }
    const vint y = VINT(packus_epi16, halves[0], halves[1]);
    vint_store(output + at, has_masks ? VINT_BITS(xor, y, output_mask) : y);
  }
  return at;
}

void WITH_ISA(xnnpack_sys_x8_linear_ukernel__)(
    size_t batch, const uint8_t* input, uint8_t* output, const uint8_t* table)
{
  struct linear_form form;
  memcpy(&form, table + XNNPACK_SYS_TABLE_RESULTS, sizeof(form));
  // A form adds or takes off, or does neither.
  const bool takes_off = form.less != 0;
  size_t at;
  if ((form.input_mask | form.output_mask) == 0) {
    at = takes_off ? compute_vectors(&form, false, true, batch, input, output)
                   : compute_vectors(&form, false, false, batch, input, output);
  } else {
    at = takes_off ? compute_vectors(&form, true, true, batch, input, output)
                   : compute_vectors(&form, true, false, batch, input, output);
  }
  for (; at < batch; at++) {
    output[at] = table[input[at]];
  }
}
