//! `xnn verify`: compares delegated operators with reference kernels, tensor by tensor.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::str::FromStr;

use anyhow::Result;
use serde::Serialize;
use xnn_delegate::Model;
use xnn_delegate::lower::embedded_graph;
use xnn_delegate::verify::{Deviation, Scale, Skipped, Special, Verification, Verifier};

use crate::args::Workload;
use crate::output::{self, Table};
use crate::progress::Spinner;
use crate::source::{about, file_name, in_file, open_model_with};
use crate::tensors::{Inputs, label};

/// Number of deviations that are shown, and of operators that are named for each reason to skip them.
const SHOWN: usize = 5;

#[derive(clap::Args)]
#[command(mut_arg("path", |path| path.value_name("MODEL").help("TFLite or Circle model that is not converted")), after_help = "Examples:\n  \
    xnn verify mobilenet_v2_int8.tflite\n  \
    xnn verify mobilenet_v2.tflite --input 0=photo.npy --tolerance 1e-4\n  \
    xnn verify mobilenet_v2.tflite --special-values\n  \
    xnn verify ssd.tflite --json | jq '.entries[].operators[] | select(.distance > 0)'\n\n\
Each delegated operator runs alone, on the tensors of a run of the reference kernels, so that its deviation \
    is its own. This includes the subgraphs of loops, branches and calls, and the other signatures of a model. \
    By default, sums of floats may deviate by more than 1e-5 of the range: up to four times the change of the \
    reference when its inputs change by a rounding error (column \"rounding\"). The exit code is 1 if a \
    deviation is above the tolerance.")]
pub struct Args {
    #[command(flatten)]
    workload: Workload,
    /// Largest allowed deviation: a value of 1 or more is in quantization steps
    /// (8-bit tensors), a smaller one is a fraction of the tensor's range (floats);
    /// may be repeated for both [default: 1, and 1e-5 or what rounding explains]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tolerance: Vec<Tolerance>,
    /// Signature to verify [default: the main subgraph, then the signatures of other subgraphs]
    #[arg(long, value_name = "NAME")]
    signature: Option<String>,
    // Files are for the main subgraph or for `--signature`.
    #[command(flatten)]
    inputs: Inputs,
    /// Repeat with NaN, infinities, the largest float and a denormal in the middle of each fp32 input. Operators must
    /// compute NaN and infinities at the same positions. Operators whose result is undefined are not compared
    #[arg(long)]
    special_values: bool,
    /// Write the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tolerance {
    Steps(f64),
    Range(f64),
    /// Zero, for both.
    None,
}

impl FromStr for Tolerance {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(0.0) => Ok(Self::None),
            Ok(value) if 0.0 < value && value < 1.0 => Ok(Self::Range(value)),
            Ok(value) if value.is_finite() && value >= 1.0 => Ok(Self::Steps(value)),
            _ => Err("expected a number of at least 0"),
        }
    }
}

/// Largest allowed deviations.
#[derive(Serialize)]
struct Bounds {
    steps: f64,
    range: f64,
    /// Whether floats may deviate by more if rounding explains it.
    rounding: bool,
}

impl Bounds {
    fn new(given: &[Tolerance]) -> Self {
        let mut bounds = Self { steps: 1.0, range: Deviation::SMALL, rounding: true };
        for tolerance in given {
            match *tolerance {
                Tolerance::Steps(steps) => bounds.steps = steps,
                Tolerance::Range(range) => bounds = Self { range, rounding: false, ..bounds },
                Tolerance::None => bounds = Self { steps: 0.0, range: 0.0, rounding: false },
            }
        }
        bounds
    }

    fn allow(&self, deviation: &Deviation) -> bool {
        deviation.is_within(self.steps, self.range) || (self.rounding && deviation.is_rounding())
    }
}

#[derive(Serialize)]
struct Report {
    model: String,
    tolerance: Bounds,
    /// Number of tensors that deviate by more.
    beyond: usize,
    entries: Vec<Entry>,
}

/// Result for an entry point.
#[derive(Serialize)]
struct Entry {
    /// Key of the signature; `None` for the main subgraph.
    signature: Option<String>,
    /// Special value in the inputs; `None` for ordinary inputs.
    special: Option<&'static str>,
    #[serde(flatten)]
    verification: Verification,
}

