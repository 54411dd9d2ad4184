//! Constraints on several operators together, or set by an option.

use xnn_delegate::PartitionOptions;
use xnn_delegate::lower::Delegation;
use xnn_format::WriteOptions;
use xnn_model::DType;
use xnn_model::op::{CustomOptions, FullyConnectedOptions, Op};
use xnn_testing::GraphBuilder;

use super::{Constraint, Model, constant, f32s, one, row};

fn relu(options: PartitionOptions) -> Model {
    Model { options, ..one(Op::Relu, [f32s(&[4])], [f32s(&[4])]) }
}

/// 8 multiply-accumulates.
fn layer(options: PartitionOptions) -> Model {
    let op = Op::FullyConnected(FullyConnectedOptions::default());
    Model { options, ..one(op, [f32s(&[1, 4]), constant(f32s(&[2, 4]))], [f32s(&[1, 2])]) }
}

fn unknown() -> Op {
    Op::Unknown { code: 999 }
}

/// Halves become constant floats, which `reader` reads.
fn folded(reader: Op) -> Model {
    let mut g = GraphBuilder::new("main");
    let halves = g.constant("halves", DType::F16, &[2], vec![0x00, 0x3c, 0x00, 0xc0]);
    let floats = g.tensor("floats", DType::F32, &[2]);
    let x = g.input("x", DType::F32, &[2]);
    let y = g.tensor("y", DType::F32, &[2]);
    g.op(Op::Dequantize, &[halves], &[floats]).op(reader, &[x, floats], &[y]).output(y);
    Model::new(g.build())
}

/// An operator that holds the graph of a RELU, less its last bytes.
fn stored(missing: usize) -> Model {
    let graph = relu(PartitionOptions::default()).graph;
    let delegation = Delegation::new(&graph.into(), &PartitionOptions::default()).unwrap();
    let written = WriteOptions::new(xnn_delegate::ConvertOptions::default().compat);
    let mut blob = xnn_format::write(delegation.whole().unwrap().graph(), &written).unwrap();
    blob.truncate(blob.len() - missing);
    let options = CustomOptions { code: xnn_format::CUSTOM_OPERATOR.into(), options: blob.into() };
    one(Op::Custom(options), [f32s(&[4])], [f32s(&[4])])
}

pub fn constraints() -> Vec<Constraint> {
    let disabled = |name: &str| {
        let mut options = PartitionOptions::default();
        options.disable.push(name.to_owned());
        relu(options)
    };
    let least = |min_partition_macs| {
        let mut options = PartitionOptions::default();
        options.min_partition_macs = min_partition_macs;
        layer(options)
    };
    let most = |max_partitions| {
        let mut options = PartitionOptions::default();
        options.max_partitions = Some(max_partitions);
        layer(options)
    };
    vec![
        row(
            "mod::plan",
            "unsupported-operator",
            "has no XNNPACK counterpart",
            |op| one(op, [f32s(&[4])], [f32s(&[4])]),
            Op::Relu,
            unknown(),
        ),
        row("partition::plan", "disabled", "disabled by an option", disabled, "RELU6", "RELU"),
        row(
            "partition::leave_read_outside",
            "read-outside",
            "operators that are not delegated read it",
            folded,
            Op::Maximum,
            unknown(),
        ),
        row("partition::refuse_small", "not-worth-it", "8 MACs", least, 8, 9),
        row("partition::refuse_small", "too-many-partitions", "among the 0 largest", most, 1, 0),
        row("embedded_graphs::delegate", "embedded-graph", "cannot be used", stored, 0, 1),
    ]
}
