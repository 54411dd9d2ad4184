//! Files opened and mapped into memory, their memory given back, and bounds on what they may ask for.
//!
//! Models and blobs are mapped, not read: constants are views of the mapping. Once their weights are packed nothing
//! reads most of them any more, and [`Pages`] takes them out of the process's memory.

#![deny(unsafe_code)]

mod amplification;
mod gaps;
pub mod memory;

use std::cmp::Reverse;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::Mmap;

pub use crate::amplification::{Amplification, Demand, Excess, most_at_once};
use crate::gaps::{gaps, place};
pub use crate::memory::OutOfMemory;

/// Opens a regular file for reading. Opening a pipe would wait for somebody to write to it, here it
/// is refused.
///
/// # Errors
/// It is not there, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    check_regular(&file)?;
    Ok(file)
}

/// All of a regular file.
///
/// # Errors
/// As [`open`], and if it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// All of a file that a user names, which may be a pipe or a device, and endless.
///
/// # Errors
/// It is not there, cannot be read, or has more than `most` bytes.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(content)
}

fn check_regular(file: &File) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(())
}

/// A file that is mapped for reading.
///
/// It must not be changed or truncated as long as its bytes are in use.
#[derive(Clone, Debug)]
pub struct MappedFile {
    bytes: Bytes,
    pages: Pages,
}

/// The memory of a mapped file; none if the bytes are in other memory.
#[derive(Clone, Debug, Default)]
pub struct Pages(Option<Arc<Mmap>>);

impl MappedFile {
    /// Maps the file.
    ///
    /// # Errors
    /// It is not there, is not a regular file, or cannot be mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(&open(path)?)
    }

    /// Maps a file that is open for reading.
    ///
    /// # Errors
    /// It is not a regular file, or cannot be mapped.
    pub fn of(file: &File) -> io::Result<Self> {
        check_regular(file)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self { bytes: Bytes::new(), pages: Pages::default() });
        }
        // SAFETY: nothing here writes to the mapping. Another program that changes or truncates the file meanwhile
        // is outside of what can be guarded against; callers are told.
        #[allow(unsafe_code, reason = "mapping a file is how constants stay uncopied")]
        let map = Arc::new(unsafe { Mmap::map(file) }?);
        // Whoever reads it takes memory for what it says, a little for each table.
        memory::ensure(map.len() / 8, "what is in the file").map_err(io::Error::from)?;
        let bytes = Bytes::from_owner(Shared(Arc::clone(&map)));
        Ok(Self { bytes, pages: Pages(Some(map)) })
    }

    /// The content. It stays mapped as long as a part of it is in use.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// What gives the memory back to the system until it is read again.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages.clone()
    }
}

/// Keeps the mapping alive.
struct Shared(Arc<Mmap>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Where bytes lie says nothing of what they are: two models or blobs with the same content are the same.
impl PartialEq for Pages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pages {}

impl Pages {
    /// These, or `others` if the bytes are in other memory.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        if self.0.is_some() { self } else { others.clone() }
    }

    /// Takes what was read of the file out of this process's memory. Whoever reads it again finds it again, which
    /// takes a little longer.
    pub fn release(&self) {
        if let Some(map) = &self.0 {
            release(map);
        }
    }

    /// For a part of the file's bytes of which only some are still to be read: what lies between those is not taken
    /// into this process's memory with them. Bytes that are not in the file count for nothing.
    pub fn set_aside_around<'part>(&self, part: &[u8], read: impl Iterator<Item = &'part [u8]>) {
        let Some(map) = &self.0 else { return };
        let Some(part) = place(map, part) else { return };
        let mut gaps = gaps(part, read.filter_map(|read| place(map, read)));
        gaps.sort_unstable_by_key(|gap| Reverse(gap.len()));
        gaps.into_iter().take(MOST_GAPS).for_each(|gap| set_aside(map, gap));
    }
}

/// How many gaps become areas of memory, of which a process has a limited number.
const MOST_GAPS: usize = 64;

#[cfg(unix)]
#[allow(
    unsafe_code,
    reason = "such advice loses what was written to private memory; nothing is written"
)]
fn release(map: &Mmap) {
    use memmap2::UncheckedAdvice::DontNeed;

    // SAFETY: the mapping is of a file, and nobody writes to it, so pages that are dropped come back with the same
    // bytes.
    let released = unsafe { map.unchecked_advise(DontNeed) };
    if let Err(error) = released {
        log::debug!("pages are not released: {error}");
    }
}

