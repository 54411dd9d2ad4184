//! The packages of the workspace and their dependencies, as `cargo metadata` reports them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// Output of `cargo metadata`.
#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
    workspace_members: BTreeSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
pub struct Package {
    pub id: String,
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    pub description: Option<String>,
    pub authors: Vec<String>,
    pub manifest_path: PathBuf,
    pub features: BTreeMap<String, Vec<String>>,
    /// Registries that the package may be published to; `None` for all, empty for none.
    publish: Option<Vec<String>>,
    /// `None` for packages of the workspace.
    pub source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `None` for ordinary dependencies, otherwise `dev` or `build`.
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo. Dependencies are those on the platform `target`.
    pub fn read(root: &Path, target: &str) -> Result<Self> {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--filter-platform", target])
            .current_dir(root)
            .output()
            .context("cannot start cargo metadata")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cargo metadata failed: {}", errors.trim());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Packages of the workspace that are meant for a registry.
    pub fn published(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| {
            self.workspace_members.contains(&package.id)
                && package.publish.as_ref().is_none_or(|registries| !registries.is_empty())
        })
    }

    /// Packages that are compiled into `names`, which are packages of the workspace, including these.
    pub fn linked(&self, names: &[&str]) -> Vec<&Package> {
        let by_id: BTreeMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let is_root = |package: &&Package| {
            self.workspace_members.contains(&package.id) && names.contains(&package.name.as_str())
        };
        let roots = self.packages.iter().filter(is_root).map(|package| package.id.as_str());
        let mut waiting: Vec<&str> = roots.collect();
        let mut found = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if found.insert(id) {
                waiting.extend(by_id.get(id).into_iter().flat_map(|node| node.linked()));
            }
        }
        self.packages.iter().filter(|package| found.contains(package.id.as_str())).collect()
    }

    /// Identifiers of the packages that `package` is compiled with.
    pub fn dependencies(&self, package: &Package) -> impl Iterator<Item = &str> {
        self.resolve.nodes.iter().filter(|node| node.id == package.id).flat_map(Node::linked)
    }
}

impl Node {
    fn linked(&self) -> impl Iterator<Item = &str> {
        let ordinary = |one: &&Dependency| one.dep_kinds.iter().any(|kind| kind.kind.is_none());
        self.deps.iter().filter(ordinary).map(|one| one.pkg.as_str())
    }
}

impl Package {
    /// Folder of the package.
    pub fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// Name of the file that cargo packs it into.
    pub fn file_name(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }
}

/// The platform of this machine, such as `x86_64-unknown-linux-gnu`.
pub fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}
