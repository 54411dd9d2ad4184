// Put before XNNPACK's files that define and create depthwise convolutions, whose weights go through the weights cache as
// those of other convolutions do: XNNPACK's nodes have none for them, so that every runtime packs its own, and its
// operators pack before they ask whether that has been done. XNNPACK_SYS_DEPTHWISE says which of these a file does.

#ifndef XNNPACK_SYS_DEPTHWISE_WEIGHTS_H
#define XNNPACK_SYS_DEPTHWISE_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "xnnpack.h"
#include "xnnpack/cache.h"
#include "xnnpack/config.h"
#include "xnnpack/operator-utils.h"
#include "xnnpack/operator.h"
#include "xnnpack/subgraph.h"

#define XNNPACK_SYS_NODES 1
#define XNNPACK_SYS_OPERATORS 2

// For depthwise convolutions that this thread creates without one, until the next call. May be null.
void xnnpack_sys_cache_depthwise_weights(xnn_weights_cache_t weights_cache);

// Where the weights are, or shall be packed to: what `xnn_get_pointer_to_write_weights` gives, but for weights of depthwise
// convolutions that are there. `XNNPACK_SYS_ARE_PACKED` tells which.
void* xnnpack_sys_depthwise_weights(
    xnn_operator_t op, size_t size, int padding_byte, const struct xnn_weights_cache_look_up_key* key);

#define XNNPACK_SYS_ARE_PACKED(op) \
  ((op)->weights_cache != NULL && (op)->packed_weights.offset != XNN_CACHE_NOT_FOUND)

#if XNNPACK_SYS_DEPTHWISE == XNNPACK_SYS_NODES

// Where XNNPACK defines this function, its definition gets another name, and what nodes get is one that calls it.
#define create_convolution_operator(node_, values_, num_values_, opdata_, code_cache_, weights_cache_) \
  create_without_cache(node_, values_, num_values_, opdata_, code_cache_, weights_cache_); \
  static enum xnn_status create_convolution_operator( \
      node_, values_, num_values_, opdata_, code_cache_, weights_cache_) \
  { \
    xnnpack_sys_cache_depthwise_weights(weights_cache); \
    const enum xnn_status status = create_without_cache(node, values, num_values, opdata, code_cache, weights_cache); \
    xnnpack_sys_cache_depthwise_weights(NULL); \
    return status; \
  } \
  static enum xnn_status create_without_cache(node_, values_, num_values_, opdata_, code_cache_, weights_cache_)

#elif XNNPACK_SYS_DEPTHWISE == XNNPACK_SYS_OPERATORS

// What functions for other convolutions have in the place of parameters of the one for depthwise ones.
static const struct xnn_dwconv_config* const dwconv_ukernel = NULL;
enum { kernel_height, kernel_width, extra_weights_bytes, flags };

// XNNPACK's own fingerprint of the layout.
static XNN_INLINE uint32_t xnnpack_sys_depthwise_seed(
    const struct xnn_dwconv_config* config, uint32_t height, uint32_t width, uint32_t groups, size_t extra_bytes,
    uint32_t of_flags)
{
  const uint32_t seed = config->primary_tile ^ config->middle_tile ^ config->last_tile ^ height ^ width ^ groups ^
                        config->channel_tile ^ config->channel_subtile ^ config->channel_round ^ (uint32_t) extra_bytes;
  return of_flags & XNN_FLAG_DEPTHWISE_CONVOLUTION ? ~seed : seed;
}

#define xnn_get_pointer_to_write_weights(op, size, padding_byte) \
  (dwconv_ukernel == NULL \
       ? xnn_get_pointer_to_write_weights(op, size, padding_byte) \
       : xnnpack_sys_depthwise_weights( \
             op, size, padding_byte, \
             &(const struct xnn_weights_cache_look_up_key) { \
                 .seed = xnnpack_sys_depthwise_seed( \
                     dwconv_ukernel, kernel_height, kernel_width, groups, extra_weights_bytes, flags), \
                 .kernel = kernel, \
                 .bias = bias}))

#define XNNPACK_SYS_UNLESS_PACKED(call) \
  do { \
    if (!XNNPACK_SYS_ARE_PACKED(convolution_op)) { \
      call; \
    } \
  } while (0)

#define pack_dwconv_hwg_w(...) XNNPACK_SYS_UNLESS_PACKED((pack_dwconv_hwg_w)(__VA_ARGS__))
#define pack_dwconv_ghw_w(...) XNNPACK_SYS_UNLESS_PACKED((pack_dwconv_ghw_w)(__VA_ARGS__))
#define init_scale_params(...) XNNPACK_SYS_UNLESS_PACKED((init_scale_params)(__VA_ARGS__))

#endif

#endif
