//! Every operator in every type that `docs/op-coverage.md` claims, in seeded random cases of one
//! operator, on three runners: the reference kernels, XNNPACK in process, and XNNPACK through a blob
//! that is written and read again. The last two agree bit for bit.
//!
//! XNNPACK may be from the reference kernels, in each element:
//! - with 8-bit results, one step ([`runners::STEPS`]);
//! - with fp32 results, 1e-5 of the output's range ([`runners::PART`]);
//! - with dynamic range, that and what quantizing activations to 8 bits can move a weighted sum: half
//!   a step of the input's range for each weight ([`cases::dynamic_bound`]). The reference then
//!   multiplies the real numbers that weights stand for.
//!
//! `XNN_OPERATOR_SEEDS` sets the number of cases for each operator and type.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod cases;
mod common;
mod random;
mod runners;
mod special;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use cases::dynamic_bound;
use common::{Element, numbers};
use random::{Case, Family, Generator, Scheme, families};
use runners::{Outcome, check, describe, in_real_numbers, rounding, run_reference};
use special::{Special, why_undefined};
use xnn_delegate::PartitionOptions;
use xnn_delegate::lower::Decision;
use xnn_lower::{Unchecked, partition};
use xnn_model::op::{FullyConnectedOptions, Op};
use xnn_model::{DType, Inferred};
use xnn_testing::{GraphBuilder, Random, le_bytes};

/// Cases of each operator and type in an ordinary run.
const SEEDS: u64 = 24;
/// Operators and reasons for which cases may be left, because draws do not avoid them.
const MAY_BE_LEFT: &[(&str, &str)] = &[("RESIZE_BILINEAR", "shape")];

/// Outcomes of an operator's cases in one type.
#[derive(Default)]
struct Tally {
    agree: usize,
    left: BTreeMap<&'static str, usize>,
    refused: usize,
    failures: Vec<String>,
}

impl Tally {
    fn of(family: &Family, scheme: Scheme, seeds: u64) -> Self {
        let mut tally = Self::default();
        for seed in 0..seeds {
            let case = Generator::case(family, scheme, seed);
            match run(&case, scheme) {
                Ok(Outcome::Agrees) => tally.agree += 1,
                Ok(Outcome::Left(code, _)) if MAY_BE_LEFT.contains(&(family.op, code)) => {
                    *tally.left.entry(code).or_default() += 1;
                }
                Ok(Outcome::Refused(_)) => tally.refused += 1,
                Ok(Outcome::Left(_, why)) => tally.fail(family, scheme, seed, &case, &why),
                Err(error) => tally.fail(family, scheme, seed, &case, &error),
            }
        }
        tally
    }

    fn fail(&mut self, family: &Family, scheme: Scheme, seed: u64, case: &Case, error: &str) {
        let (op, scheme, graph) = (family.op, scheme.name(), describe(&case.graph));
        self.failures.push(format!("{op} {scheme} {seed}: {error}\n{graph}"));
    }
}

/// Cases of each operator and type in this run.
fn seeds() -> u64 {
    env::var("XNN_OPERATOR_SEEDS").map_or(SEEDS, |n| n.parse().unwrap())
}

#[test]
fn operators_agree_on_all_runners() {
    let seeds = seeds();
    let pairs: Vec<(&Family, Scheme)> =
        families().flat_map(|family| family.schemes.iter().map(move |&it| (family, it))).collect();
    let next = AtomicUsize::new(0);
    let tallies = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(family, scheme)) = pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let tally = Tally::of(family, scheme, seeds);
                    tallies.lock().unwrap().insert((family.op, scheme.name()), tally);
                }
            });
        }
    });
    let tallies = tallies.into_inner().unwrap();
    let agree: usize = tallies.values().map(|tally| tally.agree).sum();
    for ((op, scheme), Tally { left, refused, .. }) in &tallies {
        if *refused > 0 || !left.is_empty() {
            println!("{op} {scheme}: {left:?} left, {refused} refused by the reference kernels");
        }
    }
    println!("{agree} cases of {} operators and types agree", pairs.len());
    let failures: Vec<&str> =
        tallies.values().flat_map(|tally| tally.failures.iter().map(String::as_str)).collect();
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
    let claimed = claimed();
    assert!(claimed.len() > 200, "docs/op-coverage.md has its table");
    let drawn =
        pairs.iter().map(|(family, scheme)| (family.op.to_owned(), scheme.name().to_owned()));
    let agreeing = |(op, scheme): &(String, String)| {
        tallies.get(&(op.as_str(), scheme.as_str())).map_or(0, |tally| tally.agree)
    };
    let all = claimed.into_iter().chain(drawn);
    // The reference kernels refuse some draws, which then show nothing.
    let few: Vec<_> = all.filter(|pair| 2 * agreeing(pair) < seeds as usize).collect();
    assert!(few.is_empty(), "fewer than half of {seeds} cases agree of {few:?}");
}

/// One case of each operator, type and kind of special values for this many ordinary ones. Operators with weights, which have
/// fused activations and most of the microkernels, get one for [`SEEDS_PER_SPECIAL_LAYER`].
const SEEDS_PER_SPECIAL: u64 = 8;
const SEEDS_PER_SPECIAL_LAYER: u64 = 2;

