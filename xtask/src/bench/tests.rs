//! Figures, tables and plots of made-up measurements.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::tempdir;
use xnn_bench::{Facts, Memory, Runs, Start};

use super::conversion::agree;
use super::results::{
    Cpu, Failure, Gemm, Host, Metric, Model, Results, Run, Samples, gops, summarize,
};
use super::sides::{SIDES, Side};
use super::tools::{Distance, Files};
use super::{plots, tables};

/// With loads of 1, 2 and 3 times `load`, rounds of one run each, and each thread's processor time like `load`.
fn samples(side: &str, threads: usize, load: f64, rounds: &[f64]) -> Result<Samples> {
    let start = |factor: f64| Start {
        load_ms: load * factor,
        first_ms: 1.0,
        memory: Memory { steady: 1000 * load as u64, peak: 2000 * load as u64 },
        partitions: Some(1),
    };
    let mut cpu = Cpu::default();
    for &micros in rounds {
        cpu.add(&Runs { us: vec![micros; 2], cpu_us: 2000.0 * load * threads as f64 });
    }
    Ok(Samples {
        side: Side::named(side)?,
        threads,
        starts: [3.0, 1.0, 2.0].map(start).to_vec(),
        rounds: rounds.iter().map(|&micros| vec![micros]).collect(),
        cpu,
        streams: vec![vec![2000.0 * load, 6000.0 * load]; 3],
        streams_cpu: Cpu::default(),
        instances: [(8, Memory { steady: 8000, peak: 9000 })].into(),
    })
}

fn runs() -> Result<Vec<Run>> {
    // Each round, the machine is slower.
    let samples = [
        samples("xnn", 1, 1.0, &[1000.0, 2000.0, 30000.0])?,
        samples("xnn-packed", 1, 0.5, &[1000.0, 2000.0, 30000.0])?,
        samples("litert", 1, 2.0, &[2000.0, 4000.0, 60000.0])?,
        samples("tract", 1, 4.0, &[1500.0, 3500.0, 45000.0])?,
        samples("xnn", 2, 1.0, &[600.0, 1200.0, 18000.0])?,
        samples("tract", 2, 8.0, &[600.0, 1200.0, 18000.0])?,
    ];
    Ok(summarize(&samples, 2))
}

fn results() -> Result<Results> {
    let facts = Facts {
        operators: 31,
        delegated: 31,
        partitions: 1,
        macs: 1_000_000_000,
        eight_bit: false,
        packed_bytes: 17_000_000,
    };
    let error = "an operator".to_owned();
    let failures = vec![Failure { side: "litert".into(), threads: 2, error }];
    let model = |name: &str, facts| -> Result<Model> {
        Ok(Model { name: name.into(), facts, runs: runs()?, failures: failures.clone() })
    };
    Ok(Results {
        host: Host { cpu: "a processor".into(), cores: 2 },
        versions: ["xnn", "xnn-packed", "litert", "tract"]
            .map(|name| (name.into(), "1".into()))
            .into(),
        rounds: 3,
        starts: 3,
        busy: 0,
        streams: 2,
        gemm: vec![Gemm { kind: "fp32".into(), threads: 1, gops: 4000.0 }],
        models: vec![model("one", Some(facts))?, model("other", None)?],
    })
}

#[test]
fn figures_are_medians_and_ratios_those_of_rounds() -> Result<()> {
    let runs = runs()?;
    let run = |side: &str, threads| {
        runs.iter().find(|run| run.side == side && run.threads == threads).context("no such run")
    };
    let ours = run("xnn", 1)?;
    assert_eq!((ours.load_ms, ours.first_ms, ours.runs), (2.0, 1.0, 3));
    assert_eq!((ours.median_ms, ours.p90_ms, ours.min_ms), (2.0, 30.0, 1.0));
    assert_eq!(Metric::Start.of(ours), Some(3.0));
    let counts: Vec<usize> = ours.memory.keys().copied().collect();
    assert_eq!(counts, [1, 8]);
    assert_eq!(ours.scaling, None);
    assert_eq!(run("xnn", 2)?.scaling, Some(0.6));
    assert_eq!((ours.cpu_ms, ours.cpu_scaling), (Some(1.0), None));
    assert_eq!(run("xnn", 2)?.cpu_scaling, Some(2.0));

    let streams = ours.streams.as_ref().context("no streams")?;
    // A run takes 4 ms in the mean, and there are two at a time.
    assert_eq!(streams.runs_per_second, 500.0);
    assert_eq!((streams.median_ms, streams.p90_ms, streams.cpu_ms), (4.0, 6.0, None));
    assert_eq!(streams.to_litert, Some(0.5));
    assert_eq!(run("xnn", 2)?.streams.as_ref().context("no streams")?.to_litert, None);

    // The best peer has the same number of threads, and is not one of this project's own sides.
    let latency = ours.ratio(Metric::Median).context("no ratio")?;
    assert_eq!(latency.best_peer, "tract");
    assert_eq!(latency.to_litert(), Some(0.5));
    assert!((latency.to_best() - 2.0 / 3.0).abs() < 1e-12, "{latency:?}");
    assert_eq!(ours.ratio(Metric::Cpu).and_then(super::results::Ratio::to_litert), Some(0.5));
    let load = ours.ratio(Metric::Load).context("no ratio")?;
    assert_eq!((load.best_peer.as_str(), load.to_best()), ("litert", 0.5));
    let memory = ours.ratio(Metric::Steady(8)).context("no ratio")?;
    assert_eq!(memory.to_best(), 1.0);
    assert_eq!(ours.ratio(Metric::Steady(4)), None);
    let two = run("xnn", 2)?.ratio(Metric::Median).context("no ratio")?;
    assert_eq!((two.best_peer.as_str(), two.to_best(), two.to_litert()), ("tract", 1.0, None));
    Ok(())
}

