//! Interpretation of a classifier's outputs: names, calibration, threshold.

use xnn_model::metadata::{
    AssociatedFileType, ScoreCalibrationOptions, ScoreTransformationType, TensorMetadata,
};

use crate::description::Description;

/// Names, calibration and threshold for the scores of a classifier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    /// Name of each class; empty if unknown.
    pub names: Vec<String>,
    /// Calibration of raw scores.
    pub calibration: Option<Calibration>,
    /// Lowest score of a class that is reported.
    pub threshold: Option<f32>,
}

/// A sigmoid for each class.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    options: ScoreCalibrationOptions,
    /// `None` for classes that always have the default score.
    sigmoids: Vec<Option<Sigmoid>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sigmoid {
    scale: f32,
    slope: f32,
    offset: f32,
    min_score: Option<f32>,
}

/// Scores of all classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    /// A score for each class.
    pub values: Vec<f32>,
    /// Whether the values are the softmax of the model's output.
    pub is_softmax: bool,
}

impl Classes {
    /// Reads labels, calibration and threshold of an output with this many `classes` from the metadata. Labels are those of
    /// the locale, otherwise of its language, otherwise those without a locale, otherwise the first. Parts that do not fit
    /// are ignored, with a diagnostic for each.
    #[must_use]
    pub fn described(
        described: &Description,
        output: usize,
        classes: usize,
        locale: &str,
    ) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let Some(tensor) = described.metadata.output(output) else {
            return (Self::default(), notes);
        };
        let mut this = Self { threshold: tensor.score_threshold(), ..Self::default() };
        if let Some(file) = tensor.file_for(AssociatedFileType::TensorAxisLabels, locale) {
            let lines = described.files.lines(&file.name).map_err(|error| error.to_string());
            let names = lines.and_then(|names| {
                fit_names(names, classes).map_err(|error| format!("{:?}: {error}", file.name))
            });
            match names {
                Ok((names, note)) => {
                    this.names = names;
                    notes.extend(note);
                }
                Err(problem) => notes.push(format!("labels are ignored: {problem}")),
            }
        }
        match calibration(described, tensor, classes) {
            Ok(calibration) => this.calibration = calibration,
            Err(problem) => notes.push(format!("scores are not calibrated: {problem}")),
        }
        (this, notes)
    }

    /// Name of a class, or its index if it has no name.
    #[must_use]
    pub fn name(&self, class: usize) -> String {
        self.names.get(class).cloned().unwrap_or_else(|| format!("class {class}"))
    }

    /// Converts the values of an output to calibrated scores or, without calibration, to probabilities: the values
    /// themselves if they are between 0 and 1 and their sum is within `tolerance` of 1, otherwise their softmax.
    #[must_use]
    pub fn scores(&self, values: Vec<f32>, tolerance: f32) -> Scores {
        match &self.calibration {
            Some(calibration) => {
                let values = values.iter().enumerate().map(|(class, &v)| calibration.of(class, v));
                Scores { values: values.collect(), is_softmax: false }
            }
            None => probabilities(values, tolerance),
        }
    }

    /// Returns the `count` largest scores that reach the threshold, with their classes. Equal scores keep their order.
    #[must_use]
    pub fn top(&self, scores: &[f32], count: usize) -> Vec<(usize, f32)> {
        let reaches = |score: &f32| self.threshold.is_none_or(|threshold| *score >= threshold);
        let mut classes: Vec<(usize, f32)> =
            scores.iter().copied().enumerate().filter(|(_, score)| reaches(score)).collect();
        classes.sort_by(|a, b| b.1.total_cmp(&a.1));
        classes.truncate(count);
        classes
    }
}

