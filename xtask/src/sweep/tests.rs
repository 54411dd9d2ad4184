//! Tables of made-up measurements, and levels.

use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::tempdir;

use super::chosen;
use super::levels::{LEVELS, Level, NATIVE};
use super::report::{Failure, LevelResults, Model, Results, Timing, markdown, write};
use crate::bench::Host;

fn timing(operator: &str, kind: &str, xnn_us: f64, litert_us: f64) -> Timing {
    let name = format!("{operator}_{kind}").to_lowercase();
    let model = Model {
        name,
        operator: operator.into(),
        kind: kind.into(),
        case: "small".into(),
        file: PathBuf::new(),
    };
    let ratio = xnn_us / litert_us;
    Timing { model, xnn_us, litert_us, ratio, rounds: 3, delegated: true, litert_delegated: false }
}

fn results() -> Results {
    let old = [
        timing("ADD", "fp32", 1.0, 2.0),
        timing("ADD", "int8", 12.0, 6.0),
        timing("ABS", "fp32", 1.06, 1.0),
    ];
    let new = [timing("ADD", "fp32", 1.0, 4.0), timing("ABS", "fp32", 1.04, 1.0)];
    let model = timing("ADD", "int8", 1.0, 1.0).model;
    let failures = vec![Failure { model, error: "xnn: no kernel".into() }];
    Results {
        host: Host { cpu: "a processor".into(), cores: 2 },
        xnn: "1".into(),
        litert: "2.3.0".into(),
        threads: 1,
        rounds: 3,
        more_rounds: 6,
        whole_models: false,
        levels: vec![
            LevelResults { level: "sse41".into(), timings: old.to_vec(), failures: vec![] },
            LevelResults { level: "native".into(), timings: new.to_vec(), failures },
        ],
    }
}

#[test]
fn operators_have_means_and_slower_models_a_line() {
    let text = markdown(&results());
    for line in [
        "| operator | sse41 | native |",
        "| ADD | 1.00 | 0.25 |",
        "| ABS | 1.06 | 1.04 |",
        "| **all** | 1.02 | 0.51 |",
        "| ADD int8 small | sse41 | 12.0 | 6.0 | **2.00** | yes | no |",
        "| ABS fp32 small | sse41 | 1.1 | 1.0 | **1.06** | yes | no |",
        "- ADD int8 small, native: xnn: no kernel",
    ] {
        assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line} is not in\n{text}");
    }
    assert!(text.find("**2.00**") < text.find("**1.06**"), "the slowest is not first:\n{text}");
    assert!(!text.contains("**1.04**"), "{text}");
}

#[test]
fn rows_have_as_many_cells_as_their_heads() {
    let text = markdown(&results());
    let tables = text.split("\n\n").filter(|part| part.starts_with('|'));
    let widths = tables.map(|table| {
        let mut widths = table.lines().map(|line| line.matches('|').count());
        let first = widths.next();
        widths.all(|width| Some(width) == first)
    });
    assert_eq!(widths.collect::<Vec<_>>(), [true, true], "{text}");
}

#[test]
fn nothing_slower_is_said() {
    let mut results = results();
    results.levels.remove(0);
    assert!(markdown(&results).contains("by more than 5 %\n\nNone.\n"));
    results.levels.clear();
    assert!(markdown(&results).contains("None."));
}

#[test]
fn files_are_read_as_they_are_written() -> Result<()> {
    let folder = tempdir()?;
    let (file, results) = (folder.path().join("sweep.md"), results());
    write(&file, &results)?;
    assert_eq!(std::fs::read_to_string(&file)?, markdown(&results));
    let json = std::fs::read(file.with_extension("json"))?;
    assert_eq!(serde_json::from_slice::<Results>(&json)?, results);
    // Other programs may rely on these names.
    let json: serde_json::Value = serde_json::from_slice(&json)?;
    let timing = json.pointer("/levels/0/timings/0").context("no timing")?;
    let names = ["operator", "type", "case", "xnn_us", "litert_us", "ratio", "delegated"];
    assert!(names.iter().all(|name| timing.get(name).is_some()), "{timing}");
    assert_eq!(std::fs::read_dir(folder.path())?.count(), 2, "temporary files remain");
    Ok(())
}

#[test]
fn levels_need_a_mask_for_litert() -> Result<()> {
    assert_eq!(chosen(&[], false)?, [&NATIVE]);
    assert_eq!(chosen(&[], true)?.len(), LEVELS.len());
    assert_eq!(chosen(&[&NATIVE], true)?, [&NATIVE]);
    let avx2 = Level::parse("avx2")?;
    assert_eq!(chosen(&[avx2, &NATIVE], true)?, [avx2, &NATIVE]);
    let error = chosen(&[&NATIVE, avx2], false).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("avx2") && error.contains("--litert-mask")));
    let error = Level::parse("avx3").map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("\"avx3\"") && error.contains("sse41")));
    Ok(())
}

#[test]
fn whole_models_have_rows_of_their_own() {
    let model = Model::whole("folder/a.b.tflite".into());
    assert_eq!((model.name.as_str(), model.to_string().as_str()), ("a.b", "a.b"));
    let mut results = Results { whole_models: true, ..results() };
    results.levels.remove(0);
    results.levels[0].timings.truncate(1);
    results.levels[0].timings[0].model = model;
    let text = markdown(&results);
    for line in ["# Models beside LiteRT", "| model | native |", "| a.b | 0.25 |"] {
        assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line} is not in\n{text}");
    }
    assert!(text.contains(" 1 model, one thread, "), "{text}");
    let text = markdown(&Results { threads: 2, ..results });
    assert!(text.contains(" 1 model, 2 threads, "), "{text}");
}
