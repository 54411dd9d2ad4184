//! Softmax.

use xnn_format::ValueId;
use xnnpack::Softmax;

use super::definer::NodeDefiner;
use crate::error::Result;

pub(super) fn softmax(cx: &mut NodeDefiner<'_, '_>, input: ValueId, output: ValueId) -> Result<()> {
    let node = Softmax { input: cx.id(input)?, output: cx.id(output)? };
    cx.define(node)
}
