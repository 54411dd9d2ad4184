//! Tables with interpolation for functions of 16-bit integers.

use crate::quant::Quantized;

/// Steps of the table. The low 7 bits of an index interpolate between two entries.
const STEPS: usize = 512;

/// 513 samples of a function over the whole range of `i16`.
#[derive(Clone, Debug)]
pub(super) struct InterpolatedTable(Vec<i16>);

/// Constructors that sample in one floating-point type, which affects the last bit of some entries.
macro_rules! sampled {
    ($(#[$doc:meta])* $name:ident, $real:ty) => {
        $(#[$doc])*
        pub(super) fn $name(
            (input_scale, input_zero): ($real, i32),
            (output_scale, output_zero): ($real, i32),
            f: impl Fn($real) -> $real,
        ) -> Self {
            let low = input_scale * (-32768 - input_zero) as $real;
            let high = input_scale * (32767 - input_zero) as $real;
            let out_low = output_scale * (-32768 - output_zero) as $real;
            let out_high = output_scale * (32767 - output_zero) as $real;
            let step = (high - low) / STEPS as $real;
            let inverse = 65536.0 / (out_high - out_low);
            let sample = |i: usize| {
                let at = low + i as $real * step;
                let value = (f(at) * inverse).round();
                let next = f(low + (i + 1) as $real * step) * inverse;
                let interpolated = ((next + value) / 2.0).round();
                let error = interpolated - (f(at + step / 2.0) * inverse).round();
                i16::saturate((value - (error / 2.0).round()) as i32)
            };
            let last = i16::saturate((f(high) * inverse).round() as i32);
            Self((0..STEPS).map(sample).chain([last]).collect())
        }
    };
}

impl InterpolatedTable {
    sampled! {
        /// Samples `f` in double precision. `input` and `output` are scale and zero point.
        new, f64
    }
    sampled! {
        /// Samples `f` in single precision.
        in_singles, f32
    }

    /// The function's value at an integer.
    #[inline]
    pub(super) fn at(&self, x: i16) -> i16 {
        let index = (256 + (x >> 7)) as usize;
        let offset = i32::from(x & 0x7f);
        let base = self.0[index];
        let slope = i32::from(self.0[index + 1].wrapping_sub(base));
        let delta = (slope * offset + 64) >> 7;
        base.wrapping_add(delta as i16)
    }
}
