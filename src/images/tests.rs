//! Tests of image inputs.

#![allow(clippy::unwrap_used, reason = "tests")]

use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};
use xnn_model::metadata::ProcessUnit;

use super::*;

const F32: Element = Element::F32;

fn input(channels: usize, element: Element) -> ImageInput {
    ImageInput { height: 1, width: 2, channels, element, is_gray: channels == 1 }
}

fn written(input: &ImageInput, size: usize) -> Vec<u8> {
    let pixels = vec![0, 0, 0, 255, 255, 255];
    let image = RgbImage::from_raw(2, 1, pixels).unwrap().into();
    let mut elements = vec![7; size];
    input.write(&image, &input.usual_normalization(), &mut elements);
    elements
}

#[test]
fn normalization_follows_the_range_of_the_input() {
    let usual = |element| {
        let Normalization { mean, std } = input(3, element).usual_normalization();
        (mean[0], std[0])
    };
    assert_eq!(usual(F32), (127.5, 127.5));
    assert_eq!(usual(Element::U8 { scale: 1.0 / 128.0, zero_point: 128.0 }), (127.5, 127.5));
    assert_eq!(usual(Element::U8 { scale: 1.0, zero_point: 0.0 }), (0.0, 1.0));
    assert_eq!(usual(Element::I8 { scale: 1.0 / 255.0, zero_point: -128.0 }), (0.0, 255.0));
}

#[test]
fn pixels_become_elements_of_the_input() {
    let reals = written(&input(1, F32), 8);
    assert_eq!(reals, [(-1f32).to_le_bytes(), 1f32.to_le_bytes()].concat());
    // 1 is 256 in steps of 1/128 above 128, which saturates.
    let unsigned = written(&input(3, Element::U8 { scale: 1.0 / 128.0, zero_point: 128.0 }), 6);
    assert_eq!(unsigned, [0, 0, 0, 255, 255, 255]);
    let signed = written(&input(3, Element::I8 { scale: 1.0, zero_point: -128.0 }), 6);
    assert_eq!(signed, [128, 128, 128, 127, 127, 127]);
}

fn described(input: &ImageInput, mean: &[f32], std: &[f32]) -> Result<Normalization, String> {
    let options = NormalizationOptions { mean: mean.to_vec(), std: std.to_vec() };
    let process_units = vec![ProcessUnit::NormalizationOptions(options)];
    let tensor = TensorMetadata { process_units, ..Default::default() };
    Ok(input.described_normalization(&tensor)?.unwrap())
}

#[test]
fn metadata_has_the_normalization_of_pixels() {
    let rgb = input(3, F32);
    assert_eq!(rgb.described_normalization(&TensorMetadata::default()), Ok(None));
    let said = described(&rgb, &[1.0, 2.0, 3.0], &[4.0]).unwrap();
    assert_eq!(said, Normalization { mean: vec![1.0, 2.0, 3.0], std: vec![4.0] });
    assert!(described(&rgb, &[1.0, 2.0], &[1.0]).unwrap_err().contains("3 channels"));
    assert!(described(&rgb, &[], &[]).is_err());
    assert!(described(&rgb, &[1.0], &[0.0]).unwrap_err().contains("normal deviations"));
    assert!(described(&rgb, &[f32::NAN], &[1.0]).is_err());
}

#[test]
fn bytes_without_normalization_are_kept() {
    let pixels = |scale, zero_point| {
        let input = input(3, Element::U8 { scale, zero_point });
        let image = RgbImage::from_raw(2, 1, vec![0, 1, 127, 128, 254, 255]).unwrap().into();
        let mut elements = vec![7; 6];
        input.write(&image, &described(&input, &[0.0], &[1.0]).unwrap(), &mut elements);
        elements
    };
    assert_eq!(pixels(1.0 / 128.0, 128.0), [0, 1, 127, 128, 254, 255]);
    assert_eq!(pixels(1.0, 0.0), [0, 1, 127, 128, 254, 255]);
    // Quantized for [0, 510], in steps of 2.
    assert_eq!(pixels(2.0, 0.0), [0, 1, 64, 64, 127, 128]);
}

