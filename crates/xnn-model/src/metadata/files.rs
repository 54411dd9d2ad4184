//! Associated files: the ZIP archive after a model.

use std::fmt;
use std::io::{Cursor, Read, Write};

use bytes::Bytes;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::error::{Error, ErrorKind};
use crate::limits::ModelLimits;

/// Signature of the end record of an archive.
const END_MAGIC: &[u8] = b"PK\x05\x06";
/// Size of the end record in bytes, without the comment.
const END_SIZE: usize = 22;
/// Offsets of the number of entries and the size of the comment in the end record.
const END_ENTRIES: usize = 10;
const END_COMMENT: usize = 20;

/// The associated files of a model. Files are unpacked when they are read; cloning is cheap.
/// Instances are equal if the names, sizes and checksums of their files are.
#[derive(Clone, Default)]
pub struct AssociatedFiles {
    entries: Vec<Entry>,
    archive: Option<ZipArchive<Cursor<Bytes>>>,
    max_file_bytes: u64,
    max_total: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    size: u64,
    crc32: u32,
}

impl AssociatedFiles {
    /// Reads the directory of the archive at the end of a model or another file; empty if the file
    /// does not end with an archive.
    ///
    /// # Errors
    ///
    /// The archive is damaged, or has more entries than `limits` allow.
    pub fn at_end_of(file: &Bytes, limits: &ModelLimits) -> Result<Self, Error> {
        let Some(entries) = entries_at_end(file) else { return Ok(Self::default()) };
        check_count(entries, limits)?;
        let mut archive = ZipArchive::new(Cursor::new(file.clone())).map_err(damaged)?;
        check_count(archive.len(), limits)?;
        let mut entries = Vec::with_capacity(archive.len());
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            entries.push(Entry { name, size: entry.size(), crc32: entry.crc32() });
        }
        Ok(Self {
            entries,
            archive: Some(archive),
            max_file_bytes: limits.max_associated_bytes,
            max_total: limits.max_associated_total,
        })
    }

    /// Creates an uncompressed archive of these files, in this order.
    ///
    /// # Errors
    ///
    /// Two files have the same name, or the archive would be too large.
    pub fn pack<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, Error> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, content) in files {
            writer.start_file(name, stored).and_then(|()| Ok(writer.write_all(content)?)).map_err(
                |error| Error::invalid(format!("{name:?} cannot be added to the archive: {error}")),
            )?;
        }
        let archive = writer.finish().map_err(damaged)?.into_inner();
        let limits = ModelLimits { max_associated_files: usize::MAX, ..ModelLimits::default() };
        Self::at_end_of(&archive.into(), &limits)
    }

    /// Creates an archive of these files and those of `added`, which replace files with the same
    /// name.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`pack`](Self::pack) and [`read_all`](Self::read_all).
    pub fn with(&self, added: &[(&str, &[u8])]) -> Result<Self, Error> {
        let replaced = |name: &str| added.iter().any(|(added, _)| *added == name);
        let kept = self.read_selected(|name| !replaced(name))?;
        let kept = kept.iter().map(|(name, content)| (*name, content.as_slice()));
        Self::pack(kept.chain(added.iter().copied()))
    }

    /// Whether the archive has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names and unpacked sizes in bytes, in the order of the archive. Names are untrusted, see
    /// [`plain_name`].
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.entries.iter().map(|entry| (entry.name.as_str(), entry.size))
    }

    /// Whether the archive has a file with this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// Unpacks a file.
    ///
    /// # Errors
    ///
    /// The archive does not have the file, or the file is damaged, has an unsupported compression,
    /// or exceeds [`ModelLimits::max_associated_bytes`].
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let found = self.entries.iter().position(|entry| entry.name == name);
        let (Some(index), Some(archive)) = (found, &self.archive) else {
            let missing = Error::invalid(format!("not in the model; {}", self.list()));
            return Err(in_file(name, &missing));
        };
        let unpacked = unpack(&mut archive.clone(), index, self.max_file_bytes);
        unpacked.map_err(|error| in_file(name, &error))
    }

    /// Unpacks all files: names and contents, in the order of the archive.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read), and an error if the total size exceeds
    /// [`ModelLimits::max_associated_total`].
    pub fn read_all(&self) -> Result<Vec<(&str, Vec<u8>)>, Error> {
        self.read_selected(|_| true)
    }

    /// Unpacks the files whose names are `wanted`. The total size is checked because entries may
    /// share packed bytes, so that the size of the archive is no bound.
    fn read_selected(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(&str, Vec<u8>)>, Error> {
        let Some(archive) = &self.archive else { return Ok(Vec::new()) };
        let wanted = self.entries.iter().enumerate().filter(|(_, entry)| wanted(&entry.name));
        let wanted: Vec<_> = wanted.collect();
        let stated = wanted.iter().fold(0u64, |sum, (_, entry)| sum.saturating_add(entry.size));
        check_total(stated, self.max_total)?;
        let (mut archive, mut total) = (archive.clone(), 0u64);
        let mut files = Vec::with_capacity(wanted.len());
        for (index, Entry { name, .. }) in wanted {
            let content = unpack(&mut archive, index, self.max_file_bytes)
                .map_err(|error| in_file(name, &error))?;
            total = total.saturating_add(content.len() as u64);
            check_total(total, self.max_total)?;
            files.push((name.as_str(), content));
        }
        Ok(files)
    }

    /// Reads the lines of a text file, without line ends and without a byte order mark.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read`](Self::read), and an error if the file is not valid UTF-8.
    pub fn lines(&self, name: &str) -> Result<Vec<String>, Error> {
        let text = String::from_utf8(self.read(name)?)
            .map_err(|_| Error::invalid(format!("associated file {name:?}: not valid UTF-8")))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn list(&self) -> String {
        let names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        match names.as_slice() {
            [] => "the model has no associated files".to_owned(),
            names => format!("the model has: {}", names.join(", ")),
        }
    }

    /// Appends the archive to a file, with offsets from the start of the file.
    pub(crate) fn append_to(&self, file: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Some(archive) = self.archive.as_ref().filter(|_| !self.is_empty()) else {
            return Ok(file);
        };
        let mut archive = archive.clone();
        let mut target = Cursor::new(file);
        target.set_position(target.get_ref().len() as u64);
        let mut writer = ZipWriter::new(target);
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(damaged)?;
            writer.raw_copy_file(entry).map_err(damaged)?;
        }
        Ok(writer.finish().map_err(damaged)?.into_inner())
    }

    /// Serializes the archive as a `.zip` file; empty without files.
    ///
    /// # Errors
    ///
    /// The archive is damaged.
    pub fn to_zip(&self) -> Result<Vec<u8>, Error> {
        self.append_to(Vec::new())
    }
}

