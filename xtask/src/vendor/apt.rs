//! Gets source archives through apt, with a state of its own: nothing of the
//! machine's apt is changed, and no root is needed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use super::pin::Archive;

/// Names a Debian mirror in place of the machine's.
pub const MIRROR: &str = "XNNPACK_VENDOR_MIRROR";

const HELPER: &str = "/usr/lib/apt/apt-helper";

/// apt with the package lists of the pinned suites.
pub struct Apt<'a> {
    archives: &'a [Archive<'a>],
    folder: PathBuf,
    /// Set up at the first question.
    state: Option<Result<State, String>>,
}

struct State {
    mirrors: Vec<String>,
    /// Options that keep apt to the folder.
    options: Vec<String>,
    /// Why the package lists could not be had, if they could not.
    lists: Result<(), String>,
}

impl<'a> Apt<'a> {
    /// `folder` is for apt's state and for what it downloads; `archives` says
    /// which suites' package lists are needed.
    pub fn new(archives: &'a [Archive<'a>], folder: PathBuf) -> Self {
        Self { archives, folder, state: None }
    }

    /// Downloads the archive and returns its file after `check` accepted it.
    pub fn download(
        &mut self,
        archive: &Archive<'_>,
        check: impl Fn(&Path, &Archive<'_>) -> Result<()>,
    ) -> Result<PathBuf> {
        let state = self.state.get_or_insert_with(|| {
            set_up(self.archives, &self.folder).map_err(|error| format!("{error:#}"))
        });
        let state = state.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let (addresses, mut failures) = state.addresses(archive);
        let file = self.folder.join(archive.file_name());
        for address in addresses {
            // Only the `.orig` archive counts. `apt-get source` would want the
            // `.dsc` as well, which mirrors do not always have.
            let result = output(
                Command::new(HELPER)
                    .arg("download-file")
                    .arg(&address)
                    .arg(&file)
                    .arg(format!("SHA256:{}", archive.sha256)),
            )
            .and_then(|_| check(&file, archive));
            match result {
                Ok(()) => return Ok(file),
                Err(error) => failures.push(format!("{address}: {error:#}")),
            }
        }
        bail!("{}", failures.join("; "))
    }
}

impl State {
    /// Where the archive may be: what the package lists say; then, for a version
    /// that its suite does not have any more, its place in each mirror's pool.
    /// And why the package lists did not help, where they did not.
    fn addresses(&self, archive: &Archive<'_>) -> (Vec<String>, Vec<String>) {
        let (mut addresses, mut failures) = (Vec::new(), Vec::new());
        match self.listed(archive) {
            Ok(address) => addresses.push(address),
            Err(error) => failures.push(format!("{error:#}")),
        }
        addresses.extend(self.mirrors.iter().map(|mirror| pool(mirror, archive)));
        (addresses, failures)
    }

    fn listed(&self, archive: &Archive<'_>) -> Result<String> {
        if let Err(error) = &self.lists {
            bail!("{error}");
        }
        let package = format!("{}/{}", archive.package, archive.suite);
        let uris = output(
            Command::new("apt-get")
                .args(&self.options)
                .args(["--print-uris", "source"])
                .arg(&package),
        )?;
        uri_of(&uris, &archive.file_name())
            .with_context(|| format!("{package} has another version than the pinned one"))
    }
}

fn set_up(archives: &[Archive<'_>], folder: &Path) -> Result<State> {
    let mirrors = mirrors()?;
    for sub in ["lists/partial", "cache/archives/partial", "parts"] {
        fs::create_dir_all(folder.join(sub))?;
    }
    let suites: BTreeSet<&str> = archives.iter().map(|one| one.suite).collect();
    // A machine's keys may be older than the suite. The lists need not be trusted:
    // they only say where a file is whose SHA-256 is pinned.
    let sources: String = mirrors
        .iter()
        .flat_map(|mirror| {
            suites.iter().map(move |suite| format!("deb-src [trusted=yes] {mirror} {suite} main\n"))
        })
        .collect();
    fs::write(folder.join("sources.list"), sources)?;
    fs::write(folder.join("status"), "")?;

    let at = |option: &str, path: &str| format!("-o{option}={}", folder.join(path).display());
    let options = vec![
        at("Dir::Etc::SourceList", "sources.list"),
        at("Dir::Etc::SourceParts", "parts"),
        at("Dir::State", ""),
        at("Dir::State::Lists", "lists"),
        at("Dir::State::Status", "status"),
        at("Dir::Cache", "cache"),
        "-oAPT::Update::Error-Mode=any".to_owned(),
    ];
    eprintln!("fetching package lists from {}", mirrors.join(", "));
    let lists = output(Command::new("apt-get").args(&options).arg("update"))
        .map(drop)
        .map_err(|error| format!("{error:#}"));
    Ok(State { mirrors, options, lists })
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

/// The address of `file` in what `apt-get --print-uris` prints: lines of
/// `'<address>' <file> <size> <hash>`.
fn uri_of(uris: &str, file: &str) -> Option<String> {
    uris.lines().find_map(|line| {
        let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
        (rest.split_whitespace().next() == Some(file)).then(|| uri.to_owned())
    })
}

/// The archive's place on a mirror, by Debian's rule for its pool.
fn pool(mirror: &str, archive: &Archive<'_>) -> String {
    let package = archive.package;
    let letters = if package.starts_with("lib") { 4 } else { 1 };
    let prefix: String = package.chars().take(letters).collect();
    format!("{mirror}/pool/main/{prefix}/{package}/{}", archive.file_name())
}

/// What the command prints; an error with the last line of its complaint if it fails.
fn output(command: &mut Command) -> Result<String> {
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
    fn the_orig_archive_is_found_among_the_uris() {
        let uris = "\
Reading package lists...
'http://one.example/a_1-1.dsc' a_1-1.dsc 2264 SHA256:7c
'http://one.example/a_1%7e2.orig.tar.xz' a_1~2.orig.tar.xz 17 SHA256:55
";
        assert_eq!(
            uri_of(uris, "a_1~2.orig.tar.xz").as_deref(),
            Some("http://one.example/a_1%7e2.orig.tar.xz")
        );
        assert_eq!(uri_of(uris, "a_1~3.orig.tar.xz"), None);
    }

    #[test]
    fn the_pool_has_a_folder_for_each_first_letter_and_each_library() {
        let archive =
            |package| Archive { folder: "a", package, suite: "sid", version: "1", sha256: "" };
        assert_eq!(pool("m:/d", &archive("fp16")), "m:/d/pool/main/f/fp16/fp16_1.orig.tar.xz");
        assert_eq!(
            pool("m:/d", &archive("libfp16")),
            "m:/d/pool/main/libf/libfp16/libfp16_1.orig.tar.xz"
        );
    }
}
