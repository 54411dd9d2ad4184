//! Converts sparse constants to dense constants.
//!
//! The layout is that of the schema's `SparsityParameters` (after the TACO format, Kjolstad et al.,
//! "The Tensor Algebra Compiler"): dimensions are stored in `traversal_order`, each dense or
//! compressed; dimensions from the tensor's rank on are blocks that split the dimension in
//! `block_map`.

use std::sync::Arc;

use crate::graph::{SparseDimension, Sparsity, Subgraph, Tensor};
use crate::op::Op;
use crate::types::TensorId;

/// Maximum ratio of the dense size to the stored size, so that a small file does not take much
/// memory. Real weights have fewer zeros.
const GROWTH: usize = 256;

/// Dense size in bytes that is allowed at any ratio.
const FEW_BYTES: usize = 1 << 16;

/// Converts the sparse constants that operators other than DENSIFY read.
///
/// A constant that cannot be converted becomes unusable, with the reason of [`densified`].
pub(crate) fn unpack(subgraph: &mut Arc<Subgraph>) {
    let is_sparse =
        |id: &TensorId| subgraph.tensors.get(*id).is_some_and(|tensor| tensor.sparsity.is_some());
    let readers = subgraph.operators.iter().filter(|operator| operator.op != Op::Densify);
    let mut read: Vec<TensorId> = readers
        .flat_map(|reader| reader.inputs.iter().flatten())
        .copied()
        .filter(is_sparse)
        .collect();
    read.sort_unstable();
    read.dedup();
    for id in read {
        let tensor = &mut Arc::make_mut(subgraph).tensors[id];
        match densified(tensor) {
            Ok(dense) => tensor.data = Some(dense.into()),
            Err(reason) => tensor.unusable = Some(reason.into()),
        }
        tensor.sparsity = None;
    }
}

/// The dense elements of a sparse constant, row-major. Elements that are not stored are 0.
///
/// # Errors
///
/// A phrase for error messages: the tensor is not a sparse constant, its layout is inconsistent,
/// its elements are not whole bytes, or the dense size is more than 256 times the stored size.
pub fn densified(tensor: &Tensor) -> Result<Vec<u8>, &'static str> {
    let (Some(sparsity), Some(data)) = (tensor.sparsity.as_deref(), tensor.data.as_deref()) else {
        return Err("it is not a sparse constant");
    };
    let whole_bytes = tensor.dtype.bits().filter(|bits| bits % 8 == 0);
    let element = whole_bytes.ok_or("its sparse elements are not whole bytes")? / 8;
    let contradiction = "its sparse elements do not match their layout";
    let shape = tensor.shape.as_deref().ok_or(contradiction)?;
    let size = tensor.byte_size().ok_or(contradiction)?;
    if size > FEW_BYTES.max(data.len().saturating_mul(GROWTH)) {
        return Err("its sparse elements would take more than 256 times their memory when dense");
    }
    let layout = layout(sparsity, shape).ok_or(contradiction)?;
    let mut dense = Vec::new();
    dense.try_reserve_exact(size).map_err(|_| "out of memory for its dense elements")?;
    dense.resize(size, 0);
    let mut walk = Walk { sparsity, layout, stored: data.chunks_exact(element), element, dense };
    if size > 0 {
        walk.dimension(0, 0, 0).ok_or(contradiction)?;
    }
    // All stored elements must be used.
    match walk.stored.len() {
        0 => Ok(walk.dense),
        _ => Err(contradiction),
    }
}

/// A stored dimension in the dense tensor.
struct Step {
    /// Distance of consecutive indices in elements.
    elements: usize,
    /// Number of indices.
    count: usize,
}

/// The steps of the stored dimensions, in traversal order.
fn layout(sparsity: &Sparsity, shape: &[usize]) -> Option<Vec<Step>> {
    let rank = shape.len();
    let order = &sparsity.traversal_order;
    let all = rank.checked_add(sparsity.block_map.len())?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..all) || sparsity.dimensions.len() != all {
        return None;
    }
    let size_of = |dimension: usize| {
        let position = order.iter().position(|&d| d == dimension)?;
        match sparsity.dimensions.get(position)? {
            SparseDimension::Dense { size } => Some(*size),
            SparseDimension::Csr { .. } => None,
        }
    };
    // Strides of the dense tensor in elements.
    let mut strides = vec![1usize; rank];
    for d in (1..rank).rev() {
        strides[d - 1] = strides[d].checked_mul(shape[d])?;
    }
    // Block dimensions split a dimension, whose index then counts blocks.
    let mut block_sizes = vec![1usize; rank];
    for (block, &dimension) in sparsity.block_map.iter().enumerate() {
        *block_sizes.get_mut(dimension)? = size_of(rank + block).filter(|&size| size > 0)?;
    }
    let step = |&dimension: &usize| match dimension.checked_sub(rank) {
        None => Some(Step {
            elements: strides[dimension].checked_mul(block_sizes[dimension])?,
            count: shape[dimension] / block_sizes[dimension],
        }),
        Some(block) => {
            let split = *sparsity.block_map.get(block)?;
            Some(Step { elements: *strides.get(split)?, count: *block_sizes.get(split)? })
        }
    };
    let steps: Vec<Step> = order.iter().map(step).collect::<Option<_>>()?;
    // The walk visits at most as many entries per level as the tensor has elements.
    let is_whole = |(stored, step): (&SparseDimension, &Step)| match stored {
        SparseDimension::Dense { size } => *size == step.count,
        SparseDimension::Csr { .. } => true,
    };
    sparsity.dimensions.iter().zip(&steps).all(is_whole).then_some(steps)
}

