//! Options of the delegate, parsed from the strings that TFLite passes.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use log::LevelFilter;
use xnn_lower::{PartitionOptions, UnknownName, operator_name, pass_name};
use xnn_runtime::ProgramOptions;

/// Options of a delegate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Number of threads; `None` for as many as the interpreter recommends.
    pub(crate) num_threads: Option<NonZeroUsize>,
    pub(crate) partition: PartitionOptions,
    /// Folder in which packed weights are cached.
    pub(crate) cache_dir: Option<PathBuf>,
    /// Destination of the delegation report.
    pub(crate) explain: Option<Explain>,
    pub(crate) log_level: Option<LevelFilter>,
}

/// Destination of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Explain {
    Stderr,
    /// A file: JSON if the name ends in `.json`, text otherwise.
    File(PathBuf),
}

/// An unknown option, or a value that an option does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OptionError {
    UnknownKey(String),
    BadValue { key: &'static str, value: String, expected: &'static str },
    BadName { key: &'static str, name: UnknownName },
}

/// Reason why a value is not accepted.
enum Unfit {
    /// The value is malformed or out of range.
    Value,
    /// The value names something that does not exist.
    Name(UnknownName),
}

/// Parses a value and stores it in its option.
type Set = fn(&mut Options, &str) -> Result<(), Unfit>;

/// All options: key, accepted values for messages, and parser.
const OPTIONS: &[(&str, &str, Set)] = &[
    ("cache_dir", "a path", |options, value| {
        options.cache_dir =
            Some(Some(value).filter(|value| !value.is_empty()).ok_or(Unfit::Value)?.into());
        Ok(())
    }),
    ("disable", "operator names separated by commas, such as SOFTMAX,MEAN", |options, value| {
        options.partition.disable = names(value, operator_name)?;
        Ok(())
    }),
    (
        "disable_pass",
        "pass names separated by commas, such as transposes,clamps",
        |options, value| {
            options.partition.optimize.disable = names(value, pass_name)?;
            Ok(())
        },
    ),
    ("dynamic_range", "auto, reference or rows", |options, value| {
        options.partition.dynamic_range = parse(value)?;
        Ok(())
    }),
    ("explain", "a path or stderr", |options, value| {
        options.explain = Some(match value {
            "" => return Err(Unfit::Value),
            "stderr" => Explain::Stderr,
            path => Explain::File(path.into()),
        });
        Ok(())
    }),
    ("keep_small", FLAG, |options, value| {
        options.partition.keep_small = parse_flag(value)?;
        Ok(())
    }),
    ("log_level", "off, error, warn, info, debug or trace", |options, value| {
        options.log_level = Some(parse(value)?);
        Ok(())
    }),
    ("max_memory", "a number of bytes", |options, value| {
        options.partition.limits.amplification.free_bytes = parse(value)?;
        Ok(())
    }),
    ("max_partitions", "a number", |options, value| {
        options.partition.max_partitions = Some(parse(value)?);
        Ok(())
    }),
    ("max_work", "a number of multiplications", |options, value| {
        options.partition.limits.amplification.free_work = parse(value)?;
        Ok(())
    }),
    ("min_partition_macs", "a number of multiply-accumulates", |options, value| {
        options.partition.min_partition_macs = parse(value)?;
        Ok(())
    }),
    ("no_optimize", FLAG, |options, value| {
        options.partition.optimize.off = parse_flag(value)?;
        Ok(())
    }),
    ("num_threads", "a number greater than 0", |options, value| {
        options.num_threads = Some(parse(value)?);
        Ok(())
    }),
    ("u8_as_s8", "auto, off, exact or approx", |options, value| {
        options.partition.optimize.signed_layers = parse(value)?;
        Ok(())
    }),
    // Without effect: workers always sleep soon after a run. Callers of earlier versions set it.
    ("yield_workers", FLAG, |_, value| parse_flag(value).map(drop)),
];

impl Options {
    /// Parses keys with their values. If a key is given twice, the last value counts.
    pub(crate) fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, OptionError> {
        let mut options = Self::default();
        for (key, value) in pairs {
            let &(key, expected, set) = OPTIONS
                .iter()
                .find(|(known, ..)| *known == key)
                .ok_or_else(|| OptionError::UnknownKey(key.to_owned()))?;
            set(&mut options, value).map_err(|unfit| match unfit {
                Unfit::Value => OptionError::BadValue { key, value: value.to_owned(), expected },
                Unfit::Name(name) => OptionError::BadName { key, name },
            })?;
        }
        Ok(options)
    }

    /// Options for the programs that the delegate creates.
    pub(crate) fn program(&self) -> ProgramOptions {
        let (cache_dir, limits) = (self.cache_dir.clone(), self.partition.limits.clone());
        ProgramOptions { cache_dir, limits, ..ProgramOptions::default() }
    }
}

fn parse<T: FromStr>(value: &str) -> Result<T, Unfit> {
    value.trim().parse().map_err(|_| Unfit::Value)
}

/// Values of an option that is on or off. Python's `str(True)` is `True`.
const FLAG: &str = "true or false (or 1, yes, on, 0, no, off)";