/// Unpacks an entry of at most `limit` bytes.
fn unpack(
    archive: &mut ZipArchive<Cursor<Bytes>>,
    index: usize,
    limit: u64,
) -> Result<Vec<u8>, Error> {
    let entry = archive.by_index(index).map_err(damaged)?;
    check_size(entry.size(), limit)?;
    let mut content = Vec::new();
    // The stated size may be wrong.
    entry
        .take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| Error::invalid(format!("it is damaged: {error}")))?;
    check_size(content.len() as u64, limit)?;
    Ok(content)
}

fn in_file(name: &str, error: &Error) -> Error {
    Error::invalid(format!("associated file {name:?}: {error}"))
}

/// The name, if it is safe as a file name in a folder; `None` for paths and names with a special
/// meaning.
#[must_use]
pub fn plain_name(name: &str) -> Option<&str> {
    let reserved = |c: char| c.is_control() || "/\\:".contains(c);
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains(reserved);
    plain.then_some(name)
}

/// The stated number of entries of the archive at the end of a file; `None` without an archive.
fn entries_at_end(file: &[u8]) -> Option<usize> {
    let farthest = file.len().saturating_sub(END_SIZE + usize::from(u16::MAX));
    let tail = file.get(farthest..)?;
    let number = |record: &[u8], at: usize| {
        record
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map(|b| usize::from(u16::from_le_bytes(*b)))
    };
    // Most files have no archive, so that the magic is looked for in all of the tail.
    let records = tail.windows(END_MAGIC.len()).enumerate().rev().filter(|(_, w)| *w == END_MAGIC);
    records.map(|(at, _)| &tail[at..]).find_map(|record| {
        let ends = END_SIZE + number(record, END_COMMENT)? == record.len();
        ends.then(|| number(record, END_ENTRIES))?
    })
}

fn check_count(entries: usize, limits: &ModelLimits) -> Result<(), Error> {
    let (value, limit) = (entries as u64, limits.max_associated_files as u64);
    if value <= limit {
        return Ok(());
    }
    Err(ErrorKind::Limit { what: "the number of associated files", value, limit }.into())
}

fn check_size(value: u64, limit: u64) -> Result<(), Error> {
    if value <= limit {
        return Ok(());
    }
    Err(ErrorKind::Limit { what: "the size in bytes", value, limit }.into())
}

fn check_total(value: u64, limit: u64) -> Result<(), Error> {
    if value <= limit {
        return Ok(());
    }
    let what = "the size in bytes of all associated files together";
    Err(ErrorKind::Limit { what, value, limit }.into())
}

fn damaged(error: ZipError) -> Error {
    Error::invalid(format!("the archive of associated files cannot be read: {error}"))
}

impl PartialEq for AssociatedFiles {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl fmt::Debug for AssociatedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}
