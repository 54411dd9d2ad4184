//! What a reader notices that keeps no model from being used.

use std::cell::RefCell;
use std::path::Path;

use log::Level;

/// What was noticed in a file, for the log: each thing once, with a count of the places.
#[derive(Default)]
pub(crate) struct Notes(RefCell<Vec<Note>>);

struct Note {
    level: Level,
    what: String,
    /// Where it was first; empty if it is about the whole file.
    place: String,
    /// How often it was there again.
    more: usize,
}

impl Notes {
    /// Notes something about the whole file.
    pub(crate) fn add(&self, level: Level, what: impl Into<String>) {
        self.add_at(level, String::new(), what);
    }

    /// Notes something about a place in it.
    pub(crate) fn add_at(&self, level: Level, place: String, what: impl Into<String>) {
        let (what, mut notes) = (what.into(), self.0.borrow_mut());
        match notes.iter_mut().find(|note| note.what == what) {
            Some(note) => note.more += 1,
            None => notes.push(Note { level, what, place, more: 0 }),
        }
    }

    /// Says all of it.
    pub(crate) fn log(&self, path: Option<&Path>) {
        let file = path.map_or_else(String::new, |path| format!("{}: ", path.display()));
        for note in self.0.borrow().iter() {
            log::log!(note.level, "{file}{}", note.text());
        }
    }
}

impl Note {
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
    fn things_that_are_there_often_are_said_once() {
        let notes = Notes::default();
        notes.add(Level::Warn, "moved");
        for place in ["tensor 1", "tensor 2", "tensor 5"] {
            notes.add_at(Level::Info, place.into(), "odd");
        }
        let texts: Vec<String> = notes.0.borrow().iter().map(Note::text).collect();
        assert_eq!(texts, ["moved", "tensor 1: odd (and in 2 more places)"]);
    }
}