/// Adds or removes the name of the background class if the number of names matches the number of classes then, with a
/// diagnostic.
///
/// # Errors
///
/// The numbers do not match.
pub fn fit_names(
    mut names: Vec<String>,
    classes: usize,
) -> Result<(Vec<String>, Option<String>), String> {
    let count = names.len();
    let note = if count == classes {
        None
    } else if count.checked_sub(1) == Some(classes) {
        names.remove(0);
        Some("the first name is removed: the model has no background class")
    } else if count + 1 == classes {
        names.insert(0, "background".into());
        Some("the model's first class has no name: it is named background")
    } else {
        return Err(format!("{count} names do not fit {classes} classes"));
    };
    Ok((names, note.map(|note| format!("{count} names for {classes} classes, {note}"))))
}

/// Reads the calibration of an output from the metadata.
fn calibration(
    described: &Description,
    tensor: &TensorMetadata,
    classes: usize,
) -> Result<Option<Calibration>, String> {
    let Some(options) = tensor.score_calibration() else { return Ok(None) };
    if let ScoreTransformationType::Other(code) = options.score_transformation {
        return Err(format!("unknown score transformation {code}"));
    }
    let file = tensor.file(AssociatedFileType::TensorAxisScoreCalibration);
    let file = file.ok_or("the metadata does not name a file of parameters")?;
    let lines = described.files.lines(&file.name).map_err(|error| error.to_string())?;
    if lines.len() != classes {
        return Err(format!(
            "{:?}: expected {classes} lines, one for each class, found {}",
            file.name,
            lines.len()
        ));
    }
    let sigmoid = |(index, line): (usize, &String)| {
        Sigmoid::parse(line).ok_or_else(|| {
            format!("{:?}: line {}: expected scale,slope,offset[,min_score]", file.name, index + 1)
        })
    };
    let sigmoids = lines.iter().enumerate().map(|(index, line)| {
        if line.trim().is_empty() { Ok(None) } else { sigmoid((index, line)).map(Some) }
    });
    Ok(Some(Calibration {
        options: options.clone(),
        sigmoids: sigmoids.collect::<Result<_, _>>()?,
    }))
}

impl Sigmoid {
    fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<f32>> =
            line.split(',').map(|number| number.trim().parse().ok()).collect();
        match *numbers?.as_slice() {
            [scale, slope, offset] => Some(Self { scale, slope, offset, min_score: None }),
            [scale, slope, offset, min] => {
                Some(Self { scale, slope, offset, min_score: Some(min) })
            }
            _ => None,
        }
    }
}

impl Calibration {
    /// Calibrated score, computed as in TensorFlow Lite's task library (`score_calibration.cc`).
    fn of(&self, class: usize, score: f32) -> f32 {
        let sigmoid = self.sigmoids.get(class).copied().flatten();
        match sigmoid {
            Some(sigmoid) if sigmoid.min_score.is_none_or(|least| score >= least) => {
                let x = f64::from(self.transformed(score) * sigmoid.slope + sigmoid.offset);
                (f64::from(sigmoid.scale) / (1.0 + (-x).exp())) as f32
            }
            _ => self.options.default_score,
        }
    }

    fn transformed(&self, score: f32) -> f32 {
        match self.options.score_transformation {
            ScoreTransformationType::Log => clamped_ln(score),
            ScoreTransformationType::InverseLogistic => clamped_ln(score) - clamped_ln(1.0 - score),
            _ => score,
        }
    }
}

/// Logarithm, continued below 10^-16 so that it is monotonic and finite.
fn clamped_ln(x: f32) -> f32 {
    const LEAST: f64 = 1e-16;
    let x = f64::from(x);
    let ln = if x < LEAST { 2.0 * LEAST.ln() - (2.0 * LEAST - x).ln() } else { x.ln() };
    ln as f32
}

