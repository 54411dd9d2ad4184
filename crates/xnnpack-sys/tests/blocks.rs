//! Microkernels for 4-bit weights in blocks, on processors without AVX2: packed weights of a tile begin anywhere.

#![cfg(all(target_arch = "x86_64", xnnpack_sys_own))]

use std::ffi::c_void;

use xnnpack_sys as _;

/// XNNPACK's `xnn_f32_qb4w_minmax_params` (`csrc/layout.c`).
#[repr(C)]
struct Params {
    min: f32,
    max: f32,
    block_size: usize,
}

/// XNNPACK's `xnn_qd8_quantization_params` (`csrc/layout.c`).
#[repr(C)]
struct Row {
    zero_point: i32,
    inv_scale: f32,
}

macro_rules! microkernels {
    ($($name:ident for $feature:tt,)*) => {
        unsafe extern "C" {
            $(fn $name(
                rows: usize,
                channels: usize,
                depth: usize,
                input: *const i8,
                input_stride: usize,
                weights: *const c_void,
                output: *mut f32,
                row_stride: usize,
                tile_stride: usize,
                params: *const Params,
                quantization: *const Row,
            );)*
        }

        /// Calls each one that this processor can run.
        fn call_all(
            input: &[i8; BLOCK],
            weights: &Weights,
            check: impl Fn(&str, [f32; 2 * TILE]),
        ) {
            let params = Params { min: f32::MIN, max: f32::MAX, block_size: BLOCK };
            // Microkernels of several rows compute one row as often as they have rows.
            let rows = [const { Row { zero_point: 0, inv_scale: 1.0 } }; TILE];
            $(if std::arch::is_x86_feature_detected!($feature) {
                let mut output = [0.0f32; 2 * TILE];
                // SAFETY: there are as many elements as the sizes tell, with room behind them, and the processor has the
                // instructions.
                unsafe {
                    $name(
                        1,
                        2 * TILE,
                        BLOCK,
                        input.as_ptr(),
                        BLOCK,
                        weights.0.as_ptr().cast(),
                        output.as_mut_ptr(),
                        size_of_val(&output),
                        TILE * size_of::<f32>(),
                        &raw const params,
                        rows.as_ptr(),
                    );
                }
                check(stringify!($name), output);
            })*
        }
    };
}

microkernels! {
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_1x4c8__sse2_ld128 for "sse2",
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_4x4c8__sse2_ld128 for "sse2",
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_1x4c8__sse41_ld128 for "sse4.1",
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_3x4c8__sse41_ld128 for "sse4.1",
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_1x4c8__avx_ld128 for "avx",
    xnn_qd8_f32_qb4w_gemm_minmax_ukernel_4x4c8__avx_ld128 for "avx",
}

/// Channels of a tile.
const TILE: usize = 4;
/// Weights of a block. A channel has one block: with an odd number of them the second tile begins at a multiple of 8.
const BLOCK: usize = 32;
/// 32-bit words of a tile: sums of weights, two weights in a byte, half a word for each scale, biases.
const TILE_WORDS: usize = TILE + TILE * BLOCK / 8 + TILE / 2 + TILE;

/// Aligned as XNNPACK's packed weights are.
#[repr(align(64))]
struct Weights([u32; 2 * TILE_WORDS]);

#[test]
fn tiles_of_an_odd_number_of_blocks() {
    // Every weight is 1, in the upper bits as microkernels take it: a sixteenth is in the scale.
    let scale = (1.0f32 / 16.0).to_bits();
    let mut weights = Weights([0; 2 * TILE_WORDS]);
    for (index, tile) in weights.0.chunks_exact_mut(TILE_WORDS).enumerate() {
        let (sums, rest) = tile.split_at_mut(TILE);
        let (blocks, rest) = rest.split_at_mut(TILE * BLOCK / 8);
        let (scales, biases) = rest.split_at_mut(TILE / 2);
        sums.fill(0);
        blocks.fill(0x1111_1111);
        scales.fill(scale | scale >> 16);
        for (channel, bias) in biases.iter_mut().enumerate() {
            *bias = f32::from(u8::try_from(index * TILE + channel).unwrap_or(0)).to_bits();
        }
    }
    let expected = [32.0, 33.0, 34.0, 35.0, 36.0, 37.0, 38.0, 39.0f32];
    call_all(&[1; BLOCK], &weights, |name, output| assert_eq!(output, expected, "{name}"));
}
