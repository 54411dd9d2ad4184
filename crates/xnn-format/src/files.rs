//! Atomic file writes.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// Maximum number of links to follow, as in Linux.
const MAX_LINKS: usize = 40;

/// Writes `bytes` to `path` atomically: to an unnamed or temporary file in the same folder, which
/// then replaces the target. Concurrent readers, and readers after a crash, see the old or the new
/// content.
///
/// Follows symbolic links. An existing file keeps its mode and, if permitted, its owner. Writes
/// directly to devices, pipes and open files of a process (`/dev/stdout`).
///
/// # Errors
/// The system's error, for example if the folder does not exist or is not writable, the path is a
/// folder, or the disk is full.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow(path);
    match fs::metadata(path) {
        Ok(old) if old.is_file() && !is_of_process(&target) => replace(&target, Some(&old), bytes),
        Ok(_) => OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(&target, None, bytes),
        Err(error) => Err(error),
    }
}

/// The target of the links at `path`, whether or not the target exists.
fn follow(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) if !is_of_process(&target) => target = folder(&target).join(next),
            _ => break,
        }
    }
    target
}

/// Whether a path names an open file of a process. Such links do not give the path of their target.
fn is_of_process(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Replaces the `old` file with a new one.
fn replace(target: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let folder = folder(target);
    let mut names = Builder::new();
    names.prefix(".xnn-").suffix(".tmp");
    // An unnamed file leaves nothing behind if writing is interrupted.
    if let Some(mut file) = unnamed::create(folder) {
        fill(&mut file, old, bytes)?;
        let named = names.make_in(folder, |name| unnamed::give_name(&file, name));
        if named.is_ok_and(|named| named.persist(target).is_ok()) {
            return Ok(());
        }
    }
    let mut code = None;
    let create = |name: &Path| {
        let file = OpenOptions::new().write(true).create_new(true).open(name);
        file.inspect_err(|error| code = error.raw_os_error())
    };
    // Report the system's error without the temporary name that `tempfile` adds.
    let named = names.make_in(folder, create);
    let mut named = named.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))?;
    fill(named.as_file_mut(), old, bytes)?;
    named.persist(target)?;
    Ok(())
}

fn fill(file: &mut File, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if let Some(old) = old {
        copy_attributes(file, old)?;
    }
    file.write_all(bytes)?;
    file.sync_data()
}

/// Copies owner and mode of the `old` file to `file`.
fn copy_attributes(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Usually needs privileges. Before the mode, whose set-user-ID bits it clears.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    /// A file that is deleted unless it gets a name; `None` if the file system does not support it.
    pub fn create(folder: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        OpenOptions::new().write(true).custom_flags(flags).open(folder).ok()
    }

    pub fn give_name(file: &File, name: &Path) -> io::Result<()> {
        let file = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, file, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn create(_: &Path) -> Option<File> {
        None
    }

    pub fn give_name(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;
    use std::thread;

    use tempfile::tempdir;

    use super::*;

    /// Sorted names of the entries of a folder.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_keep_their_mode_and_leave_nothing_behind() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomic(&path, b"one").unwrap();
        // The mode of any new file under the current umask.
        let other = folder.path().join("other");
        fs::write(&other, b"").unwrap();
        assert_eq!(mode(&path), mode(&other));
        for old in [0o600, 0o640, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(old)).unwrap();
            write_atomic(&path, b"two").unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (old, b"two".to_vec()));
        }
        assert_eq!(names(folder.path()), ["file", "other"]);
    }

    #[test]
    fn links_are_followed_and_kept() {
        let folder = tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/file"), b"old").unwrap();
        symlink("sub/file", at("relative")).unwrap();
        symlink(at("relative"), at("absolute")).unwrap();
        symlink("sub/new", at("dangling")).unwrap();
        for (link, file) in
            [("relative", "sub/file"), ("absolute", "sub/file"), ("dangling", "sub/new")]
        {
            write_atomic(&at(link), link.as_bytes()).unwrap();
            assert!(at(link).is_symlink(), "{link}");
            assert_eq!(fs::read(at(file)).unwrap(), link.as_bytes());
        }
        symlink("circle", at("circle")).unwrap();
        assert!(write_atomic(&at("circle"), b"").is_err());
        assert!(at("circle").is_symlink());
        assert_eq!(names(folder.path()), ["absolute", "circle", "dangling", "relative", "sub"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_have_no_name_until_they_are_complete() {
        let folder = tempdir().unwrap();
        let Some(mut file) = unnamed::create(folder.path()) else {
            xnn_testing::skip("this file system has no unnamed files");
            return;
        };
        file.write_all(b"whole").unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let path = folder.path().join("file");
        unnamed::give_name(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        // An existing name is not replaced.
        let again = unnamed::give_name(&file, &path).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn pipes_are_written_to() {
        let folder = tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_atomic(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
        assert_eq!(names(folder.path()), ["pipe"]);
    }

    #[test]
    fn open_files_of_a_process_are_written_to() {
        use std::os::fd::AsRawFd;

        let folder = tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
        let before = inode(&path);
        let link = folder.path().join("link");
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link).unwrap();
        write_atomic(&link, b"open").unwrap();
        assert_eq!((inode(&path), fs::read(&path).unwrap()), (before, b"open".to_vec()));
        assert!(link.is_symlink());
    }

    #[test]
    fn errors_come_from_the_system() {
        let folder = tempdir().unwrap();
        let missing = write_atomic(&folder.path().join("none/file"), b"").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.raw_os_error().is_some(), "{missing:?}");
        assert!(write_atomic(folder.path(), b"").unwrap_err().raw_os_error().is_some());
        let long = write_atomic(&folder.path().join("x".repeat(300)), b"").unwrap_err();
        assert!(long.raw_os_error().is_some(), "{long:?}");
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
}
