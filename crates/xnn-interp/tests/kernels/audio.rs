//! Audio features: errors, and sizes at the limits. `tests/kernels.rs` of the facade compares with
//! LiteRT.

use xnn_interp::{Error, TensorBuf};
use xnn_model::op::CustomOptions;
use xnn_model::{DType, Op};

use super::F32;
use super::common::{expect, expect_close, floats, map, plain, run_op};

fn custom(code: &str, options: &[(&str, f32)]) -> Op {
    Op::Custom(CustomOptions { code: code.into(), options: map(options).into() })
}

fn spectrogram(window: f32, stride: f32, samples: &[usize]) -> Result<TensorBuf, Error> {
    let options = [("magnitude_squared", 1.0), ("stride", stride), ("window_size", window)];
    let input = floats(samples, &vec![1.0; samples.iter().product()]);
    run_op(custom("AudioSpectrogram", &options), &[input], F32)
}

fn mfcc(
    [coefficients, bands]: [f32; 2],
    [lower, upper]: [f32; 2],
    shape: &[usize],
    rate: i32,
) -> Result<TensorBuf, Error> {
    let options = [
        ("dct_coefficient_count", coefficients),
        ("filterbank_channel_count", bands),
        ("lower_frequency_limit", lower),
        ("upper_frequency_limit", upper),
    ];
    let input = floats(shape, &vec![0.0; shape.iter().product()]);
    run_op(custom("Mfcc", &options), &[input, plain(&[1], &[rate])], F32)
}

#[track_caller]
fn refused(result: Result<TensorBuf, Error>, reason: &str) {
    let error = result.expect_err("a result").to_string();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_constant_signal_has_its_power_in_the_first_bins() {
    // The Hann window of four samples is 0, 1/2, 1, 1/2.
    expect_close(spectrogram(4.0, 1.0, &[4, 1]), &[1, 1, 3], &[4.0, 1.0, 0.0]);
    // Three samples are padded with zeros: 0, 3/4, 3/4.
    expect_close(spectrogram(3.0, 1.0, &[4, 1]), &[1, 2, 3], &[2.25, 1.125, 0.0, 2.25, 1.125, 0.0]);
}

#[test]
fn incomplete_frames_are_dropped() {
    for (window, stride, samples, shape) in [
        (4.0, 1.0, [3, 1], [1, 0, 3]),
        (4.0, 1.0, [4, 2], [2, 1, 3]),
        (4.0, 3.0, [9, 1], [1, 2, 3]),
        (4.0, 3.0, [10, 1], [1, 3, 3]),
        (1e9, 1.0, [10, 1], [1, 0, (1 << 29) + 1]),
        (4.0, 1.0, [0, 1], [1, 0, 3]),
        (4.0, 1.0, [4, 0], [0, 1, 3]),
    ] {
        assert_eq!(spectrogram(window, stride, &samples).unwrap().shape(), shape);
    }
    refused(spectrogram(1.0, 1.0, &[4, 1]), "window_size is 1");
    refused(spectrogram(-2.0, 1.0, &[4, 1]), "window_size is -2");
    refused(spectrogram(1e30, 1.0, &[4, 1]), "window_size is 9223372036854775807");
    refused(spectrogram(4.0, 0.0, &[4, 1]), "stride is 0");
    refused(spectrogram(4.0, 1.0, &[4]), "rank 1");
    let options = CustomOptions { code: "AudioSpectrogram".into(), options: vec![1, 2].into() };
    refused(run_op(Op::Custom(options), &[floats(&[4, 1], &[0.; 4])], F32), "not a map");
}

#[test]
fn silence_has_a_finite_logarithm() {
    // The floor of 1e-12 in both bands, times the first row of the transform: twice the root of
    // 2/2.
    let floor = 1e-12f64.ln() as f32;
    expect_close(mfcc([1.0, 2.0], [20.0, 400.0], &[1, 1, 9], 1000), &[1, 1, 1], &[2.0 * floor]);
    // Bands beyond the spectrum are empty.
    expect(mfcc([1.0, 2.0], [20.0, 600.0], &[1, 1, 9], 1000), &[1, 1, 1], &[0.0f32]);
}

#[test]
fn bands_are_within_bounds() {
    let shape = [1, 1, 9];
    let bounds = [20.0, 400.0];
    assert!(mfcc([2.0, 2.0], bounds, &shape, 1000).is_ok());
    refused(mfcc([3.0, 2.0], bounds, &shape, 1000), "3 coefficients of 2 bands");
    assert!(mfcc([1.0, 1024.0], bounds, &shape, 1000).is_ok());
    refused(mfcc([1.0, 1025.0], bounds, &shape, 1000), "1 coefficients of 1025 bands");
    refused(mfcc([0.0, 2.0], bounds, &shape, 1000), "dct_coefficient_count is 0");
    refused(mfcc([1.0, 2.0], [400.0, 400.0], &shape, 1000), "bands from 400 to 400 Hz");
    refused(mfcc([1.0, 2.0], [-1.0, 400.0], &shape, 1000), "bands from -1 to 400 Hz");
    refused(mfcc([1.0, 2.0], bounds, &shape, 0), "0 samples per second");
    refused(mfcc([1.0, 2.0], bounds, &[1, 1, 1], 1000), "1 bins");
    assert_eq!(mfcc([1.0, 2.0], bounds, &[0, 1, 1], 1000).unwrap().shape(), [0, 1, 1]);
    refused(mfcc([1.0, 2.0], bounds, &[1, 9], 1000), "rank 2");
}

#[test]
fn quantized_values_are_verified() {
    use super::common::{Builder, load};
    let verify = |tolerance: f32, shape: &[usize], numbers: &[i8], floats: &[f32]| {
        let mut b = Builder::new();
        let input = b.constant(shape, numbers);
        b.quantize(input, 0.5, 1);
        let expected = b.input(DType::F32, &[floats.len()]);
        let options = tolerance.to_le_bytes().to_vec().into();
        b.op(
            Op::Custom(CustomOptions { code: "NumericVerify".into(), options }),
            &[input, expected],
            &[],
        );
        b.graph.outputs.push(expected);
        let mut interpreter = load(&b.model())?;
        interpreter.set_input(0, TensorBuf::from_slice(&[floats.len()], floats).unwrap())?;
        interpreter.run()
    };
    // The real values are 0 and 1; the tolerance is half a step.
    verify(1.0, &[2], &[1, 3], &[0.5, 0.5]).unwrap();
    let error = verify(1.0, &[2], &[1, 3], &[0.5, 0.4]).unwrap_err().to_string();
    assert!(error.contains("1 differs from 0.4 by more than 0.5"), "{error}");
    verify(0.05, &[2], &[1, 3], &[9.0, 9.0]).unwrap();
    assert!(
        verify(1.0, &[2], &[1, 3], &[0.0])
            .unwrap_err()
            .to_string()
            .contains("2 quantized values, but 1")
    );
}