#[test]
fn three_channels_hold_grayscale() {
    let image: DynamicImage = RgbImage::from_raw(2, 1, vec![255, 0, 0, 0, 0, 255]).unwrap().into();
    let written = |input: ImageInput| {
        let mut elements = vec![0; 6];
        let normalization = Normalization { mean: vec![0.0], std: vec![1.0] };
        input.write(&image, &normalization, &mut elements);
        elements
    };
    let rgb = || input(3, Element::U8 { scale: 1.0, zero_point: 0.0 });
    assert_eq!(written(rgb()), [255, 0, 0, 0, 0, 255]);
    let gray = written(rgb().in_color_space(ColorSpaceType::Grayscale).unwrap());
    assert!(gray[0] == gray[1] && gray[1] == gray[2] && gray[0] != gray[3], "{gray:?}");
    assert!(input(1, F32).in_color_space(ColorSpaceType::Rgb).is_err());
    assert!(input(1, F32).in_color_space(ColorSpaceType::Unknown).is_ok());
}

#[test]
fn bytes_without_a_scale_are_pixels() {
    let spec = |dtype| TensorSpec {
        name: String::new(),
        dtype,
        dims: vec![1, 2, 2, 3],
        quantization: None,
    };
    let input = ImageInput::new(spec(DType::U8)).unwrap();
    assert_eq!(input.usual_normalization(), Normalization { mean: vec![0.0], std: vec![1.0] });
    assert!(ImageInput::new(spec(DType::I8)).is_err());
}

/// An image of noise, so that every part of a file matters.
fn noise() -> DynamicImage {
    let mut random = xnn_testing::Random::new(1);
    RgbImage::from_fn(37, 21, |_, _| [0; 3].map(|_| random.below(256) as u8).into()).into()
}

/// Files of a color and a grayscale image, in every format.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let written = |image: &DynamicImage, format| {
        let mut file = Cursor::new(Vec::new());
        image.write_to(&mut file, format).unwrap();
        file.into_inner()
    };
    let (color, gray) = (noise(), DynamicImage::from(noise().into_luma8()));
    let mut with_thumbnail = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut with_thumbnail, 90);
    let thumbnail = [b"Exif\0\0".as_slice(), &written(&gray, ImageFormat::Jpeg)].concat();
    image::ImageEncoder::set_exif_metadata(&mut encoder, thumbnail).unwrap();
    encoder.encode_image(&color).unwrap();
    vec![
        ("thumbnail.jpg", with_thumbnail),
        ("color.jpg", written(&color, ImageFormat::Jpeg)),
        ("gray.jpg", written(&gray, ImageFormat::Jpeg)),
        ("color.png", written(&color, ImageFormat::Png)),
        ("gray.png", written(&gray, ImageFormat::Png)),
        ("color.bmp", written(&color, ImageFormat::Bmp)),
        ("gray.bmp", written(&gray, ImageFormat::Bmp)),
    ]
}

#[test]
fn a_truncated_file_is_rejected_or_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, file) in files() {
        let path = folder.path().join(name);
        let decoded = |file: &[u8]| {
            std::fs::write(&path, file).unwrap();
            decode(&path)
        };
        let whole = decoded(&file).unwrap();
        assert_eq!(decoded(&[&file, b"more".as_slice()].concat()).unwrap(), whole, "{name}");
        let mut rejected = 0;
        for length in (0..file.len()).filter(|length| length % 7 == 0 || length + 64 > file.len()) {
            match decoded(&file[..length]) {
                Ok(image) => assert_eq!(image, whole, "{name} cut to {length}"),
                Err(error) => {
                    assert!(error.to_string().contains(name), "{error}");
                    rejected = length;
                }
            }
        }
        // A PNG has checksums and an end marker after its pixels.
        assert!(rejected + 24 > file.len(), "{name}: {rejected} of {}", file.len());
        if name.ends_with("jpg") {
            let error = decoded(&file[..file.len() - 2]).unwrap_err().to_string();
            assert!(error.contains("ends before the image does"), "{error}");
        }
    }
}
