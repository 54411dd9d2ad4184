//! Fourier transforms of real numbers, in double precision.

use std::f64::consts::TAU;
use std::sync::Arc;

use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex64;
use rustfft::{Fft, FftDirection, FftPlannerAvx, FftPlannerNeon};

/// A transform of a power of two of real numbers, as one of half as many complex numbers.
pub(super) struct RealFft {
    /// `None` for one number, which is its own spectrum.
    pairs: Option<Arc<dyn Fft<f64>>>,
    /// `-i / 2` times the roots of unity between 1 and a quarter of a turn.
    factors: Vec<Complex64>,
    len: usize,
}

impl RealFft {
    /// Prepares a transform of `len` numbers, which is a power of two.
    pub(super) fn new(len: usize) -> Self {
        let root = |i: usize| Complex64::cis(-TAU * i as f64 / len as f64);
        let quarter_turn = Complex64::new(0.0, -0.5);
        Self {
            pairs: (len > 1).then(|| complex_fft(len / 2)),
            factors: (1..len.div_ceil(4)).map(|i| root(i) * quarter_turn).collect(),
            len,
        }
    }

    /// Number of real numbers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of values of the spectrum: it ends with the highest frequency.
    pub(super) fn bins(&self) -> usize {
        self.len / 2 + 1
    }

    /// Number of values that [`run`](Self::run) uses as scratch.
    pub(super) fn scratch_len(&self) -> usize {
        self.pairs.as_ref().map_or(0, |fft| fft.get_inplace_scratch_len())
    }

    /// Writes the spectrum of [`len`](Self::len) `numbers` to [`bins`](Self::bins) values.
    pub(super) fn run(
        &self,
        numbers: &[f64],
        spectrum: &mut [Complex64],
        scratch: &mut [Complex64],
    ) {
        let Some(fft) = &self.pairs else {
            spectrum[0] = Complex64::new(numbers[0], 0.0);
            return;
        };
        let half = self.len / 2;
        for (value, pair) in spectrum.iter_mut().zip(numbers.chunks_exact(2)) {
            *value = Complex64::new(pair[0], pair[1]);
        }
        fft.process_with_scratch(&mut spectrum[..half], scratch);
        let first = spectrum[0];
        spectrum[0] = Complex64::new(first.re + first.im, 0.0);
        spectrum[half] = Complex64::new(first.re - first.im, 0.0);
        // A value and its mirror image hold the spectra of the even and of the odd numbers.
        let (low, high) = spectrum[1..half].split_at_mut(self.factors.len());
        for ((low, high), factor) in low.iter_mut().zip(high.iter_mut().rev()).zip(&self.factors) {
            let (value, mirrored) = (*low, high.conj());
            let even = (value + mirrored) * 0.5;
            let odd = (value - mirrored) * factor;
            *low = even + odd;
            *high = (even - odd).conj();
        }
        if let Some(middle) = high.first_mut() {
            *middle = middle.conj();
        }
    }
}

/// A transform of `len` complex numbers, which is a power of two.
///
/// The library's planner for all processors would add transforms for other lengths to every program.
pub(super) fn complex_fft(len: usize) -> Arc<dyn Fft<f64>> {
    if let Ok(mut planner) = FftPlannerAvx::new() {
        return planner.plan_fft_forward(len);
    }
    if let Ok(mut planner) = FftPlannerNeon::new() {
        return planner.plan_fft_forward(len);
    }
    Arc::new(Radix4::new(len, FftDirection::Forward))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_definition() {
        for exponent in 0..=11 {
            let fft = RealFft::new(1 << exponent);
            let len = fft.len();
            let numbers: Vec<f64> = (0..len).map(|i| ((i * i + 3) % 17) as f64 - 8.0).collect();
            let mut spectrum = vec![Complex64::ZERO; fft.bins()];
            fft.run(&numbers, &mut spectrum, &mut vec![Complex64::ZERO; fft.scratch_len()]);
            for (bin, found) in spectrum.iter().enumerate() {
                let turn = |i: usize| Complex64::cis(-TAU * (i * bin % len) as f64 / len as f64);
                let expected: Complex64 = (0..len).map(|i| turn(i) * numbers[i]).sum();
                let error = (found - expected).norm();
                assert!(error < 1e-11 * len as f64, "{len}: {found} at {bin}, not {expected}");
            }
        }
    }
}
