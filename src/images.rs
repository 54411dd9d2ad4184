//! Images as inputs of models.

mod jpeg;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Cursor};
use std::path::Path;

use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};
use xnn_model::DType;
use xnn_model::metadata::{ColorSpaceType, NormalizationOptions, TensorMetadata};

use crate::error::Error;
use crate::tensor_spec::TensorSpec;

/// Normalization of pixels from 0..=255 to real numbers: `(pixel - mean) / std`, with one value for all channels or one for
/// each.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalization {
    /// Subtracted from a pixel.
    pub mean: Vec<f32>,
    /// Divisor of the difference.
    pub std: Vec<f32>,
}

/// An input for one image: `[1, height, width, channels]` with 1 or 3 channels; fp32, 8-bit per-tensor, or bytes that are
/// pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageInput {
    height: u32,
    width: u32,
    channels: usize,
    element: Element,
    /// Whether images are converted to grayscale.
    is_gray: bool,
}

/// A tensor that is not an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoImage {
    dtype: DType,
    dims: Vec<usize>,
}

/// Storage of a real number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    F32,
    U8 { scale: f32, zero_point: f32 },
    I8 { scale: f32, zero_point: f32 },
}

impl ImageInput {
    /// Checks that a tensor can hold an image.
    ///
    /// # Errors
    ///
    /// The tensor has another shape or element type.
    pub fn new(tensor: impl Into<TensorSpec>) -> Result<Self, NoImage> {
        let TensorSpec { dtype, dims, quantization, .. } = tensor.into();
        let no_image = || NoImage { dtype, dims: dims.clone() };
        let &[1, height, width, channels @ (1 | 3)] = dims.as_slice() else {
            return Err(no_image());
        };
        let (Ok(height @ 1..), Ok(width @ 1..)) = (u32::try_from(height), u32::try_from(width))
        else {
            return Err(no_image());
        };
        // Zero points are 8-bit integers.
        let element = match (dtype, quantization) {
            (DType::F32, _) => Element::F32,
            // Bytes without quantization are pixels.
            (DType::U8, quantization) => {
                let (scale, zero) = quantization.unwrap_or((1.0, 0));
                Element::U8 { scale, zero_point: zero as f32 }
            }
            (DType::I8, Some((scale, zero))) => Element::I8 { scale, zero_point: zero as f32 },
            _ => return Err(no_image()),
        };
        Ok(Self { height, width, channels, element, is_gray: channels == 1 })
    }

    /// Returns the input for images of a color space. Three channels can hold grayscale images.
    ///
    /// # Errors
    ///
    /// The color space is RGB, and the input has one channel.
    pub fn in_color_space(self, space: ColorSpaceType) -> Result<Self, String> {
        match (space, self.channels) {
            (ColorSpaceType::Rgb, 1) => {
                Err("expected an input with 3 channels for RGB images, found 1".into())
            }
            (ColorSpaceType::Rgb, _) => Ok(Self { is_gray: false, ..self }),
            (ColorSpaceType::Grayscale, _) => Ok(Self { is_gray: true, ..self }),
            _ => Ok(self),
        }
    }

    /// Reads the normalization of an image from the metadata; `None` if it has none.
    ///
    /// If the metadata has the identity, and the scale of an 8-bit input cannot hold 0 to 255, pixels are written without
    /// quantization, as TensorFlow Lite's task library does.
    ///
    /// # Errors
    ///
    /// The metadata does not fit the input.
    pub fn described_normalization(
        &self,
        tensor: &TensorMetadata,
    ) -> Result<Option<Normalization>, String> {
        let Some(NormalizationOptions { mean, std }) = tensor.normalization() else {
            return Ok(None);
        };
        let fits = |values: &[f32]| values.len() == 1 || values.len() == self.channels;
        if !fits(mean) || !fits(std) {
            let (means, stds, channels) = (mean.len(), std.len(), self.channels);
            return Err(format!(
                "expected 1 or {channels} means and deviations for {channels} channels, found {means} and {stds}"
            ));
        }
        if !std.iter().all(|std| std.is_normal()) || !mean.iter().all(|mean| mean.is_finite()) {
            return Err(format!(
                "expected finite means and normal deviations, found {mean:?} and {std:?}"
            ));
        }
        let as_they_come =
            mean.iter().all(|&mean| mean == 0.0) && std.iter().all(|&std| std == 1.0);
        Ok(Some(match self.element {
            Element::U8 { scale, zero_point }
                if as_they_come && range(scale, zero_point, 0, 255).1 < 128.0 =>
            {
                Normalization { mean: vec![zero_point], std: vec![scale.recip()] }
            }
            _ => Normalization { mean: mean.clone(), std: std.clone() },
        }))
    }

