//! Opens and maps files, releases their memory, and limits what files may request.
//!
//! Models and blobs are mapped rather than read: constants are views of the mapping. Most constants
//! are not read again once their weights are packed; [`Pages`] then releases them from the
//! process's resident memory.

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

pub use crate::amplification::{
    Amplification, Demand, Excess, RECORD_BYTES, peak_bytes, saturating_elements, stored_bytes,
};
use crate::gaps::{gaps, place};
pub use crate::memory::OutOfMemory;

/// Opens a regular file for reading. Refuses a pipe, which would block until another process writes
/// to it.
///
/// # Errors
/// The file does not exist, cannot be opened, or is not a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    check_regular(&file)?;
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
/// The errors of [`open`], and errors while reading.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Reads a file that the user names. It may be a pipe or a device, which may be endless.
///
/// # Errors
/// The file does not exist, cannot be read, or has more than `limit` bytes.
pub fn read_at_most(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("the file has more than {limit} bytes"),
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

/// A file that is mapped for reading. Systems that do not map files (WASI) read it instead.
///
/// The file must not be changed or truncated while its bytes are in use.
#[derive(Clone, Debug)]
pub struct MappedFile {
    bytes: Bytes,
    pages: Pages,
}

/// The memory of a mapped file; empty if the bytes are in other memory. All instances compare
/// equal, since the location of bytes does not change the content of a model or blob.
#[derive(Clone, Debug, Default)]
pub struct Pages(Option<Arc<Mmap>>);

impl MappedFile {
    /// Maps the file.
    ///
    /// # Errors
    /// The file does not exist, is not a regular file, or cannot be mapped; memory is exhausted.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(&open(path)?)
    }

    /// Maps a file that is open for reading.
    ///
    /// # Errors
    /// The file is not a regular file, or cannot be mapped; memory is exhausted.
    pub fn of(file: &File) -> io::Result<Self> {
        check_regular(file)?;
        if file.metadata()?.len() == 0 {
            return Ok(Self { bytes: Bytes::new(), pages: Pages::default() });
        }
        Self::load(file)
    }

    #[cfg(any(unix, windows))]
    fn load(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only. The documentation requires that no other
        // process changes or truncates the file while it is mapped.
        #[allow(unsafe_code, reason = "mapping a file avoids copying its constants")]
        let map = Arc::new(unsafe { Mmap::map(file) }?);
        // Readers allocate memory in proportion to the file, a little for each table.
        memory::ensure(map.len() / 8, "the content of the file").map_err(io::Error::from)?;
        let bytes = Bytes::from_owner(Shared(Arc::clone(&map)));
        Ok(Self { bytes, pages: Pages(Some(map)) })
    }

    #[cfg(not(any(unix, windows)))]
    fn load(file: &File) -> io::Result<Self> {
        // Constants are aligned within the file.
        const ALIGNMENT: usize = 64;
        let length = file.metadata()?.len();
        let exhausted =
            || OutOfMemory { what: "the content of the file".into(), bytes: Some(length) };
        let bytes = usize::try_from(length).ok().and_then(|length| length.checked_add(ALIGNMENT));
        let mut content: Vec<u8> = Vec::new();
        content.try_reserve_exact(bytes.ok_or_else(exhausted)?).map_err(|_| exhausted())?;
        let address = content.as_ptr().addr();
        let start = address.next_multiple_of(ALIGNMENT) - address;
        content.resize(start, 0);
        file.take(length).read_to_end(&mut content)?;
        memory::ensure(content.len() / 8, "the content of the file").map_err(io::Error::from)?;
        Ok(Self { bytes: Bytes::from(content).slice(start..), pages: Pages::default() })
    }

    /// The content. The file stays mapped while any slice of it is in use.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The memory of the mapping, for releasing it.
    #[must_use]
    pub fn pages(&self) -> Pages {
        self.pages.clone()
    }
}

/// Keeps the mapping alive.
#[cfg(any(unix, windows))]
struct Shared(Arc<Mmap>);

#[cfg(any(unix, windows))]
impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Pages {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Pages {}

impl Pages {
    /// `self`, or `others` if `self` is empty.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        if self.0.is_some() { self } else { others.clone() }
    }

    /// Releases the file's pages from this process's resident memory. Later reads map them again
    /// from the system's cache, or from disk.
    pub fn release(&self) {
        if let Some(map) = &self.0 {
            release(map);
        }
    }

    /// Keeps the gaps between slices of `part` that are still `read` from becoming resident
    /// together with them. Ignores bytes that are not in the file.
    pub fn isolate_gaps<'part>(&self, part: &[u8], read: impl Iterator<Item = &'part [u8]>) {
        let Some(map) = &self.0 else { return };
        let Some(part) = place(map, part) else { return };
        let mut gaps = gaps(part, read.filter_map(|read| place(map, read)));
        gaps.sort_unstable_by_key(|gap| Reverse(gap.len()));
        gaps.into_iter().take(MAX_GAPS).for_each(|gap| isolate(map, gap));
    }
}

