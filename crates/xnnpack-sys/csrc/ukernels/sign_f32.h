// Signs of floats, see `sign_f32.c`.

#ifndef XNNPACK_SYS_SIGN_F32_H
#define XNNPACK_SYS_SIGN_F32_H

#include "ukernels/unary_f32.h"

F32_UNARY(xnnpack_sys_f32_vsign_ukernel__vector);

#endif
