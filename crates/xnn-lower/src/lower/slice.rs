//! Boxes cut out of a value.

use xnn_format::NodeOp;

use super::builder::Builder;
use crate::partition::rules::slice::Slice;

pub(super) fn slice(b: &mut Builder<'_>, plan: &Slice) {
    let input = b.value(plan.input);
    for cut in &plan.cuts {
        let output = b.value(cut.output);
        let (offsets, sizes) = (cut.offsets.clone(), cut.sizes.clone());
        if !cut.reshaped {
            b.push(NodeOp::StaticSlice { offsets, sizes, input, output });
            continue;
        }
        let new_shape = b.dims(cut.output).to_vec();
        let boxed = b.temporary_like(input, &sizes);
        b.push(NodeOp::StaticSlice { offsets, sizes, input, output: boxed });
        b.push(NodeOp::StaticReshape { new_shape, input: boxed, output });
    }
}
