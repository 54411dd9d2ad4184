//! Partitioning rules for DEPTH_TO_SPACE, SPACE_TO_DEPTH, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.

use xnn_model::TensorId;
use xnn_model::op::BlockOptions;

use super::checks;
use crate::view::{OpView, Operand};
use crate::why_not::WhyNot;

/// Plan for moving blocks of pixels between space and channels.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub form: BlocksForm,
    pub input: TensorId,
    pub output: TensorId,
    pub block_size: u32,
}

/// The node that moves blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlocksForm {
    /// A copy, for blocks of one pixel.
    Copy,
    DepthToSpace,
    SpaceToDepth,
}

/// Rule for DEPTH_TO_SPACE and SPACE_TO_DEPTH.
pub(crate) fn blocks(
    view: OpView<'_>,
    options: &BlockOptions,
    to_depth: bool,
) -> Result<Blocks, WhyNot> {
    view.arity(1..=1, 1..=1)?;
    let (input, output) = (view.input(0)?, view.output(0)?);
    let [_, height, width, channels] = checks::nhwc(input)?;
    checks::nhwc(output)?;
    checks::same_elem(input, output)?;
    let block_size = checks::positive("block_size", options.block_size)?;
    let block = block_size as usize;
    let divides = if to_depth {
        height % block == 0 && width % block == 0
    } else {
        block.checked_mul(block).is_some_and(|area| channels % area == 0)
    };
    if !divides {
        return Err(WhyNot::Shape {
            tensor: input.to_ref(),
            expected: format!("{:?} does not divide into blocks of {block}", input.shape),
        });
    }
    let form = match (block_size, to_depth) {
        (1, _) => BlocksForm::Copy,
        (_, true) => BlocksForm::SpaceToDepth,
        (_, false) => BlocksForm::DepthToSpace,
    };
    Ok(Blocks { form, input: input.id, output: output.id, block_size })
}

/// Plan for moving blocks of pixels between space and batch.
#[derive(Clone, Debug)]
pub(crate) struct BatchBlocks {
    pub input: TensorId,
    pub output: TensorId,
    pub block: [usize; 2],
    /// Zeros to add (to batch) or pixels to remove (to space): top, bottom, left, right.
    pub border: [usize; 4],
    pub direction: BatchBlocksDirection,
}

/// Where blocks of pixels are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchBlocksDirection {
    ToBatch,
    ToSpace,
}

/// Rule for SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND of images.
pub(crate) fn batch_blocks(
    view: OpView<'_>,
    direction: BatchBlocksDirection,
) -> Result<BatchBlocks, WhyNot> {
    view.arity(3..=3, 1..=1)?;
    let (input, block, border, output) =
        (view.input(0)?, view.input(1)?, view.input(2)?, view.output(0)?);
    let [batch, height, width, _] = checks::nhwc(input)?;
    checks::nhwc(output)?;
    checks::same_elem(input, output)?;
    let sizes = |t: Operand<'_>| -> Result<Vec<usize>, WhyNot> {
        let sizes: Result<Vec<_>, _> =
            checks::constant_ints(t)?.into_iter().map(usize::try_from).collect();
        sizes.map_err(|_| WhyNot::Shape {
            tensor: t.to_ref(),
            expected: "elements must not be negative".into(),
        })
    };
    let wrong = |t: Operand<'_>| WhyNot::Shape {
        tensor: t.to_ref(),
        expected: "must fit the height and width of an image".into(),
    };
    let block_shape = <[usize; 2]>::try_from(sizes(block)?).map_err(|_| wrong(block))?;
    let edges = <[usize; 4]>::try_from(sizes(border)?).map_err(|_| wrong(border))?;
    let [bh, bw] = block_shape;
    let [top, bottom, left, right] = edges;
    let area = bh.checked_mul(bw).filter(|&area| area > 0).ok_or_else(|| wrong(block))?;
    let divides = |dim: usize, [before, after]: [usize; 2], block: usize| {
        let padded = dim.checked_add(before).and_then(|sum| sum.checked_add(after));
        padded.is_some_and(|padded| padded % block == 0)
    };
    let exceeds = |dim: usize, [before, after]: [usize; 2], block: usize| {
        let joined = dim.checked_mul(block).zip(before.checked_add(after));
        joined.is_some_and(|(joined, cropped)| joined > cropped)
    };
    let fits = match direction {
        BatchBlocksDirection::ToBatch => {
            batch.checked_mul(area).is_some()
                && divides(height, [top, bottom], bh)
                && divides(width, [left, right], bw)
        }
        BatchBlocksDirection::ToSpace => {
            batch % area == 0
                && exceeds(height, [top, bottom], bh)
                && exceeds(width, [left, right], bw)
        }
    };
    if !fits {
        return Err(wrong(border));
    }
    Ok(BatchBlocks {
        input: input.id,
        output: output.id,
        block: block_shape,
        border: edges,
        direction,
    })
}