fn parse_flag(value: &str) -> Result<bool, Unfit> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(Unfit::Value),
    }
}

/// Splits a list at its commas and looks each name up with `find`.
fn names(
    value: &str,
    find: impl Fn(&str) -> Result<&'static str, UnknownName>,
) -> Result<Vec<String>, Unfit> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| find(name).map(str::to_owned).map_err(Unfit::Name)).collect()
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey(key) => {
                let keys: Vec<&str> = OPTIONS.iter().map(|(key, ..)| *key).collect();
                write!(f, "unknown option {key:?}; the options are {}", keys.join(", "))
            }
            Self::BadValue { key, value, expected } => {
                write!(f, "option {key}: {value:?} is not valid; expected {expected}")
            }
            Self::BadName { key, name } => write!(f, "option {key}: {name}"),
        }
    }
}

impl std::error::Error for OptionError {}

#[cfg(test)]
mod tests {
    use xnn_lower::DynamicRange;
    use xnn_lower::optimize::SignedLayers;

    use super::*;

    fn parse_one(key: &str, value: &str) -> Result<Options, OptionError> {
        Options::parse([(key, value)])
    }

    #[test]
    fn every_option_is_parsed() {
        let options = Options::parse([
            ("num_threads", "4"),
            ("min_partition_macs", "1000"),
            ("max_partitions", "2"),
            ("max_memory", "1000000"),
            ("max_work", "2000000"),
            ("explain", "report.json"),
            ("disable", "softmax, MEAN,"),
            ("log_level", "debug"),
            ("u8_as_s8", "approx"),
            ("dynamic_range", "rows"),
            ("cache_dir", "/var/cache/weights"),
            ("yield_workers", "true"),
            ("keep_small", "true"),
            ("disable_pass", "transposes, clamps"),
            ("no_optimize", "true"),
        ])
        .unwrap();
        assert_eq!(options.num_threads, NonZeroUsize::new(4));
        assert_eq!(options.partition.min_partition_macs, 1000);
        assert_eq!(options.partition.max_partitions, Some(2));
        let bounds = options.partition.limits.amplification;
        assert_eq!((bounds.free_bytes, bounds.free_work), (1_000_000, 2_000_000));
        assert_eq!(options.program().limits.amplification, bounds);
        assert_eq!(options.explain, Some(Explain::File("report.json".into())));
        assert_eq!(options.partition.disable, ["SOFTMAX", "MEAN"]);
        assert_eq!(options.log_level, Some(LevelFilter::Debug));
        assert_eq!(options.partition.optimize.signed_layers, SignedLayers::Approximate);
        assert_eq!(options.partition.dynamic_range, DynamicRange::Rows);
        assert!(options.partition.keep_small && options.partition.optimize.off);
        assert_eq!(options.partition.optimize.disable, ["transposes", "clamps"]);
        assert_eq!(options.program().cache_dir, Some("/var/cache/weights".into()));
    }

    #[test]
    fn no_options_are_the_defaults() {
        assert_eq!(Options::parse([]), Ok(Options::default()));
    }

    #[test]
    fn the_report_can_be_written_to_stderr() {
        assert_eq!(parse_one("explain", "stderr").unwrap().explain, Some(Explain::Stderr));
    }

    #[test]
    fn flags_are_accepted_as_people_write_them() {
        for key in ["keep_small", "no_optimize"] {
            let flag = |value| {
                let options = parse_one(key, value).unwrap();
                options.partition.keep_small || options.partition.optimize.off
            };
            for value in ["true", "True", "TRUE", "1", "yes", "Yes", "on", " true "] {
                assert!(flag(value), "{key} {value:?}");
            }
            for value in ["false", "False", "FALSE", "0", "no", "No", "off"] {
                assert!(!flag(value), "{key} {value:?}");
            }
        }
    }

    #[test]
    fn invalid_values_are_refused() {
        for (key, value) in [
            ("num_threads", "0"),
            ("num_threads", "-1"),
            ("num_threads", "two"),
            ("max_partitions", "many"),
            ("max_memory", "1G"),
            ("max_work", "-1"),
            ("min_partition_macs", "1e6"),
            ("explain", ""),
            ("cache_dir", ""),
            ("log_level", "loud"),
            ("u8_as_s8", "on"),
            ("yield_workers", "2"),
            ("keep_small", ""),
            ("no_optimize", "maybe"),
        ] {
            let error = parse_one(key, value).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        for (key, value, message) in [
            ("disable", "MEAN, sofmax", "there is no operator \"sofmax\"; did you mean SOFTMAX?"),
            ("disable_pass", "clamps,magic", "there is no optimization \"magic\""),
            ("disable", "NobodyKnows", "there is no operator \"NobodyKnows\""),
            (
                "disable_pass",
                "clamps,transpose",
                "there is no optimization \"transpose\"; did you mean transposes?",
            ),
        ] {
            let error = parse_one(key, value).unwrap_err().to_string();
            assert_eq!(error, format!("option {key}: {message}"));
        }
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones() {
        let error = parse_one("threads", "2").unwrap_err().to_string();
        assert!(error.contains("\"threads\"") && error.contains("num_threads"), "{error}");
    }
}
