//! Files made of a model, and whether other programs compute with them what the model says.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use tempfile::tempdir;
use xnn_bench::{Peer, Request};

use super::sides::{OURS, Side};
use super::tools::{Distance, Files, Tools};

/// Factor by which outputs may be farther from those of LiteRT's kernels than this project's
/// outputs are.
const FARTHER: f64 = 2.0;
/// Distances that are always accepted, and the largest distances that are ever accepted: of
/// integers in quantization steps, and of floats in parts of the range. At larger distances, these
/// inputs do not distinguish computations.
const LIMITS: [(f64, f64); 2] = [(2.0, 32.0), (1e-3, 0.25)];

/// Makes the files that the sides open, and has each side with a file for another program compute once.
/// By side: why it takes no part.
pub fn prepare(
    sides: &[&'static Side],
    files: &Files,
    tools: &Tools,
) -> BTreeMap<&'static str, String> {
    let mut failures = BTreeMap::new();
    let mut made = BTreeMap::new();
    for side in sides {
        let made = made.entry(side.form).or_insert_with(|| tools.convert(side.form, files));
        if let Err(error) = made {
            failures.insert(side.name, format!("{error:#}"));
        }
    }
    let foreign =
        sides.iter().filter(|one| one.form.is_foreign() && !failures.contains_key(one.name));
    let foreign: Vec<&'static Side> = foreign.copied().collect();
    if foreign.is_empty() {
        return failures;
    }
    match astray(&foreign, files, tools) {
        Ok(found) => failures.extend(found),
        Err(error) => {
            let error = format!("nothing to compare its outputs with: {error:#}");
            failures.extend(foreign.iter().map(|side| (side.name, error.clone())));
        }
    }
    failures
}

/// The sides that do not compute what the model says.
fn astray(
    sides: &[&'static Side],
    files: &Files,
    tools: &Tools,
) -> Result<Vec<(&'static str, String)>> {
    let folder = tempdir()?;
    let outputs = |side: &Side| -> Result<PathBuf> {
        let outputs = folder.path().join(side.name);
        fs::create_dir(&outputs)?;
        let mut peer = Peer::start(&mut tools.peer(side, files, 1)?)?;
        peer.start_of(side.name)?;
        let folder = outputs.to_string_lossy().into_owned();
        peer.ask::<usize>(&Request::Outputs { side: side.name.into(), folder })?;
        Ok(outputs)
    };
    let mut folders = vec![outputs(Side::named(OURS)?).context(OURS)?];
    let (mut computed, mut failures) = (Vec::new(), Vec::new());
    for side in sides {
        match outputs(side) {
            Ok(outputs) => {
                folders.push(outputs);
                computed.push(side.name);
            }
            Err(error) => failures.push((side.name, format!("{error:#}"))),
        }
    }
    let (_, distances) = tools.distances(files, &folders)?;
    let (ours, theirs) = distances.split_first().context("the judge says nothing")?;
    for (name, theirs) in computed.into_iter().zip(theirs) {
        if !agree(theirs, ours) {
            let error = format!("its outputs are {theirs} from LiteRT's kernels', {OURS}'s {ours}");
            failures.push((name, error));
        }
    }
    Ok(failures)
}

/// Whether a side computes the same as this project, judged by how far both are from LiteRT.
pub fn agree(theirs: &Distance, ours: &Distance) -> bool {
    let (Distance::Apart(theirs), Distance::Apart(ours)) = (theirs, ours) else { return false };
    let mut near =
        theirs.iter().zip(ours).zip(LIMITS).filter_map(|(pair, (least, most))| match pair {
            (None, None) => None,
            (Some(theirs), Some(ours)) => Some(*theirs <= (FARTHER * ours).clamp(least, most)),
            _ => Some(false),
        });
    near.next().is_some_and(|first| first && near.all(|near| near))
}