pub fn run(args: &Args, out: &mut dyn Write) -> Result<()> {
    let path = args.workload.path.as_path();
    let failed = |error| in_file(path, &error);
    if xnn_delegate::blob::is_blob(path).map_err(failed)? {
        return Err(about(path, "a blob has no reference kernels; verify its original model"));
    }
    let spinner = Spinner::new(format!("verifying {}", file_name(path)));
    let options = args.workload.runner_options();
    let model = open_model_with(path, &options.limits)?;
    if holds_graphs(&model) {
        let what = "blobs in a model have no reference kernels; verify the original model";
        return Err(about(path, what));
    }
    let mut entries = vec![];
    for signature in entry_points(&model, args.signature.as_deref()) {
        let mut verifier = match signature {
            Some(key) => Verifier::at_signature(&model, key, &options),
            None => Verifier::new(&model, &options),
        }
        .map_err(failed)?;
        let random = args.inputs.random();
        let inputs = if entries.is_empty() { &args.inputs } else { &random };
        let kinds = if args.special_values { Special::ALL.as_slice() } else { &[] };
        for special in [None].into_iter().chain(kinds.iter().copied().map(Some)) {
            inputs.fill(path, verifier.reference_mut())?;
            if special.is_some_and(|it| it.plant(verifier.reference_mut()) == 0) {
                continue;
            }
            let verification = verifier.verify().map_err(failed)?;
            let (signature, special) = (signature.map(str::to_owned), special.map(Special::name));
            entries.push(Entry { signature, special, verification });
        }
    }
    if args.special_values && entries.iter().all(|entry| entry.special.is_none()) {
        return Err(about(path, "--special-values needs an fp32 input"));
    }
    drop(spinner);

    let tolerance = Bounds::new(&args.tolerance);
    let beyond = operators(&entries).filter(|d| !tolerance.allow(d)).count();
    let report = Report { model: file_name(path), tolerance, beyond, entries };
    if args.json {
        output::write_json(out, &report)?;
    } else {
        report.write(out)?;
    }
    match report.tolerance.worst(operators(&report.entries)).first().filter(|_| beyond > 0) {
        None => Ok(()),
        Some(worst) => {
            let what = format!(
                "{} by more than the tolerance; the worst is {} of operator {} ({}) in subgraph {}",
                deviate(beyond),
                name(worst),
                worst.operator.unwrap_or_default(),
                worst.op,
                worst.subgraph,
            );
            Err(about(path, what))
        }
    }
}

/// Whether the model holds blobs.
fn holds_graphs(model: &Model) -> bool {
    let mut operators = model.subgraphs.iter().flat_map(|graph| &graph.operators);
    operators.any(|operator| embedded_graph(&operator.op).is_some())
}

/// The requested signature, otherwise the main subgraph and one signature of each other subgraph.
fn entry_points<'a>(model: &'a Model, wanted: Option<&'a str>) -> Vec<Option<&'a str>> {
    if wanted.is_some() {
        return vec![wanted];
    }
    let mut seen = BTreeSet::from([0]);
    let others = model.signatures.iter().filter(|signature| seen.insert(signature.subgraph));
    let others: Vec<_> = others.map(|signature| Some(signature.key.as_str())).collect();
    [vec![None], others].concat()
}

fn operators(entries: &[Entry]) -> impl Iterator<Item = &Deviation> {
    entries.iter().flat_map(|entry| &entry.verification.operators)
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { range, rounding, .. } = *self;
        let explained = if rounding { " or what rounding explains" } else { "" };
        write!(f, "{} or {range:e} of the range{explained}", steps(self.steps))
    }
}

impl Bounds {
    /// Deviations from the worst on, those above the tolerance first.
    fn worst<'a>(&self, deviations: impl Iterator<Item = &'a Deviation>) -> Vec<&'a Deviation> {
        let Self { steps, range, .. } = *self;
        // Distances are compared relative to the tolerance, unless that is zero.
        let weight = |deviation: &Deviation| match deviation.scale {
            Scale::Steps if steps > 0.0 => deviation.distance / steps,
            Scale::Range if range > 0.0 => deviation.distance / range,
            _ => deviation.distance,
        };
        let mut worst: Vec<&Deviation> = deviations.filter(|it| it.distance > 0.0).collect();
        worst.sort_by(|a, b| {
            let beyond = |d| !self.allow(d);
            beyond(b).cmp(&beyond(a)).then(weight(b).total_cmp(&weight(a)))
        });
        worst
    }
}

