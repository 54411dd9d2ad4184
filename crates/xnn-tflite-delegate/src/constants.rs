//! The interpreter's constants, read from the model's file if it is mapped.
//!
//! Each interpreter maps the model's file itself. The delegate reads constants from its own single
//! mapping, so that they have the same addresses for all interpreters, which then share packed
//! weights (see [`programs`](crate::programs)). The memory of packed constants is released, and the
//! interpreters' mappings are not read.

use std::ffi::c_void;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::slice;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use xnn_file::{MappedFile, Pages};

use crate::registry::Registry;

/// Files that delegates of this process have mapped.
static FILES: Registry<Identity, Weak<MappedFile>> = Registry::new();

/// Identity and state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    /// Times of the last changes of content and of status, in seconds and nanoseconds.
    changed: [i64; 4],
}

/// Mappings that contain an interpreter's constants.
pub(crate) struct Constants {
    mappings: Vec<Mapping>,
    /// The system's list of this process's mappings, sorted by address. It is read only as far as
    /// needed, since the system writes it slowly, and lists hundreds of libraries after most
    /// models.
    unread: Option<Lines<BufReader<File>>>,
    /// Address up to which the list has been read.
    read: usize,
}

/// A shared, read-only mapping of a part of a file in this process.
struct Mapping {
    addresses: Range<usize>,
    /// Offset of the part in the file.
    offset: usize,
    device: u64,
    inode: u64,
    path: String,
    /// The delegate's own mapping of the file, once it has been looked up.
    file: Option<Option<Arc<MappedFile>>>,
}

impl Constants {
    /// Constants of an interpreter in this process.
    pub(crate) fn new() -> Self {
        // Without the system's list, no mappings are known.
        let list = File::open("/proc/self/maps").ok();
        let unread = list.map(|list| BufReader::new(list).lines());
        Self { mappings: Vec::new(), unread, read: 0 }
    }

    /// Returns the model's bytes at this address; `None` for a null pointer.
    pub(crate) fn view(&mut self, start: *const c_void, len: usize) -> Option<Bytes> {
        let in_memory = ModelBytes::view(start, len)?;
        self.read_to(start.addr());
        let of_file = |mapping: &mut Mapping| mapping.view(start.addr(), len);
        Some(self.mappings.iter_mut().find_map(of_file).unwrap_or(in_memory))
    }

    /// Reads the list up to this address.
    fn read_to(&mut self, address: usize) {
        while self.read <= address {
            let Some(Ok(line)) = self.unread.as_mut().and_then(Iterator::next) else {
                self.unread = None;
                return;
            };
            self.read = addresses(&line).map_or(self.read, |addresses| addresses.end);
            self.mappings.extend(Mapping::parse(&line));
        }
    }

    /// Files that constants were read from. Interpreters of one model share them as long as one of
    /// them keeps them.
    pub(crate) fn files(&self) -> Vec<Arc<MappedFile>> {
        self.mappings.iter().filter_map(|mapping| mapping.file.clone().flatten()).collect()
    }

    /// Memory of the model's file.
    pub(crate) fn pages(&self) -> Pages {
        self.files().first().map(|file| file.pages()).unwrap_or_default()
    }
}

/// Parses the address range of a line of `/proc/self/maps`.
fn addresses(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(hex(start)?..hex(end)?)
}

fn hex(digits: &str) -> Option<usize> {
    usize::from_str_radix(digits, 16).ok()
}

/// The number of a device in a file's metadata.
#[cfg(target_os = "linux")]
fn device_number(major: u32, minor: u32) -> u64 {
    libc::makedev(major, minor)
}

/// Other systems have no list of mappings.
#[cfg(not(target_os = "linux"))]
fn device_number(_: u32, _: u32) -> u64 {
    0
}

impl Mapping {
    /// Parses a line of `/proc/self/maps`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ').skip(1);
        let mut field = || fields.next();
        let (permissions, offset) = (field()?, field()?);
        let (device, inode, path) = (field()?, field()?, field()?);
        if permissions != "r--s" {
            return None;
        }
        let (major, minor) = device.split_once(':')?;
        let number = |digits| u32::from_str_radix(digits, 16).ok();
        Some(Self {
            addresses: addresses(line)?,
            offset: hex(offset)?,
            device: device_number(number(major)?, number(minor)?),
            inode: inode.parse().ok().filter(|&inode| inode != 0)?,
            path: path.trim_start().to_owned(),
            file: None,
        })
    }

    /// Returns the file's bytes that are mapped at this address.
    fn view(&mut self, start: usize, len: usize) -> Option<Bytes> {
        let before = start.checked_sub(self.addresses.start)?;
        if start.checked_add(len)? > self.addresses.end {
            return None;
        }
        let begin = self.offset.checked_add(before)?;
        let end = begin.checked_add(len)?;
        if self.file.is_none() {
            self.file = Some(self.find());
        }
        let bytes = self.file.as_ref()?.as_ref()?.bytes();
        (end <= bytes.len()).then(|| bytes.slice(begin..end))
    }

    /// Returns the delegate's own mapping of the file; `None` if the path now refers to another
    /// file.
    fn find(&self) -> Option<Arc<MappedFile>> {
        let file = xnn_file::open(Path::new(&self.path)).ok()?;
        let identity = Identity::of(&file).ok()?;
        if (identity.device, identity.inode) != (self.device, self.inode) {
            return None;
        }
        FILES.find_or_make(identity, || {
            let mapped = Arc::new(MappedFile::of(&file).ok()?);
            let weak = Arc::downgrade(&mapped);
            Some((mapped, weak))
        })
    }
}

