//! Operators that move, select or create elements.

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::common::{bools, expect, floats, plain, run_op, run_op_with};

/// Tests all shapes of up to two elements a side, with every padding of up to one, and wider ones.
#[test]
fn padding_matches_its_definition() {
    fn check<T: xnn_interp::Element + From<u8> + std::fmt::Debug>(dtype: DType) {
        let digits = |n: usize, base: usize| [n / base / base % base, n / base % base, n % base];
        for case in 0..27 * 64 {
            let (shape, border) = (digits(case / 64, 3), digits(case % 64, 4));
            let (before, after) = (border.map(|b| b & 1), border.map(|b| 5 * (b >> 1)));
            let elements: Vec<T> =
                (1..=shape.iter().product::<usize>()).map(|i| T::from(i as u8)).collect();
            let to: [usize; 3] = std::array::from_fn(|d| before[d] + shape[d] + after[d]);
            let from = |at: usize| {
                let index = [at / to[2] / to[1], at / to[2] % to[1], at % to[2]];
                let mut source = 0;
                for d in 0..3 {
                    let i = index[d].checked_sub(before[d]).filter(|&i| i < shape[d])?;
                    source = source * shape[d] + i;
                }
                Some(elements[source])
            };
            let expected: Vec<T> =
                (0..to.iter().product()).map(|at| from(at).unwrap_or(T::from(99))).collect();
            let pairs: Vec<i32> =
                (0..3).flat_map(|d| [before[d], after[d]]).map(|n| n as i32).collect();
            let constants = [plain(&[3, 2], &pairs), plain(&[], &[T::from(99)])];
            let input = plain(&shape, &elements);
            let result = run_op_with(Op::PadV2, &[input], &constants, (dtype, None));
            expect(result, &to, &expected);
        }
    }
    check::<u8>(DType::U8);
    check::<i16>(DType::I16);
    check::<i64>(DType::I64);
}