impl Report {
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        for Entry { signature, special, verification } in &self.entries {
            if let Some(key) = signature {
                writeln!(out, "signature {key:?}:")?;
            }
            if let Some(special) = special {
                writeln!(out, "with {special} among the inputs:")?;
            }
            self.write_entry(verification, out)?;
        }
        Ok(())
    }

    fn write_entry(&self, verification: &Verification, out: &mut dyn Write) -> Result<()> {
        let Verification { operators, outputs, skipped } = verification;
        let deviating: Vec<&Deviation> = operators.iter().filter(|it| it.distance > 0.0).collect();
        let beyond = deviating.iter().filter(|it| !self.tolerance.allow(it)).count();
        writeln!(
            out,
            "{} of delegated operators compared with reference kernels, each operator on the reference's inputs:\n\
             {}, {beyond} by more than {}",
            output::count(operators.len(), "tensor"),
            deviate(deviating.len()),
            self.tolerance,
        )?;
        if !deviating.is_empty() {
            let mut table = Table::new(COLUMNS);
            deviating.iter().take(SHOWN).for_each(|it| table.row(row("first", it)));
            let worst = self.tolerance.worst(operators.iter());
            worst.into_iter().take(SHOWN).for_each(|it| table.row(row("worst", it)));
            table.write(out)?;
        }
        let alike = |a: &Skipped, b: &Skipped| a.subgraph == b.subgraph && a.reason == b.reason;
        for group in skipped.chunk_by(alike) {
            let Some(Skipped { subgraph, reason, .. }) = group.first() else { continue };
            let kinds = group.chunk_by(|a, b| a.op == b.op).map(few).collect::<Vec<_>>();
            let operators = kinds.join(", ");
            writeln!(out, "not compared: subgraph {subgraph}: operator {operators}: {reason}")?;
        }
        writeln!(out, "outputs of the model, with the deviations of all operators:")?;
        let mut table = Table::new(COLUMNS);
        outputs.iter().for_each(|it| table.row(row("output", it)));
        Ok(table.write(out)?)
    }
}

/// Names the first operators of a group.
fn few(operators: &[Skipped]) -> String {
    let indices: Vec<String> =
        operators.iter().take(SHOWN).map(|it| it.operator.to_string()).collect();
    let op = operators.first().map_or("", |it| &it.op);
    match operators.len().saturating_sub(SHOWN) {
        0 => format!("{} ({op})", indices.join(", ")),
        more => format!("{} and {more} more ({op})", indices.join(", ")),
    }
}

const COLUMNS: [&str; 9] =
    ["", "subgraph>", "operator>", "", "tensor", "deviation>", "rounding>", "expected>", "found>"];

fn row(kind: &str, deviation: &Deviation) -> [String; 9] {
    [
        kind.to_owned(),
        deviation.subgraph.to_string(),
        deviation.operator.map_or_else(String::new, |index| index.to_string()),
        deviation.op.clone(),
        name(deviation),
        match deviation.scale {
            Scale::Steps => steps(deviation.distance),
            Scale::Range => of_range(deviation.distance),
            _ => deviation.distance.to_string(),
        },
        deviation.rounding.map_or_else(String::new, of_range),
        deviation.expected.to_string(),
        deviation.actual.to_string(),
    ]
}

fn of_range(part: f64) -> String {
    format!("{part:.1e} of range")
}

fn name(deviation: &Deviation) -> String {
    format!("tensor {}", label(deviation.tensor, &deviation.name))
}

fn deviate(tensors: usize) -> String {
    let verb = if tensors == 1 { "deviates" } else { "deviate" };
    format!("{} {verb}", output::count(tensors, "tensor"))
}

fn steps(count: f64) -> String {
    format!("{count} step{}", if count == 1.0 { "" } else { "s" })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_first_operators_of_a_group_are_named() {
        let skipped = |operator| Skipped {
            subgraph: 0,
            operator,
            op: "DEQUANTIZE".into(),
            reason: "it is computed once".into(),
        };
        let all: Vec<Skipped> = (0..7).map(skipped).collect();
        assert_eq!(few(&all[..2]), "0, 1 (DEQUANTIZE)");
        assert_eq!(few(&all[..5]), "0, 1, 2, 3, 4 (DEQUANTIZE)");
        assert_eq!(few(&all), "0, 1, 2, 3, 4 and 2 more (DEQUANTIZE)");
    }

    #[test]
    fn size_tells_the_kind_of_a_tolerance() {
        let parse = |text: &str| text.parse::<Tolerance>();
        assert_eq!(parse("2"), Ok(Tolerance::Steps(2.0)));
        assert_eq!(parse("1"), Ok(Tolerance::Steps(1.0)));
        assert_eq!(parse("1e-4"), Ok(Tolerance::Range(1e-4)));
        assert_eq!(parse("0"), Ok(Tolerance::None));
        for bad in ["-1", "many", "inf", "NaN", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let bounds = Bounds::new(&[Tolerance::Range(0.25), Tolerance::Steps(3.0)]);
        assert_eq!((bounds.steps, bounds.range, bounds.rounding), (3.0, 0.25, false));
        assert!(Bounds::new(&[Tolerance::Steps(2.0)]).rounding);
        assert!(!Bounds::new(&[Tolerance::None]).rounding);
    }
}
