//! `cargo xtask zoo`: every model beside LiteRT: what is delegated, how far results are from the reference
//! kernels, how long a run takes.
//!
//! Three sides run in turns: this project's own runner, and in LiteRT's process its default delegate and
//! the library. One thread each.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::tempdir;
use xnn_bench::{Facts, Peer, Request, in_turns, median, ratio};

use crate::bench::{Files, Host, Side, Tools, geometric_mean};
use crate::{shared, vendor};

/// This project's runner, LiteRT's delegate and the library.
const SIDES: [&str; 3] = ["xnn", "litert", "xnn-in-litert"];
const NONE: &str = "–";
/// How often the sides are started: which memory a process happens to get makes all its runs some hundredths faster or
/// slower.
const STARTS: usize = 3;
/// Ratios from here on are measured for longer, in so many more starts, of so many rounds each: processes are slower by a
/// third for tenths of a second now and then, this project's and LiteRT's.
const UNDECIDED: f64 = 0.9;
const MORE_STARTS: usize = 6;
const MORE_ROUNDS: usize = 2;

/// Choices for `cargo xtask zoo`.
#[derive(clap::Args)]
pub struct Args {
    /// `.tflite` files [default: the shared models]
    models: Vec<PathBuf>,
    /// Turns of each side, spread over three starts; 0 measures no times
    #[arg(long, default_value_t = 12)]
    rounds: usize,
    /// File to write [default: docs/model-zoo.md]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Results of one model.
#[derive(Default)]
struct Row {
    model: String,
    /// Why the model does not run here.
    refused: Option<String>,
    facts: Option<Facts>,
    /// LiteRT's delegated partitions.
    partitions: Option<u64>,
    /// Why the model does not run there.
    litert_refused: Option<String>,
    /// Its mark: [`Tools::distances`].
    judge: &'static str,
    /// Distances of the outputs of [`SIDES`].
    distances: [String; 3],
    timing: Option<Timing>,
}

struct Timing {
    ours: f64,
    litert: f64,
    ratio: f64,
    library_ratio: Option<f64>,
}

/// Runs the models and writes the report.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    let here = env::current_dir()?;
    let models = if args.models.is_empty() {
        shared_models(root)?
    } else {
        args.models.iter().map(|model| here.join(model)).collect()
    };
    let sides: Vec<&Side> = SIDES.into_iter().map(Side::named).collect::<Result<_>>()?;
    let tools = Tools::new(root, &sides)?;
    let report = match &args.report {
        Some(file) => here.join(file),
        None => root.join("docs/model-zoo.md"),
    };
    let mut versions = Versions::default();
    let mut rows = Vec::new();
    for (position, model) in models.iter().enumerate() {
        eprintln!("[{}/{}] {}", position + 1, models.len(), model.display());
        rows.push(row(model, &tools, args.rounds, &mut versions)?);
    }
    let markdown = to_markdown(&Host::new()?, &versions, args.rounds, &rows);
    print!("{markdown}");
    fs::write(&report, markdown).with_context(|| format!("cannot write {}", report.display()))
}

#[derive(Default)]
struct Versions {
    ours: String,
    litert: String,
}

/// Both ends of a comparison.
struct Peers {
    ours: Peer,
    litert: Peer,
}

impl Peers {
    fn start(tools: &Tools, files: &Files) -> [Result<Peer>; 2] {
        let ours = Side::named(SIDES[0]).and_then(|side| tools.peer(side, files, 1));
        let litert = tools.litert(&[SIDES[1], SIDES[2]], files);
        [ours, litert].map(|command| command.and_then(|mut command| Peer::start(&mut command)))
    }

    fn both(tools: &Tools, files: &Files) -> Result<Self> {
        let [ours, litert] = Self::start(tools, files);
        Ok(Self { ours: ours?, litert: litert? })
    }

    fn of(&mut self, side: &str) -> &mut Peer {
        if side == SIDES[0] { &mut self.ours } else { &mut self.litert }
    }
}

