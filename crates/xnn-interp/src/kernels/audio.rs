//! AudioSpectrogram and Mfcc, in double precision as in TFLite.

use std::f64::consts::PI;
use std::sync::OnceLock;

use rustfft::num_complex::Complex64;
use xnn_model::audio::{MfccOptions, SpectrogramOptions};
use xnn_model::op::CustomOptions;
use xnn_model::{DType, Op};

use crate::error::{Refusal, refuse};
use crate::kernels::real_fft::RealFft;
use crate::operator::{OperatorContext, Run, run};

fn custom<'a>(context: &OperatorContext<'a>) -> Result<&'a CustomOptions, Refusal> {
    match &context.operator.op {
        Op::Custom(custom) => Ok(custom),
        op => refuse(format!("{op} is not custom")),
    }
}

/// Spectra of overlapping frames: `[samples, channels]` to `[channels, frames, bins]`.
pub(super) fn spectrogram(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = SpectrogramOptions::read(custom(context)?)?;
    context.expect_input(0, DType::F32)?;
    context.expect_output(0, DType::F32)?;
    let transformed =
        options.transformed().ok_or_else(|| Refusal("the window is too long".into()))?;
    // Created for the first frame, if there are at least half as many samples as are transformed.
    let plan = OnceLock::new();
    run(move |call| {
        let [samples, channels] = call.dims(0)?;
        let [_, frames, bins] = call.output_dims(0)?;
        let (transform, hann) = plan.get_or_init(|| {
            let hann = |i| 0.5 - 0.5 * (2.0 * PI * i as f64 / options.window as f64).cos();
            (RealFft::new(transformed), (0..options.window).map(hann).collect::<Vec<f64>>())
        });
        let mut frame = vec![0.0; transform.len()];
        let mut spectrum = vec![Complex64::ZERO; transform.bins()];
        let mut scratch = vec![Complex64::ZERO; transform.scratch_len()];
        let input = call.input::<f32>(0)?;
        let rows = call.output::<f32>(0)?.chunks_exact_mut(bins);
        let frames = (0..channels).flat_map(|channel| (0..frames).map(move |i| (channel, i)));
        for ((channel, i), row) in frames.zip(rows) {
            let first = i * options.stride * channels + channel;
            let samples = input.iter().skip(first).step_by(channels).take(samples);
            frame.fill(0.0);
            for ((slot, &sample), weight) in frame.iter_mut().zip(samples).zip(hann) {
                *slot = f64::from(sample) * weight;
            }
            transform.run(&frame, &mut spectrum, &mut scratch);
            for (out, bin) in row.iter_mut().zip(&spectrum) {
                let power = bin.norm_sqr() as f32;
                *out = if options.squared { power } else { power.sqrt() };
            }
        }
        Ok(())
    })
}

/// Triangular bands over the bins of a spectrum, evenly spaced in mel. A bin belongs to two
/// neighboring bands.
struct Bank {
    /// For each bin that counts, with its position: the band whose falling side it is on (none
    /// before the first) and its weight there. Its weight in the next band is the rest of 1.
    bins: Vec<(usize, Option<usize>, f64)>,
    bands: usize,
}

fn mel(frequency: f64) -> f64 {
    1127.0 * (frequency / 700.0).ln_1p()
}

impl Bank {
    /// `None` if the bands reach beyond the spectrum; TFLite then returns zeros.
    fn new(options: &MfccOptions, bins: usize, rate: f64) -> Option<Self> {
        let low = mel(options.lower);
        let spacing = (mel(options.upper) - low) / (options.bands + 1) as f64;
        let centers: Vec<f64> =
            (0..=options.bands).map(|band| low + spacing * (band + 1) as f64).collect();
        let hertz = 0.5 * rate / (bins - 1) as f64;
        // The first bin, which is the mean, never counts.
        let first = (1.5 + options.lower / hertz) as usize;
        let last = (options.upper / hertz) as usize;
        if last >= bins {
            return None;
        }
        let mut next = 0;
        let place = |bin: usize| {
            let frequency = mel(bin as f64 * hertz);
            while next < options.bands && centers[next] < frequency {
                next += 1;
            }
            let before = if next == 0 { low } else { centers[next - 1] };
            (bin, next.checked_sub(1), (centers[next] - frequency) / (centers[next] - before))
        };
        Some(Self { bins: (first..=last).map(place).collect(), bands: options.bands })
    }

    /// The magnitude in each band, from a spectrum of squares.
    fn apply(&self, spectrum: &[f32]) -> Vec<f64> {
        let mut sums = vec![0.0; self.bands];
        for &(bin, falling, weight) in &self.bins {
            let magnitude = f64::from(spectrum[bin]).sqrt();
            let part = magnitude * weight;
            if let Some(band) = falling {
                sums[band] += part;
            }
            if let Some(sum) = sums.get_mut(falling.map_or(0, |band| band + 1)) {
                *sum += magnitude - part;
            }
        }
        sums
    }
}

/// Cepstral coefficients of spectra: `[channels, frames, bins]` to `[channels, frames,
/// coefficients]`.
pub(super) fn mfcc(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    /// Silence has this magnitude, whose logarithm is finite.
    const FLOOR: f64 = 1e-12;
    let options = MfccOptions::read(custom(context)?)?;
    context.expect_input(0, DType::F32)?;
    context.expect_input(1, DType::I32)?;
    context.expect_output(0, DType::F32)?;
    let scale = (2.0 / options.bands as f64).sqrt();
    let step = PI / options.bands as f64;
    let cosines: Vec<Vec<f64>> = (0..options.coefficients)
        .map(|i| {
            let angle = |band: usize| i as f64 * step * (band as f64 + 0.5);
            (0..options.bands).map(|band| scale * angle(band).cos()).collect()
        })
        .collect();
    run(move |call| {
        let [_, _, bins] = call.dims(0)?;
        let rate = call.int(1)?;
        if bins < 2 || rate <= 0 {
            return refuse(format!("a spectrum of {bins} bins at {rate} samples per second"));
        }
        let bank = Bank::new(&options, bins, rate as f64);
        let input = call.input::<f32>(0)?;
        let output = call.output::<f32>(0)?;
        let Some(bank) = bank else {
            output.fill(0.0);
            return Ok(());
        };
        let frames = input.chunks_exact(bins).zip(output.chunks_exact_mut(options.coefficients));
        for (spectrum, out) in frames {
            let mut bands = bank.apply(spectrum);
            bands.iter_mut().for_each(|sum| *sum = if *sum < FLOOR { FLOOR } else { *sum }.ln());
            for (out, cosines) in out.iter_mut().zip(&cosines) {
                *out = cosines.iter().zip(&bands).fold(0.0, |sum, (c, band)| sum + c * band) as f32;
            }
        }
        Ok(())
    })
}
