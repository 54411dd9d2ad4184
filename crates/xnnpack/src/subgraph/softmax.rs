//! Softmax.

use xnnpack_sys as sys;

use super::node::{Context, Links, Operator, RawIds};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// `exp(x)` normalized to a sum of 1 along the innermost dimension.
#[derive(Clone, Debug)]
pub struct Softmax {
    /// At least one dimension.
    pub input: ValueId,
    /// Same shape.
    pub output: ValueId,
}

/// Most exponentials whose sum XNNPACK has in half precision, in which 2049 is 2048 and 65520 infinite: it stores the sum on
/// x86, and on ARM adds up eight.
const MAX_HALF_TERMS: usize = if cfg!(target_arch = "aarch64") { 8 * 2048 } else { 65504 };

impl Operator for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        cx.expect_datatype(self.input, &[D::F32, D::F16])?;
        cx.expect_same_type(self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        let Some(&terms) = shape.last() else {
            return Err(Error::invalid(format!("{} has no dimensions", self.input)));
        };
        if cx.datatype(self.input)? == D::F16 && terms > MAX_HALF_TERMS {
            return Err(Error::unsupported(format!("{terms} terms in half precision")));
        }
        Ok(vec![shape])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: passed on from the caller.
        unsafe { sys::xnn_define_softmax(graph, ids.of(self.input), ids.of(self.output), 0) }
    }
}