#[test]
fn elements_are_rearranged() {
    let x = || plain(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let result = run_op_with(Op::Transpose, &[x()], &[ints(&[1, 0])], i32s);
    expect(result, &[3, 2], &[1i32, 4, 2, 5, 3, 6]);
    let paddings = || plain(&[2, 2], &[0i32, 1, 1, 0]);
    let result = run_op_with(Op::Pad, &[x()], &[paddings()], i32s);
    expect(result, &[3, 4], &[0i32, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0]);
    let result = run_op_with(Op::PadV2, &[x()], &[paddings(), plain(&[], &[9i32])], i32s);
    expect(result, &[3, 4], &[9i32, 1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9]);
    let error = run_op_with(Op::PadV2, &[x()], &[paddings(), ints(&[9, 8])], i32s).unwrap_err();
    assert!(error.to_string().contains("not a scalar"), "{error}");
    let error = run_op_with(Op::Fill, &[], &[ints(&[2, 3]), ints(&[9, 8])], i32s).unwrap_err();
    assert!(error.to_string().contains("not a scalar"), "{error}");
    let mirror = |symmetric| Op::MirrorPad(MirrorPadOptions { symmetric });
    let around = || plain(&[1, 2], &[2i32, 1]);
    let row = || ints(&[1, 2, 3]);
    let result = run_op_with(mirror(false), &[row()], &[around()], i32s);
    expect(result, &[6], &[3i32, 2, 1, 2, 3, 2]);
    let result = run_op_with(mirror(true), &[row()], &[around()], i32s);
    expect(result, &[6], &[2i32, 1, 1, 2, 3, 3]);
    let join = Op::Concatenation(ConcatenationOptions { axis: 1, ..Default::default() });
    let result = run_op(join, &[x(), plain(&[2, 1], &[7i32, 8])], i32s);
    expect(result, &[2, 4], &[1i32, 2, 3, 7, 4, 5, 6, 8]);
    let result = run_op_with(Op::Tile, &[row()], &[ints(&[2])], i32s);
    expect(result, &[6], &[1i32, 2, 3, 1, 2, 3]);
    let result = run_op_with(Op::ReverseV2, &[x()], &[ints(&[1])], i32s);
    expect(result, &[2, 3], &[3i32, 2, 1, 6, 5, 4]);
    let pack = Op::Pack(PackOptions { values_count: 2, axis: 1 });
    expect(run_op(pack, &[row(), row()], i32s), &[3, 2], &[1i32, 1, 2, 2, 3, 3]);
    let depth = plain(&[1, 1, 1, 4], &[1i32, 2, 3, 4]);
    let result = run_op(Op::DepthToSpace(BlockOptions { block_size: 2 }), &[depth], i32s);
    expect(result, &[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let space = plain(&[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let result = run_op(Op::SpaceToDepth(BlockOptions { block_size: 2 }), &[space], i32s);
    expect(result, &[1, 1, 1, 4], &[1i32, 2, 3, 4]);
    let image = plain(&[1, 2, 2, 1], &[1i32, 2, 3, 4]);
    let tail = [ints(&[2, 2]), plain(&[2, 2], &[0i32; 4])];
    let result = run_op_with(Op::SpaceToBatchNd, &[image], &tail, i32s);
    expect(result, &[4, 1, 1, 1], &[1i32, 2, 3, 4]);
    let batches = plain(&[4, 1, 1, 1], &[1i32, 2, 3, 4]);
    let crops = [ints(&[2, 2]), plain(&[2, 2], &[0i32, 1, 0, 0])];
    let result = run_op_with(Op::BatchToSpaceNd, &[batches], &crops, i32s);
    expect(result, &[1, 1, 2, 1], &[1i32, 2]);
}

#[test]
fn elements_are_selected() {
    let x = || plain(&[2, 3], &[1i32, 2, 3, 4, 5, 6]);
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let result = run_op_with(Op::Slice, &[x()], &[ints(&[0, 1]), ints(&[2, -1])], i32s);
    expect(result, &[2, 2], &[2i32, 3, 5, 6]);
    let strided =
        Op::StridedSlice(StridedSliceOptions { shrink_axis_mask: 1, ..Default::default() });
    let bounds = [ints(&[-1, 2]), ints(&[0, 0]), ints(&[1, -1])];
    expect(run_op_with(strided, &[x()], &bounds, i32s), &[2], &[6i32, 5]);
    let gather = Op::Gather(GatherOptions { axis: 1, batch_dims: 0 });
    expect(run_op(gather.clone(), &[x(), ints(&[2, 0])], i32s), &[2, 2], &[3i32, 1, 6, 4]);
    assert!(run_op(gather, &[x(), ints(&[3])], i32s).is_err());
    // Blocks of 4, 8 and 12 bytes, for each of two batches, with both index types.
    let batched = Op::Gather(GatherOptions { axis: 1, batch_dims: 1 });
    for block in 1..=3usize {
        let all: Vec<i32> = (0..).take(8 * block).collect();
        let cells = || plain(&[2, 4, block], &all);
        let picked = [3, 0, 4, 4].map(|cell| &all[cell * block..][..block]).concat();
        let short = plain(&[2, 2], &[3i32, 0, 0, 0]);
        let long = plain(&[2, 2], &[3i64, 0, 0, 0]);
        for indices in [short, long] {
            let result = run_op(batched.clone(), &[cells(), indices], i32s);
            expect(result, &[2, 2, block], &picked);
        }
    }
    let result = run_op(Op::GatherNd, &[x(), plain(&[2, 2], &[1i32, 0, 0, 2])], i32s);
    expect(result, &[2], &[4i32, 3]);
    let scatter = [plain(&[3, 1], &[1i32, 3, 1]), ints(&[5, 6, 7])];
    let result = run_op_with(Op::ScatterNd, &scatter, &[ints(&[4])], i32s);
    expect(result, &[4], &[0i32, 12, 0, 6]);
    let hot = Op::OneHot(OneHotOptions { axis: -1 });
    let tail = [plain(&[], &[3i32]), plain(&[], &[1i32]), plain(&[], &[0i32])];
    expect(run_op_with(hot, &[ints(&[2, -1])], &tail, i32s), &[2, 3], &[0i32, 0, 1, 0, 0, 0]);
    let choice = [bools(&[2, 1], &[1, 0]), x(), plain(&[1], &[0i32])];
    expect(run_op(Op::SelectV2, &choice, i32s), &[2, 3], &[1i32, 2, 3, 0, 0, 0]);
    let found = run_op(Op::Where, &[bools(&[2, 2], &[0, 1, 1, 0])], (DType::I64, None));
    expect(found, &[2, 2], &[0i64, 1, 1, 0]);
    let result = run_op(Op::EmbeddingLookup, &[ints(&[1, 0]), x()], i32s);
    expect(result, &[2, 3], &[4i32, 5, 6, 1, 2, 3]);
    let reverse = Op::ReverseSequence(ReverseSequenceOptions { seq_dim: 1, batch_dim: 0 });
    expect(run_op(reverse, &[x(), ints(&[2, 3])], i32s), &[2, 3], &[2i32, 1, 3, 6, 5, 4]);
}

#[test]
fn shapes_and_fills_are_computed() {
    let i32s = (DType::I32, None);
    let ints = |values: &[i32]| plain(&[values.len()], values);
    let shape = Op::Shape(ShapeOptions { out_type: DType::I32 });
    expect(run_op(shape, &[floats(&[2, 3], &[0.; 6])], i32s), &[2], &[2i32, 3]);
    expect(run_op(Op::Rank, &[floats(&[2, 3], &[0.; 6])], i32s), &[], &[2i32]);
    let result = run_op(Op::Fill, &[ints(&[2, 2]), plain(&[], &[7i32])], i32s);
    expect(result, &[2, 2], &[7i32; 4]);
    let scalar = |value: i32| plain(&[], &[value]);
    let range = run_op(Op::Range, &[scalar(5), scalar(0), scalar(-2)], i32s);
    expect(range, &[3], &[5i32, 3, 1]);
    assert!(run_op(Op::Range, &[scalar(0), scalar(5), scalar(-1)], i32s).is_err());
    let scalar = |value: f32| floats(&[], &[value]);
    let tenths = run_op(Op::Range, &[scalar(0.), scalar(0.3), scalar(0.1)], (DType::F32, None));
    assert_eq!(tenths.unwrap().shape(), [3]);
    let result = run_op(Op::BroadcastTo, &[ints(&[1, 2]), ints(&[2, 2])], i32s);
    expect(result, &[2, 2], &[1i32, 2, 1, 2]);
}
