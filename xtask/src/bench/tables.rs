//! Results as Markdown.

use std::fmt::Write as _;

use super::results::{Metric, Model, Results, Run, gops};
use super::sides::{OURS, PACKED, REFERENCE, SIDES};

const MB: f64 = 1e6;

/// All tables.
pub fn markdown(results: &Results) -> String {
    let Results { host, rounds, starts, busy, .. } = results;
    let beside =
        if *busy > 0 { format!(", beside {busy} threads that never rest") } else { String::new() };
    let mut versions = String::new();
    for side in &SIDES {
        if let Some(version) = results.versions.get(side.name) {
            versions += &format!("- `{}`: {} ({version})\n", side.name, side.about);
        }
    }
    let mut text = format!(
        "# Benchmark\n\n\
         Written by `cargo xtask bench`; `docs/benchmarks/README.md` describes the method and the columns.\n\n\
         {}, {} cores; {rounds} rounds, {starts} starts{beside}.\n\n\
         {versions}",
        host.cpu, host.cores,
    );
    text += "\n![](latency.svg)\n";
    for threads in results.threads() {
        text += &format!("\n## Steady state, {}\n\n", count(threads));
        text += &geometric_means(results, threads);
        text += "\n";
        text += &steady(results, threads);
    }
    text += &streams(results);
    text += "\n## Start: load and first run\n\n![](start.svg)\n\n";
    text += &start(results);
    text += "\n## Memory\n\n![](memory.svg)\n\n";
    text += &memory(results);
    text += "\n## Threads\n\n![](threads.svg)\n\n";
    text += &scaling(results);
    text += "\n## Share of the processor's peak\n\n";
    text += &peak(results);
    text += "\n## Inside tflite-runtime 2.14\n\n";
    text += &in_tflite(results);
    let failures = failures(results);
    if !failures.is_empty() {
        text += "\n## What did not run\n\n";
        text += &failures;
    }
    text
}

fn count(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// A table; columns but the first are numbers.
pub struct Table(String);

impl Table {
    pub fn new(columns: &[String]) -> Self {
        let rule = ["---"].into_iter().chain(columns.iter().skip(1).map(|_| "--:"));
        Self(format!("| {} |\n|{}|\n", columns.join(" | "), rule.collect::<Vec<_>>().join("|")))
    }

    pub fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.0, "| {} |", cells.join(" | "));
    }

    /// In Markdown.
    pub fn text(self) -> String {
        self.0
    }
}

pub fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// `–` where there is no number.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or("–".into(), |value| format!("{value:.digits$}"))
}

fn ratio(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("**{value:.2}**"),
        None => "–".into(),
    }
}

fn to_litert(run: Option<&Run>, metric: Metric) -> Option<f64> {
    run?.ratio(metric)?.to_litert()
}

/// The ratio to the best peer, and that one's name.
fn to_best(run: Option<&Run>, metric: Metric) -> String {
    match run.and_then(|run| run.ratio(metric)) {
        Some(found) => format!("{} {}", ratio(Some(found.to_best())), found.best_peer),
        None => "–".into(),
    }
}

/// Geometric means of the ratios to the reference, for each of this project's sides.
fn geometric_means(results: &Results, threads: usize) -> String {
    let mut text = format!("Geometric means of the ratios to `{REFERENCE}`:");
    let mut separator = "";
    for side in SIDES.iter().filter(|side| side.is_ours()) {
        let runs = results.models.iter().map(|model| model.run(side.name, threads));
        let ratios: Vec<f64> = runs.filter_map(|run| to_litert(run, Metric::Median)).collect();
        if let Some(mean) = geometric_mean(&ratios) {
            text += &format!("{separator} **{mean:.2}** for `{}`", side.name);
            separator = ",";
        }
    }
    text + ".\n"
}

/// `None` of none.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let mean = values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64;
    mean.is_finite().then(|| mean.exp())
}

/// Names of the sides that ran something.
fn sides(results: &Results) -> Vec<&'static str> {
    let names = SIDES.iter().map(|side| side.name);
    names.filter(|name| results.versions.contains_key(*name)).collect()
}

