//! The Debian package: the files of the archive below `/usr`.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::archive::sorted_files;
use super::{NAME, Release};

/// Debian's names of platforms that releases are built for.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64-unknown-linux-gnu", "amd64"), ("aarch64-unknown-linux-gnu", "arm64")];

/// Has the cache of the dynamic linker refreshed when libraries come and go.
const TRIGGERS: &str = "activate-noawait ldconfig\n";

/// Writes the package to `out`; `None`, with a message, if the platform or this machine has no use for it.
pub fn write(stage: &Path, out: &Path, release: &Release<'_>) -> Result<Option<PathBuf>> {
    let Some((_, architecture)) = ARCHITECTURES.iter().find(|one| one.0 == release.target) else {
        return Ok(None);
    };
    match Command::new("dpkg-deb").arg("--version").stdout(Stdio::null()).status() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("no Debian package: dpkg-deb is not installed");
            return Ok(None);
        }
        result => drop(result.context("cannot start dpkg-deb")?),
    }
    let folder = tempfile::tempdir_in(out)?;
    let usr = folder.path().join("usr");
    let mut size = 0;
    let mut glibc = (2, 0);
    for file in sorted_files(stage)? {
        let inside = file.strip_prefix(stage)?;
        let to = usr.join(inside);
        fs::create_dir_all(to.parent().unwrap_or(&usr))?;
        if file.is_symlink() {
            symlink(fs::read_link(&file)?, &to)?;
            continue;
        }
        if inside.starts_with("share/man") {
            let to = File::create(to.with_added_extension("gz"))?;
            let mut encoder = GzEncoder::new(to, Compression::best());
            io::copy(&mut File::open(&file)?, &mut encoder)?;
            encoder.finish()?;
        } else {
            fs::copy(&file, &to)?;
        }
        size += file.metadata()?.len();
        if inside.starts_with("bin") || inside.starts_with("lib") {
            glibc = glibc.max(newest_glibc(&fs::read(&file)?));
        }
    }
    let documents = usr.join("share/doc").join(NAME);
    fs::write(documents.join("copyright"), copyright(&documents)?)?;

    let control = folder.path().join("DEBIAN");
    fs::create_dir(&control)?;
    fs::write(control.join("triggers"), TRIGGERS)?;
    let (major, minor) = glibc;
    println!("          needs glibc {major}.{minor} or later");
    // The variables are those of Debian's own tools.
    let person = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let maintainer = person("DEBFULLNAME", "xnn-delegate developers");
    let address = person("DEBEMAIL", "unknown@localhost");
    let version = release.version;
    fs::write(
        control.join("control"),
        format!(
            "Package: {NAME}
Version: {version}-1
Architecture: {architecture}
Maintainer: {maintainer} <{address}>
Installed-Size: {}
Depends: libc6 (>= {major}.{minor}), libgcc-s1
Section: science
Priority: optional
Description: runs TFLite and Circle models with XNNPACK
 The program xnn runs, converts, explains and measures models. The library
 libxnn_delegate.so is a delegate for stock TFLite and LiteRT interpreters.
",
            size.div_ceil(1024)
        ),
    )?;
    let file = out.join(format!("{NAME}_{version}-1_{architecture}.deb"));
    let status = Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group", "-Zxz"])
        .args([folder.path(), &file])
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "dpkg-deb failed ({status})");
    Ok(Some(file))
}

/// Licences of this project and of third-party code in one text.
fn copyright(documents: &Path) -> Result<String> {
    let read = |name: &str| {
        let file = documents.join(name);
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    };
    Ok(format!(
        "xnn-delegate is licensed under MIT or Apache-2.0, at your choice.\n\n{}\n{}\n{}",
        read("LICENSE-MIT")?,
        read("LICENSE-APACHE")?,
        read("THIRD-PARTY-LICENSES.txt")?
    ))
}

/// The newest version of glibc whose symbols a program or library names: version names are plain text in it.
pub fn newest_glibc(file: &[u8]) -> (u32, u32) {
    let mut newest = (2, 0);
    for place in after_each(file, b"GLIBC_2.") {
        let digits = file.iter().skip(place).take_while(|byte| byte.is_ascii_digit());
        let add = |minor: u32, digit: &u8| {
            10_u32.saturating_mul(minor).saturating_add(u32::from(digit - b'0'))
        };
        let minor = digits.fold(0, add);
        newest = newest.max((2, minor));
    }
    newest
}

/// Places behind each occurrence of `pattern`.
fn after_each<'a>(file: &'a [u8], pattern: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = file.windows(pattern.len()).enumerate();
    windows.filter(move |(_, window)| *window == pattern).map(move |(at, _)| at + pattern.len())
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn newest_of_several_versions() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0"), (2, 34));
        assert_eq!(newest_glibc(b"static"), (2, 0));
    }
}
