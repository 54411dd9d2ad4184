//! Operators that move data.

use xnn_model::op::{
    Activation, BlockOptions, ConcatenationOptions, GatherOptions, MirrorPadOptions, Op,
    PackOptions, ReshapeOptions, ResizeOptions, SplitOptions, StridedSliceOptions, UnpackOptions,
};
use xnn_model::{DType, Tensor};

use super::{Constraint, Model, f32s, i8s, int, ints, list, numbers, one, row, tensor};

fn shaped(tensor: Tensor, shape: &[usize]) -> Tensor {
    Tensor { shape: Some(shape.to_vec()), ..tensor }
}

fn moved(op: Op, from: &[usize], operand: Tensor, to: &[usize]) -> Model {
    one(op, [f32s(from), operand], [f32s(to)])
}

fn batches(op: Op, block: i32, border: i32) -> Model {
    let border = shaped(ints(&[border, 0, 0, 0]), &[2, 2]);
    let side = 4 / block as usize;
    let batch = (block * block) as usize;
    one(op, [f32s(&[1, 4, 4, 1]), ints(&[block, block]), border], [f32s(&[batch, side, side, 1])])
}

fn gather(index: i32, batch_dims: i32) -> Model {
    let op = Op::Gather(GatherOptions { axis: 0, batch_dims });
    moved(op, &[3, 2], ints(&[index]), &[1, 2])
}

/// An image as high and wide as that, to height and width.
fn bilinear(from: Tensor, size: &[i32], options: ResizeOptions) -> Model {
    let [height, width] = [0, 1].map(|side| size.get(side).map_or(1, |&dim| dim as usize));
    let channels = from.shape.as_ref().map_or(1, |shape| shape[3]);
    let output = shaped(from.clone(), &[1, height, width, channels]);
    one(Op::ResizeBilinear(options), [from, ints(size)], [output])
}

fn strided(begin: i32, stride: i32, output: usize) -> Model {
    let op = Op::StridedSlice(StridedSliceOptions::default());
    one(op, [f32s(&[5]), ints(&[begin]), ints(&[4]), ints(&[stride])], [f32s(&[output])])
}

fn split_v(sizes: &[i32], parts: usize) -> Model {
    let op = Op::SplitV(SplitOptions { num_splits: parts as i32 });
    let outputs = [f32s(&[1]), f32s(&[3]), f32s(&[1])].into_iter().take(parts);
    one(op, [f32s(&[4]), ints(sizes), int(0)], outputs)
}