struct Walk<'a> {
    sparsity: &'a Sparsity,
    layout: Vec<Step>,
    stored: std::slice::ChunksExact<'a, u8>,
    element: usize,
    dense: Vec<u8>,
}

impl Walk<'_> {
    /// Visits a stored dimension. `parent` is the position among the stored entries of the previous
    /// level, `offset` the offset in the dense tensor in elements.
    fn dimension(&mut self, level: usize, parent: usize, offset: usize) -> Option<()> {
        let Some(dimension) = self.sparsity.dimensions.get(level) else {
            let start = offset.checked_mul(self.element)?;
            let end = start.checked_add(self.element)?;
            self.dense.get_mut(start..end)?.copy_from_slice(self.stored.next()?);
            return Some(());
        };
        let Step { elements, count } = *self.layout.get(level)?;
        let place = |index: usize| {
            (index < count).then(|| offset.checked_add(index.checked_mul(elements)?)).flatten()
        };
        match dimension {
            SparseDimension::Dense { size } => {
                for index in 0..*size {
                    let position = parent.checked_mul(*size)?.checked_add(index)?;
                    self.dimension(level + 1, position, place(index)?)?;
                }
            }
            SparseDimension::Csr { segments, indices } => {
                let start = *segments.get(parent)?;
                let end = *segments.get(parent.checked_add(1)?)?;
                for position in start..end {
                    self.dimension(level + 1, position, place(*indices.get(position)?)?)?;
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::types::DType;
    use bytes::Bytes;

    fn sparse(shape: &[usize], sparsity: Sparsity, data: &'static [u8]) -> Tensor {
        let mut tensor = Tensor::new("sparse", DType::I8, shape);
        tensor.sparsity = Some(Arc::new(sparsity));
        tensor.data = Some(Bytes::from_static(data));
        tensor
    }

    fn rows() -> Sparsity {
        Sparsity {
            traversal_order: vec![0, 1],
            block_map: vec![],
            dimensions: vec![
                SparseDimension::Dense { size: 3 },
                SparseDimension::Csr { segments: vec![0, 2, 2, 3], indices: vec![0, 3, 1] },
            ],
        }
    }

    #[test]
    fn compressed_rows() {
        let tensor = sparse(&[3, 4], rows(), &[1, 2, 3]);
        assert_eq!(densified(&tensor).unwrap(), [1, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0]);
    }

    #[test]
    fn compressed_blocks() {
        let sparsity = Sparsity {
            traversal_order: vec![0, 1, 2, 3],
            block_map: vec![0, 1],
            dimensions: vec![
                SparseDimension::Dense { size: 1 },
                SparseDimension::Csr { segments: vec![0, 1], indices: vec![1] },
                SparseDimension::Dense { size: 2 },
                SparseDimension::Dense { size: 2 },
            ],
        };
        let tensor = sparse(&[2, 4], sparsity, &[1, 2, 3, 4]);
        assert_eq!(densified(&tensor).unwrap(), [0, 0, 1, 2, 0, 0, 3, 4]);
    }

    #[test]
    fn transposed_traversal() {
        let sparsity = Sparsity {
            traversal_order: vec![1, 0],
            block_map: vec![],
            dimensions: vec![
                SparseDimension::Dense { size: 2 },
                SparseDimension::Csr { segments: vec![0, 1, 2], indices: vec![1, 0] },
            ],
        };
        let tensor = sparse(&[2, 2], sparsity, &[7, 9]);
        assert_eq!(densified(&tensor).unwrap(), [0, 9, 7, 0]);
    }

    #[test]
    fn inconsistent_descriptions_are_refused() {
        assert!(densified(&sparse(&[3, 4], rows(), &[1, 2])).is_err(), "too few elements");
        assert!(densified(&sparse(&[3, 4], rows(), &[1, 2, 3, 4])).is_err(), "too many elements");
        assert!(
            densified(&sparse(&[3, 3], rows(), &[1, 2, 3])).is_err(),
            "an index in another row"
        );
        let mut short = rows();
        short.traversal_order = vec![0, 0];
        assert!(densified(&sparse(&[3, 4], short, &[1, 2, 3])).is_err(), "not a permutation");
        let mut long = rows();
        long.dimensions[0] = SparseDimension::Dense { size: usize::MAX };
        assert!(
            densified(&sparse(&[3, 4], long, &[1, 2, 3])).is_err(),
            "more rows than the tensor has"
        );
        // 10^24 visits without a stored element.
        let blocks = Sparsity {
            traversal_order: (1..=8).chain([0]).collect(),
            block_map: vec![0; 8],
            dimensions: [1000; 8]
                .into_iter()
                .chain([0])
                .map(|size| SparseDimension::Dense { size })
                .collect(),
        };
        assert!(densified(&sparse(&[1000], blocks, &[1])).is_err(), "blocks of blocks");
        let mut outside = rows();
        outside.dimensions[1] =
            SparseDimension::Csr { segments: vec![0, 2, 2, 3], indices: vec![0, 3, 99] };
        assert!(densified(&sparse(&[3, 4], outside, &[1, 2, 3])).is_err(), "outside the tensor");
    }
}