fn steady(results: &Results, threads: usize) -> String {
    let sides = sides(results);
    let mut head = columns(&["model", "10^6 MACs"]);
    head.extend(sides.iter().map(|side| format!("{side}, ms")));
    head.extend(columns(&[
        "p90",
        "p90 ratio",
        "processor time",
        "processor time ratio",
        "xnn to litert",
        "xnn to the best peer",
    ]));
    let mut table = Table::new(&head);
    for model in &results.models {
        let ours = model.run(OURS, threads);
        let macs = model.facts.as_ref().map(|facts| facts.macs as f64 / 1e6);
        let mut cells = vec![model.name.clone(), number(macs, 1)];
        cells.extend(
            sides.iter().map(|side| number(model.run(side, threads).map(|run| run.median_ms), 3)),
        );
        cells.push(number(ours.map(|run| run.p90_ms), 3));
        cells.push(ratio(to_litert(ours, Metric::P90)));
        cells.push(number(ours.and_then(|run| run.cpu_ms), 3));
        cells.push(ratio(to_litert(ours, Metric::Cpu)));
        cells.push(ratio(to_litert(ours, Metric::Median)));
        cells.push(to_best(ours, Metric::Median));
        table.row(&cells);
    }
    table.0
}

/// Throughput of several instances at the same time, if it was measured.
fn streams(results: &Results) -> String {
    let mut text = String::new();
    let sides = sides(results);
    for threads in results.threads() {
        let measured = |model: &&Model| model.runs.iter().any(|run| run.streams.is_some());
        let mut models = results.models.iter().filter(measured).peekable();
        if models.peek().is_none() {
            break;
        }
        text += &format!("\n## {} streams, {} each\n\n", results.streams, count(threads));
        text += "Runs per second, and the time of a run divided by that of LiteRT.\n\n";
        let mut head = columns(&["model"]);
        head.extend(
            sides.iter().map(|side| format!("{side}, runs/s (p90, ms; processor time, ms)")),
        );
        let ours = SIDES.iter().filter(|side| side.is_ours() && sides.contains(&side.name));
        let ours: Vec<&str> = ours.map(|side| side.name).collect();
        head.extend(ours.iter().map(|side| format!("{side} to litert")));
        let mut table = Table::new(&head);
        for model in models {
            let of = |side: &str| model.run(side, threads)?.streams.as_ref();
            let mut cells = vec![model.name.clone()];
            cells.extend(sides.iter().map(|side| match of(side) {
                Some(streams) => format!(
                    "{:.1} ({:.3}; {})",
                    streams.runs_per_second,
                    streams.p90_ms,
                    number(streams.cpu_ms, 3)
                ),
                None => "–".into(),
            }));
            cells.extend(ours.iter().map(|side| ratio(of(side).and_then(|it| it.to_litert))));
            table.row(&cells);
        }
        text += &table.0;
    }
    text
}

/// A row for each model with the fewest threads; `cells` fills it.
fn per_model(
    results: &Results,
    head: &[String],
    cells: impl Fn(&Model, usize) -> Vec<String>,
) -> String {
    let Some(&threads) = results.threads().first() else { return String::new() };
    let mut table = Table::new(head);
    for model in &results.models {
        let mut row = vec![model.name.clone()];
        row.extend(cells(model, threads));
        table.row(&row);
    }
    table.0
}

fn start(results: &Results) -> String {
    let sides = sides(results);
    let mut head = columns(&["model"]);
    head.extend(sides.iter().map(|side| format!("{side}, ms")));
    head.extend(columns(&[
        "xnn to the best peer",
        "xnn-packed to litert",
        "xnn-packed to the best peer",
        "a run alone to litert",
    ]));
    per_model(results, &head, |model, threads| {
        let both = |side: &&str| {
            let run = model.run(side, threads)?;
            Some(format!("{:.2} + {:.2}", run.load_ms, run.first_ms))
        };
        let mut cells: Vec<String> =
            sides.iter().map(|side| both(side).unwrap_or_else(|| "–".into())).collect();
        let packed = model.run(PACKED, threads);
        cells.push(to_best(model.run(OURS, threads), Metric::Start));
        cells.push(ratio(to_litert(packed, Metric::Start)));
        cells.push(to_best(packed, Metric::Start));
        // A warm run compared with the reference's start: the ratio if loading and cold caches cost
        // nothing.
        let reference = model.run(REFERENCE, threads).and_then(|run| Metric::Start.of(run));
        cells.push(ratio(packed.zip(reference).map(|(run, start)| run.median_ms / start)));
        cells
    })
}

