use crate::fixture::{Fixture, any_f32, any_qint8, assert_close, f32, qint8, ramp};
use xnn_testing::Random;
use xnnpack::{
    ExternalId, Flags, GlobalPool, OutputRange, PooledDims, ReduceOp, Role, StaticReduce, Subgraph,
};

#[test]
fn sums_and_means() {
    for (op, expected) in [(ReduceOp::Sum, [6.0, 22.0, 38.0]), (ReduceOp::Mean, [1.5, 5.5, 9.5])] {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[3, 4]), &ramp(12));
        let output = fixture.output(f32(&[3]));
        let node = StaticReduce { op, axes: vec![-1], input, output, flags: Flags::NONE };
        assert_close(&fixture.node(node).run::<f32>(), &expected, 1e-6);
    }
}

#[test]
fn several_axes_in_any_order() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[2, 2, 2]), &ramp(8));
    let output = fixture.output(any_f32());
    let node = StaticReduce {
        op: ReduceOp::Sum,
        axes: vec![2, 0],
        input,
        output,
        flags: Flags::KEEP_DIMS,
    };
    fixture.graph.define(node).unwrap();
    assert_eq!(fixture.graph.shape(output).unwrap(), [1, 2, 1]);
    assert_close(&fixture.run::<f32>(), &[10.0, 18.0], 0.0);
}

#[test]
fn quantized_mean() {
    let mut fixture = Fixture::new();
    let input = fixture.input(qint8(&[1, 2, 2, 2], 2, 0.5), &[0i8, 10, 2, 10, 4, 10, 6, 10]);
    let output = fixture.output(any_qint8(-1, 0.25));
    let node = GlobalPool {
        op: ReduceOp::Mean,
        dims: PooledDims::Two,
        is_fixed: false,
        output_range: OutputRange::default(),
        input,
        output,
        flags: Flags::KEEP_DIMS,
    };
    assert_eq!(fixture.node(node).run::<i8>(), [1, 15]);
}

#[test]
fn global_pooling_with_bounds() {
    let cases = [
        (ReduceOp::Mean, PooledDims::One, vec![1.0, 2.0, 4.5, 4.5]),
        (ReduceOp::Sum, PooledDims::One, vec![2.0, 4.0, 4.5, 4.5]),
        (ReduceOp::Mean, PooledDims::Two, vec![3.0, 4.0]),
        (ReduceOp::Sum, PooledDims::Two, vec![4.5, 4.5]),
    ];
    for (op, dims, expected) in cases {
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, 2, 2, 2]), &ramp(8));
        let output = fixture.output(any_f32());
        let output_range = OutputRange { min: 0.0, max: 4.5 };
        let node = GlobalPool {
            op,
            dims,
            is_fixed: false,
            output_range,
            input,
            output,
            flags: Flags::NONE,
        };
        assert_close(&fixture.node(node).run::<f32>(), &expected, 1e-6);
    }
}

#[test]
fn wrong_axes_are_refused() {
    let mut fixture = Fixture::new();
    let input = fixture.input(f32(&[3, 4]), &ramp(12));
    let row = fixture.input(f32(&[3]), &ramp(3));
    let output = fixture.internal(any_f32());
    let wrong = [vec![], vec![2], vec![-3], vec![1, 1], vec![1, -1], vec![i64::MIN], vec![0; 100]];
    for axes in wrong {
        let node = StaticReduce { op: ReduceOp::Sum, axes, input, output, flags: Flags::NONE };
        fixture.refusal(node);
    }
    let flags = Flags::SAME_PADDING;
    fixture.refusal(StaticReduce { op: ReduceOp::Sum, axes: vec![0], input, output, flags });
    let flat = GlobalPool {
        op: ReduceOp::Mean,
        dims: PooledDims::Two,
        is_fixed: false,
        output_range: OutputRange::default(),
        input: row,
        output,
        flags: Flags::NONE,
    };
    fixture.refusal(flat);
}

/// Results are the same bits as those of TFLite's reference kernels.
#[test]
fn means_are_sums_divided() {
    let random = &mut Random::new(1);
    for (rows, channels) in [(49, 300), (7, 1), (3, 256), (1, 17), (1000, 33)] {
        let floats = random.f32s(rows * channels, -1.0, 6.0);
        let mut sums = vec![0f32; channels];
        for row in floats.chunks_exact(channels) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        let expected: Vec<f32> = sums.iter().map(|sum| sum / rows as f32).collect();
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[rows, channels]), &floats);
        let output = fixture.output(any_f32());
        let (op, axes, flags) = (ReduceOp::Mean, vec![0], Flags::NONE);
        let node = StaticReduce { op, axes, input, output, flags };
        assert_eq!(fixture.node(node).run::<f32>(), expected, "{rows} rows");
    }
}

/// XNNPACK accumulates 8-bit elements in 32 bits.
#[test]
fn means_of_too_many_bytes_are_refused() {
    for (count, taken) in [(8_421_504, true), (8_421_505, false)] {
        let mut graph = Subgraph::new().unwrap();
        let input = qint8(&[count, 2], 0, 1.0).role(Role::Input(ExternalId(0)));
        let input = graph.define_tensor(input).unwrap();
        let output =
            graph.define_tensor(any_qint8(0, 1.0).role(Role::Output(ExternalId(1)))).unwrap();
        let (op, axes, flags) = (ReduceOp::Mean, vec![0], Flags::NONE);
        let defined = graph.define(StaticReduce { op, axes, input, output, flags });
        assert_eq!(defined.is_ok(), taken, "{count}");
    }
}
