// Forced in front of XNNPACK's `fully-connected-nc.c`, see `narrow_gemm.c`.

#ifndef XNNPACK_SYS_NARROW_GEMM_H
#define XNNPACK_SYS_NARROW_GEMM_H

#include <stddef.h>

#include "xnnpack/config.h"

const struct xnn_gemm_config* xnnpack_sys_narrow_f32_gemm_config(void);
const struct xnn_gemm_config* xnnpack_sys_narrow_f32_rows_gemm_config(size_t output_channels);

// `xnn_create_fully_connected_nc_f32` names its argument so.
#define xnn_init_f32_gemm_nr2_config() xnnpack_sys_narrow_f32_rows_gemm_config(output_channels)

#endif