fn row(path: &Path, tools: &Tools, rounds: usize, versions: &mut Versions) -> Result<Row> {
    let folder = tempdir()?;
    let files = Files::new(path, folder.path());
    if tools.draw_inputs(&files).is_err() {
        // This project's runner may run models that LiteRT cannot open.
        files.write_no_inputs()?;
    }
    let model = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut row = Row { model, distances: [NONE; 3].map(String::from), ..Row::default() };
    let [ours, litert] = Peers::start(tools, &files);
    let started = |peer: &Result<Peer>, side| match peer {
        Ok(peer) => peer.start_of(side).cloned().map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    row.refused = started(&ours, SIDES[0]).err();
    match started(&litert, SIDES[1]) {
        Ok(start) => row.partitions = start.partitions,
        Err(why) => row.litert_refused = Some(why),
    }
    let Ok(mut ours) = ours else { return Ok(row) };
    if row.refused.is_none() {
        row.facts = ours.ask(&Request::Facts).ok();
    }
    ours.version().clone_into(&mut versions.ours);
    let Ok(litert) = litert else { return Ok(row) };
    litert.version().clone_into(&mut versions.litert);
    let mut peers = Peers { ours, litert };
    let ready: Vec<&str> =
        SIDES.into_iter().filter(|side| peers.of(side).start_of(side).is_ok()).collect();
    if row.refused.is_none() {
        match compare(&mut peers, &ready, &files, tools) {
            Ok(found) => (row.judge, row.distances) = found,
            Err(error) => row.refused = Some(format!("{error:#}")),
        }
    }
    if row.refused.is_none() && row.litert_refused.is_none() && rounds > 0 {
        row.timing = time(peers, &ready, rounds, tools, &files).ok();
    }
    Ok(row)
}

/// The judge's mark, and the distances of all sides' outputs.
fn compare(
    peers: &mut Peers,
    ready: &[&str],
    files: &Files,
    tools: &Tools,
) -> Result<(&'static str, [String; 3])> {
    let folder = tempdir()?;
    let folders = SIDES.map(|side| folder.path().join(side));
    for (side, folder) in SIDES.into_iter().zip(&folders) {
        fs::create_dir(folder)?;
        if ready.contains(&side) {
            let folder = folder.to_string_lossy().into_owned();
            let request = Request::Outputs { side: side.into(), folder };
            peers.of(side).ask::<usize>(&request).context(side)?;
        }
    }
    let Ok((mark, found)) = tools.distances(files, &folders) else {
        return Ok(("", [NONE; 3].map(String::from)));
    };
    let text = |at: usize| match found.get(at) {
        Some(distance) if ready.contains(&SIDES[at]) => distance.to_string(),
        _ => NONE.into(),
    };
    Ok((mark, [0, 1, 2].map(text)))
}

/// The times of some sides, of each round.
struct Times<'a> {
    ready: &'a [&'a str],
    of: Vec<Result<Vec<Vec<f64>>>>,
}

