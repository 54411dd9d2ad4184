//! Messages in the pipe between the benchmark and a peer.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A peer's first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Version of the runtime.
    pub version: String,
    /// The ways in which the process runs the model, mostly one, by name.
    pub sides: BTreeMap<String, Side>,
}

/// A model, opened in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Side {
    /// It runs.
    Ready(Start),
    /// It does not.
    Failed {
        /// Why.
        error: String,
    },
}

/// Cost of opening a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Milliseconds from the file to a model that can run.
    pub load_ms: f64,
    /// Milliseconds of the first run.
    pub first_ms: f64,
    /// After the first runs.
    pub memory: Memory,
    /// Delegated partitions, where the runtime has such a thing.
    pub partitions: Option<u64>,
}

/// Runs of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// Microseconds of each run.
    pub us: Vec<f64>,
    /// Microseconds of processor time that all threads of the peer spent on all of them.
    pub cpu_us: f64,
}

/// Growth of resident memory, pages of mapped files included, since before the model was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes now.
    pub steady: u64,
    /// Bytes when there were most.
    pub peak: u64,
}

/// Facts about a model that this project computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// All operators.
    pub operators: usize,
    /// Operators that are delegated to XNNPACK.
    pub delegated: usize,
    /// XNNPACK graphs of the delegated operators.
    pub partitions: usize,
    /// Multiply-accumulates of these in one run.
    pub macs: u64,
    /// Whether most layers with weights have 8-bit ones.
    pub eight_bit: bool,
    /// Size of the weights as XNNPACK packs them.
    pub packed_bytes: u64,
}

/// A line to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Run for so long: [`Runs`].
    Time {
        /// Name of the side.
        side: String,
        /// Duration, at least one run.
        millis: u64,
    },
    /// Open the model until there are so many instances, run the new ones once: [`Memory`].
    Instances {
        /// Name of the side.
        side: String,
        /// Number of instances.
        count: usize,
    },
    /// Open the model until there are so many instances, and run them at the same time for so long: [`Runs`] of
    /// all instances.
    Streams {
        /// Name of the side.
        side: String,
        /// Number of instances.
        count: usize,
        /// Duration, at least one run of each instance.
        millis: u64,
    },
    /// Open the model again, run once on the inputs, and write the outputs to `out_<i>.bin`: their number.
    Outputs {
        /// Name of the side.
        side: String,
        /// Where to.
        folder: String,
    },
    /// [`Facts`]; of this project's peer only.
    Facts,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { side, millis } => write!(f, "time {side} {millis}"),
            Self::Instances { side, count } => write!(f, "instances {side} {count}"),
            Self::Streams { side, count, millis } => write!(f, "streams {side} {count} {millis}"),
            Self::Outputs { side, folder } => write!(f, "outputs {side} {folder}"),
            Self::Facts => f.write_str("facts"),
        }
    }
}

impl Request {
    /// The request in a line.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(line: &str) -> Result<Self> {
        let line = line.trim_end_matches(['\r', '\n']);
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        Ok(match words.as_slice() {
            ["time", side, millis] => {
                let millis = millis.parse().with_context(|| format!("no duration: {line:?}"))?;
                Self::Time { side: (*side).into(), millis }
            }
            ["instances", side, count] => {
                let count = count.parse().with_context(|| format!("no number: {line:?}"))?;
                Self::Instances { side: (*side).into(), count }
            }
            ["streams", side, rest] => {
                let (count, millis) =
                    rest.split_once(' ').with_context(|| format!("no duration: {line:?}"))?;
                let count = count.parse().with_context(|| format!("no number: {line:?}"))?;
                let millis = millis.parse().with_context(|| format!("no duration: {line:?}"))?;
                Self::Streams { side: (*side).into(), count, millis }
            }
            ["outputs", side, folder] => {
                Self::Outputs { side: (*side).into(), folder: (*folder).into() }
            }
            ["facts"] => Self::Facts,
            _ => bail!("no request: {line:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let side = || "xnn".to_owned();
        for request in [
            Request::Time { side: side(), millis: 50 },
            Request::Instances { side: side(), count: 8 },
            Request::Streams { side: side(), count: 3, millis: 50 },
            Request::Outputs { side: side(), folder: "a b/c".into() },
            Request::Facts,
        ] {
            assert_eq!(Request::parse(&format!("{request}\n")).ok(), Some(request));
        }
        for line in [
            "",
            "time xnn",
            "time xnn soon",
            "instances xnn -1",
            "streams xnn 2",
            "facts xnn",
            "stop",
        ] {
            assert!(Request::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_side_runs_or_says_why_not() -> Result<()> {
        let line = r#"{"version": "2.3.0", "sides": {
            "litert": {"load_ms": 14, "first_ms": 4.5, "memory": {"steady": 1, "peak": 2}, "partitions": 1},
            "tract": {"load_ms": 1, "first_ms": 2, "memory": {"steady": 1, "peak": 2}, "partitions": null},
            "delegate": {"error": "no such file"}}}"#;
        let opened: Opened = serde_json::from_str(line)?;
        let memory = Memory { steady: 1, peak: 2 };
        let start = Start { load_ms: 14.0, first_ms: 4.5, memory, partitions: Some(1) };
        assert_eq!(opened.sides.get("litert"), Some(&Side::Ready(start)));
        assert!(matches!(
            opened.sides.get("tract"),
            Some(Side::Ready(Start { partitions: None, .. }))
        ));
        assert_eq!(
            opened.sides.get("delegate"),
            Some(&Side::Failed { error: "no such file".into() })
        );
        Ok(())
    }
}
