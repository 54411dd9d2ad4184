//! Files that are there whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;

/// As many links as systems follow.
const MAX_LINKS: usize = 40;

/// Writes `bytes` to `path`: to a file without a name, or with a temporary one, that then takes the
/// place. Whoever reads the file meanwhile, or after a crash, finds the old one or the new one.
///
/// Links stay, and what they lead to is written; a file that is there keeps its mode and, where
/// that is allowed, its owner. Devices, pipes and what a process has open (`/dev/stdout`) are
/// written as they are.
///
/// # Errors
/// The folder does not exist or cannot be written to, the path is a folder's, or the disk is full:
/// what the system says.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow(path);
    match fs::metadata(path) {
        Ok(old) if old.is_file() && !is_of_process(&target) => replace(&target, Some(&old), bytes),
        Ok(_) => OpenOptions::new().write(true).truncate(true).open(path)?.write_all(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => replace(&target, None, bytes),
        Err(error) => Err(error),
    }
}

/// Where the links at `path` lead, whether or not there is a file.
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

/// Whether a path is the kernel's for what a process has open: such links do not say where they lead.
fn is_of_process(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev/fd")
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Puts a new file in the place of the `old` one.
fn replace(target: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let folder = folder(target);
    let mut names = Builder::new();
    names.prefix(".xnn-").suffix(".tmp");
    // A file that needs no name until it is whole leaves none behind if writing is cut short.
    if let Some(mut file) = nameless::create(folder) {
        fill(&mut file, old, bytes)?;
        let named = names.make_in(folder, |name| nameless::give_name(&file, name));
        if named.is_ok_and(|named| named.persist(target).is_ok()) {
            return Ok(());
        }
    }
    let mut code = None;
    let create = |name: &Path| {
        let file = OpenOptions::new().write(true).create_new(true).open(name);
        file.inspect_err(|error| code = error.raw_os_error())
    };
    // The system's error, without the temporary name that is put around it.
    let named = names.make_in(folder, create);
    let mut named = named.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))?;
    fill(named.as_file_mut(), old, bytes)?;
    named.persist(target)?;
    Ok(())
}

fn fill(file: &mut File, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if let Some(old) = old {
        take_after(file, old)?;
    }
    file.write_all(bytes)?;
    file.sync_data()
}

/// Gives `file` the owner and the mode of the `old` one.
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Allowed to few; before the mode, from which it takes bits.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    /// A file that vanishes unless it gets a name; `None` where the file system has none such.
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
mod nameless {
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

    /// Names in a folder.
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
        // Whatever the umask, it is that of any file.
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
    fn links_stay_and_lead_to_the_new_content() {
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
    fn files_have_no_name_until_they_are_whole() {
        let folder = tempdir().unwrap();
        let Some(mut file) = nameless::create(folder.path()) else {
            assert!(std::env::var_os("CI").is_none(), "no files without a name here");
            return;
        };
        file.write_all(b"whole").unwrap();
        assert_eq!(names(folder.path()), Vec::<String>::new());
        let path = folder.path().join("file");
        nameless::give_name(&file, &path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        // A name that is taken is not taken away.
        let again = nameless::give_name(&file, &path).unwrap_err();
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
    fn what_a_process_has_open_is_written_to() {
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
    fn errors_are_the_systems() {
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
