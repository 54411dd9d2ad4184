//! Results as SVG: for each model a row, for each side a dot in it.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use super::results::{Metric, Model, Results};
use super::sides::SIDES;

// Pixels.
const WIDTH: u32 = 960;
const ROW: u32 = 22;
const TITLE: u32 = 34;
const AXIS: u32 = 40;
const LABELS: u32 = 300;
const DOT: u32 = 4;
/// Height of a line of the legend, width of an entry, and number of entries in a line.
const LINE: i32 = 20;
const COLUMN: i32 = 230;
const COLUMNS: usize = 4;
const FONT: (&str, u32) = ("sans-serif", 13);

/// One for each side.
const COLOURS: [RGBColor; SIDES.len()] = [
    RGBColor(0, 70, 170),
    RGBColor(80, 160, 250),
    RGBColor(0, 160, 140),
    RGBColor(210, 40, 40),
    RGBColor(245, 150, 140),
    RGBColor(120, 180, 70),
    RGBColor(230, 130, 0),
    RGBColor(120, 80, 160),
    RGBColor(140, 90, 50),
    RGBColor(200, 160, 110),
    RGBColor(110, 110, 110),
    RGBColor(60, 190, 230),
];

/// A plot: its file, and the values of its dots.
struct Plot {
    file: &'static str,
    title: String,
    threads: usize,
    /// Value of a side's runs with this number of threads; `None` for no dot.
    value: fn(&Model, &str, usize) -> Option<f64>,
}

/// Writes `latency.svg`, `start.svg`, `memory.svg` and `threads.svg`.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    let threads = results.threads();
    let (Some(&few), Some(&many)) = (threads.first(), threads.last()) else { return Ok(()) };
    let plots = [
        Plot {
            file: "latency.svg",
            title: format!("Median latency with {few} thread, as ratio to LiteRT's"),
            threads: few,
            value: |model, side, threads| to_litert(model, side, threads, Metric::Median),
        },
        Plot {
            file: "start.svg",
            title: "Load and first run, as ratio to LiteRT's".into(),
            threads: few,
            value: |model, side, threads| to_litert(model, side, threads, Metric::Start),
        },
        Plot {
            file: "memory.svg",
            title: "Memory of 8 instances in one process, as ratio to LiteRT's".into(),
            threads: few,
            value: |model, side, threads| to_litert(model, side, threads, Metric::Steady(8)),
        },
        Plot {
            file: "threads.svg",
            title: format!("Time with {many} threads, as ratio to that with {few}"),
            threads: many,
            value: |model, side, threads| model.run(side, threads)?.scaling,
        },
    ];
    for plot in plots {
        let path = folder.join(plot.file);
        // The library's errors may not leave their thread.
        plot.draw(results, &path).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn to_litert(model: &Model, side: &str, threads: usize, metric: Metric) -> Option<f64> {
    model.run(side, threads)?.ratio(metric)?.to_litert()
}

/// A dot's row, place on the axis, and side.
type Dot = (u32, f64, usize);

impl Plot {
    fn dots(&self, models: &[Model]) -> Vec<Dot> {
        let mut dots = Vec::new();
        for (row, model) in (0..).zip(models) {
            for (index, side) in SIDES.iter().enumerate() {
                let value = (self.value)(model, side.name, self.threads);
                dots.extend(value.filter(|value| *value > 0.0).map(|value| (row, value, index)));
            }
        }
        dots
    }

    fn draw(&self, results: &Results, path: &Path) -> Result<(), Box<dyn Error>> {
        let dots = self.dots(&results.models);
        let rows = u32::try_from(results.models.len())?;
        let shown = |side: &usize| dots.iter().any(|dot| dot.2 == *side);
        let shown: Vec<usize> = (0..SIDES.len()).filter(shown).collect();
        let lines = u32::try_from(shown.len().div_ceil(COLUMNS))?;
        let legend = LINE.unsigned_abs() * lines + 4;
        let height = rows.saturating_mul(ROW).saturating_add(TITLE + legend + AXIS);
        let canvas = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
        canvas.fill(&WHITE)?;
        let (legend, area) =
            canvas.titled(&self.title, ("sans-serif", 18))?.split_vertically(legend);
        for (line, sides) in (0..).zip(shown.chunks(COLUMNS)) {
            for (column, &side) in (0..).zip(sides) {
                let at = (20 + COLUMN * column, 10 + LINE * line);
                legend.draw(&Circle::new(at, DOT, COLOURS[side].filled()))?;
                legend.draw(&Text::new(SIDES[side].name, (at.0 + 10, at.1 - 6), FONT))?;
            }
        }

        // The first model is on top.
        let names: Vec<&str> = results.models.iter().rev().map(|one| one.name.as_str()).collect();
        let label = |row: &SegmentValue<u32>| match row {
            SegmentValue::CenterOf(row) => names.get(*row as usize).map_or("", |name| *name),
            SegmentValue::Exact(_) | SegmentValue::Last => "",
        };
        let doublings = doublings(&dots);
        let mut chart = ChartBuilder::on(&area)
            .x_label_area_size(AXIS)
            .y_label_area_size(LABELS)
            .margin_right(20)
            .build_cartesian_2d(doublings.clone(), (0..rows.saturating_sub(1)).into_segmented())?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .y_labels(names.len())
            .y_label_formatter(&|row| label(row).to_owned())
            .x_labels((doublings.end - doublings.start) as usize + 1)
            .x_label_formatter(&|doublings| format!("{}", doublings.exp2()))
            .label_style(FONT)
            .draw()?;
        let even = [(0.0, SegmentValue::Exact(0)), (0.0, SegmentValue::Last)];
        chart.draw_series([PathElement::new(even, BLACK)])?;
        chart.draw_series(dots.iter().map(|&(row, value, side)| {
            let row = SegmentValue::CenterOf(rows - 1 - row);
            Circle::new((value.log2(), row), DOT, COLOURS[side].filled())
        }))?;
        Ok(canvas.present()?)
    }
}

/// A range of binary logarithms: from one power of two to another, with the dots and 1 in between.
fn doublings(dots: &[Dot]) -> Range<f64> {
    let logarithms = || dots.iter().map(|dot| dot.1.log2());
    logarithms().fold(-1.0, f64::min).floor()..logarithms().fold(1.0, f64::max).ceil()
}