/// Most gaps that become memory areas of their own. The number of areas of a process is limited.
const MAX_GAPS: usize = 64;

#[cfg(unix)]
#[allow(
    unsafe_code,
    reason = "the advice discards writes to private memory; the mapping is read-only"
)]
fn release(map: &Mmap) {
    use memmap2::UncheckedAdvice::DontNeed;

    // SAFETY: the mapping is of a file and read-only, so discarded pages come back with the same
    // bytes.
    let released = unsafe { map.unchecked_advise(DontNeed) };
    if let Err(error) = released {
        log::debug!("cannot release pages: {error}");
    }
}

/// Linux caches files in folios of up to 2 MB. A read of one byte maps as much of the folio as lies
/// in the same memory area. Different advice splits an area.
#[cfg(target_os = "linux")]
fn isolate(map: &Mmap, place: Range<usize>) {
    // Kernels without huge pages refuse the advice and do not need it.
    if let Err(error) = map.advise_range(Advice::NoHugePage, place.start, place.len()) {
        log::debug!("cannot isolate pages: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn isolate(_map: &Mmap, _place: Range<usize>) {}

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
    fn released_pages_are_read_again() -> io::Result<()> {
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
    fn released_pages_are_not_resident() -> io::Result<()> {
        // The counter covers all files of the process; this is the only large one.
        let mapped_kib = || -> io::Result<usize> {
            let status = fs::read_to_string("/proc/self/status")?;
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
            let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
            kib.ok_or_else(|| io::Error::other("/proc/self/status has no RssFile"))
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
    fn isolated_gaps_are_areas_of_their_own() -> io::Result<()> {
        let areas = |path: &Path| -> io::Result<usize> {
            let maps = fs::read_to_string("/proc/self/maps")?;
            Ok(maps.lines().filter(|line| line.ends_with(&*path.to_string_lossy())).count())
        };
        // Processor emulators ignore advice.
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
        pages.isolate_gaps(&bytes, [bytes.as_ref()].into_iter());
        assert_eq!(areas()?, 1);
        // Kernels built without huge pages do not split areas by this advice.
        let has_huge_pages = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        let has_areas = has_huge_pages && !is_emulated;
        let read = [&bytes[400_000..500_000], &bytes[100_000..200_000]];
        pages.isolate_gaps(&bytes[100_000..], read.into_iter());
        assert_eq!(areas()?, if has_areas { 4 } else { 1 });
        assert!(bytes.iter().all(|&byte| byte == 1));
        Ok(())
    }

    #[test]
    fn other_memory_is_not_touched() -> io::Result<()> {
        let (_folder, path) = file(&[1; 4096])?;
        let other = vec![2u8; MANY];
        let pages = MappedFile::open(&path)?.pages();
        for pages in [pages, Pages::default()] {
            pages.release();
            pages.isolate_gaps(&other, [].into_iter());
        }
        assert!(other.iter().all(|&byte| byte == 2));
        Ok(())
    }

    #[test]
    fn missing_and_special_files_are_refused() -> io::Result<()> {
        let (folder, path) = file(&[])?;
        assert!(MappedFile::open(&path)?.bytes().is_empty());
        let error = |path: &Path| MappedFile::open(path).err().map(|error| error.kind());
        assert_eq!(error(folder.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(error(&folder.path().join("none")), Some(io::ErrorKind::NotFound));
        #[cfg(unix)]
        assert_eq!(error(Path::new("/dev/null")), Some(io::ErrorKind::InvalidInput));
        Ok(())
    }

    /// No process writes to the pipe, so opening it must not block.
    #[cfg(unix)]
    #[test]
    fn pipes_are_refused_without_blocking() -> io::Result<()> {
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
    fn reading_is_limited() -> io::Result<()> {
        let (_folder, path) = file(b"12345")?;
        assert_eq!(read(&path)?, b"12345");
        assert_eq!(read_at_most(&path, 5)?, b"12345");
        let error = |path: &Path| read_at_most(path, 4).err().map(|error| error.to_string());
        assert_eq!(error(&path).as_deref(), Some("the file has more than 4 bytes"));
        #[cfg(unix)]
        assert_eq!(error(Path::new("/dev/zero")), error(&path));
        Ok(())
    }
}
