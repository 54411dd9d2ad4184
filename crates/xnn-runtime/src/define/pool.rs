//! Poolings over windows.

use xnn_format::{Pooling2d, ValueId};
use xnnpack::{ArgMaxPool2d, AveragePool2d, MaxPool2d, Unpool2d};

use super::conv::{SAME_PADDING, padding, size};
use super::definer::NodeDefiner;
use crate::error::Result;

pub(super) fn average_pooling_2d(cx: &mut NodeDefiner<'_, '_>, window: &Pooling2d) -> Result<()> {
    let node = AveragePool2d {
        padding: padding(window.padding),
        pooling: size(window.kernel),
        stride: size(window.stride),
        output_range: cx.output_range(),
        input: cx.id(window.input)?,
        output: cx.id(window.output)?,
        flags: cx.flags(SAME_PADDING),
    };
    cx.define(node)
}

pub(super) fn max_pooling_2d(cx: &mut NodeDefiner<'_, '_>, window: &Pooling2d) -> Result<()> {
    let node = MaxPool2d {
        padding: padding(window.padding),
        pooling: size(window.kernel),
        stride: size(window.stride),
        dilation: size(window.dilation),
        output_range: cx.output_range(),
        input: cx.id(window.input)?,
        output: cx.id(window.output)?,
        flags: cx.flags(SAME_PADDING),
    };
    cx.define(node)
}

pub(super) fn argmax_pooling_2d(
    cx: &mut NodeDefiner<'_, '_>,
    window: &Pooling2d,
    index: ValueId,
) -> Result<()> {
    let node = ArgMaxPool2d {
        padding: padding(window.padding),
        pooling: size(window.kernel),
        input: cx.id(window.input)?,
        value_output: cx.id(window.output)?,
        index_output: cx.id(index)?,
        flags: cx.flags(SAME_PADDING),
    };
    cx.define(node)
}

pub(super) fn unpooling_2d(
    cx: &mut NodeDefiner<'_, '_>,
    window: &Pooling2d,
    index: ValueId,
) -> Result<()> {
    let node = Unpool2d {
        padding: padding(window.padding),
        pooling: size(window.kernel),
        value_input: cx.id(window.input)?,
        index_input: cx.id(index)?,
        output: cx.id(window.output)?,
    };
    cx.define(node)
}
