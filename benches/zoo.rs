//! Every model beside LiteRT: what is delegated, how far results are from the reference kernels, how
//! long a run takes. `cargo xtask zoo` sets up and starts it.
//!
//! Usage: `zoo PYTHON LIBRARY REPORT ROUNDS MODEL...`, where PYTHON has LiteRT, LIBRARY is
//! `libxnn_delegate.so`, and REPORT is the Markdown file to write.
//!
//! Three sides run in turns: this project's own runner, and in LiteRT's process its default delegate and
//! the library. One thread each.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]

mod peer;

use std::path::Path;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::tempdir;
use xnn_delegate::{Coverage, PartitionOptions, Runner, SessionOptions, build};

use peer::{Host, LiteRt, Side, about, in_turns, median, ratio, run_for, set_inputs, write};

/// Of one model.
struct Row {
    model: String,
    /// Why the model does not run here.
    refused: Option<String>,
    coverage: Option<Coverage>,
    /// LiteRT's delegated partitions; or why it does not run there.
    litert: Result<u64, String>,
    judge: String,
    /// Of this project's runner, LiteRT's delegate and the library.
    distances: [String; 3],
    timing: Option<Timing>,
}

struct Timing {
    ours: f64,
    litert: f64,
    ratio: f64,
    library_ratio: Option<f64>,
}

fn main() -> Result<()> {
    // `cargo bench` adds an argument of its own.
    let arguments: Vec<String> = env::args().skip(1).filter(|one| one != "--bench").collect();
    let [python, library, report, rounds, models @ ..] = arguments.as_slice() else {
        bail!("usage: zoo PYTHON LIBRARY REPORT ROUNDS MODEL...; `cargo xtask zoo` does it");
    };
    let rounds = rounds.parse().context("ROUNDS is no number")?;
    let mut rows = Vec::new();
    let mut version = String::new();
    for (position, model) in models.iter().enumerate() {
        eprintln!("[{}/{}] {model}", position + 1, models.len());
        let name = Path::new(model).file_stem().unwrap_or_default().to_string_lossy();
        let row = match LiteRt::start(python, model, 1, Some(library)) {
            Ok(mut litert) => {
                version = litert.version()?;
                let row = row(name.into_owned(), model, &mut litert, rounds);
                // A model that ends LiteRT's process is no error of this program's.
                let _ = litert.stop();
                row
            }
            Err(_) => Row::without_litert(name.into_owned(), model),
        };
        rows.push(row);
    }
    let markdown = to_markdown(&Host::new()?, &version, rounds, &rows);
    print!("{markdown}");
    write(report, &markdown)
}

fn open(model: &str) -> Result<Runner> {
    Runner::open(model, &PartitionOptions::default(), &SessionOptions::default())
        .map_err(|error| about(model, &error))
}

impl Row {
    fn without_litert(model: String, path: &str) -> Self {
        let runner = open(path);
        Self {
            model,
            refused: runner.as_ref().err().map(ToString::to_string),
            coverage: runner.ok().map(|runner| runner.coverage()),
            litert: Err("its process ended".into()),
            judge: "none".into(),
            distances: ["–"; 3].map(String::from),
            timing: None,
        }
    }
}

fn row(model: String, path: &str, litert: &mut LiteRt, rounds: usize) -> Row {
    let mut row = Row::without_litert(model, path);
    let state = &litert.state["litert"];
    row.litert = match state["partitions"].as_u64() {
        Some(partitions) => Ok(partitions),
        None => Err(state["error"].as_str().unwrap_or("no answer").to_owned()),
    };
    let Ok(mut runner) = open(path) else { return row };
    match compare(&mut runner, litert) {
        Ok((judge, distances)) => (row.judge, row.distances) = (judge, distances),
        Err(error) => row.refused = Some(error.to_string()),
    }
    if row.litert.is_ok() && row.refused.is_none() && rounds > 0 {
        row.timing = time(&mut runner, litert, rounds).ok();
    }
    row
}

/// Runs once on LiteRT's inputs; who judges, and the distances.
fn compare(runner: &mut Runner, litert: &mut LiteRt) -> Result<(String, [String; 3])> {
    let folder = tempdir()?;
    let path = folder.path().to_string_lossy();
    set_inputs(runner, litert, &path)?;
    runner.run()?;
    for index in 0..runner.outputs().len() {
        fs::write(format!("{path}/out_{index}.bin"), runner.output(index))?;
    }
    let answer = litert.ask(&format!("distance {path}"))?;
    let judge = answer["judge"].as_str().unwrap_or("none").to_owned();
    Ok((judge, ["ours", "litert", "delegate"].map(|side| distance(&answer[side]))))
}

