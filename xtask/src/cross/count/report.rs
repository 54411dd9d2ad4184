//! The report of counted instructions: a table and the figures as JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::Serialize;

use super::litert::LiteRt;
use super::plugin::Plugin;
use crate::bench::geometric_mean;
use crate::cross::Cross;
use crate::cross::targets::Processor;

/// Names of the two files.
pub const TEXT: &str = "arm.md";
const DATA: &str = "arm.json";
const NONE: &str = "–";

/// Kinds of models, each with the parts of names that tell them; the first that fits.
const KINDS: [(&str, &[&str]); 4] = [
    ("dynamic range", &["dynamic_range", "dyn8"]),
    ("int8", &["int8"]),
    ("uint8", &["uint8", "quant"]),
    ("fp32", &[""]),
];

/// Counts of a model on a processor.
#[derive(Serialize)]
pub struct Row {
    model: String,
    processor: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

#[derive(Serialize)]
struct Counts {
    #[serde(skip_serializing_if = "Option::is_none")]
    xnn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    litert: Option<u64>,
    /// Why a count is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<String>,
}

impl Row {
    pub fn new(
        model: &Path,
        processor: &Processor,
        ours: Result<u64>,
        litert: Option<Result<u64>>,
    ) -> Self {
        let mut errors = Vec::new();
        let mut kept = |side: &str, count: Result<u64>| {
            count.map_err(|error| errors.push(format!("{side}: {error:#}"))).ok()
        };
        let xnn = kept("xnn", ours);
        let litert = litert.and_then(|count| kept("LiteRT", count));
        let model = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { model, processor: processor.name, counts: Counts { xnn, litert, errors } }
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.counts.xnn? as f64 / self.counts.litert? as f64)
    }

    fn kind(&self) -> &'static str {
        let is = |parts: &[&str]| parts.iter().any(|part| self.model.contains(part));
        KINDS.iter().find(|(_, parts)| is(parts)).map_or("", |(kind, _)| kind)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: Option<u64>| count.map_or_else(|| NONE.to_owned(), millions);
        let Counts { xnn, litert, errors } = &self.counts;
        write!(f, "{} {}: {}", self.model, self.processor, count(*xnn))?;
        write!(f, ", LiteRT {}, ratio {}", count(*litert), ratio(self.ratio()))?;
        errors.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

fn millions(count: u64) -> String {
    format!("{:.2}", count as f64 / 1e6)
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| NONE.to_owned(), |ratio| format!("{ratio:.2}"))
}

/// All counts, and with what they were made.
#[derive(Serialize)]
pub struct Report {
    target: &'static str,
    versions: BTreeMap<&'static str, String>,
    processors: BTreeMap<&'static str, &'static str>,
    rows: Vec<Row>,
    #[serde(skip)]
    order: Vec<&'static str>,
}

