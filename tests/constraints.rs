//! Each place where the partitioner says no has a model just inside, which goes and agrees with the
//! reference kernels, and one just outside, which is left for exactly that reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod common;
mod rules;
mod runners;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rules::{Constraint, UNREACHABLE, constraints};
use runners::{Outcome, check, describe, rounding, run_reference};
use xnn_delegate::lower::{Decision, WhyNot, analyze};
use xnn_lower::{Unchecked, partition};
use xnn_model::Inferred;

/// Largest number of constraints without a reference: the interpreter runs some operators only
/// through the delegate, and takes the meaning of others from another subgraph.
const WITHOUT_REFERENCE: usize = 6;

#[test]
fn constraints_hold_on_both_sides() {
    let mut without_reference = 0;
    let mut failures = Vec::new();
    for constraint in &constraints() {
        let mut fail = |side: &str, error: &str, model: &rules::Model| {
            let Constraint { at, code, .. } = constraint;
            failures.push(format!("{at} {code}, {side}: {error}\n{}", describe(&model.graph)));
        };
        match inside(constraint) {
            Ok(Outcome::Agrees) => {}
            Ok(Outcome::Refused(_)) => without_reference += 1,
            Ok(Outcome::Left(code, why)) => {
                fail("inside", &format!("[{code}] {why}"), &constraint.inside);
            }
            Err(error) => fail("inside", &error, &constraint.inside),
        }
        if let Err(error) = outside(constraint) {
            fail("outside", &error, &constraint.outside);
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
    assert!(without_reference <= WITHOUT_REFERENCE, "{without_reference} have no reference");
}

fn inside(constraint: &Constraint) -> Result<Outcome, String> {
    let rules::Model { graph, inputs, options } = &constraint.inside;
    check(graph, inputs, options, run_reference(graph, inputs), rounding(graph, inputs))
}

fn outside(constraint: &Constraint) -> Result<(), String> {
    let rules::Model { graph, options, .. } = &constraint.outside;
    let inferred = match (analyze(graph.clone().into(), options), constraint.is_stated) {
        (Ok(inferred), false) => inferred,
        (Err(error), false) => return Err(error.to_string()),
        (Ok(inferred), true) if inferred.subgraph.tensors == graph.tensors => {
            return Err("shape inference has nothing against it".into());
        }
        (_, true) => Inferred { subgraph: graph.clone().into(), values: Vec::new() },
    };
    let (partitioning, _) = partition(&inferred, options, &mut Unchecked).unwrap();
    let left = partitioning.decisions.iter().find_map(|decision| match decision {
        Decision::NotDelegated(why) => Some(why),
        Decision::Delegated { .. } => None,
    });
    match left {
        Some(why) if why.code() == constraint.code && why.to_string().contains(constraint.says) => {
            Ok(())
        }
        Some(why) => Err(format!("[{}] {why}", why.code())),
        None => Err("goes".into()),
    }
}

#[test]
fn every_code_has_a_constraint() {
    let table = constraints();
    let reached: BTreeSet<&str> = table.iter().map(|it| it.code).collect();
    let known: BTreeSet<&str> = UNREACHABLE.iter().map(|(_, code, _)| *code).collect();
    let missing: Vec<_> =
        WhyNot::CODES.iter().filter(|it| !reached.contains(*it) && !known.contains(*it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The partitioner's sources are the list: where a function gives reasons with one code in several
/// places, there are as many constraints.
#[test]
fn every_reason_has_a_constraint() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/xnn-lower/src");
    let rules = fs::read_dir(root.join("rules")).unwrap();
    let mut files: Vec<_> = rules.map(|entry| entry.unwrap().path()).collect();
    files.extend(["view.rs", "partition/embedded_graphs.rs"].map(|file| root.join(file)));
    let mut given: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut read = |file: &Path, module: &str| {
        for reason in reasons(module, &fs::read_to_string(file).unwrap()) {
            *given.entry(reason).or_default() += 1;
        }
    };
    for file in files {
        let module = file.file_stem().unwrap().to_str().unwrap().to_owned();
        read(&file, &module);
    }
    read(&root.join("partition/mod.rs"), "partition");
    assert!(given.len() > 80, "{given:?}");
    let mut covered: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (at, code) in constraints()
        .iter()
        .map(|it| (it.at, it.code))
        .chain(UNREACHABLE.iter().map(|(at, code, _)| (*at, *code)))
    {
        *covered.entry((at.to_owned(), code.to_owned())).or_default() += 1;
    }
    let missing: Vec<_> = given
        .iter()
        .filter(|(reason, places)| covered.get(*reason).is_none_or(|rows| rows < *places))
        .collect();
    assert!(missing.is_empty(), "places without a constraint: {missing:?}");
    let stale: Vec<_> = covered.keys().filter(|reason| !given.contains_key(*reason)).collect();
    assert!(stale.is_empty(), "constraints of no place: {stale:?}");
}

/// Function and code of each reason that a source file gives.
fn reasons(module: &str, source: &str) -> Vec<(String, String)> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let mut function = String::new();
    let mut found = Vec::new();
    for line in source.lines() {
        if let Some((_, after)) = line.split_once("fn ")
            && !line.trim_start().starts_with("//")
        {
            let name = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_');
            function = name.collect();
        }
        for (_, after) in
            line.match_indices("WhyNot::").map(|(at, it)| line.split_at(at + it.len()))
        {
            let variant: String = after.chars().take_while(|c| c.is_alphanumeric()).collect();
            let is_given = after[variant.len()..].starts_with(" {");
            if is_given && !after.contains("{ .. }") {
                found.push((format!("{module}::{function}"), kebab(&variant)));
            }
        }
    }
    found
}

/// The code of a variant.
fn kebab(variant: &str) -> String {
    let mut code = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !code.is_empty() {
            code.push('-');
        }
        code.extend(c.to_lowercase());
    }
    code
}
