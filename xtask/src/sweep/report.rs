//! Results of a sweep, as JSON and as Markdown.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::bench::{Host, Table, columns, geometric_mean, number};

/// Ratios above this one are listed.
pub const SLOWER: f64 = 1.05;

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub host: Host,
    /// Versions.
    pub xnn: String,
    pub litert: String,
    /// Threads of each side.
    pub threads: u16,
    /// Turns of each side with each model, and further ones with those that were slower.
    pub rounds: usize,
    pub more_rounds: usize,
    /// Whether the models are not of one operator each.
    pub whole_models: bool,
    pub levels: Vec<LevelResults>,
}

/// A level of instruction sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelResults {
    pub level: String,
    pub timings: Vec<Timing>,
    pub failures: Vec<Failure>,
}

/// A model of one operator, as `sweep_models.py` lists it, or a whole model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The file's, without `.tflite`.
    pub name: String,
    /// The name of a whole model.
    pub operator: String,
    /// Empty for a whole model, as the next.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its size.
    pub case: String,
    #[serde(skip)]
    pub file: PathBuf,
}

impl Model {
    /// A model that is not of one operator.
    pub fn whole(file: PathBuf) -> Self {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { operator: name.clone(), name, kind: String::new(), case: String::new(), file }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, kind, case, .. } = self;
        f.write_str(format!("{operator} {kind} {case}").trim_end())
    }
}

/// A model's times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    #[serde(flatten)]
    pub model: Model,
    /// Medians.
    pub xnn_us: f64,
    pub litert_us: f64,
    /// Median of the rounds' ratios.
    pub ratio: f64,
    pub rounds: usize,
    /// Whether XNNPACK runs the operator, or a kernel of the side's own.
    pub delegated: bool,
    pub litert_delegated: bool,
}

/// A model that a side does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    #[serde(flatten)]
    pub model: Model,
    /// Begins with the side's name.
    pub error: String,
}

/// Writes both files, each at once.
pub fn write(file: &Path, results: &Results) -> Result<()> {
    let json = format!("{}\n", serde_json::to_string_pretty(results)?);
    for (file, text) in [(file.to_owned(), markdown(results)), (file.with_extension("json"), json)]
    {
        let part = file.with_added_extension("part");
        fs::write(&part, text)
            .and_then(|()| fs::rename(&part, &file))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// The page.
pub fn markdown(results: &Results) -> String {
    let Results { host, xnn, litert, threads, rounds, more_rounds, whole_models, levels } = results;
    let models = levels.iter().map(|level| level.timings.len()).max().unwrap_or_default();
    let (subject, of_one) =
        if *whole_models { ("Models", "") } else { ("Operators", " of one operator") };
    let noun = if models == 1 { "model" } else { "models" };
    let threads = if *threads == 1 { "one thread".into() } else { format!("{threads} threads") };
    let rounds = if *rounds == 1 { "1 round".into() } else { format!("{rounds} rounds") };
    let mut text = format!(
        "# {subject} beside LiteRT\n\n\
         Written by `cargo xtask sweep`; `docs/benchmarks/README.md` describes the method. {models} {noun}{of_one}, \
         {threads}, {rounds}, and {more_rounds} more of those that are slower than LiteRT. A ratio is the median of the \
         rounds' ratios to LiteRT with its XNNPACK delegate; below 1, this project is faster.\n\n\
         - CPU: {}, {} cores\n\
         - this project: {xnn}\n\
         - LiteRT: {litert}\n\n\
         ## Geometric means of the ratios\n\n",
        host.cpu, host.cores,
    );
    text += &means(levels, *whole_models);
    text += &format!("\n## Slower than LiteRT by more than {:.0} %\n\n", 100.0 * (SLOWER - 1.0));
    text += &slower(levels);
    let failures = levels.iter().flat_map(|level| {
        let line = |one: &Failure| format!("- {}, {}: {}\n", one.model, level.level, one.error);
        level.failures.iter().map(line)
    });
    let failures: String = failures.collect();
    if !failures.is_empty() {
        text += &format!("\n## What did not run\n\n{failures}");
    }
    text
}

/// A row for each operator or whole model.
fn means(levels: &[LevelResults], whole_models: bool) -> String {
    let mut operators: Vec<&str> = Vec::new();
    for timing in levels.iter().flat_map(|level| &level.timings) {
        let operator = timing.model.operator.as_str();
        if !operators.contains(&operator) {
            operators.push(operator);
        }
    }
    let mut head = columns(&[if whole_models { "model" } else { "operator" }]);
    head.extend(levels.iter().map(|level| level.level.clone()));
    let mut table = Table::new(&head);
    let mut row = |name: &str, is_in: &dyn Fn(&Timing) -> bool| {
        let mean = |level: &LevelResults| {
            let timings = level.timings.iter().filter(|timing| is_in(timing));
            geometric_mean(&timings.map(|timing| timing.ratio).collect::<Vec<_>>())
        };
        let cells = levels.iter().map(|level| number(mean(level), 2));
        table.row(&[name.to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    };
    for operator in operators {
        row(operator, &|timing| timing.model.operator == operator);
    }
    row("**all**", &|_| true);
    table.text()
}

/// The models that are slower, the slowest first.
fn slower(levels: &[LevelResults]) -> String {
    let mut found: Vec<(&str, &Timing)> = levels
        .iter()
        .flat_map(|level| level.timings.iter().map(|timing| (level.level.as_str(), timing)))
        .filter(|(_, timing)| timing.ratio > SLOWER)
        .collect();
    if found.is_empty() {
        return "None.\n".into();
    }
    found.sort_by(|a, b| b.1.ratio.total_cmp(&a.1.ratio));
    let head = ["model", "level", "us", "LiteRT's us", "ratio", "on XNNPACK", "LiteRT's"];
    let mut table = Table::new(&columns(&head));
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    for (level, Timing { model, xnn_us, litert_us, ratio, delegated, litert_delegated, .. }) in
        found
    {
        table.row(&[
            model.to_string(),
            level.to_owned(),
            number(Some(*xnn_us), 1),
            number(Some(*litert_us), 1),
            format!("**{ratio:.2}**"),
            yes(*delegated),
            yes(*litert_delegated),
        ]);
    }
    table.text()
}
