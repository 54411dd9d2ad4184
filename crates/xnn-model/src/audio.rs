//! Options of the custom operators that make features of sound. Stock interpreters register both.

use crate::flexbuffer::{Scalar, scalars};
use crate::op::CustomOptions;

/// Options of AudioSpectrogram: which samples a spectrum is made of, and in what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpectrogramOptions {
    /// Samples of a frame; at least 2.
    pub window: usize,
    /// Samples from the beginning of a frame to that of the next; at least 1.
    pub stride: usize,
    /// Gives squares of magnitudes.
    pub squared: bool,
}

/// Options of Mfcc: the bands of a spectrum, and what is kept of them.
#[derive(Clone, Debug, PartialEq)]
pub struct MfccOptions {
    /// Where the first band begins, in hertz; not negative.
    pub lower: f64,
    /// Where the last band ends, in hertz; above `lower`.
    pub upper: f64,
    /// Number of bands: 1 to [`MOST_BANDS`].
    pub bands: usize,
    /// Number of coefficients; at least 1, and no more than there are bands.
    pub coefficients: usize,
}

/// More bands than that tell nothing apart: a spectrum of a second has fewer bins that voices reach. It bounds the work for
/// a frame, which otherwise would follow from the options alone.
pub const MOST_BANDS: usize = 1024;

impl SpectrogramOptions {
    /// The name of the operator.
    pub const CODE: &str = "AudioSpectrogram";

    /// Reads what the file has.
    ///
    /// # Errors
    ///
    /// A phrase, if a number is out of its range.
    pub fn read(custom: &CustomOptions) -> Result<Self, String> {
        let options = Options::read(custom)?;
        Ok(Self {
            window: options.size("window_size", 2)?,
            stride: options.size("stride", 1)?,
            squared: options.get("magnitude_squared").is_some_and(Scalar::as_bool),
        })
    }

    /// Samples that are transformed at once: those of a frame and zeros behind them, a power of two. `None` on overflow.
    #[must_use]
    pub fn transformed(&self) -> Option<usize> {
        self.window.checked_next_power_of_two()
    }

    /// How many whole frames so many samples have.
    #[must_use]
    pub fn frames(&self, samples: usize) -> usize {
        samples.checked_sub(self.window).map_or(0, |rest| 1 + rest / self.stride)
    }
}

impl MfccOptions {
    /// The name of the operator.
    pub const CODE: &str = "Mfcc";

    /// Reads what the file has.
    ///
    /// # Errors
    ///
    /// A phrase, if a number is out of its range.
    pub fn read(custom: &CustomOptions) -> Result<Self, String> {
        let options = Options::read(custom)?;
        let bands = options.size("filterbank_channel_count", 1)?;
        let coefficients = options.size("dct_coefficient_count", 1)?;
        let [lower, upper] = ["lower_frequency_limit", "upper_frequency_limit"]
            .map(|name| options.get(name).map_or(0, Scalar::as_i64) as f32);
        if bands > MOST_BANDS || coefficients > bands {
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

    /// A number, 0 where it is left out, which must be at least `least`.
    fn size(&self, name: &str, least: usize) -> Result<usize, String> {
        let value = self.get(name).map_or(0, Scalar::as_i64);
        let size = i32::try_from(value).ok().and_then(|value| usize::try_from(value).ok());
        size.filter(|&size| size >= least).ok_or_else(|| format!("{name} is {value}"))
    }
}
