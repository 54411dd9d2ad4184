//! Operators that move data without computing.

use xnnpack_sys as sys;

use super::checks::{check_move, product};
use super::context::{Context, RawIds};
use super::operator::{Fusion, Links, Operator};
use crate::status::{Error, Result};
use crate::value::{MAX_DIMS, Shape, ValueId};

/// Copies a tensor.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Tensor of any shape.
    pub input: ValueId,
    /// Shape, datatype and quantization of the input.
    pub output: ValueId,
}

/// Adds constant elements at both ends of each dimension.
#[derive(Clone, Debug)]
pub struct ConstantPad {
    /// Number of elements added before each dimension.
    pub before: Vec<usize>,
    /// Number of elements added after each dimension.
    pub after: Vec<usize>,
    /// Value of the added elements, as a real number.
    pub value: f32,
    /// Tensor of any shape.
    pub input: ValueId,
    /// Shape of the input plus the added elements.
    pub output: ValueId,
}

/// Inserts dimensions of length 1.
#[derive(Clone, Debug)]
pub struct ExpandDims {
    /// Positions of the new dimensions in the output, ascending.
    pub axes: Vec<usize>,
    /// Tensor of any shape.
    pub input: ValueId,
    /// Shape with the new dimensions.
    pub output: ValueId,
}

/// Changes the shape of a tensor, not its elements.
#[derive(Clone, Debug)]
pub struct Reshape {
    /// The new shape. One dimension may be 0: its length is inferred from the number of elements.
    ///
    /// An inferred dimension follows the batch: the subgraph's inputs may change in their first
    /// dimension, and in the dimensions that the inferred one stands for.
    pub dims: Vec<usize>,
    /// Whether the inferred dimension stands for every dimension that changes. If not, inputs are
    /// refused where a dimension may have changed that it does not stand for.
    pub is_open: bool,
    /// Tensor of any shape.
    pub input: ValueId,
    /// The new shape.
    pub output: ValueId,
}

/// Takes a contiguous part of each dimension.
#[derive(Clone, Debug)]
pub struct Slice {
    /// First index of each dimension.
    pub offsets: Vec<usize>,
    /// Length of each part. 0 stands for the whole dimension, and requires an offset of 0. A
    /// dimension of which only a part is taken must keep the length that it was defined with.
    pub sizes: Vec<usize>,
    /// Tensor of any shape.
    pub input: ValueId,
    /// Shape given by the sizes.
    pub output: ValueId,
}

/// Permutes dimensions.
#[derive(Clone, Debug)]
pub struct Transpose {
    /// For each dimension of the output, the dimension of the input.
    pub perm: Vec<usize>,
    /// Tensor of any shape.
    pub input: ValueId,
    /// The permuted shape.
    pub output: ValueId,
}

/// Maximal padding of a dimension: XNNPACK may turn it into padding of a convolution, which has 32
/// bits.
const MAX_PADDING: usize = 1 << 24;

/// Refuses a list that does not have one entry per dimension.
fn expect_length(what: &str, list: &[usize], shape: Shape) -> Result<()> {
    if list.len() == shape.len() {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} {list:?} do not match the rank of shape {shape:?}")))
}

/// Whether the inferred dimension of a reshape, which lies between `before` and `behind`, stands
/// for all dimensions that differ between the shapes `old` and `new`.
fn belongs(old: &[usize], new: &[usize], [before, behind]: [&[usize]; 2]) -> bool {
    let mut changed = (0..old.len()).filter(|&axis| old.get(axis) != new.get(axis));
    let Some(first) = changed.next() else { return true };
    let last = changed.next_back().unwrap_or(first);
    // If the outermost dimension grows, then the inferred dimension inside of it grows.
    if last == 0 && !before.is_empty() {
        return true;
    }
    // A neighbour of size 1 might be the dimension that changed.
    if before.last() == Some(&1) || behind.first() == Some(&1) {
        return false;
    }
    // A shape's number of elements fits a machine word.
    let fits = |dims: &[usize], factors: &[usize]| {
        product("dimensions", factors)
            .is_ok_and(|factor| dims.iter().product::<usize>().is_multiple_of(factor))
    };
    fits(&old[..first], before) && fits(&old[last + 1..], behind)
}

impl Operator for ConstantPad {
    fn kind(&self) -> &'static str {
        "static_constant_pad"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        expect_length("padding", &self.before, shape)?;
        expect_length("padding", &self.after, shape)?;
        if self.before.iter().chain(&self.after).any(|&length| length > MAX_PADDING) {
            return Err(Error::unsupported("the padding is too large"));
        }
        let padded =
            shape.iter().zip(&self.before).zip(&self.after).map(|((dim, before), after)| {
                dim.checked_add(*before).and_then(|sum| sum.checked_add(*after))
            });
        let dims = padded
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::invalid("the padded shape is too large"))?;
        Ok(vec![Shape::new(&dims)?])
    }

    fn fusion(&self) -> Fusion {
        Fusion::Pad
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`; both lists have an entry
        // for each dimension.
        unsafe {
            sys::xnn_define_static_constant_pad(
                graph,
                self.before.as_ptr(),
                self.after.as_ptr(),
                self.value,
                ids.of(self.input),
                ids.of(self.output),
                0,
            )
        }
    }
}

impl Operator for ExpandDims {
    fn kind(&self) -> &'static str {
        "static_expand_dims"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        if self.axes.is_empty() || !self.axes.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid(format!("axes {:?} are empty or not ascending", self.axes)));
        }
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let mut dims = cx.shape(self.input)?.to_vec();
        for &axis in &self.axes {
            if axis > dims.len() || dims.len() == MAX_DIMS {
                return Err(Error::invalid(format!(
                    "axes {:?} are out of range for shape {dims:?}",
                    self.axes
                )));
            }
            dims.insert(axis, 1);
        }
        Ok(vec![Shape::new(&dims)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (count, axes) = (self.axes.len(), self.axes.as_ptr());
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`; `infer` accepts at most
        // `MAX_DIMS` axes.
        unsafe { sys::xnn_define_static_expand_dims(graph, count, axes, input, output, 0) }
    }
}