#[test]
fn results_are_read_as_they_are_written() -> Result<()> {
    let results = results()?;
    let text = serde_json::to_string(&results)?;
    assert_eq!(serde_json::from_str::<Results>(&text)?, results);
    // Other programs may rely on these names.
    let json: serde_json::Value = serde_json::from_str(&text)?;
    let run = json.pointer("/models/0/runs/0").context("no run")?;
    let names =
        ["load_ms", "first_ms", "median_ms", "p90_ms", "min_ms", "cpu_ms", "runs", "threads"];
    assert!(
        names.iter().all(|name| run.get(name).is_some_and(serde_json::Value::is_number)),
        "{run}"
    );
    assert!(run.pointer("/memory/8/steady").is_some_and(serde_json::Value::is_u64), "{run}");
    for metric in Metric::ALL.map(Metric::name).iter().filter(|name| !name.contains('4')) {
        let ratio = run.get("ratios").and_then(|ratios| ratios.get(metric));
        assert!(ratio.is_some_and(|ratio| ratio["to"]["tract"].is_number()), "{metric}");
    }
    Ok(())
}

#[test]
fn tables_have_as_many_cells_in_each_row() -> Result<()> {
    let text = tables::markdown(&results()?);
    let mut width = None;
    let mut rows = 0;
    for line in text.lines() {
        let cells = line.starts_with('|').then(|| line.matches('|').count());
        if let (Some(before), Some(now)) = (width, cells) {
            assert_eq!(before, now, "{line}");
            rows += 1;
        }
        width = cells;
    }
    assert!(rows > 12, "{text}");
    for expected in [
        "**0.50** for `xnn`",
        "| one | 1000.0 | 2.000 |",
        "**0.67** tract",
        "1000 GOP/s".replace("1000", "4000").as_str(),
        "| 25 % |",
        // A run of two milliseconds by a start of five.
        "| **0.40** litert | **0.40** |\n",
        "No model is slower on more threads.",
        "- one, litert, 2 threads: an operator",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    Ok(())
}

#[test]
fn slower_threads_are_named() -> Result<()> {
    let mut results = results()?;
    let runs = results.models.iter_mut().flat_map(|model| &mut model.runs);
    for run in runs.filter(|run| run.side == "xnn" && run.threads == 2) {
        run.scaling = Some(1.25);
    }
    assert!(tables::markdown(&results).contains("Slower on more threads: one, other."));
    Ok(())
}

#[test]
fn plots_have_a_dot_for_each_figure() -> Result<()> {
    let folder = tempdir()?;
    plots::write(&results()?, folder.path())?;
    // Dots of two models, and of sides in the legend.
    for (file, dots) in [
        ("latency", 2 * 4 + 4),
        ("start", 2 * 4 + 4),
        ("memory", 2 * 4 + 4),
        ("threads", 2 * 2 + 2),
    ] {
        let svg = std::fs::read_to_string(folder.path().join(file).with_extension("svg"))?;
        assert_eq!(svg.matches("<circle").count(), dots, "{file}");
        assert!(svg.contains("other"), "{file} has no labels");
    }
    Ok(())
}

#[test]
fn nothing_measured_is_no_panic() -> Result<()> {
    let host = Host { cpu: String::new(), cores: 1 };
    let (versions, gemm, models) = (BTreeMap::new(), Vec::new(), Vec::new());
    let empty = Results { host, versions, rounds: 1, starts: 1, busy: 0, streams: 0, gemm, models };
    assert!(tables::markdown(&empty).contains("# Benchmark"));
    plots::write(&empty, tempdir()?.path())
}

#[test]
fn a_multiply_accumulate_is_two_operations() {
    assert_eq!(gops(500_000, 1.0), 1.0);
}

#[test]
fn geometric_means() {
    assert_eq!(tables::geometric_mean(&[0.5, 2.0]), Some(1.0));
    assert_eq!(tables::geometric_mean(&[]), None);
}

#[test]
fn sides_with_large_packages_or_further_builds_run_on_request() -> Result<()> {
    let names = |sides: Vec<&Side>| sides.iter().map(|side| side.name).collect::<Vec<_>>();
    let chosen = |wanted: &[&str]| {
        Side::chosen(&wanted.iter().map(ToString::to_string).collect::<Vec<_>>()).map(names)
    };
    let usual = chosen(&[])?;
    assert_eq!(usual.first(), Some(&"xnn"));
    assert_eq!(usual.len(), 8);
    let all = chosen(&["all"])?;
    assert_eq!(all, SIDES.iter().map(|side| side.name).collect::<Vec<_>>());
    for name in ["executorch", "executorch-memory", "onnxruntime"] {
        assert!(!usual.contains(&name) && all.contains(&name), "{name}");
        assert_eq!(chosen(&["litert", name])?, ["litert", name]);
        assert!(!Side::named(name)?.is_ours());
    }
    assert!(!usual.contains(&"xnn-python") && Side::named("xnn-python")?.is_ours());
    let error = chosen(&["xnn", "onnx"]).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("\"onnx\"") && error.contains("onnxruntime")));
    Ok(())
}