    /// 1 for gray, 3 for RGB.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The usual normalization: to [-1, 1], unless the input is quantized for [0, 255] or [0, 1].
    #[must_use]
    pub fn usual_normalization(&self) -> Normalization {
        let (low, high) = match self.element {
            Element::F32 => (-1.0, 1.0),
            Element::U8 { scale, zero_point } => range(scale, zero_point, 0, 255),
            Element::I8 { scale, zero_point } => range(scale, zero_point, -128, 127),
        };
        let (mean, std) = match (low, high) {
            (_, 16.0..) => (0.0, 1.0),
            (-0.1.., _) => (0.0, 255.0),
            _ => (127.5, 127.5),
        };
        Normalization { mean: vec![mean], std: vec![std] }
    }

    /// Resizes `image` without keeping its aspect ratio, and writes its pixels to `elements`, the tensor's memory.
    ///
    /// ```no_run
    /// use xnn_delegate::Runner;
    /// use xnn_delegate::images::{self, ImageInput};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut runner = Runner::open("mobilenet.tflite")?;
    /// let input = ImageInput::new(&runner.inputs()[0])?;
    /// let image = images::decode("photo.jpg")?;
    /// input.write(&image, &input.usual_normalization(), runner.input_bytes_mut(0)?);
    /// runner.run()?;
    /// # Ok(()) }
    /// ```
    pub fn write(&self, image: &DynamicImage, normalization: &Normalization, elements: &mut [u8]) {
        let image = image.resize_exact(self.width, self.height, FilterType::Triangle);
        let pixels = match (self.channels, self.is_gray) {
            (1, _) => image.into_luma8().into_raw(),
            (_, true) => DynamicImage::from(image.into_luma8()).into_rgb8().into_raw(),
            (_, false) => image.into_rgb8().into_raw(),
        };
        let at = |values: &[f32], index: usize| match values {
            [value] => *value,
            values => values.get(index % self.channels).copied().unwrap_or_default(),
        };
        let reals = pixels.iter().enumerate().map(|(index, &pixel)| {
            (f32::from(pixel) - at(&normalization.mean, index)) / at(&normalization.std, index)
        });
        match self.element {
            Element::F32 => write(elements, reals.map(f32::to_le_bytes)),
            Element::U8 { scale, zero_point } => {
                write(elements, reals.map(|real| [quantize::<u8>(real, scale, zero_point)]));
            }
            Element::I8 { scale, zero_point } => write(
                elements,
                reals.map(|real| quantize::<i8>(real, scale, zero_point).to_le_bytes()),
            ),
        }
    }
}

impl fmt::Display for NoImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(ToString::to_string).collect();
        let (dtype, dims) = (self.dtype, dims.join("x"));
        write!(f, "expected an image input of shape 1xHxWx3 or 1xHxWx1, found {dtype} {dims}")
    }
}

impl std::error::Error for NoImage {}

/// Limit for the size of an image file, in bytes.
const MOST_BYTES: u64 = 512 << 20;

/// Reads a JPEG, PNG or BMP file and applies the orientation in its Exif data. The content tells the format.
///
/// # Errors
///
/// The file cannot be read, has more than 512 MB, is not such an image, is truncated, or has more than 512 MB of pixels.
pub fn decode(path: impl AsRef<Path>) -> Result<DynamicImage, Error> {
    let path = path.as_ref();
    let file = xnn_file::read_at_most(path, MOST_BYTES)
        .map_err(|error| Error::Io { path: path.to_owned(), error })?;
    let decode = || {
        let mut decoder =
            ImageReader::new(Cursor::new(&file)).with_guessed_format()?.into_decoder()?;
        if jpeg::is_cut(&file) {
            let error =
                io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends before the image does");
            return Err(ImageError::IoError(error));
        }
        // Decoders limit their own allocations, not the pixels.
        let mut limits = Limits::default();
        limits.reserve(decoder.total_bytes())?;
        decoder.set_limits(limits)?;
        let orientation = decoder.orientation()?;
        let mut image = DynamicImage::from_decoder(decoder)?;
        image.apply_orientation(orientation);
        Ok(image)
    };
    decode().map_err(|error| Error::Image { path: path.to_owned(), error })
}

/// Dequantizes `least` and `most`.
fn range(scale: f32, zero_point: f32, least: i32, most: i32) -> (f32, f32) {
    let real = |q: i32| (q as f32 - zero_point) * scale;
    (real(least), real(most))
}

/// An 8-bit integer type.
trait Integer8: Sized {
    /// The nearest integer of this type.
    fn saturating(value: f32) -> Self;
}

impl Integer8 for u8 {
    fn saturating(value: f32) -> Self {
        value as Self
    }
}

impl Integer8 for i8 {
    fn saturating(value: f32) -> Self {
        value as Self
    }
}

fn quantize<T: Integer8>(real: f32, scale: f32, zero_point: f32) -> T {
    T::saturating((real / scale).round() + zero_point)
}

fn write<const N: usize>(elements: &mut [u8], values: impl Iterator<Item = [u8; N]>) {
    for (element, value) in elements.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *element = value;
    }
}
