//! The bill of materials: CycloneDX 1.5 in JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{NAME, Release};
use crate::metadata::Package;
use crate::notices::NATIVE;
use crate::vendor::pin;

/// Writes the components of a release and how they depend on each other.
pub fn json(root: &Path, release: &Release<'_>) -> Result<String> {
    let checksums = checksums(root)?;
    let linked = release.metadata.linked(&release.packages);
    let by_id: BTreeMap<&str, &Package> =
        linked.iter().map(|package| (package.id.as_str(), *package)).collect();
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for &package in &linked {
        let mut component = json!({
            "type": "library",
            "bom-ref": purl(package),
            "name": package.name,
            "version": package.version,
            "purl": purl(package),
        });
        if let Some(description) = &package.description {
            component["description"] = json!(description.trim());
        }
        if let Some(licence) = &package.license {
            // Older packages separate alternatives by a slash.
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(package.name.clone(), package.version.clone())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        components.push(component);
        let ids = release.metadata.dependencies(package);
        let on = ids.filter_map(|id| by_id.get(id)).map(|one| purl(one));
        let on: Vec<String> = if package.name == "xnnpack-sys" {
            on.chain(native(root)?.iter().map(|one| text(&one["purl"]))).collect()
        } else {
            on.collect()
        };
        dependencies.push(json!({ "ref": purl(package), "dependsOn": on }));
    }
    components.extend(native(root)?);
    let roots = linked.iter().filter(|one| release.packages.contains(&one.name.as_str()));
    let roots: Vec<String> = roots.map(|one| purl(one)).collect();
    dependencies.push(json!({ "ref": NAME, "dependsOn": roots }));
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": NAME,
                "name": NAME,
                "version": release.version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
            "properties": [{ "name": "target", "value": release.target }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn purl(package: &Package) -> String {
    // A `+` separates build metadata, which package URLs escape.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// XNNPACK and its dependencies, from the archives that `PIN` names.
fn native(root: &Path) -> Result<Vec<Value>> {
    let pin = fs::read_to_string(root.join("vendor/XNNPACK/PIN"))?;
    let archives = pin::parse(&pin)?;
    let components = NATIVE.iter().map(|one| {
        let archive = archives.iter().find(|archive| archive.folder == one.folder);
        let archive = archive.with_context(|| format!("PIN has no {}", one.folder))?;
        let purl = format!("pkg:deb/debian/{}@{}?arch=source", archive.package, archive.version);
        Ok(json!({
            "type": "library",
            "bom-ref": purl,
            "name": archive.package,
            "version": archive.version,
            "purl": purl,
            "licenses": [{ "license": { "id": one.licence } }],
            "hashes": [{ "alg": "SHA-256", "content": archive.sha256 }],
        }))
    });
    components.collect()
}

/// Checksums of crates by name and version, from `Cargo.lock`.
fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    let mut sums = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|line| line.strip_prefix(" = \"")?.strip_suffix('"')).map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            sums.insert((name, version), sum);
        }
    }
    Ok(sums)
}
