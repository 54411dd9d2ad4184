//! The composite `odml.scaled_dot_product_attention` against its definition in double precision.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use xnn_delegate::lower::Delegation;
use xnn_delegate::runtime::Session;
use xnn_delegate::{PartitionOptions, SessionOptions};
use xnn_model::DType;
use xnn_model::op::{CompositeOptions, Op};
use xnn_testing::{GraphBuilder, Random};

/// `{"logit_cap": 2.0, "scale": 0.5}` as a FlexBuffer.
const CAPPED: &[u8] =
    b"logit_cap\0scale\0\x02\x11\x08\0\x03\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\x40\0\0\0\x3f\x0e\x0e\x0a\x26\x01";
/// `{"scale": 0.5}`.
const PLAIN: &[u8] = b"scale\0\x01\x07\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x3f\x0e\x05\x26\x01";
const SCALE: f64 = 0.5;

struct Case {
    batch: usize,
    tokens: usize,
    keys: usize,
    heads: usize,
    key_heads: usize,
    channels: usize,
    /// Batch of the mask, if there is one.
    masks: Option<usize>,
    cap: Option<f64>,
}

impl Case {
    fn graph(&self) -> xnn_model::Subgraph {
        let mut g = GraphBuilder::new("main");
        let &Case { batch, tokens, keys, heads, key_heads, channels, .. } = self;
        let query = g.input("query", DType::F32, &[batch, tokens, heads, channels]);
        let [key, value] = ["key", "value"]
            .map(|name| g.input(name, DType::F32, &[batch, keys, key_heads, channels]));
        let mut inputs = vec![query, key, value];
        if let Some(masks) = self.masks {
            inputs.push(g.input("mask", DType::F32, &[masks, 1, tokens, keys]));
        }
        let output = g.tensor("output", DType::F32, &[batch, tokens, heads, channels]);
        let options = CompositeOptions {
            name: "odml.scaled_dot_product_attention".into(),
            attributes: if self.cap.is_some() { CAPPED } else { PLAIN }.into(),
            ..CompositeOptions::default()
        };
        g.op(Op::StablehloComposite(options), &inputs, &[output]).output(output);
        g.build()
    }

    fn expected(&self, inputs: &[Vec<f32>]) -> Vec<f64> {
        let &Case { batch, tokens, keys, heads, key_heads, channels, .. } = self;
        let at = |i: usize, place: usize| f64::from(inputs[i][place]);
        let mut result = Vec::new();
        for (n, t, h) in places(batch, tokens, heads) {
            let shared = h / (heads / key_heads);
            let key = |s: usize, c: usize| ((n * keys + s) * key_heads + shared) * channels + c;
            let logits: Vec<f64> = (0..keys)
                .map(|s| {
                    let query = |c: usize| at(0, ((n * tokens + t) * heads + h) * channels + c);
                    let dot: f64 = (0..channels).map(|c| query(c) * at(1, key(s, c))).sum();
                    let logit = dot * SCALE;
                    let capped = self.cap.map_or(logit, |cap| (logit / cap).tanh() * cap);
                    let mask = |masks| at(3, (n.min(masks - 1) * tokens + t) * keys + s);
                    capped + self.masks.map_or(0.0, mask)
                })
                .collect();
            let weights: Vec<f64> = logits.iter().map(|logit| logit.exp()).collect();
            let sum: f64 = weights.iter().sum();
            result.extend((0..channels).map(|c| {
                let weighted = weights.iter().enumerate().map(|(s, w)| w * at(2, key(s, c)));
                weighted.sum::<f64>() / sum
            }));
        }
        result
    }

    /// Runs whole, agrees, and is made of these nodes beside others.
    fn check(&self, kind: &str) {
        let graph = self.graph();
        let delegation = Delegation::new(&graph.into(), &PartitionOptions::default()).unwrap();
        let program = delegation.whole().unwrap();
        let nodes = &delegation.partitioning().partitions[0].graph.nodes;
        assert!(nodes.iter().any(|node| node.op.kind() == kind), "no {kind}");
        let mut session = Session::new(program, &SessionOptions::default()).unwrap();
        let mut random = Random::new(7);
        let mut inputs = Vec::new();
        for index in 0..session.inputs().len() {
            let input = session.input_as_mut::<f32>(index).unwrap();
            let values = random.f32s(input.len(), -2.0, 2.0);
            input.copy_from_slice(&values);
            inputs.push(values);
        }
        session.run().unwrap();
        let output: &[f32] = session.output_as(0).unwrap();
        let expected = self.expected(&inputs);
        assert_eq!(output.len(), expected.len());
        for (at, (ours, exact)) in output.iter().zip(&expected).enumerate() {
            let apart = (f64::from(*ours) - exact).abs();
            assert!(apart <= 1e-5, "element {at} is {ours}, not {exact}");
        }
    }
}

fn places(a: usize, b: usize, c: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

const MULTI_HEAD: Case = Case {
    batch: 2,
    tokens: 3,
    keys: 5,
    heads: 4,
    key_heads: 4,
    channels: 6,
    masks: Some(1),
    cap: None,
};

#[test]
fn one_mask_for_all() {
    MULTI_HEAD.check("ScaledDotProductAttention");
}

#[test]
fn a_mask_for_each_of_the_batch_or_none() {
    Case { masks: Some(2), ..MULTI_HEAD }.check("BatchMatrixMultiply");
    Case { masks: None, ..MULTI_HEAD }.check("BatchMatrixMultiply");
}

#[test]
fn heads_that_share_a_key() {
    Case { key_heads: 2, ..MULTI_HEAD }.check("BatchMatrixMultiply");
    Case { key_heads: 1, masks: Some(2), ..MULTI_HEAD }.check("BatchMatrixMultiply");
}

#[test]
fn capped_logits() {
    Case { cap: Some(2.0), ..MULTI_HEAD }.check("Tanh");
}