#[test]
fn failures_name_files_without_folders() {
    let files = Files::new(Path::new("/some/where/models/a.tflite"), Path::new("/tmp/work"));
    let said = "/some/where/models/a.tflite and /tmp/work/model.onnx failed";
    assert_eq!(files.without_folders(said), "a.tflite and model.onnx failed");
    let here = Files::new(Path::new("a.tflite"), Path::new("/tmp/work"));
    assert_eq!(here.without_folders("a/b.tflite"), "a/b.tflite");
}

#[test]
fn distances_in_words() -> Result<()> {
    for (answer, words) in [
        ("[0.0, null]", "0"),
        ("[1.0, null]", "1 step"),
        ("[2.0, 1.5e-7]", "2 steps, 1.5e-7"),
        ("[null, 0.0]", "0"),
        ("[null, null]", "–"),
        ("\"shape\"", "another shape"),
    ] {
        assert_eq!(serde_json::from_str::<Distance>(answer)?.to_string(), words);
    }
    Ok(())
}

#[test]
fn sides_that_compute_something_else_are_told_apart() {
    let apart = |steps, range| Distance::Apart([steps, range]);
    for (theirs, ours, expected) in [
        // Rounding, however near this project is.
        (apart(Some(2.0), None), apart(Some(0.0), None), true),
        (apart(Some(3.0), None), apart(Some(0.0), None), false),
        (apart(None, Some(1e-3)), apart(None, Some(0.0)), true),
        (apart(None, Some(1.1e-3)), apart(None, Some(0.0)), false),
        // Twice as far as this project.
        (apart(Some(16.0), None), apart(Some(8.0), None), true),
        (apart(Some(17.0), None), apart(Some(8.0), None), false),
        (apart(None, Some(0.08)), apart(None, Some(0.04)), true),
        (apart(None, Some(0.09)), apart(None, Some(0.04)), false),
        // So far that nothing can be told.
        (apart(Some(32.0), None), apart(Some(30.0), None), true),
        (apart(Some(33.0), None), apart(Some(30.0), None), false),
        (apart(None, Some(0.25)), apart(None, Some(0.9)), true),
        (apart(None, Some(0.26)), apart(None, Some(0.9)), false),
        // Each kind of output counts.
        (apart(Some(1.0), Some(1e-6)), apart(Some(1.0), Some(1e-6)), true),
        (apart(Some(1.0), Some(1e-2)), apart(Some(1.0), Some(1e-6)), false),
        (apart(Some(9.0), Some(1e-6)), apart(Some(1.0), Some(1e-6)), false),
        (apart(Some(1.0), None), apart(Some(1.0), Some(1e-6)), false),
        (apart(Some(1.0), None), apart(None, Some(1e-6)), false),
        (apart(None, None), apart(None, None), false),
        (Distance::Other("shape".into()), apart(Some(1.0), None), false),
        (apart(Some(1.0), None), Distance::Other("shape".into()), false),
    ] {
        assert_eq!(agree(&theirs, &ours), expected, "{theirs} beside {ours}");
    }
}