/// NaN and infinities are where the reference kernels have them, and the rest agrees as it does else.
#[test]
fn special_values_are_where_the_reference_kernels_have_them() {
    let (mut agree, mut failures) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for family in families() {
        for &scheme in family.schemes.iter().filter(|it| it.activations() == DType::F32) {
            for special in Special::ALL {
                // NEON of 32 bits takes denormals for 0: negative ones have no NaN as root.
                let is_flushed = cfg!(target_arch = "arm") && special == Special::Denormal;
                if is_flushed && family.op == "RSQRT" {
                    continue;
                }
                let part =
                    if family.has_weights() { SEEDS_PER_SPECIAL_LAYER } else { SEEDS_PER_SPECIAL };
                for seed in 0..seeds().div_ceil(part) {
                    let mut case = Generator::case_at_tiles(family, scheme, seed);
                    let is_planted = special.plant(&mut case, &mut Random::new(seed));
                    if !is_planted || why_undefined(&case).is_some() {
                        continue;
                    }
                    match run(&case, scheme) {
                        Ok(Outcome::Agrees) => *agree.entry(family.op).or_default() += 1,
                        Ok(Outcome::Left(code, _)) if MAY_BE_LEFT.contains(&(family.op, code)) => {}
                        Ok(Outcome::Refused(_)) => {}
                        Ok(Outcome::Left(_, error)) | Err(error) => {
                            let (op, scheme, kind) = (family.op, scheme.name(), special.name());
                            let graph = describe(&case.graph);
                            failures.push(format!("{op} {scheme} {kind} {seed}: {error}\n{graph}"));
                        }
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} cases failed:\n{}", failures.len(), failures.join("\n"));
    println!("{} cases agree", agree.values().sum::<usize>());
}

/// Special values in layers whose weights stay in fp16, which are layers with 16384 weights or
/// more.
#[test]
fn special_values_go_through_half_weights() {
    const WEIGHTS: usize = 16384;
    for (seed, &width) in random::WIDTHS.iter().enumerate() {
        for rows in [1, 9] {
            for special in Special::ALL {
                let mut random = Random::new(seed as u64);
                let mut graph = GraphBuilder::new("main");
                let depth = WEIGHTS / width + 1;
                let x = graph.input("x", DType::F32, &[rows, depth]);
                let weights = random.tensor(DType::F16, width * depth);
                let halves = graph.constant("w", DType::F16, &[width, depth], weights);
                let w = graph.tensor("w", DType::F32, &[width, depth]);
                let y = graph.tensor("y", DType::F32, &[rows, width]);
                graph.op(Op::Dequantize, &[halves], &[w]);
                let options = FullyConnectedOptions::default();
                graph.op(Op::FullyConnected(options), &[x, w], &[y]).output(y);
                let elements = random.f32s(rows * depth, -1.0, 1.0);
                let elements = le_bytes(&elements, |value| value.to_le_bytes());
                let mut case = Case { graph: graph.build(), inputs: [(x, elements)].into() };
                assert!(special.plant(&mut case, &mut random));
                if why_undefined(&case).is_none() {
                    let outcome = run(&case, Scheme::Fp32);
                    let kind = special.name();
                    assert!(
                        matches!(outcome, Ok(Outcome::Agrees)),
                        "{width} {rows} {kind}: {outcome:?}"
                    );
                }
            }
        }
    }
}

fn run(case: &Case, scheme: Scheme) -> Result<Outcome, String> {
    let Case { graph, inputs: values } = case;
    let (reference, slack) = if scheme.is_dynamic() {
        let (real, reals) = in_real_numbers(graph, values);
        let activations = numbers(Element::F32, &reals[&graph.inputs[0]]);
        (run_reference(&real, &reals), dynamic_bound(graph, &activations) as f32)
    } else {
        (run_reference(graph, values), rounding(graph, values))
    };
    check(graph, values, &PartitionOptions::default(), reference, slack)
}

/// The operators and types that the table in `docs/op-coverage.md` says yes to.
fn claimed() -> BTreeSet<(String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/op-coverage.md");
    let text = fs::read_to_string(file).unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows = text.lines().filter(|line| line.starts_with('|')).map(cells);
    let header = rows.next().unwrap();
    let mut claimed = BTreeSet::new();
    for row in rows {
        for (column, cell) in header.iter().zip(&row) {
            if cell == "yes" && !column.starts_with("TFLite") {
                claimed.insert((row[0].clone(), column.clone()));
            }
        }
    }
    claimed
}

/// Operators that have a rule, but no cases here: more than one operator is needed, or attributes of
/// a format of their own. Beside them stands the test that they have.
const ELSEWHERE: &[(&str, &str)] = &[("STABLEHLO_COMPOSITE", "tests/attention.rs")];

#[test]
fn every_rule_has_cases() {
    let (with_rule, without): (Vec<Op>, Vec<Op>) =
        (-64..512).filter_map(Op::from_code).partition(has_rule);
    assert!(with_rule.len() > 85 && without.len() > 50, "{with_rule:?} have rules");
    let mut drawn: BTreeSet<&str> = families().map(|family| family.op).collect();
    drawn.extend(ELSEWHERE.iter().map(|(op, _)| *op));
    let missing: Vec<&Op> = with_rule.iter().filter(|op| !drawn.contains(op.name())).collect();
    assert!(missing.is_empty(), "no cases: {missing:?}");
}

/// Whether the partitioner looks at the operator: without inputs and outputs it finds fault with
/// those, not with the operator.
fn has_rule(op: &Op) -> bool {
    let mut graph = GraphBuilder::new("main");
    graph.op(op.clone(), &[], &[]);
    let inferred = Inferred { subgraph: graph.build().into(), values: Vec::new() };
    let (partitioning, _) =
        partition(&inferred, &PartitionOptions::default(), &mut Unchecked).unwrap();
    match &partitioning.decisions[0] {
        Decision::NotDelegated(why) => why.code() != "unsupported-operator",
        Decision::Delegated { .. } => true,
    }
}