impl Times<'_> {
    /// So many rounds of turns.
    fn take(&mut self, peers: &mut Peers, rounds: usize) {
        let more = in_turns(&vec![1; self.ready.len()], rounds, |at, duration| {
            let side = self.ready.get(at).context("no such side")?;
            Ok(peers.of(side).time(side, duration)?.us)
        });
        for (times, more) in self.of.iter_mut().zip(more) {
            match (times.as_mut(), more) {
                (Ok(times), Ok(more)) => times.extend(more),
                (_, Err(error)) => *times = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
    }

    fn side(&self, name: &str) -> Result<&Vec<Vec<f64>>> {
        let times = self.ready.iter().position(|side| *side == name).and_then(|at| self.of.get(at));
        let times = times.with_context(|| format!("{name} did not run"))?;
        times.as_ref().map_err(|error| anyhow::anyhow!("{name}: {error:#}"))
    }

    fn timing(&self) -> Result<Timing> {
        let [ours, theirs] = [self.side(SIDES[0])?, self.side(SIDES[1])?];
        let library = self.side(SIDES[2]).ok();
        Ok(Timing {
            ours: median(&ours.concat()) / 1e3,
            litert: median(&theirs.concat()) / 1e3,
            ratio: ratio(ours, theirs),
            library_ratio: library.map(|library| ratio(library, theirs)),
        })
    }
}

fn time(
    started: Peers,
    ready: &[&str],
    rounds: usize,
    tools: &Tools,
    files: &Files,
) -> Result<Timing> {
    let mut times = Times { ready, of: ready.iter().map(|_| Ok(Vec::new())).collect() };
    let mut started = Some(started);
    for start in 0..STARTS {
        let mut peers = started.take().map_or_else(|| Peers::both(tools, files), Ok)?;
        // The others of as many rounds come with later starts.
        times.take(&mut peers, (rounds + start) / STARTS);
    }
    let timing = times.timing()?;
    let ratios = [Some(timing.ratio), timing.library_ratio];
    if ratios.into_iter().flatten().any(|ratio| ratio >= UNDECIDED) {
        for _ in 0..MORE_STARTS {
            times.take(&mut Peers::both(tools, files)?, MORE_ROUNDS);
        }
    }
    times.timing()
}

fn to_markdown(host: &Host, versions: &Versions, rounds: usize, rows: &[Row]) -> String {
    let mut table = String::new();
    let mut notes = String::new();
    for row in rows {
        table += &cells(row);
        for (what, why) in
            [("refused here", &row.refused), ("not run by LiteRT", &row.litert_refused)]
        {
            if let Some(why) = why {
                notes += &format!("- {}: {what}: {why}\n", row.model);
            }
        }
    }
    let timings = || rows.iter().filter_map(|row| row.timing.as_ref());
    let mean = |ratios: Vec<f64>| {
        geometric_mean(&ratios).map_or(NONE.into(), |mean| format!("**{mean:.2}**"))
    };
    let ours = mean(timings().map(|timing| timing.ratio).collect());
    let library = mean(timings().filter_map(|timing| timing.library_ratio).collect());
    format!(
        "# Models beside LiteRT\n\n\
         Written by `cargo xtask zoo`. All sides get the same seeded random inputs and run in turns on the same \
         machine, on one thread each: {rounds} rounds in {STARTS} starts of the processes, and in {MORE_STARTS} more \
         where a ratio is {UNDECIDED} or more. A ratio is the median of the rounds' ratios to LiteRT with its XNNPACK \
         delegate; below 1, this project is faster. Geometric mean of the ratios: {ours} for `xnn`, {library} for \
         `libxnn_delegate.so` inside LiteRT.\n\n\
         A distance is the largest difference of an output from that of LiteRT's reference kernels, or of its \
         optimized kernels where marked with an asterisk, because the reference kernels do not run the model: in \
         quantization steps for integers, in parts of the range for floats. `xnn` runs operators that are not \
         delegated on its own kernels.\n\n\
         - CPU: {}, {} cores\n\
         - this project: {}\n\
         - LiteRT: {}\n\n\
         | model | operators | delegated | partitions | LiteRT's | distance | LiteRT's | library's | ms | LiteRT's ms | ratio | library's ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n\
         {table}\n\
         {notes}",
        host.cpu, host.cores, versions.ours, versions.litert,
    )
}

/// A line of the table.
fn cells(row: &Row) -> String {
    let fact = |of: fn(&Facts) -> usize| {
        row.facts.as_ref().map_or(NONE.into(), |facts| of(facts).to_string())
    };
    let partitions = row.partitions.map_or(NONE.into(), |count| count.to_string());
    let times = match &row.timing {
        Some(Timing { ours, litert, ratio, library_ratio }) => {
            let library = library_ratio.map_or(NONE.into(), |ratio| format!("**{ratio:.2}**"));
            format!("{ours:.3} | {litert:.3} | **{ratio:.2}** | {library}")
        }
        None => [NONE; 4].join(" | "),
    };
    let [ours, theirs, library] = &row.distances;
    format!(
        "| {} | {} | {} | {} | {partitions} | {ours}{} | {theirs} | {library} | {times} |\n",
        row.model,
        fact(|facts| facts.operators),
        fact(|facts| facts.delegated),
        fact(|facts| facts.partitions),
        row.judge,
    )
}

fn shared_models(root: &Path) -> Result<Vec<PathBuf>> {
    let mut models = Vec::new();
    let folders = shared::model_folders(root);
    for folder in &folders {
        let entries = fs::read_dir(folder)
            .with_context(|| format!("cannot list {}; name models instead", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "tflite") {
                models.push(path);
            }
        }
    }
    ensure!(!models.is_empty(), "no models in {}", shared::list(&folders));
    models.sort();
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let mut rows = vec![Row { model: "empty".into(), ..Row::default() }, Row::default()];
        let (ours, litert, ratio) = (2.0, 4.0, 0.5);
        rows[1].timing = Some(Timing { ours, litert, ratio, library_ratio: None });
        rows[1].litert_refused = Some("no kernel".into());
        let host = Host { cpu: "a processor".into(), cores: 2 };
        let text = to_markdown(&host, &Versions::default(), 3, &rows);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.matches('|').count() == 13), "{text}");
        assert!(text.contains("Geometric mean of the ratios: **0.50** for `xnn`, – for"), "{text}");
        assert!(text.contains("not run by LiteRT: no kernel"), "{text}");
    }
}