fn probabilities(values: Vec<f32>, tolerance: f32) -> Scores {
    let in_range = values.iter().all(|value| (0.0..=1.0).contains(value));
    let sum: f32 = values.iter().sum();
    if in_range && (values.len() == 1 || (sum - 1.0).abs() <= tolerance) {
        return Scores { values, is_softmax: false };
    }
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exps: Vec<f32> = values.iter().map(|value| (value - most).exp()).collect();
    let sum: f32 = exps.iter().sum();
    Scores { values: exps.into_iter().map(|exp| exp / sum).collect(), is_softmax: true }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn names_fit_with_or_without_background() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(fit_names(names(3), 3).unwrap(), (names(3), None));
        let (dropped, note) = fit_names(names(4), 3).unwrap();
        assert_eq!((dropped[0].as_str(), note.is_some()), ("1", true));
        let (added, note) = fit_names(names(2), 3).unwrap();
        assert_eq!((added[0].as_str(), added[1].as_str()), ("background", "0"));
        assert!(note.unwrap().starts_with("2 names for 3 classes, "));
        assert!(fit_names(names(1), 3).is_err());
        assert!(fit_names(names(5), 3).is_err());
        assert_eq!(Classes::default().name(7), "class 7");
    }

    #[test]
    fn probabilities_are_kept_and_others_become_probabilities() {
        let scores = |values: &[f32], tolerance| {
            let Scores { values, is_softmax } = probabilities(values.to_vec(), tolerance);
            (values, is_softmax)
        };
        assert_eq!(scores(&[0.25, 0.75], 0.0), (vec![0.25, 0.75], false));
        assert_eq!(scores(&[0.25, 0.65], 0.2), (vec![0.25, 0.65], false));
        assert_eq!(scores(&[0.9], 0.0), (vec![0.9], false));
        assert_eq!(scores(&[1.0, 1.0], 0.1), (vec![0.5, 0.5], true));
        let (values, is_softmax) = scores(&[-1.0, 2.0], 0.1);
        assert!(is_softmax && (values[1] - 0.952_574).abs() < 1e-5, "{values:?}");
    }

    #[test]
    fn the_largest_that_reach_the_threshold_come_first() {
        let all = Classes::default();
        assert_eq!(all.top(&[0.1, 0.6, 0.1, 0.2], 3), [(1, 0.6), (3, 0.2), (0, 0.1)]);
        assert_eq!(all.top(&[1.0], 5), [(0, 1.0)]);
        let some = Classes { threshold: Some(0.2), ..Classes::default() };
        assert_eq!(some.top(&[0.1, 0.6, 0.1, 0.2], 3), [(1, 0.6), (3, 0.2)]);
    }

    #[test]
    fn scores_are_calibrated_class_by_class() {
        let calibration = |transformation, lines: &[&str]| Calibration {
            options: ScoreCalibrationOptions {
                score_transformation: transformation,
                default_score: 0.25,
            },
            sigmoids: lines.iter().map(|line| Sigmoid::parse(line)).collect(),
        };
        let identity =
            calibration(ScoreTransformationType::Identity, &["1,2,-1", "", "2, 0, 0, 0.5"]);
        // 1 / (1 + e^-(2 * 0.5 - 1)) = 1/2; a class without a line; scores below the minimum.
        assert_eq!(identity.of(0, 0.5), 0.5);
        assert_eq!(identity.of(1, 0.9), 0.25);
        assert_eq!((identity.of(2, 0.49), identity.of(2, 0.5)), (0.25, 1.0));
        // Inverse logistic, then the sigmoid: the same score again.
        let inverse = calibration(ScoreTransformationType::InverseLogistic, &["1,1,0"]);
        for score in [0.001, 0.3, 0.999] {
            assert!((inverse.of(0, score) - score).abs() < 1e-6, "{score}");
        }
        assert!(inverse.of(0, 0.0) >= 0.0 && inverse.of(0, 1.0) <= 1.0);
        // e^(ln x) / (1 + e^(ln x)).
        let log = calibration(ScoreTransformationType::Log, &["1,1,0"]);
        assert!((log.of(0, 0.25) - 0.2).abs() < 1e-6);
        assert!(log.of(0, 0.0).is_finite());
        assert_eq!(Sigmoid::parse("1,2"), None);
        assert_eq!(Sigmoid::parse("1,2,3,4,5"), None);
        assert_eq!(Sigmoid::parse("1,x,3"), None);
    }
}
