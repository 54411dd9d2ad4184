// Linear functions of bytes, see `linear_x8.c`: included by a file for each instruction set, which defines `ISA`.

#include "ukernels/linear_x8.h"

#include <string.h>

#include "ukernels/vector_x86.h"
#include "ukernels/with_isa.h"

void WITH_ISA(xnnpack_sys_x8_linear_ukernel__)(
    size_t batch, const uint8_t* input, uint8_t* output, const uint8_t* table)
{
  struct linear_form form;
  memcpy(&form, table + XNNPACK_SYS_TABLE_RESULTS, sizeof(form));
  const vint input_mask = VINT(set1_epi8, (char) form.input_mask);
  const vint output_mask = VINT(set1_epi8, (char) form.output_mask);
  const vint start = VINT(set1_epi8, (char) form.start);
  const vint factor = VINT(set1_epi16, (int16_t) form.factor);
  const vint more = VINT(set1_epi16, (int16_t) form.more);
  const vint less = VINT(set1_epi16, (int16_t) form.less);
  const vint unit = VINT(set1_epi16, (int16_t) form.unit);
  for (; batch >= sizeof(vint); batch -= sizeof(vint), input += sizeof(vint), output += sizeof(vint)) {
    const vint x = VINT_BITS(xor, vint_load(input), input_mask);
    vint halves[] = {VINT(unpacklo_epi8, start, x), VINT(unpackhi_epi8, start, x)};
    for (size_t i = 0; i < 2; i++) {
      const vint product = VINT(mulhi_epu16, halves[i], factor);
      halves[i] = VINT(mulhi_epu16, VINT(subs_epu16, VINT(adds_epu16, product, more), less), unit);
    }
    vint_store(output, VINT_BITS(xor, VINT(packus_epi16, halves[0], halves[1]), output_mask));
  }
  for (; batch != 0; batch--) {
    *output++ = table[*input++];
  }
}