/// Linux keeps files in pieces of up to two megabytes, and maps as much of one where a byte of it is read as belongs to
/// the same area of memory. Areas of which different things are asked are different ones.
#[cfg(target_os = "linux")]
fn set_aside(map: &Mmap, place: Range<usize>) {
    // Kernels without huge pages do not know the advice, nor need it.
    if let Err(error) = map.advise_range(Advice::NoHugePage, place.start, place.len()) {
        log::debug!("pages are not set aside: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn set_aside(_map: &Mmap, _place: Range<usize>) {}

#[cfg(not(unix))]
fn release(_map: &Mmap) {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    const MANY: usize = 1 << 20;

    fn file(content: &[u8]) -> io::Result<(TempDir, PathBuf)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("content");
        fs::write(&path, content)?;
        Ok((folder, path))
    }

    #[test]
    fn what_is_released_comes_back() -> io::Result<()> {
        let content: Vec<u8> = (0..MANY).map(|at| (at / 7) as u8).collect();
        let (_folder, path) = file(&content)?;
        let mapped = MappedFile::open(&path)?;
        let (bytes, pages) = (mapped.bytes(), mapped.pages());
        drop(mapped);
        assert_eq!(bytes, content);
        pages.release();
        assert_eq!(bytes, content);
        Ok(())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_released_takes_no_memory() -> io::Result<()> {
        // Files of the whole process; this one is the only large one.
        let mapped_kib = || -> io::Result<usize> {
            let status = fs::read_to_string("/proc/self/status")?;
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
            let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
            kib.ok_or_else(|| io::Error::other("no RssFile"))
        };
        const LARGE: usize = 64 << 20;
        let (_folder, path) = file(&vec![1; LARGE])?;
        let mapped = MappedFile::open(&path)?;
        let bytes = mapped.bytes();
        let read = || assert_eq!(bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>(), LARGE);
        read();
        for pages in [mapped.pages().or(&Pages::default()), Pages::default().or(&mapped.pages())] {
            let before = mapped_kib()?;
            pages.release();
            let after = mapped_kib()?;
            assert!(before - after > LARGE / 1024 / 2, "{before} {after}");
            read();
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_set_aside_is_an_area_of_its_own() -> io::Result<()> {
        let areas = |path: &Path| -> io::Result<usize> {
            let maps = fs::read_to_string("/proc/self/maps")?;
            Ok(maps.lines().filter(|line| line.ends_with(&*path.to_string_lossy())).count())
        };
        // Emulators of processors take no advice.
        let (_folder, other) = file(&[1; MANY])?;
        let advised = MappedFile::open(&other)?;
        let map = advised.pages.0.as_ref().ok_or(io::ErrorKind::NotFound)?;
        map.advise_range(Advice::Random, 0, 1)?;
        let is_emulated = areas(&other)? == 1;
        let (_folder, path) = file(&[1; MANY])?;
        let mapped = MappedFile::open(&path)?;
        let (bytes, pages) = (mapped.bytes(), mapped.pages());
        let areas = || areas(&path);
        assert_eq!(areas()?, 1);
        pages.set_aside_around(&bytes, [bytes.as_ref()].into_iter());
        assert_eq!(areas()?, 1);
        // Kernels that have been built without huge pages do not know the difference.
        let has_huge_pages = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let has_areas = has_huge_pages && !is_emulated;
        let read = [&bytes[400_000..500_000], &bytes[100_000..200_000]];
        pages.set_aside_around(&bytes[100_000..], read.into_iter());
        assert_eq!(areas()?, if has_areas { 4 } else { 1 });
        assert!(bytes.iter().all(|&byte| byte == 1));
        Ok(())
    }

    #[test]
    fn other_memory_is_left_alone() -> io::Result<()> {
        let (_folder, path) = file(&[1; 4096])?;
        let other = vec![2u8; MANY];
        let pages = MappedFile::open(&path)?.pages();
        for pages in [pages, Pages::default()] {
            pages.release();
            pages.set_aside_around(&other, [].into_iter());
        }
        assert!(other.iter().all(|&byte| byte == 2));
        Ok(())
    }

    #[test]
    fn there_must_be_a_file() -> io::Result<()> {
        let (folder, path) = file(&[])?;
        assert!(MappedFile::open(&path)?.bytes().is_empty());
        let error = |path: &Path| MappedFile::open(path).err().map(|error| error.kind());
        assert_eq!(error(folder.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(error(&folder.path().join("none")), Some(io::ErrorKind::NotFound));
        #[cfg(unix)]
        assert_eq!(error(Path::new("/dev/null")), Some(io::ErrorKind::InvalidInput));
        Ok(())
    }

    /// Nobody writes to the pipe: whoever waited for it would wait for ever.
    #[cfg(unix)]
    #[test]
    fn pipes_are_not_waited_for() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status()?;
        assert!(made.success());
        for error in [open(&pipe).err(), read(&pipe).err(), MappedFile::open(&pipe).err()] {
            assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::InvalidInput));
        }
        Ok(())
    }

    #[test]
    fn reading_has_bounds() -> io::Result<()> {
        let (_folder, path) = file(b"12345")?;
        assert_eq!(read(&path)?, b"12345");
        assert_eq!(read_at_most(&path, 5)?, b"12345");
        let error = |path: &Path| read_at_most(path, 4).err().map(|error| error.to_string());
        assert_eq!(error(&path).as_deref(), Some("it has more than 4 bytes"));
        #[cfg(unix)]
        assert_eq!(error(Path::new("/dev/zero")), error(&path));
        Ok(())
    }
}
