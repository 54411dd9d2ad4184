//! Options of the custom operators for audio features, which stock interpreters register.

use crate::flexbuffer::{Scalar, scalars};
use crate::op::CustomOptions;

/// Options of AudioSpectrogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpectrogramOptions {
    /// Number of samples of a frame; at least 2.
    pub window: usize,
    /// Number of samples between the starts of consecutive frames; at least 1.
    pub stride: usize,
    /// Whether the result is the squared magnitude.
    pub squared: bool,
}

/// Options of Mfcc.
#[derive(Clone, Debug, PartialEq)]
pub struct MfccOptions {
    /// Lower limit of the first band in hertz; not negative.
    pub lower: f64,
    /// Upper limit of the last band in hertz; above `lower`.
    pub upper: f64,
    /// Number of bands: 1 to [`MAX_BANDS`].
    pub bands: usize,
    /// Number of coefficients: 1 to `bands`.
    pub coefficients: usize,
}

/// Maximum number of bands. Limits the work per frame, which otherwise would depend on the options
/// alone. A spectrum of one second has fewer bins in the range of voices.
pub const MAX_BANDS: usize = 1024;

impl SpectrogramOptions {
    /// The name of the operator.
    pub const CODE: &str = "AudioSpectrogram";

    /// Reads the options of a custom operator.
    ///
    /// # Errors
    ///
    /// A phrase for error messages: the options are not a map, or a value is out of range.
    pub fn read(custom: &CustomOptions) -> Result<Self, String> {
        let options = Options::read(custom)?;
        Ok(Self {
            window: options.size("window_size", 2)?,
            stride: options.size("stride", 1)?,
            squared: options.get("magnitude_squared").is_some_and(Scalar::as_bool),
        })
    }

    /// Size of the Fourier transform: the frame padded with zeros to a power of two. `None` on
    /// overflow.
    #[must_use]
    pub fn transformed(&self) -> Option<usize> {
        self.window.checked_next_power_of_two()
    }

    /// Number of whole frames in `samples` samples.
    #[must_use]
    pub fn frames(&self, samples: usize) -> usize {
        samples.checked_sub(self.window).map_or(0, |rest| 1 + rest / self.stride)
    }
}

impl MfccOptions {
    /// The name of the operator.
    pub const CODE: &str = "Mfcc";

    /// Reads the options of a custom operator.
    ///
    /// # Errors
    ///
    /// A phrase for error messages: the options are not a map, or a value is out of range.
    pub fn read(custom: &CustomOptions) -> Result<Self, String> {
        let options = Options::read(custom)?;
        let bands = options.size("filterbank_channel_count", 1)?;
        let coefficients = options.size("dct_coefficient_count", 1)?;
        let [lower, upper] = ["lower_frequency_limit", "upper_frequency_limit"]
            .map(|name| options.get(name).map_or(0, Scalar::as_i64) as f32);
        if bands > MAX_BANDS || coefficients > bands {
            return Err(format!("{coefficients} coefficients of {bands} bands"));
        }
        if lower < 0.0 || upper <= lower {
            return Err(format!("bands from {lower} to {upper} Hz"));
        }
        Ok(Self { lower: lower.into(), upper: upper.into(), bands, coefficients })
    }
}

/// The scalars of a custom operator's options.
struct Options(std::collections::BTreeMap<String, Scalar>);

impl Options {
    fn read(custom: &CustomOptions) -> Result<Self, String> {
        scalars(&custom.options).map(Self).ok_or_else(|| "options that are not a map".into())
    }

    fn get(&self, name: &str) -> Option<Scalar> {
        self.0.get(name).copied()
    }

    /// A value of at least `least`; 0 if it is missing.
    fn size(&self, name: &str, least: usize) -> Result<usize, String> {
        let value = self.get(name).map_or(0, Scalar::as_i64);
        let size = i32::try_from(value).ok().and_then(|value| usize::try_from(value).ok());
        size.filter(|&size| size >= least).ok_or_else(|| format!("{name} is {value}"))
    }
}
