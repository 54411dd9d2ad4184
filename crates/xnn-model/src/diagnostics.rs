//! Diagnostics of readers: oddities that do not prevent using a model.

use std::cell::RefCell;
use std::path::Path;

use log::Level;

/// Diagnostics of a file for the log. Equal diagnostics are logged once, with a count.
#[derive(Default)]
pub(crate) struct Diagnostics(RefCell<Vec<Diagnostic>>);

struct Diagnostic {
    level: Level,
    what: String,
    /// First place; empty for the whole file.
    place: String,
    /// Number of further places.
    more: usize,
}

impl Diagnostics {
    /// Adds a diagnostic of the whole file.
    pub(crate) fn add(&self, level: Level, what: impl Into<String>) {
        self.add_at(level, String::new(), what);
    }

    /// Adds a diagnostic of a place in the file.
    pub(crate) fn add_at(&self, level: Level, place: String, what: impl Into<String>) {
        let (what, mut diagnostics) = (what.into(), self.0.borrow_mut());
        match diagnostics.iter_mut().find(|diagnostic| diagnostic.what == what) {
            Some(diagnostic) => diagnostic.more += 1,
            None => diagnostics.push(Diagnostic { level, what, place, more: 0 }),
        }
    }

    /// Logs all diagnostics.
    pub(crate) fn log(&self, path: Option<&Path>) {
        let file = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
        for diagnostic in self.0.borrow().iter() {
            log::log!(diagnostic.level, "{file}{}", diagnostic.text());
        }
    }
}

impl Diagnostic {
    fn text(&self) -> String {
        let Self { what, place, more, .. } = self;
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        match more {
            0 => format!("{place}{what}"),
            more => format!("{place}{what} (and in {more} more places)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_diagnostics_are_counted() {
        let diagnostics = Diagnostics::default();
        diagnostics.add(Level::Warn, "moved");
        for place in ["tensor 1", "tensor 2", "tensor 5"] {
            diagnostics.add_at(Level::Info, place.into(), "odd");
        }
        let texts: Vec<String> = diagnostics.0.borrow().iter().map(Diagnostic::text).collect();
        assert_eq!(texts, ["moved", "tensor 1: odd (and in 2 more places)"]);
    }
}
