//! Packing of 8-bit weights: the functions of `csrc/packing/pack_bytes.c` write what XNNPACK's write, and several threads what one writes.

#![cfg(xnnpack_sys_own)]

use std::ffi::c_void;
use std::ptr;

use xnn_testing::Random;

/// XNNPACK's `xnn_qu8_packing_params`, whose first field is all of `xnn_qs8_packing_params` (`csrc/layout.c`).
#[repr(C)]
struct Params {
    input_zero_point: u8,
    kernel_zero_point: u8,
}

struct Case {
    groups: usize,
    channels: usize,
    positions: usize,
    depth: usize,
    nr: usize,
    kr: usize,
    extra_bytes: usize,
    weights: Vec<u8>,
    bias: Option<Vec<i32>>,
    params: Params,
}

impl Case {
    fn new(random: &mut Random, kr: usize, positions: usize) -> Self {
        let (groups, channels) = (1 + random.below(2), 1 + random.below(40));
        // Long channels have more words than a sum of 16 bits takes.
        let depth = if random.below(8) == 0 { 2000 } else { 1 + random.below(70) };
        let bias = (0..groups * channels).map(|_| random.below(1 << 20) as i32 - (1 << 19));
        let bias: Vec<i32> = bias.collect();
        Self {
            groups,
            channels,
            positions,
            depth,
            nr: [1, 8, 16, 32][random.below(4)],
            kr,
            extra_bytes: random.below(3) * 12,
            weights: random.u8s(groups * channels * positions * depth),
            bias: (random.below(3) > 0).then_some(bias),
            params: Params {
                input_zero_point: [0, 128, random.below(256) as u8][random.below(3)],
                kernel_zero_point: random.below(256) as u8,
            },
        }
    }

    /// Memory for packed weights. What no weight fills stays zero.
    fn packed(&self) -> Vec<u8> {
        let steps = self.positions * self.depth.div_ceil(self.kr);
        let tile = self.nr * (size_of::<i32>() + steps * self.kr) + self.extra_bytes;
        vec![0; self.groups * self.channels.div_ceil(self.nr) * tile]
    }
}

/// Declares functions with XNNPACK's signatures, and calls each.
macro_rules! functions {
    (fully_connected: $($rows:ident)*; convolutions: $($convolution:ident)*;) => {
        unsafe extern "C" {
            $(fn $rows(
                groups: usize,
                channels: usize,
                depth: usize,
                nr: usize,
                kr: usize,
                sr: usize,
                weights: *const u8,
                bias: *const i32,
                scale: *const c_void,
                packed: *mut u8,
                extra_bytes: usize,
                params: *const Params,
            );)*
            $(fn $convolution(
                groups: usize,
                channels: usize,
                positions: usize,
                depth: usize,
                nr: usize,
                kr: usize,
                sr: usize,
                weights: *const u8,
                bias: *const i32,
                scale: *const c_void,
                packed: *mut u8,
                extra_bytes: usize,
                params: *const Params,
            );)*
        }

        /// The weights that each function packs, by its name. A convolution with one position is also a fully connected layer.
        fn pack_with_all(case: &Case) -> Vec<(&'static str, Vec<u8>)> {
            let bias = case.bias.as_ref().map_or(ptr::null(), |bias| bias.as_ptr());
            let mut all = Vec::new();
            $(if case.positions == 1 {
                let mut packed = case.packed();
                // SAFETY: weights, biases and packed weights have the sizes of the case.
                unsafe {
                    $rows(
                        case.groups,
                        case.channels,
                        case.depth,
                        case.nr,
                        case.kr,
                        1,
                        case.weights.as_ptr(),
                        bias,
                        ptr::null(),
                        packed.as_mut_ptr(),
                        case.extra_bytes,
                        &raw const case.params,
                    );
                }
                all.push((stringify!($rows), packed));
            })*
            $({
                let mut packed = case.packed();
                // SAFETY: weights, biases and packed weights have the sizes of the case.
                unsafe {
                    $convolution(
                        case.groups,
                        case.channels,
                        case.positions,
                        case.depth,
                        case.nr,
                        case.kr,
                        1,
                        case.weights.as_ptr(),
                        bias,
                        ptr::null(),
                        packed.as_mut_ptr(),
                        case.extra_bytes,
                        &raw const case.params,
                    );
                }
                all.push((stringify!($convolution), packed));
            })*
            all
        }
    };
}

