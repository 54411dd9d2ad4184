//! Unpacks a source archive.

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};
use liblzma::read::XzDecoder;
use tar::EntryType;

/// Unpacks the `.tar.xz` at `file` into the new folder `to`, without the top folder `top`
/// if the archive has it.
pub fn archive(file: &Path, top: &str, to: &Path) -> Result<()> {
    let file = BufReader::new(File::open(file)?);
    entries(XzDecoder::new(file), top, to)
}

fn entries(tar: impl Read, top: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut tar = tar::Archive::new(tar);
    // New files are newer than what was built from the old ones.
    tar.set_preserve_mtime(false);
    for entry in tar.entries()? {
        let mut entry = entry?;
        let path = inside(&entry.path()?, top)?;
        let path = to.join(path);
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(path)?,
            EntryType::Regular => {
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                entry.unpack(&path).with_context(|| path.display().to_string())?;
            }
            // Nothing that a build needs is a link, and a link can lead out of the folder.
            _ => {}
        }
    }
    Ok(())
}

/// `path` without the top folder; an error if it leads out of the folder.
fn inside(path: &Path, top: &str) -> Result<PathBuf> {
    let path = path.strip_prefix(top).unwrap_or(path);
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            _ => bail!("{} leads out of the archive", path.display()),
        }
    }
    Ok(inside)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use tar::{Builder, Header};

    use super::*;

    /// An archive with one entry; the name goes in raw, as an attacker would write it.
    fn tar(name: &str, kind: EntryType, data: &[u8]) -> Vec<u8> {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        if kind == EntryType::Symlink {
            header.set_link_name("/etc").unwrap();
        }
        header.set_cksum();
        let mut builder = Builder::new(Vec::new());
        builder.append(&header, data).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn the_top_folder_is_dropped_only_where_it_is() {
        for name in ["pkg-1/src/a.c", "src/a.c", "./src/a.c"] {
            let folder = tempfile::tempdir().unwrap();
            let tar = tar(name, EntryType::Regular, b"int a;");
            entries(tar.as_slice(), "pkg-1", folder.path()).unwrap();
            assert_eq!(fs::read(folder.path().join("src/a.c")).unwrap(), b"int a;");
        }
    }

    #[test]
    fn paths_out_of_the_folder_are_refused() {
        for name in ["../a", "pkg-1/../../a", "/a", "src/../../a"] {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("to");
            let tar = tar(name, EntryType::Regular, b"x");
            let error = entries(tar.as_slice(), "pkg-1", &to).unwrap_err();
            assert!(error.to_string().contains("leads out"), "{name}: {error}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn links_are_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let tar = tar("link", EntryType::Symlink, b"");
        entries(tar.as_slice(), "pkg-1", folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_truncated_archive_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let tar = tar("a", EntryType::Regular, &[7; 700]);
        assert!(entries(&tar[..800], "pkg-1", folder.path()).is_err());
    }
}
