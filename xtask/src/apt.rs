//! Downloads Debian packages through apt, with a state of its own: the machine's apt is not changed, and no root is needed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

/// Names a Debian mirror in place of the machine's.
pub const MIRROR: &str = "XNNPACK_VENDOR_MIRROR";

/// apt with package lists in a folder.
pub struct Apt {
    /// The mirrors that the package lists come from.
    pub mirrors: Vec<String>,
    /// Options that confine apt to the folder.
    pub options: Vec<String>,
    /// Why the package lists could not be fetched, if they could not.
    pub lists: Result<(), String>,
}

impl Apt {
    /// Fetches package lists into `folder`: a `line` for each of the mirrors, with the mirror in place of `{}`.
    pub fn new(folder: &Path, lines: &[String]) -> Result<Self> {
        Self::with(folder, lines, Vec::new())
    }

    fn with(folder: &Path, lines: &[String], mut options: Vec<String>) -> Result<Self> {
        let mirrors = mirrors()?;
        for sub in ["lists/partial", "cache/archives/partial", "parts"] {
            fs::create_dir_all(folder.join(sub))?;
        }
        let sources: String = mirrors
            .iter()
            .flat_map(|mirror| lines.iter().map(|line| line.replace("{}", mirror) + "\n"))
            .collect();
        fs::write(folder.join("sources.list"), sources)?;
        fs::write(folder.join("status"), "")?;

        let at = |option: &str, path: &str| format!("-o{option}={}", folder.join(path).display());
        options.extend([
            at("Dir::Etc::SourceList", "sources.list"),
            at("Dir::Etc::SourceParts", "parts"),
            at("Dir::State", ""),
            at("Dir::State::Lists", "lists"),
            at("Dir::State::Status", "status"),
            at("Dir::Cache", "cache"),
            "-oAPT::Update::Error-Mode=any".to_owned(),
        ]);
        eprintln!("fetching package lists from {}", mirrors.join(", "));
        let lists = output(Command::new("apt-get").args(&options).arg("update"))
            .map(drop)
            .map_err(|error| format!("{error:#}"));
        Ok(Self { mirrors, options, lists })
    }

    /// [`Apt::new`] for packages of another architecture than the machine's.
    pub fn new_for(folder: &Path, lines: &[String], architecture: &str) -> Result<Self> {
        let own = ["Architecture", "Architectures"];
        Self::with(folder, lines, own.map(|name| format!("-oAPT::{name}={architecture}")).into())
    }

    /// The versions of a package that the lists have.
    pub fn versions(&self, package: &str) -> Result<Vec<String>> {
        if let Err(error) = &self.lists {
            bail!("{error}");
        }
        let rows =
            output(Command::new("apt-cache").args(&self.options).args(["madison", package]))?;
        Ok(madison(&rows))
    }

    /// Downloads packages, each `name`, `name:architecture` or `name=version`, into `folder`, and returns the files.
    pub fn download(&self, packages: &[String], folder: &Path) -> Result<Vec<PathBuf>> {
        if let Err(error) = &self.lists {
            bail!("{error}");
        }
        fs::create_dir_all(folder)?;
        // Without the sandbox's user, who cannot write to the folder.
        let mut command = Command::new("apt-get");
        command.args(&self.options).arg("-oAPT::Sandbox::User=root").arg("download");
        output(command.args(packages).current_dir(folder))?;
        let mut files: Vec<_> = fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .collect();
        files.sort();
        ensure!(
            files.len() == packages.len(),
            "apt-get downloaded {} of {} packages",
            files.len(),
            packages.len()
        );
        Ok(files)
    }
}

/// Unpacks packages in a folder.
pub fn extract(packages: &[PathBuf], folder: &Path) -> Result<()> {
    for file in packages {
        let unpack = Command::new("dpkg-deb").arg("--extract").arg(file).arg(folder).status();
        let status = unpack.context("cannot start dpkg-deb")?;
        ensure!(status.success(), "dpkg-deb: cannot unpack {}", file.display());
    }
    Ok(())
}

/// The versions in what `apt-cache madison` prints: lines of `package | version | source`.
fn madison(rows: &str) -> Vec<String> {
    rows.lines().filter_map(|row| Some(row.split('|').nth(1)?.trim().to_owned())).collect()
}

/// The Debian mirrors that the machine's own apt uses.
fn mirrors() -> Result<Vec<String>> {
    if let Ok(mirror) = env::var(MIRROR) {
        return Ok(vec![mirror]);
    }
    let paths = output(Command::new("apt-config").args([
        "shell",
        "LIST",
        "Dir::Etc::sourcelist/f",
        "PARTS",
        "Dir::Etc::sourceparts/d",
    ]))?;
    let path_of = |name: &str| {
        paths.lines().find_map(|line| {
            let value = line.strip_prefix(name)?.strip_prefix('=')?;
            Some(PathBuf::from(value.trim_matches('\'')))
        })
    };
    let mut files: Vec<PathBuf> = path_of("LIST").into_iter().collect();
    if let Some(parts) = path_of("PARTS")
        && let Ok(entries) = fs::read_dir(parts)
    {
        let mut parts: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        parts.sort();
        files.extend(parts);
    }
    let mut mirrors = Vec::new();
    for text in files.iter().flat_map(fs::read_to_string) {
        for uri in archive_uris(&text) {
            if !mirrors.contains(&uri) {
                mirrors.push(uri);
            }
        }
    }
    ensure!(
        !mirrors.is_empty(),
        "the machine's apt knows no Debian mirror; name one with {MIRROR}=<url>"
    );
    Ok(mirrors)
}

/// Addresses of Debian archives in a list of sources, in the one-line format
/// (`deb [...] <address> <suite> ...`) and in deb822's (`URIs: <address> ...`).
/// Debian's archive is called `debian` on every mirror.
fn archive_uris(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| {
            ["deb ", "deb-src ", "deb\t", "URIs:"]
                .iter()
                .any(|start| line.trim_start().starts_with(start))
        })
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_end_matches('/'))
        .filter(|word| word.contains(":/") && word.ends_with("/debian"))
        .map(str::to_owned)
        .collect()
}

/// Returns the output of the command; an error with apt's error lines if it fails.
pub fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output =
        command.env("LC_ALL", "C").output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = errors.lines().filter(|line| line.starts_with("E:")).collect();
        bail!("{name}: {}", errors.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_read_from_both_formats() {
        let text = "\
# deb http://commented.example/debian sid main
deb http://one.example/debian bookworm main
deb [signed-by=/usr/share/keyrings/k.gpg] https://two.example/mirror/debian/ bookworm main
deb http://security.example/debian-security bookworm-security main
Types: deb
URIs: http://three.example/debian https://other.example/apt
Signed-By: /usr/share/debian
";
        assert_eq!(
            archive_uris(text),
            [
                "http://one.example/debian",
                "https://two.example/mirror/debian",
                "http://three.example/debian",
            ]
        );
    }

    #[test]
    fn versions_are_the_second_column_of_madison() {
        let rows = "  \
  rust-src | 1.97.1+dfsg1-1 | http://one.example/debian sid/main amd64 Packages
  rust-src | 1.95.0+dfsg1-2~bpo13+1 | http://one.example/debian trixie-backports/main amd64 Packages
";
        assert_eq!(madison(rows), ["1.97.1+dfsg1-1", "1.95.0+dfsg1-2~bpo13+1"]);
        assert!(madison("").is_empty());
    }
}