functions! {
    fully_connected:
        xnn_pack_qu8_gemm_goi_w xnn_pack_single_qu8_gemm_goi_w
        xnn_pack_qs8_gemm_goi_w xnn_pack_single_qs8_gemm_goi_w
        xnn_pack_qs8_to_qu8_gemm_goi_w xnn_pack_single_qs8_to_qu8_gemm_goi_w;
    convolutions:
        xnn_pack_qu8_conv_goki_w xnn_pack_single_qu8_conv_goki_w
        xnn_pack_qs8_conv_goki_w xnn_pack_single_qs8_conv_goki_w
        xnn_pack_qs8_to_qu8_conv_goki_w xnn_pack_single_qs8_to_qu8_conv_goki_w;
}

#[test]
fn weights_are_packed_as_by_xnnpack() {
    let mut random = Random::new(20);
    for case in 0..600 {
        // Steps of one weight are left to XNNPACK.
        let kr = [1, 2, 4, 8, 16][case % 5];
        let positions = [1, 2, 9][case / 5 % 3];
        let case = Case::new(&mut random, kr, positions);
        let all = pack_with_all(&case);
        assert_eq!(all.len(), if positions == 1 { 12 } else { 6 });
        for [(ours, packed), (theirs, expected)] in all.as_chunks().0 {
            let (groups, channels, depth, nr) = (case.groups, case.channels, case.depth, case.nr);
            assert!(
                packed == expected,
                "{ours} and {theirs}: {groups} groups, {channels} channels, {positions} positions, depth {depth}, nr {nr}, kr {kr}"
            );
        }
    }
}

/// `struct xnnpack_sys_weights` of `csrc/packing/pack_slices.h`.
#[repr(C)]
struct Weights {
    pack_gemm: *const c_void,
    pack_conv: *const c_void,
    groups: usize,
    channels: usize,
    positions: usize,
    depth: usize,
    nr: usize,
    kr: usize,
    sr: usize,
    kernel: *const u8,
    bias: *const i32,
    packed: *mut u8,
    extra_bytes: usize,
    params: *const Params,
    kernel_bytes: usize,
    bias_bytes: usize,
    packed_bytes: usize,
}

unsafe extern "C" {
    fn xnnpack_sys_pack(weights: *const Weights);
}

/// The weights that the threads of a pool pack. Null packs all at once.
fn pack_with_threads(case: &Case, pool: xnnpack_sys::pthreadpool_t) -> Vec<u8> {
    let mut packed = case.packed();
    let convolution = xnn_pack_qs8_conv_goki_w as *const c_void;
    let weights = Weights {
        pack_gemm: xnn_pack_qs8_gemm_goi_w as *const c_void,
        pack_conv: if case.positions == 1 { ptr::null() } else { convolution },
        groups: case.groups,
        channels: case.channels,
        positions: case.positions,
        depth: case.depth,
        nr: case.nr,
        kr: case.kr,
        sr: 1,
        kernel: case.weights.as_ptr(),
        bias: case.bias.as_ref().map_or(ptr::null(), |bias| bias.as_ptr()),
        packed: packed.as_mut_ptr(),
        extra_bytes: case.extra_bytes,
        params: &raw const case.params,
        // A size of 0 packs all weights at once.
        kernel_bytes: if pool.is_null() { 0 } else { case.positions * case.depth },
        bias_bytes: size_of::<i32>(),
        packed_bytes: packed.len() / case.channels.div_ceil(case.nr) / case.nr,
    };
    // SAFETY: all memory has the sizes that are given, and the pool is live or null.
    unsafe {
        xnnpack_sys::pack_with(pool);
        xnnpack_sys_pack(&raw const weights);
        xnnpack_sys::pack_with(ptr::null_mut());
    }
    packed
}

#[test]
fn threads_pack_what_one_thread_packs() {
    let mut random = Random::new(21);
    // SAFETY: the pool is destroyed below.
    let pool = unsafe { xnnpack_sys::pthreadpool_create(3) };
    // Whole tiles, one channel more, and one less; more weights than one thread packs by itself.
    for (channels, depth) in [(512, 600), (513, 601), (511, 1030), (1000, 300), (33, 9000)] {
        for (positions, nr, kr) in [(1, 32, 4), (9, 32, 4), (1, 8, 8), (9, 16, 2)] {
            let case = Case {
                groups: 1,
                channels,
                depth,
                nr,
                extra_bytes: nr * 8,
                weights: random.u8s(channels * positions * depth),
                bias: Some((0..channels as i32).collect()),
                ..Case::new(&mut random, kr, positions)
            };
            let (together, alone) =
                (pack_with_threads(&case, pool), pack_with_threads(&case, ptr::null_mut()));
            assert!(together == alone, "{channels} channels of {positions} x {depth}, nr {nr}");
            assert!(together.iter().any(|&byte| byte != 0));
        }
    }
    // SAFETY: the pool is live, and nothing uses it.
    unsafe { xnnpack_sys::pthreadpool_destroy(pool) };
}