fn memory(results: &Results) -> String {
    let sides = sides(results);
    let mut head = columns(&["model", "packed weights, MB"]);
    head.extend(sides.iter().map(|side| format!("{side}, MB (peak) ×4 ×8")));
    head.extend(columns(&[
        "xnn peak to litert",
        "xnn-packed peak to litert",
        "xnn to the best peer",
        "xnn ×8 to the best peer",
    ]));
    per_model(results, &head, |model, threads| {
        let packed = model.facts.as_ref().map(|facts| facts.packed_bytes as f64 / MB);
        let mut cells = vec![number(packed, 2)];
        cells.extend(sides.iter().map(|side| {
            let Some(run) = model.run(side, threads) else { return "–".into() };
            let of = |metric: Metric| number(metric.of(run).map(|bytes| bytes / MB), 1);
            let [one, peak, four, eight] =
                [Metric::Steady(1), Metric::Peak(1), Metric::Steady(4), Metric::Steady(8)].map(of);
            format!("{one} ({peak}) {four} {eight}")
        }));
        let ours = model.run(OURS, threads);
        cells.push(ratio(to_litert(ours, Metric::Peak(1))));
        cells.push(ratio(to_litert(model.run(PACKED, threads), Metric::Peak(1))));
        cells.push(to_best(ours, Metric::Steady(1)));
        cells.push(to_best(ours, Metric::Steady(8)));
        cells
    })
}

fn scaling(results: &Results) -> String {
    let sides = sides(results);
    let threads = results.threads();
    let [fewest, .., most] = threads.as_slice() else {
        return "Measured with one number of threads only.\n".into();
    };
    let mut text = format!(
        "Time, and processor time of all threads, with {} divided by the same side's with {}: a time below 1 where more threads are \
         faster.\n\n",
        count(*most),
        count(*fewest),
    );
    let mut head = columns(&["model"]);
    head.extend(sides.iter().flat_map(|side| [format!("{side}, time"), "processor time".into()]));
    text += &per_model(results, &head, |model, _| {
        let of = |side: &&str| {
            let run = model.run(side, *most);
            let [time, cpu] =
                [run.and_then(|run| run.scaling), run.and_then(|run| run.cpu_scaling)];
            [number(time, 2), number(cpu, 2)]
        };
        sides.iter().flat_map(of).collect()
    });
    let slower = results.models.iter().filter(|model| {
        model.run(OURS, *most).and_then(|run| run.scaling).is_some_and(|scaling| scaling > 1.0)
    });
    let slower: Vec<&str> = slower.map(|model| model.name.as_str()).collect();
    text += &match slower.as_slice() {
        [] => "\nNo model is slower on more threads.\n".to_owned(),
        names => format!("\nSlower on more threads: {}.\n", names.join(", ")),
    };
    text
}

fn peak(results: &Results) -> String {
    let mut text = String::new();
    for gemm in &results.gemm {
        text += &format!("- {}, {}: {:.0} GOP/s\n", gemm.kind, count(gemm.threads), gemm.gops);
    }
    let threads = results.threads();
    let mut head = columns(&["model", "peak"]);
    for threads in &threads {
        head.extend([format!("{}, GOP/s", count(*threads)), "share".into(), "litert's".into()]);
    }
    let mut table = Table::new(&head);
    for model in &results.models {
        let Some(facts) = &model.facts else { continue };
        let kind = if facts.eight_bit { "int8" } else { "fp32" };
        let mut cells = vec![model.name.clone(), kind.to_owned()];
        for &threads in &threads {
            let peak = results.gemm.iter().find(|one| one.kind == kind && one.threads == threads);
            let speed = |side| model.run(side, threads).map(|run| gops(facts.macs, run.median_ms));
            let share = |side| Some(100.0 * speed(side)? / peak?.gops);
            let percent = |side| share(side).map_or("–".into(), |share| format!("{share:.0} %"));
            cells.extend([number(speed(OURS), 0), percent(OURS), percent(REFERENCE)]);
        }
        table.row(&cells);
    }
    format!("{text}\n{}", table.0)
}

fn in_tflite(results: &Results) -> String {
    let mut text = "The delegate library, compared with the package's own delegate.\n\n".to_owned();
    let head = ["model", "tflite, ms", "partitions", "xnn-in-tflite, ms", "partitions", "ratio"];
    text += &per_model(results, &columns(&head), |model, threads| {
        let (theirs, ours) = (model.run("tflite", threads), model.run("xnn-in-tflite", threads));
        let time = |run: Option<&Run>| number(run.map(|run| run.median_ms), 3);
        let partitions = |run: Option<&Run>| {
            run.and_then(|run| run.partitions).map_or("–".into(), |count| count.to_string())
        };
        let median = ours.and_then(|run| run.ratio(Metric::Median)?.to("tflite"));
        vec![time(theirs), partitions(theirs), time(ours), partitions(ours), ratio(median)]
    });
    text
}

fn failures(results: &Results) -> String {
    let mut text = String::new();
    for model in &results.models {
        for failure in &model.failures {
            let (name, side) = (&model.name, &failure.side);
            text += &format!("- {name}, {side}, {}: {}\n", count(failure.threads), failure.error);
        }
    }
    text
}
