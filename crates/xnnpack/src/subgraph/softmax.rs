//! Softmax.

use xnnpack_sys as sys;

use super::context::{Context, RawIds};
use super::operator::{Links, Operator};
use crate::status::{Error, Result};
use crate::value::{Datatype as D, Shape, ValueId};

/// `exp(x)` normalized to a sum of 1 along the innermost dimension.
#[derive(Clone, Debug)]
pub struct Softmax {
    /// Tensor of at least one dimension.
    pub input: ValueId,
    /// Shape of the input.
    pub output: ValueId,
}

/// Maximal number of exponentials whose sum is safe in half precision, where 2049 rounds to 2048
/// and 65520 to infinity. XNNPACK stores only the sum in half precision on x86; on ARM it
/// accumulates eight partial sums.
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
            return Err(Error::unsupported(format!(
                "{terms} terms are too many for a sum in half precision"
            )));
        }
        Ok(vec![shape])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe { sys::xnn_define_softmax(graph, ids.of(self.input), ids.of(self.output), 0) }
    }
}
