// Means over rows of floats: sums are divided, as in TFLite's reference kernels. XNNPACK multiplies them by a reciprocal, which
// changes the last bits.

#include "ukernels/mean_f32.h"

#include <string.h>

#include "xnnpack/config.h"
#include "xnnpack/math.h"

// Channels that are added before they are divided.
#define CHANNELS 256

static const struct xnn_f32_scale_params unscaled = {.scalar.scale = 1.0f};

F32_RDSUM(xnnpack_sys_f32_rdsum_ukernel__scalar) {
  const xnn_rdsum_ukernel_fn sum = xnn_init_f32_rdsum_config()->rd_ukernel;
  const struct xnnpack_sys_scaling scaling = xnnpack_sys_scaling(params);
  if (!scaling.divides) {
    sum(rows, channels, input, input_stride, zero, output, params);
    return;
  }
  const float* from = input;
  float* to = output;
  while (channels != 0) {
    const size_t some = min(channels, CHANNELS);
    float sums[CHANNELS];
    memset(sums, 0, some * sizeof(float));
    sum(rows, some, from, input_stride, zero, sums, &unscaled);
    for (size_t channel = 0; channel < some; channel++) {
      to[channel] += sums[channel] / scaling.factor;
    }
    from += some;
    to += some;
    channels -= some;
  }
}
