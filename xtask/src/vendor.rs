//! Fills the slot `vendor/XNNPACK` with the archives that its `PIN` names.

mod apt;
pub mod pin;
mod unpack;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use apt::Apt;
use pin::Archive;

use crate::shared;

/// Folder with archives brought by hand.
const ARCHIVES: &str = "XNNPACK_VENDOR_ARCHIVES";
/// Folder with archives among the data beside the repository.
const SHARED: &str = "vendor-archives";

#[derive(clap::Args, Default)]
pub struct Args {
    /// Fill the slot anew even if it holds what PIN asks for
    #[arg(long)]
    force: bool,
}

/// Fills the slot, or does nothing where it holds what `PIN` asks for.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    let slot = root.join("vendor/XNNPACK");
    let pin_file = slot.join("PIN");
    let pin = fs::read_to_string(&pin_file)
        .with_context(|| format!("cannot read {}", pin_file.display()))?;
    let archives = pin::parse(&pin).with_context(|| pin_file.display().to_string())?;
    // A copy of the PIN that the slot was filled for; missing if the slot was filled by hand.
    let stamp = slot.join(".filled");
    let is_complete = archives.iter().all(|one| slot.join(one.folder).is_dir());
    let is_current =
        fs::read_to_string(&stamp).map_or(true, |filled| pin::has_same_content(&filled, &archives));
    if is_complete && is_current && !args.force {
        eprintln!("vendor/XNNPACK is up to date");
        return Ok(());
    }

    let work = tempfile::Builder::new().prefix(".vendor-").tempdir_in(&slot)?;
    let mut ways = Ways::new(root, &archives, work.path());
    let files = archives.iter().map(|archive| ways.obtain(archive)).collect::<Result<Vec<_>>>()?;
    for (archive, file) in archives.iter().zip(&files) {
        eprintln!("unpacking {}", archive.file_name());
        let fresh = work.path().join(archive.folder);
        unpack::archive(file, &archive.top_folder(), &fresh)
            .with_context(|| format!("cannot unpack {}", file.display()))?;
        replace(&slot.join(archive.folder), &fresh, work.path())?;
    }
    fs::write(&stamp, &pin)?;
    eprintln!("vendor/XNNPACK is filled");
    Ok(())
}

/// The ways to get an archive, in order: a folder that the environment names,
/// apt, a folder beside the checkout.
struct Ways<'a> {
    by_hand: Option<PathBuf>,
    apt: Apt<'a>,
    shared: PathBuf,
}

impl<'a> Ways<'a> {
    fn new(root: &Path, archives: &'a [Archive<'a>], work: &Path) -> Self {
        Self {
            by_hand: env::var_os(ARCHIVES).map(PathBuf::from),
            apt: Apt::new(archives, work.join("apt")),
            shared: shared::folder(root).join(SHARED),
        }
    }

    /// The archive's file, its SHA-256 checked.
    fn obtain(&mut self, archive: &Archive<'_>) -> Result<PathBuf> {
        let mut failures = Vec::new();
        if let Some(folder) = &self.by_hand {
            match in_folder(folder, archive) {
                Ok(file) => return Ok(file),
                Err(error) => failures.push(format!("{ARCHIVES}: {error:#}")),
            }
        }
        eprintln!("asking apt for {}", archive.file_name());
        match self.apt.download(archive, check) {
            Ok(file) => return Ok(file),
            Err(error) => failures.push(format!("apt: {error:#}")),
        }
        match in_folder(&self.shared, archive) {
            Ok(file) => return Ok(file),
            Err(error) => failures.push(format!("{}: {error:#}", self.shared.display())),
        }
        bail!(
            "cannot get {}\n  {}\n\
             other ways:\n  \
             - bring the archives that vendor/XNNPACK/PIN names by hand: {ARCHIVES}=<folder> cargo xtask vendor\n  \
             - name a Debian mirror: {}=<url> cargo xtask vendor\n  \
             - build from a checkout: XNNPACK_SOURCE_DIR=<folder> cargo build\n  \
             - link an installed library: XNNPACK_SYS_USE_SYSTEM=1 cargo build\n\
             vendor/XNNPACK/README.md tells more, and how to fill the slot from upstream's git",
            archive.file_name(),
            failures.join("\n  "),
            crate::apt::MIRROR,
        )
    }
}

fn in_folder(folder: &Path, archive: &Archive<'_>) -> Result<PathBuf> {
    let file = folder.join(archive.file_name());
    check(&file, archive)?;
    eprintln!("using {}", file.display());
    Ok(file)
}

fn check(file: &Path, archive: &Archive<'_>) -> Result<()> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    let digest = Sha256::digest(bytes);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    if digest != archive.sha256 {
        bail!("{} has SHA-256 {digest}, but PIN says {}", file.display(), archive.sha256);
    }
    Ok(())
}

/// Puts `fresh` in the place of `folder`; the old content goes to `work` first,
/// so that at no time is there a folder that is half old and half new.
fn replace(folder: &Path, fresh: &Path, work: &Path) -> Result<()> {
    if folder.exists() {
        let old = work.join("old");
        fs::rename(folder, &old)?;
        fs::rename(fresh, folder)?;
        fs::remove_dir_all(old)?;
    } else {
        fs::rename(fresh, folder)?;
    }
    Ok(())
}