/// `2 steps`, `3.1e-7`, or both.
fn distance(answer: &Value) -> String {
    if let Some(text) = answer.as_str() {
        return format!("another {text}");
    }
    let steps = answer[0].as_f64().map(|steps| match steps {
        0.0 => "0".to_owned(),
        1.0 => "1 step".to_owned(),
        _ => format!("{steps} steps"),
    });
    let range =
        answer[1].as_f64().map(|part| if part == 0.0 { "0".into() } else { format!("{part:.1e}") });
    let both: Vec<String> = steps.into_iter().chain(range).collect();
    if both.is_empty() { "–".into() } else { both.join(", ") }
}

fn time(runner: &mut Runner, litert: &mut LiteRt, rounds: usize) -> Result<Timing> {
    let with_library = litert.state["delegate"]["partitions"].is_u64();
    type Both<'a> = (&'a mut Runner, &'a mut LiteRt);
    let (ours, theirs, library): (Side<Both>, Side<Both>, Side<Both>) = (
        &|(runner, _), time| run_for(runner, time),
        &|(_, litert), time| litert.run_for("litert", time),
        &|(_, litert), time| litert.run_for("delegate", time),
    );
    let sides = if with_library { vec![ours, theirs, library] } else { vec![ours, theirs] };
    let times = in_turns(&mut (runner, litert), &sides, rounds)?;
    let [ours, theirs, rest @ ..] = times.as_slice() else { bail!("two sides") };
    Ok(Timing {
        ours: median(&ours.concat()) / 1e3,
        litert: median(&theirs.concat()) / 1e3,
        ratio: ratio(ours, theirs),
        library_ratio: rest.first().map(|library| ratio(library, theirs)),
    })
}

fn to_markdown(host: &Host, litert: &str, rounds: usize, rows: &[Row]) -> String {
    let mut table = String::new();
    let mut ratios: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for row in rows {
        let (operators, delegated, partitions) = match row.coverage {
            Some(Coverage { operators, delegated, partitions }) => {
                (operators.to_string(), delegated.to_string(), partitions.to_string())
            }
            None => ("–".into(), "–".into(), "–".into()),
        };
        let litert = row.litert.as_ref().map_or("–".into(), u64::to_string);
        let times = match &row.timing {
            Some(Timing { ours, litert, ratio, library_ratio }) => {
                ratios[0].push(*ratio);
                ratios[1].extend(library_ratio);
                let library = library_ratio.map_or("–".into(), |ratio| format!("**{ratio:.2}**"));
                format!("{ours:.3} | {litert:.3} | **{ratio:.2}** | {library}")
            }
            None => "– | – | – | –".into(),
        };
        let [ours, theirs, library] = &row.distances;
        let judge = if row.judge == "optimized" { "*" } else { "" };
        table += &format!(
            "| {} | {operators} | {delegated} | {partitions} | {litert} | {ours}{judge} | {theirs} | {library} | {times} |\n",
            row.model,
        );
    }
    let mut notes = String::new();
    for row in rows {
        let reasons = row.refused.iter().map(|why| ("refused here", why));
        let reasons =
            reasons.chain(row.litert.as_ref().err().map(|why| ("not run by LiteRT", why)));
        for (what, why) in reasons {
            notes += &format!("- {}: {what}: {why}\n", row.model);
        }
    }
    let [ours, library] = ratios.map(|ratios| geometric_mean(&ratios));
    format!(
        "# Models beside LiteRT\n\n\
         Written by `cargo xtask zoo`. The same seeded random inputs for all sides, one thread each, {rounds} rounds of \
         turns on the same machine; a ratio is the median of the rounds' ratios to LiteRT with its XNNPACK delegate, \
         below 1 where this project is faster. Geometric mean of the ratios: **{ours:.2}** for `xnn`, **{library:.2}** for \
         `libxnn_delegate.so` inside LiteRT.\n\n\
         Distances are from LiteRT's reference kernels (from its optimized ones where an asterisk stands: the reference \
         kernels do not run the model), the largest of all outputs: steps of integer outputs, parts of the range of \
         floats. `xnn` runs what is not delegated on kernels of its own.\n\n\
         - CPU: {}, {} cores\n\
         - this project: {}, XNNPACK {}\n\
         - LiteRT: {litert}\n\n\
         | model | operators | delegated | partitions | LiteRT's | distance | LiteRT's | library's | ms | LiteRT's ms | ratio | library's ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n\
         {table}\n\
         {notes}",
        host.cpu,
        host.cores,
        build::VERSION,
        build::XNNPACK_REVISION,
    )
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