impl Operator for Reshape {
    fn kind(&self) -> &'static str {
        "static_reshape"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        if self.dims.len() > MAX_DIMS || self.dims.iter().filter(|&&dim| dim == 0).count() > 1 {
            return Err(Error::invalid(format!("shape {:?} is not valid", self.dims)));
        }
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let input = cx.shape(self.input)?;
        let defined = cx.defined_shape(self.input).unwrap_or(input);
        let open = self.dims.iter().position(|&dim| dim == 0);
        let others = open.map(|open| [&self.dims[..open], &self.dims[open + 1..]]);
        // A batch is always the outermost dimension. Another one may be spread over several, or be
        // in none.
        let follows = cx.only_batch
            || self.is_open
            || defined.len() == input.len()
                && others.is_none_or(|others| belongs(&defined, &input, others));
        if !follows {
            return Err(Error::invalid(format!(
                "shape {input:?} cannot become {:?}, as {defined:?} did: only the batch may change, \
                 or what is 0",
                self.dims
            )));
        }
        let known = self.dims.iter().copied().filter(|&dim| dim != 0).collect::<Vec<_>>();
        let known = product("dimensions", &known)?;
        let free = input.elements() / known;
        let dims = self.dims.iter().map(|&dim| if dim == 0 { free } else { dim });
        let output = Shape::new(&dims.collect::<Vec<_>>())?;
        if output.elements() != input.elements() {
            return Err(Error::invalid(format!(
                "shape {input:?} cannot become {:?}; it was {defined:?}",
                self.dims
            )));
        }
        Ok(vec![output])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (rank, dims) = (self.dims.len(), self.dims.as_ptr());
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`; `check` accepts at most
        // `MAX_DIMS` dimensions.
        unsafe { sys::xnn_define_static_reshape(graph, rank, dims, input, output, 0) }
    }
}

impl Operator for Slice {
    fn kind(&self) -> &'static str {
        "static_slice"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        if shape.is_empty() {
            return Err(Error::unsupported("a tensor without dimensions cannot be sliced"));
        }
        expect_length("offsets", &self.offsets, shape)?;
        expect_length("sizes", &self.sizes, shape)?;
        let defined = cx.defined_shape(self.input).unwrap_or(shape);
        let mut sizes = Vec::with_capacity(shape.len());
        for ((&dim, &offset), &size) in shape.iter().zip(&self.offsets).zip(&self.sizes) {
            // XNNPACK would also treat a size of 0 after an offset as the whole dimension.
            let size = if size == 0 && offset == 0 { dim } else { size };
            if offset.checked_add(size).is_none_or(|end| end > dim) {
                return Err(Error::invalid(format!(
                    "{size} elements from offset {offset} are outside a dimension of {dim}"
                )));
            }
            sizes.push(size);
        }
        // The part may be a fraction of the dimension, such as its half.
        let is_cut = |axis: &usize| self.sizes[*axis] != 0 || self.offsets[*axis] != 0;
        if let Some(axis) =
            (0..shape.len()).filter(is_cut).find(|&axis| defined.get(axis) != shape.get(axis))
        {
            return Err(Error::invalid(format!(
                "dimension {axis} of shape {shape:?} is sliced, and must stay as in {defined:?}"
            )));
        }
        Ok(vec![Shape::new(&sizes)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`; both lists have an entry
        // for each dimension.
        unsafe {
            sys::xnn_define_static_slice(
                graph,
                self.offsets.len(),
                self.offsets.as_ptr(),
                self.sizes.as_ptr(),
                ids.of(self.input),
                ids.of(self.output),
                0,
            )
        }
    }
}

impl Operator for Transpose {
    fn kind(&self) -> &'static str {
        "static_transpose"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        let shape = cx.shape(self.input)?;
        expect_length("permutation", &self.perm, shape)?;
        let distinct = (0..shape.len()).all(|axis| self.perm.contains(&axis));
        if shape.is_empty() || !distinct {
            return Err(Error::invalid(format!(
                "{:?} is not a permutation of the dimensions of shape {shape:?}",
                self.perm
            )));
        }
        let dims = self.perm.iter().filter_map(|&axis| shape.get(axis).copied());
        Ok(vec![Shape::new(&dims.collect::<Vec<_>>())?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        let (rank, perm) = (self.perm.len(), self.perm.as_ptr());
        let (input, output) = (ids.of(self.input), ids.of(self.output));
        // SAFETY: the caller upholds the contract of `Operator::define`; the list has an entry for
        // each dimension.
        unsafe { sys::xnn_define_static_transpose(graph, rank, perm, input, output, 0) }
    }
}

impl Operator for Copy {
    fn kind(&self) -> &'static str {
        "copy"
    }

    fn links(&self) -> Links {
        Links::new([self.input], [self.output])
    }

    fn check(&self, cx: &Context<'_>) -> Result<()> {
        check_move(cx, self.input, self.output)
    }

    fn infer(&self, cx: &Context<'_>) -> Result<Vec<Shape>> {
        Ok(vec![cx.shape(self.input)?])
    }

    unsafe fn define(&self, graph: sys::xnn_subgraph_t, ids: &RawIds<'_>) -> sys::xnn_status {
        // SAFETY: the caller upholds the contract of `Operator::define`.
        unsafe { sys::xnn_define_copy(graph, ids.of(self.input), ids.of(self.output), 0) }
    }
}