pub fn constraints() -> Vec<Constraint> {
    let joined = |activation, other: &[usize]| {
        let options = ConcatenationOptions { axis: 0, activation };
        moved(Op::Concatenation(options), &[1, 2], f32s(other), &[2, 2])
    };
    let padded =
        |pads: &[i32], shape: &[usize]| moved(Op::Pad, &[2, 3], shaped(ints(pads), shape), &[2, 3]);
    vec![
        row(
            "blocks::blocks",
            "shape",
            "does not divide into blocks of 2",
            |height| {
                let op = Op::SpaceToDepth(BlockOptions { block_size: 2 });
                one(op, [f32s(&[1, height, 4, 1])], [f32s(&[1, 2, 2, 4])])
            },
            4,
            5,
        )
        .stated(),
        row(
            "blocks::batch_blocks",
            "shape",
            "negative",
            |border| batches(Op::SpaceToBatchNd, 2, border),
            0,
            -2,
        )
        .stated(),
        row(
            "blocks::batch_blocks",
            "shape",
            "must fit the height and width",
            |block| batches(Op::SpaceToBatchNd, block, 0),
            2,
            3,
        )
        .stated(),
        row(
            "gather::too_many",
            "attribute",
            "at most 128",
            |length| moved(Op::ReverseV2, &[length], ints(&[0]), &[length]),
            128,
            129,
        ),
        row(
            "gather::gather_slices",
            "shape",
            "cannot hold [2]",
            |held| moved(Op::Gather(GatherOptions::default()), &[3], ints(&[0, 2]), &[held]),
            2,
            3,
        )
        .stated(),
        row(
            "gather::gather",
            "attribute",
            "batch_dims is 1",
            |batch_dims| gather(0, batch_dims),
            0,
            1,
        )
        .stated(),
        row(
            "gather::gather",
            "shape",
            "outside dimension 0 of size 3",
            |index| gather(index, 0),
            2,
            3,
        ),
        row(
            "gather::mirror_pad",
            "shape",
            "a pair below the size",
            |pad: i32| {
                let op = Op::MirrorPad(MirrorPadOptions { symmetric: false });
                moved(op, &[3], shaped(ints(&[pad, 0]), &[1, 2]), &[3 + pad as usize])
            },
            2,
            3,
        ),
        row(
            "gather::resize_nearest",
            "shape",
            "at most 65536",
            |height: i32| {
                let op = Op::ResizeNearestNeighbor(ResizeOptions::default());
                moved(op, &[1, 1, 1, 1], ints(&[height, 1]), &[1, height as usize, 1, 1])
            },
            1 << 16,
            (1 << 16) + 1,
        ),
        row(
            "resize::resize_bilinear",
            "shape",
            "a positive height and width",
            |height| bilinear(f32s(&[1, 2, 2, 1]), &[height, 2], ResizeOptions::default()),
            3,
            1 << 24,
        ),
        list(
            "resize::resize_bilinear",
            "shape",
            "in 1024ths",
            |size: &[i32]| {
                let corners = ResizeOptions { align_corners: true, half_pixel_centers: false };
                bilinear(i8s(&[1, 6, 6, 2]), size, corners)
            },
            &[8, 11],
            &[8, 12],
        ),
        row(
            "shape::reshape",
            "shape",
            "cannot become [4]",
            |held| {
                let op = Op::Reshape(ReshapeOptions { new_shape: None });
                moved(op, &[2, 3], ints(&[held as i32]), &[held])
            },
            6,
            4,
        )
        .stated(),
        row(
            "shape::transpose",
            "shape",
            "is not an order of 2 dimensions",
            |second| moved(Op::Transpose, &[2, 2], ints(&[1, second]), &[2, 2]),
            0,
            1,
        )
        .stated(),
        row("shape::pad", "attribute", "at least 0", |pad| padded(&[pad, 0, 0, 0], &[2, 2]), 0, -1)
            .stated(),
        row(
            "shape::pad",
            "shape",
            "a pair for each of 2 dimensions",
            |pairs| padded(&vec![0; 2 * pairs], &[pairs, 2]),
            2,
            3,
        )
        .stated(),
        list(
            "shape::scalar",
            "shape",
            "must be one element",
            |values: &[f32]| {
                one(
                    Op::PadV2,
                    [f32s(&[2]), shaped(ints(&[1, 0]), &[1, 2]), numbers(values)],
                    [f32s(&[3])],
                )
            },
            &[0.5],
            &[0.5, 0.5],
        ),
        row(
            "shape::concatenation",
            "attribute",
            "supported: NONE",
            |activation| joined(activation, &[1, 2]),
            Activation::None,
            Activation::Relu,
        ),
        row(
            "shape::concatenation",
            "shape",
            "is not part of [2, 2]",
            |width| joined(Activation::None, &[1, width]),
            2,
            3,
        )
        .stated(),
        row(
            "shape::pack",
            "shape",
            "is not a slice of [2, 2]",
            |width| {
                let op = Op::Pack(PackOptions { values_count: 2, axis: 0 });
                moved(op, &[2], f32s(&[width]), &[2, 2])
            },
            2,
            3,
        )
        .stated(),
        row(
            "slice::slice",
            "attribute",
            "a box inside the input",
            |size: i32| {
                one(Op::Slice, [f32s(&[5]), ints(&[2]), ints(&[size])], [f32s(&[size as usize])])
            },
            3,
            4,
        )
        .stated(),
        row(
            "slice::strided_slice",
            "attribute",
            "elements of the input",
            |stride| strided(1, stride, 3),
            1,
            0,
        )
        .stated(),
        row(
            "slice::strided_slice",
            "shape",
            "cannot hold a box of [3]",
            |held| strided(1, 1, held),
            3,
            2,
        )
        .stated(),
        row(
            "slice::split",
            "shape",
            "does not divide into 2 parts",
            |dim| {
                let op = Op::Split(SplitOptions { num_splits: 2 });
                one(op, [int(0), f32s(&[dim])], [f32s(&[dim / 2]), f32s(&[dim / 2])])
            },
            4,
            5,
        )
        .stated(),
        row("slice::split_v", "shape", "do not add up to 4", |last| split_v(&[1, last], 2), 3, 4)
            .stated(),
        row(
            "slice::cuts_along",
            "output-count",
            "outputs: expected 2, found 3",
            |parts| split_v(&[1, 3], parts),
            2,
            3,
        )
        .stated(),
        row(
            "slice::unpack",
            "output-count",
            "outputs: expected 2, found 1",
            |parts| {
                let op = Op::Unpack(UnpackOptions { num: 2, axis: 0 });
                one(op, [f32s(&[2, 3])], vec![f32s(&[3]); parts])
            },
            2,
            1,
        )
        .stated(),
        row(
            "slice::dynamic_update_slice",
            "shape",
            "is not part of [2, 3]",
            |width| {
                one(
                    Op::DynamicUpdateSlice,
                    [f32s(&[2, 3]), f32s(&[1, width]), ints(&[0, 0])],
                    [f32s(&[2, 3])],
                )
            },
            3,
            4,
        ),
        row(
            "tile::tiled",
            "shape",
            "does not repeat [1, 2] to",
            |last: i32| moved(Op::BroadcastTo, &[1, 2], ints(&[3, last]), &[3, last as usize]),
            2,
            4,
        )
        .stated(),
        row(
            "quantize::cast",
            "type",
            "supported: f32",
            |to| one(Op::Cast(Default::default()), [f32s(&[2])], [tensor(to, &[2])]),
            DType::F16,
            DType::I32,
        ),
    ]
}