impl Identity {
    fn of(file: &File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            changed: [
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec(),
            ],
        })
    }
}

/// Bytes of the model in the interpreter's memory.
///
/// TFLite keeps a model's buffers, which contain constants and options, until its interpreters are
/// destroyed, and never writes to them. Only kernels hold views, and the interpreter frees kernels
/// before the buffers.
pub(crate) struct ModelBytes {
    /// Not null.
    start: *const u8,
    len: usize,
}

impl ModelBytes {
    /// `None` where there are no bytes.
    pub(crate) fn view(start: *const c_void, len: usize) -> Option<Bytes> {
        (!start.is_null() && len > 0).then(|| Bytes::from_owner(Self { start: start.cast(), len }))
    }
}

impl AsRef<[u8]> for ModelBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: not null, and live and unchanged as described at the type.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }
}

// SAFETY: the bytes are never written to.
unsafe impl Send for ModelBytes {}
// SAFETY: the bytes are never written to.
unsafe impl Sync for ModelBytes {}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use tempfile::TempDir;

    use super::*;

    const CONTENT: &[u8] = b"weights and biases";

    fn file() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a model.tflite");
        fs::write(&path, CONTENT).unwrap();
        (folder, path)
    }

    /// An interpreter's mapping, and the delegate's view of 6 bytes in it.
    fn view(path: &Path) -> (MappedFile, Bytes, Vec<Arc<MappedFile>>) {
        let mapped = MappedFile::open(path).unwrap();
        let mut constants = Constants::new();
        let view = constants.view(mapped.bytes()[12..].as_ptr().cast(), 6).unwrap();
        (mapped, view, constants.files())
    }

    #[test]
    fn interpreters_of_one_file_share_its_bytes() {
        let (_folder, path) = file();
        let [(a, in_a, files), (b, in_b, _)] = [(); 2].map(|()| view(&path));
        assert_eq!((&in_a[..], &in_b[..]), (&b"biases"[..], &b"biases"[..]));
        assert_eq!(in_a.as_ptr(), in_b.as_ptr());
        for interpreter in [a, b] {
            assert!(!interpreter.bytes().as_ptr_range().contains(&in_a.as_ptr()));
        }
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn a_file_that_has_changed_is_another() {
        let (_folder, path) = file();
        let (_a, in_a, _files) = view(&path);
        let later = SystemTime::now() + std::time::Duration::from_secs(10);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        let (_b, in_b, _other) = view(&path);
        assert_ne!(in_a.as_ptr(), in_b.as_ptr());
    }

    #[test]
    fn a_file_that_replaced_the_model_is_not_read() {
        let (folder, path) = file();
        let mapped = MappedFile::open(&path).unwrap();
        let other = folder.path().join("other");
        fs::write(&other, b"retrained, retrained").unwrap();
        fs::rename(&other, &path).unwrap();
        let mut constants = Constants::new();
        let start = mapped.bytes().as_ptr();
        let view = constants.view(start.cast(), CONTENT.len()).unwrap();
        assert_eq!((view.as_ptr(), &view[..]), (start, CONTENT));
        assert!(constants.files().is_empty());
    }

    #[test]
    fn files_are_found_in_any_order() {
        let (_folders, mapped): (Vec<_>, Vec<_>) = (0..4)
            .map(|_| {
                let (folder, path) = file();
                (folder, MappedFile::open(&path).unwrap())
            })
            .unzip();
        let mut sorted: Vec<_> = mapped.iter().map(|mapped| mapped.bytes().as_ptr()).collect();
        sorted.sort();
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let mut constants = Constants::new();
            for (found, index) in order.into_iter().enumerate() {
                let start: *const u8 = sorted[index];
                let view = constants.view(start.cast(), CONTENT.len()).unwrap();
                assert_eq!(&view[..], CONTENT);
                assert_ne!(view.as_ptr(), start);
                assert_eq!(constants.files().len(), found + 1);
            }
        }
        // The list has no mapping at this address.
        let mut constants = Constants::new();
        constants.read_to(usize::MAX - 1);
        assert!(constants.unread.is_none() && constants.mappings.len() >= 4);
    }

    #[test]
    fn memory_outside_of_files_is_viewed_in_place() {
        let memory = [1u8, 2, 3];
        let mut constants = Constants::new();
        let view = constants.view(memory.as_ptr().cast(), 3).unwrap();
        assert_eq!((view.as_ptr(), &view[..]), (memory.as_ptr(), &memory[..]));
        assert!(constants.view(std::ptr::null(), 3).is_none());
        assert!(constants.view(memory.as_ptr().cast(), 0).is_none());
        for line in [
            "7f0000000000-7f0000001000 rw-s 00000000 fe:00 5 /file",
            "7f0000000000-7f0000001000 r--p 00000000 fe:00 5 /file",
            "7f0000000000-7f0000001000 r--s 00000000 00:00 0 ",
            "7f0000000000-7f0000001000 r--s",
            "",
        ] {
            assert!(Mapping::parse(line).is_none(), "{line}");
        }
        let line = "7f0000000000-7f0000001000 r--s 00002000 fe:01 77                         /a b";
        let mut mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.offset, mapping.inode, mapping.path.as_str()), (0x2000, 77, "/a b"));
        assert_eq!(mapping.device, libc::makedev(0xfe, 1));
        assert!(mapping.view(mapping.addresses.end - 1, 2).is_none());
        assert!(mapping.view(mapping.addresses.start - 1, 2).is_none());
    }
}
