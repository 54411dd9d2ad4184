// Sines and cosines of floats, see `sine_f32_vectors.h`. Signatures are those of XNNPACK's configurations; `batch` is the
// bytes of `input`.

#ifndef XNNPACK_SYS_SINE_F32_H
#define XNNPACK_SYS_SINE_F32_H

#include "ukernels/unary_f32.h"

#define SINES_F32(isa) \
  F32_UNARY(xnnpack_sys_f32_vsin_ukernel__##isa); \
  F32_UNARY(xnnpack_sys_f32_vcos_ukernel__##isa)

SINES_F32(avx);
SINES_F32(avx2);
SINES_F32(avx512f);
// Every processor.
SINES_F32(vector);

#endif