impl Report {
    pub fn new(
        cross: &Cross<'_>,
        plugin: &Plugin,
        litert: Option<&LiteRt>,
        processors: &[&'static Processor],
    ) -> Self {
        let mut versions = BTreeMap::from([("QEMU", plugin.version.clone())]);
        if let Some(compiler) = compiler(cross) {
            versions.insert("C compiler", compiler);
        }
        if litert.is_some() {
            versions.insert("LiteRT", LiteRt::version());
        }
        Self {
            target: cross.target.triple,
            versions,
            processors: processors.iter().map(|one| (one.name, one.about)).collect(),
            rows: Vec::new(),
            order: processors.iter().map(|one| one.name).collect(),
        }
    }

    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Writes both files.
    pub fn write(&self, folder: &Path) -> Result<()> {
        fs::write(folder.join(DATA), serde_json::to_string_pretty(self)? + "\n")?;
        fs::write(folder.join(TEXT), self.text()?)?;
        Ok(())
    }

    fn text(&self) -> Result<String> {
        let mut text = String::from(
            "# Instructions on ARM\n\n\
             `cargo xtask cross aarch64 count` writes this page. It counts the instructions that one inference with one thread \
             executes in\nan emulator: exactly, and whatever else the machine does. Instructions are not time: they show scalar \
             loops, missing microkernels and\nregisters that a compiler spills, but no caches and no pipelines.\n\n",
        );
        let versions = self.versions.iter().map(|(name, version)| format!("{name} {version}"));
        writeln!(text, "{}\n", versions.collect::<Vec<_>>().join(", "))?;
        for name in &self.order {
            writeln!(text, "- `{name}`: {}", self.processors.get(name).unwrap_or(&""))?;
        }
        text += "\nMillions of instructions of this project, and as a ratio to LiteRT's (lower is better):\n\n| model |";
        for name in &self.order {
            write!(text, " {name} | ratio |")?;
        }
        text += "\n|---|";
        text += &"---:|---:|".repeat(self.order.len());
        text += "\n";
        let mut models: Vec<&str> = self.rows.iter().map(|row| row.model.as_str()).collect();
        models.dedup();
        for model in models {
            write!(text, "| {model} |")?;
            for name in &self.order {
                let row = self.rows.iter().find(|row| row.model == model && row.processor == *name);
                let count = row.and_then(|row| row.counts.xnn);
                let count = count.map_or_else(|| NONE.to_owned(), millions);
                write!(text, " {count} | {} |", ratio(row.and_then(Row::ratio)))?;
            }
            text += "\n";
        }
        self.means(&mut text)?;
        Ok(text)
    }

    /// Geometric means of ratios.
    fn means(&self, text: &mut String) -> Result<()> {
        *text += "\nGeometric means of the ratios:\n\n| models |";
        for name in &self.order {
            write!(text, " {name} |")?;
        }
        *text += "\n|---|";
        *text += &"---:|".repeat(self.order.len());
        *text += "\n";
        let kinds = KINDS.iter().map(|(kind, _)| Some(*kind)).chain([None]);
        for kind in kinds {
            write!(text, "| {} |", kind.unwrap_or("all"))?;
            for name in &self.order {
                let is_included = |row: &&Row| {
                    row.processor == *name && kind.is_none_or(|kind| row.kind() == kind)
                };
                let ratios: Vec<f64> =
                    self.rows.iter().filter(is_included).filter_map(Row::ratio).collect();
                write!(text, " {} |", ratio(geometric_mean(&ratios)))?;
            }
            *text += "\n";
        }
        Ok(())
    }
}

/// The first line in which the target's C compiler describes itself.
fn compiler(cross: &Cross<'_>) -> Option<String> {
    let name = format!("CC_{}", cross.target.triple.replace('-', "_"));
    let variables = cross.variables();
    let (_, value) = variables.iter().find(|(one, _)| *one == name)?;
    // The value may begin with a program such as ccache.
    let program = value.to_str()?.split_whitespace().last()?.to_owned();
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cross::targets::When;

    const PROCESSOR: Processor =
        Processor { name: "a72", environment: &[], about: "NEON", when: When::Quick };

    fn row(model: &str, ours: Result<u64>, litert: Option<Result<u64>>) -> Row {
        Row::new(Path::new(model), &PROCESSOR, ours, litert)
    }

    fn report(rows: Vec<Row>) -> Report {
        Report {
            target: "aarch64",
            versions: BTreeMap::from([("QEMU", "7.2".into())]),
            processors: BTreeMap::from([("a72", "NEON")]),
            rows,
            order: vec!["a72"],
        }
    }

    #[test]
    fn ratios_and_missing_counts_are_in_the_table() -> Result<()> {
        let text = report(vec![
            row("m/a_fp32.tflite", Ok(1_500_000), Some(Ok(3_000_000))),
            row("m/b_int8.tflite", Ok(2_000_000), None),
            row("m/c_quant.tflite", Ok(4_000_000), Some(Err(anyhow::anyhow!("it crashed")))),
        ])
        .text()?;
        assert!(text.contains("| a_fp32 | 1.50 | 0.50 |"), "{text}");
        assert!(text.contains("| b_int8 | 2.00 | – |"), "{text}");
        assert!(text.contains("| c_quant | 4.00 | – |"), "{text}");
        assert!(text.contains("| fp32 | 0.50 |") && text.contains("| int8 | – |"), "{text}");
        Ok(())
    }

    #[test]
    fn errors_are_kept_with_the_side() {
        let row = row("a.tflite", Err(anyhow::anyhow!("bad file")), Some(Ok(7)));
        assert_eq!(row.counts.errors, ["xnn: bad file"]);
        assert!(row.to_string().ends_with("ratio –; xnn: bad file"));
    }

    #[test]
    fn names_tell_the_kind_of_a_model() {
        let kind = |name: &str| row(name, Ok(1), None).kind();
        assert_eq!(kind("mobilenet_v2_1.0_224_quant.tflite"), "uint8");
        assert_eq!(kind("mobilenet_edgetpu_1.0_224_uint8.tflite"), "uint8");
        assert_eq!(kind("modern/edgenext_xs_dyn8.tflite"), "dynamic range");
        assert_eq!(kind("mobilenet_v2_1.0_224_int8_ptq.tflite"), "int8");
        assert_eq!(kind("face_landmark.tflite"), "fp32");
    }
}
