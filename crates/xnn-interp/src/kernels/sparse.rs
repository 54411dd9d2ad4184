//! From the compressed storage of a constant to a dense one.
//!
//! The storage is that of the schema's `SparsityParameters` (after the TACO
//! format, Kjolstad et al., "The Tensor Algebra Compiler"): dimensions are
//! stored in `traversal_order`, each dense or compressed; dimensions behind the
//! tensor's rank are blocks that split the dimension `block_map` names.

use xnn_model::{SparseDimension, Sparsity, Tensor};

/// The dense elements of a sparse constant; `None` if its description is
/// inconsistent or its elements are not whole bytes.
pub(super) fn densified(tensor: &Tensor) -> Option<Vec<u8>> {
    let sparsity = tensor.sparsity.as_deref()?;
    let shape = tensor.shape.as_deref()?;
    let element = tensor.dtype.bits().filter(|bits| bits % 8 == 0)? / 8;
    let layout = layout(sparsity, shape)?;
    if shape.contains(&0) {
        return tensor.data.as_deref()?.is_empty().then(Vec::new);
    }
    let mut walk = Walk {
        sparsity,
        layout,
        stored: tensor.data.as_deref()?.chunks_exact(element),
        element,
        dense: vec![0; tensor.byte_size()?],
    };
    walk.dimension(0, 0, 0)?;
    // Everything stored must have found its place.
    walk.stored.next().is_none().then_some(walk.dense)
}

/// What the index of a stored dimension means in the dense tensor.
struct Step {
    /// Elements that one more moves.
    elements: usize,
    /// How many indices there are.
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
    // Elements between neighbours along each dimension of the tensor.
    let mut strides = vec![1usize; rank];
    for d in (1..rank).rev() {
        strides[d - 1] = strides[d].checked_mul(shape[d])?;
    }
    // Blocks split a dimension: its own index then counts blocks.
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
    // A walk visits no more than the tensor's elements on any level.
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
    /// Visits a stored dimension; `parent` is the position among the stored
    /// entries of the dimension above, `offset` the place in the dense tensor.
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

    use std::sync::Arc;

    use bytes::Bytes;
    use xnn_model::DType;

    use super::*;

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
        assert!(densified(&sparse(&[3, 4], rows(), &[1, 2])).is_none(), "too few elements");
        assert!(densified(&sparse(&[3, 4], rows(), &[1, 2, 3, 4])).is_none(), "too many elements");
        assert!(
            densified(&sparse(&[3, 3], rows(), &[1, 2, 3])).is_none(),
            "an index in another row"
        );
        let mut short = rows();
        short.traversal_order = vec![0, 0];
        assert!(densified(&sparse(&[3, 4], short, &[1, 2, 3])).is_none(), "no order");
        let mut long = rows();
        long.dimensions[0] = SparseDimension::Dense { size: usize::MAX };
        assert!(
            densified(&sparse(&[3, 4], long, &[1, 2, 3])).is_none(),
            "more rows than there are"
        );
        // Ten to the 24th visits that find nothing.
        let blocks = Sparsity {
            traversal_order: (1..=8).chain([0]).collect(),
            block_map: vec![0; 8],
            dimensions: [1000; 8]
                .into_iter()
                .chain([0])
                .map(|size| SparseDimension::Dense { size })
                .collect(),
        };
        assert!(densified(&sparse(&[1000], blocks, &[1])).is_none(), "blocks of blocks");
        let mut outside = rows();
        outside.dimensions[1] =
            SparseDimension::Csr { segments: vec![0, 2, 2, 3], indices: vec![0, 3, 99] };
        assert!(densified(&sparse(&[3, 4], outside, &[1, 2, 3])).is_none(), "outside the tensor");
    }
}
