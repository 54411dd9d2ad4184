//! The seam between XNNPACK and this crate: a table of checked changes to XNNPACK's sources.
//!
//! Every change is made to a copy in the build folder; the sources stay as they are. A text that does not occur exactly
//! as often as its change states fails the build with the edit's name. `docs/upgrading-xnnpack.md` describes what to do then.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// A change that includes a header of `csrc` after the headers of a file.
macro_rules! include_header {
    ($header:literal) => {
        (
            "#include \"pthreadpool.h\"\n",
            concat!("#include \"pthreadpool.h\"\n#include \"", $header, "\"\n"),
            1,
        )
    };
}

mod compilers;
mod defects;
mod kernels;
mod memory;
mod pieces;
mod run;
mod special_values;
mod systems;
mod weights;

/// Edits by topic, applied in this order. Several may change one file.
pub const TOPICS: [&[Edit]; 9] = [
    special_values::EDITS,
    defects::EDITS,
    kernels::EDITS,
    pieces::EDITS,
    weights::EDITS,
    memory::EDITS,
    run::EDITS,
    systems::EDITS,
    compilers::EDITS,
];

/// Changes that belong together.
pub struct Edit {
    /// Named in the error if the edit fails.
    pub name: &'static str,
    /// Behavior of XNNPACK without the edit, and why it is wrong or slow.
    pub why: &'static str,
    pub files: Files,
    pub changes: &'static [Change],
}

pub enum Files {
    /// Paths in XNNPACK's folder.
    These(&'static [&'static str]),
    /// All production microkernels for x86-64, whatever the target.
    X86Microkernels,
}

/// `(find, put, times)`: the text to look for, its replacement, and how often it occurs in all files of the edit together. `{}`
/// stands for one C identifier, and has text before it.
pub type Change = (&'static str, &'static str, usize);

/// XNNPACK's sources, some of them as changed copies.
pub struct Edited {
    root: PathBuf,
    copies: PathBuf,
    files: Vec<String>,
}

impl Edited {
    /// Writes changed copies of files below `root` to the folder `copies`. The error lists all edits that do not apply.
    pub fn write<'a>(
        root: &Path,
        copies: PathBuf,
        microkernels: &[String],
        edits: impl IntoIterator<Item = &'a Edit>,
    ) -> Result<Self> {
        let mut texts = BTreeMap::new();
        let mut failed = Vec::new();
        for edit in edits {
            if let Err(problem) = edit.apply(root, microkernels, &mut texts) {
                failed.push(problem);
            }
        }
        if !failed.is_empty() {
            failed.push("docs/upgrading-xnnpack.md describes how to adapt edits".to_owned());
            return Err(failed.join("\n").into());
        }
        copy_neighbours_of_headers(root, &mut texts)?;
        for (file, text) in &texts {
            let copy = copies.join(file);
            fs::create_dir_all(copy.parent().unwrap_or(&copies))?;
            fs::write(copy, text)?;
        }
        Ok(Self { root: root.to_owned(), copies, files: texts.into_keys().collect() })
    }

    /// Path of the copy of a file, or of the file itself if no edit changes it.
    pub fn path(&self, file: &str) -> PathBuf {
        let is_edited = self.files.iter().any(|edited| edited == file);
        if is_edited { self.copies.join(file) } else { self.root.join(file) }
    }

    /// Include folders of XNNPACK's internal headers: changed copies take precedence.
    pub fn headers(&self) -> [PathBuf; 2] {
        [self.copies.join("src"), self.root.join("src")]
    }
}

/// Adds the files beside the folder of a changed header to `texts`: C looks for a header in the folder of the file that includes it
/// first, so that a file which is not a copy would include the unchanged one.
fn copy_neighbours_of_headers(root: &Path, texts: &mut BTreeMap<String, String>) -> Result<()> {
    let headers = texts.keys().map(Path::new).filter(|file| file.extension() == Some("h".as_ref()));
    let folders: BTreeSet<PathBuf> =
        headers.filter_map(|file| Some(file.parent()?.parent()?.to_owned())).collect();
    for folder in folders {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let file = folder.join(entry.file_name()).display().to_string();
            if entry.file_type()?.is_file() && !texts.contains_key(&file) {
                texts.insert(file, fs::read_to_string(entry.path())?);
            }
        }
    }
    Ok(())
}

impl Edit {
    /// Adds the files that it changes to `texts`, or says what does not apply and changes nothing.
    fn apply(
        &self,
        root: &Path,
        microkernels: &[String],
        texts: &mut BTreeMap<String, String>,
    ) -> std::result::Result<(), String> {
        let files: Vec<String> = match self.files {
            Files::These(files) => files.iter().map(|file| (*file).to_owned()).collect(),
            Files::X86Microkernels => microkernels.to_vec(),
        };
        let mut found = vec![0; self.changes.len()];
        let mut problems = Vec::new();
        let mut changed = BTreeMap::new();
        for file in &files {
            let before = match texts.get(file) {
                Some(text) => Ok(text.clone()),
                None => fs::read_to_string(root.join(file)),
            };
            let before = match before {
                Ok(before) => before,
                Err(error) => {
                    problems.push(format!("{file}: {error}"));
                    continue;
                }
            };
            let mut text = before.clone();
            for ((find, put, _), found) in self.changes.iter().zip(&mut found) {
                let (replaced, times) = replace(&text, find, put);
                text = replaced;
                *found += times;
            }
            if text != before {
                changed.insert(file.clone(), text);
            }
        }
        let place = match files.as_slice() {
            [file] => file.clone(),
            files => format!("{} files", files.len()),
        };
        for ((find, _, times), found) in self.changes.iter().zip(found) {
            if found != *times {
                problems.push(format!(
                    "{place}: expected {times}, found {found} occurrences of\n{find}"
                ));
            }
        }
        if problems.is_empty() {
            texts.append(&mut changed);
            return Ok(());
        }
        let Self { name, why, .. } = self;
        let problems = problems.join("\n");
        Err(format!(
            "the edit \"{name}\" does not apply to this revision of XNNPACK: {problems}\n\
             why it exists: {why}"
        ))
    }
}

/// `text` with `put` in the place of `find`, and how often it occurred.
fn replace(text: &str, find: &str, put: &str) -> (String, usize) {
    let Some((head, tail)) = find.split_once("{}") else {
        return (text.replace(find, put), text.matches(find).count());
    };
    if head.is_empty() {
        return (text.to_owned(), 0);
    }
    let (mut changed, mut rest, mut times) = (String::new(), text, 0);
    while let Some((before, after)) = rest.split_once(head) {
        changed += before;
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at(length);
        match behind.strip_prefix(tail) {
            Some(behind) if !name.is_empty() => {
                changed += &put.replace("{}", name);
                (rest, times) = (behind, times + 1);
            }
            _ => {
                changed += head;
                rest = after;
            }
        }
    }
    (changed + rest, times)
}
