//! `cargo xtask features`: checks every crate with none of its features, with each of them alone, and with all.

use std::path::Path;

use anyhow::Result;

use crate::metadata::{self, Metadata};
use crate::test::cargo;
use crate::vendor;

/// Features that need tools beside a Rust toolchain and a C compiler: `(package, feature, tool)`.
const NEED_TOOLS: &[(&str, &str, &str)] = &[("xnnpack-sys", "bindgen", "libclang")];

/// Choices for `cargo xtask features`.
#[derive(clap::Args)]
pub struct Args {
    /// Check features that need further tools (libclang), too
    #[arg(long)]
    with_tools: bool,
}

/// Checks the published crates.
pub fn run(root: &Path, args: &Args) -> Result<()> {
    vendor::run(root, &vendor::Args::default())?;
    for package in Metadata::read(root, &metadata::host()?)?.published() {
        let name = package.name.as_str();
        let needs_tool = |feature: &str| {
            let tool = NEED_TOOLS.iter().find(|one| (one.0, one.1) == (name, feature));
            tool.filter(|_| !args.with_tools).map(|one| one.2)
        };
        let features = package.features.keys().map(String::as_str).filter(|one| *one != "default");
        let (skipped, features): (Vec<_>, Vec<_>) =
            features.partition(|feature| needs_tool(feature).is_some());
        for feature in skipped {
            let tool = needs_tool(feature).unwrap_or_default();
            println!("{name}: skipped {feature}, which needs {tool} (--with-tools)");
        }
        let all = features.join(",");
        let mut sets = vec![String::new()];
        sets.extend(features.iter().map(|feature| (*feature).to_owned()));
        if features.len() > 1 {
            sets.push(all);
        }
        for set in sets {
            println!("{name} [{set}]");
            let arguments =
                ["--quiet", "--package", name, "--no-default-features", "--features", &set];
            cargo(root, "check", &arguments.map(String::from))?;
        }
    }
    Ok(())
}
