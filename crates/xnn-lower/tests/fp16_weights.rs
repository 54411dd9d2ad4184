//! Filters that a DEQUANTIZE makes of fp16 constants.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{code, decide, decide_with};
use xnn_format::Datatype;
use xnn_lower::{PartitionOptions, Partitioning, Unchecked, partition};
use xnn_model::op::Conv2dOptions;
use xnn_model::{DType, Op, infer};
use xnn_testing::GraphBuilder;

fn convolution() -> Op {
    Op::Conv2d(Conv2dOptions {
        stride_w: 1,
        stride_h: 1,
        dilation_w: 1,
        dilation_h: 1,
        ..Conv2dOptions::default()
    })
}

/// A convolution whose filter is a DEQUANTIZE of an fp16 constant, and other readers of the filter.
fn fp16_filter(channels: usize, others: impl FnOnce(&mut GraphBuilder, usize)) -> GraphBuilder {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 4, 4, channels]);
    let shape = [channels, 1, 1, channels];
    let numbers = [0x00, 0x3c].repeat(channels * channels);
    let half = g.constant("half", DType::F16, &shape, numbers);
    let w = g.tensor("w", DType::F32, &shape);
    let y = g.tensor("y", DType::F32, &[1, 4, 4, channels]);
    g.op(Op::Dequantize, &[half], &[w]);
    g.op(convolution(), &[x, w], &[y]).output(y);
    others(&mut g, w);
    g
}

/// Datatypes of the constants of the only partition, and its number of nodes.
fn constants(partitioning: &Partitioning) -> (Vec<Datatype>, usize) {
    assert_eq!(partitioning.partitions.len(), 1);
    let graph = &partitioning.partitions[0].graph;
    let constants = graph.values.iter().filter(|value| value.data.is_some());
    (constants.map(|value| value.datatype).collect(), graph.nodes.len())
}

#[test]
fn large_filters_stay_in_fp16() {
    let whole = |g: GraphBuilder, options: &PartitionOptions| {
        let partitioning = decide_with(g, options);
        assert!(partitioning.is_full());
        let changes = &partitioning.partitions[0].optimization.changes;
        assert_eq!(changes.get("constants"), Some(&1));
        constants(&partitioning)
    };
    let default = PartitionOptions::default();
    assert_eq!(whole(fp16_filter(128, |_, _| ()), &default), (vec![Datatype::F16], 1));
    assert_eq!(whole(fp16_filter(127, |_, _| ()), &default), (vec![Datatype::F32], 1));
    let mut options = PartitionOptions::default();
    options.widely_known = true;
    assert_eq!(whole(fp16_filter(128, |_, _| ()), &options), (vec![Datatype::F32], 1));
    let read_by_others = fp16_filter(128, |g, w| {
        let z = g.tensor("z", DType::F32, &[128, 1, 1, 128]);
        g.op(Op::Tanh, &[w], &[z]).output(z);
    });
    let (datatypes, _) = constants(&decide(read_by_others));
    assert!(!datatypes.contains(&Datatype::F16), "{datatypes:?}");
    let mut options = PartitionOptions::default();
    options.optimize.disable = vec!["constants".into()];
    let mut inferred = infer(fp16_filter(128, |_, _| ()).build().into()).unwrap();
    inferred.values.fill(None);
    let left = partition(&inferred, &options, &mut Unchecked).unwrap().0;
    assert_eq!(code(&left, 1), Some("not-constant"));
}

/// The interpreter dequantizes the filter for an operator that is not delegated.
#[test]
fn fp16_filters_of_other_operators_are_not_delegated() {
    let reader = |g: &mut GraphBuilder, w| {
        let image = g.input("image", DType::F32, &[1, 4, 4, 256]);
        let z = g.tensor("z", DType::F64, &[1, 4, 4, 128]);
        g.op(convolution(), &[image, w], &[z]).output(z);
    };
    let partitioning = decide(fp16_filter(128, reader));
    assert_eq!(code(&partitioning, 0), Some("read-outside"));
    assert_eq!(code(&partitioning, 1), None);
    assert!(code(&partitioning, 2).is_some());
    assert_eq!(constants(&partitioning), (vec![Datatype::F16], 1));
}

/// Products with constants move into the filters, which become fp32.
#[test]
fn filters_in_fp16_are_scaled() {
    let mut g = GraphBuilder::new("main");
    let x = g.input("x", DType::F32, &[1, 4, 4, 128]);
    let half = g.constant("half", DType::F16, &[128, 1, 1, 128], [0x00, 0x3c].repeat(128 * 128));
    let w = g.tensor("w", DType::F32, &[128, 1, 1, 128]);
    let [h, y] = ["h", "y"].map(|name| g.tensor(name, DType::F32, &[1, 4, 4, 128]));
    let factor = g.constant_f32("factor", &[1], &[3.0]);
    g.op(Op::Dequantize, &[half], &[w]);
    g.op(convolution(), &[x, w], &[h]);
    g.op(Op::Mul(Default::default()), &[h, factor], &[y]).output(y);
    let partitioning = decide(g);
    assert_eq!(constants(&partitioning), (vec![Datatype::F32], 1));
    let graph = &partitioning.partitions[0].graph;
    let weights = graph.values.iter().find_map(|value| value.data.as_ref()).unwrap();
    assert_eq!(weights.len(), 128 * 128 * 4);
    assert!(weights.as_chunks().0.iter().all(|&bytes| f32::from_le_bytes(bytes) == 3.0));
}
