//! Text for terminals: tables, bars, sizes.

use std::io::{self, Write};

use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Padding, Style};

/// A table with a head, its columns aligned.
pub struct Table {
    rows: Builder,
    numeric: Vec<usize>,
}

impl Table {
    /// A table with these columns. Columns whose names end in `>` are aligned to the right.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        let mut rows = Builder::new();
        rows.push_record(columns.map(|name| name.trim_end_matches('>')));
        let numeric = columns.iter().enumerate();
        let numeric = numeric.filter(|(_, name)| name.ends_with('>')).map(|(at, _)| at).collect();
        Self { rows, numeric }
    }

    /// Adds a row. Cells may hold text from files.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push_record(cells.map(|cell| plain(&cell)));
    }

    pub fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = self.rows.build();
        table.with(Style::blank()).with(Padding::new(0, 1, 0, 0));
        for column in self.numeric {
            table.modify(Columns::single(column), Alignment::right());
        }
        table.to_string().lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
    }
}

/// Pretty JSON with a final line end.
pub fn write_json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    // The conversion keeps the kind of the writer's error, such as a closed pipe.
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)
}

/// A bar of `width` cells, filled up to `fraction` (0..=1) in eighths of cells.
pub fn bar(fraction: f32, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    // Saturating, also for NaN.
    let eighths = (fraction.clamp(0.0, 1.0) * (width * 8) as f32).round() as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    let bar = "█".repeat(eighths / 8) + part;
    format!("{bar:<width$}")
}

/// Dimensions as `1x224x224x3`, or `[]` for a scalar.
pub fn shape<T: ToString>(dims: &[T]) -> String {
    match dims {
        [] => "[]".to_owned(),
        dims => dims.iter().map(ToString::to_string).collect::<Vec<_>>().join("x"),
    }
}

/// Text from a file on one line. Control characters, and characters that change the direction of text, are escaped as
/// `\u{1b}`, so that terminals do not interpret them.
pub fn plain(text: &str) -> String {
    let obeyed =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().fold(String::with_capacity(text.len()), |mut plain, c| {
        if obeyed(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
        plain
    })
}

/// [`plain`] text of several lines.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Names, separated by commas.
pub fn list(names: &[String]) -> String {
    plain(&names.join(", "))
}

/// `1 node`, `2 nodes`: a noun that takes an s.
pub fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A size with a unit that keeps it short.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_in_eighths() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(1.0 / 32.0, 4), "▏   ");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(bar(f32::NAN, 2), "  ");
    }

    #[test]
    fn control_characters_are_escaped() {
        let hostile = "\u{1b}[31m\na\t\u{9b}2J\u{202e}\u{7f}";
        assert_eq!(plain(hostile), "\\u{1b}[31m\\na\\t\\u{9b}2J\\u{202e}\\u{7f}");
        let harmless = "größe/\"x\" '日本' \\ 🦀";
        assert_eq!(plain(harmless), harmless);
        assert_eq!(plain_lines("a\n\rb"), "a\n\\rb");
    }

    #[test]
    fn shapes_are_joined() {
        assert_eq!(shape(&[1, 224, 3]), "1x224x3");
        assert_eq!(shape::<usize>(&[]), "[]");
    }

    #[test]
    fn nouns_agree_with_their_number() {
        assert_eq!([0, 1, 2].map(|n| count(n, "node")), ["0 nodes", "1 node", "2 nodes"]);
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(9_999), "9999 B");
        assert_eq!(bytes(10_000), "10.0 kB");
        assert_eq!(bytes(16_908_852), "16.9 MB");
    }
}
