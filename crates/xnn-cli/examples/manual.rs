//! Writes man pages and completions for bash, zsh and fish: `cargo run -p xnn-cli --example manual -- FOLDER`
//!
//! Paths in the folder are those below `/usr`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::Shell;

/// Folder and file name of a shell's completions.
const COMPLETIONS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions", "xnn"),
    (Shell::Fish, "share/fish/vendor_completions.d", "xnn.fish"),
    (Shell::Zsh, "share/zsh/site-functions", "_xnn"),
];

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: manual FOLDER")?;
    let folder = PathBuf::from(folder);
    for (shell, part, name) in COMPLETIONS {
        let part = folder.join(part);
        fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
        let mut file = fs::File::create(part.join(name))?;
        clap_complete::generate(shell, &mut xnn_cli::command(), "xnn", &mut file);
    }
    let pages = folder.join("share/man/man1");
    fs::create_dir_all(&pages).with_context(|| pages.display().to_string())?;
    // Each command has a page; `xnn help` does not need one.
    clap_mangen::generate_to(xnn_cli::command().disable_help_subcommand(true), &pages)?;
    Ok(())
}
