//! Custom operators with known options.

use super::inputs::{Inputs, Rule, Stop, one};
use crate::audio::{MfccOptions, SpectrogramOptions};
use crate::op::CustomOptions;

/// Leaves invalid options to the kernel, which refuses them.
pub(super) fn shapes(inputs: &Inputs<'_>, custom: &CustomOptions) -> Rule {
    match custom.code.as_str() {
        SpectrogramOptions::CODE => {
            let options = SpectrogramOptions::read(custom).map_err(|_| Stop::Stated)?;
            let [samples, channels] = inputs.dims(0)?;
            let transformed = options.transformed().ok_or(Stop::Stated)?;
            one(vec![channels, options.frames(samples), transformed / 2 + 1])
        }
        MfccOptions::CODE => {
            let options = MfccOptions::read(custom).map_err(|_| Stop::Stated)?;
            let [channels, frames, _] = inputs.dims(0)?;
            one(vec![channels, frames, options.coefficients])
        }
        _ => Err(Stop::Stated),
    }
}
