//! Tests of each pass: its changes, and that the graph computes the same results.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod fold_width_into_channels;
mod fused;
mod layout;
mod net;
mod patterns;
mod tables;

use net::{EXACT, Net, check};
use xnn_format::UnaryOp;
use xnn_lower::optimize::{Options, PASSES, optimize};

#[test]
fn nodes_that_nothing_reads_are_removed() {
    let mut net = Net::new();
    let x = net.input_f32(&[2, 3]);
    let dead = net.unary(UnaryOp::Exp, x);
    net.unary(UnaryOp::Square, dead);
    let y = net.unary(UnaryOp::Abs, x);
    let y = net.unary(UnaryOp::Negate, y);
    net.output(y);
    let optimized = check(net, "dead-nodes", 2, EXACT);
    assert_eq!((optimized.nodes.len(), optimized.values.len()), (2, 3));
}

#[test]
fn all_passes_can_be_disabled() {
    let graph = || {
        let mut net = Net::new();
        let x = net.input_f32(&[4]);
        net.unary(UnaryOp::Abs, x);
        let y = net.unary(UnaryOp::Negate, x);
        net.output(y);
        net.graph
    };
    let mut off = Options::default();
    off.off = true;
    let mut none = Options::default();
    none.disable = PASSES.iter().map(|pass| pass.name.to_owned()).collect();
    let (optimized, report) = optimize(graph(), &off);
    assert_eq!((optimized, report.nodes_before, report.nodes_after), (graph(), 2, 2));
    let (optimized, report) = optimize(graph(), &none);
    assert_eq!((optimized.nodes, report.changes.len()), (graph().nodes, 0));
}

#[test]
fn the_report_is_one_line() {
    let mut net = Net::new();
    let x = net.input_f32(&[4]);
    net.unary(UnaryOp::Abs, x);
    let y = net.unary(UnaryOp::Negate, x);
    net.output(y);
    let (graph, report) = optimize(net.graph, &Options::default());
    assert_eq!(report.to_string(), "1 XNNPACK nodes instead of 2: dead-nodes 1");
    let (_, report) = optimize(graph, &Options::default());
    assert_eq!(report.to_string(), "1 XNNPACK nodes");
}

/// A node whose result is an output of the graph is kept.
#[test]
fn external_outputs_stay() {
    let mut net = Net::new();
    let x = net.input_f32(&[4]);
    let y = net.unary(UnaryOp::Abs, x);
    net.unary(UnaryOp::Exp, y);
    net.output(y);
    let optimized = check(net, "dead-nodes", 1, EXACT);
    assert_eq!(optimized.nodes.len(), 1);
}
