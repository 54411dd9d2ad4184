//! Sparse constants as TFLite stores them: dimensions and blocks traversed in
//! some order, each dense or compressed.

use xnn_model::{SparseDimension, Sparsity};

use super::strides::strides;
use crate::error::{Refusal, refuse};

/// The dense elements, of `width` bytes each.
pub(super) fn densify(
    sparsity: &Sparsity,
    shape: &[usize],
    width: usize,
    values: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let layout = Layout::new(sparsity, shape)?;
    let mut dense = vec![0; shape.iter().product::<usize>() * width];
    let mut values = values.chunks_exact(width);
    let mut index = vec![0; sparsity.dimensions.len()];
    layout.fill(0, 0, &mut index, &mut |target| {
        let value = values.next().ok_or_else(|| Refusal("too few values".into()))?;
        let target = dense.get_mut(target * width..).and_then(|rest| rest.get_mut(..width));
        target.ok_or_else(|| Refusal("a value outside the tensor".into()))?.copy_from_slice(value);
        Ok(())
    })?;
    Ok(dense)
}

struct Layout<'a> {
    sparsity: &'a Sparsity,
    /// For each traversed dimension: elements from one index to the next.
    steps: Vec<usize>,
}

impl<'a> Layout<'a> {
    fn new(sparsity: &'a Sparsity, shape: &[usize]) -> Result<Self, Refusal> {
        let rank = shape.len();
        let levels = sparsity.dimensions.len();
        let consistent = sparsity.traversal_order.len() == levels
            && levels == rank + sparsity.block_map.len()
            && sparsity.block_map.iter().all(|&d| d < rank)
            && sparsity.traversal_order.iter().all(|&d| d < levels);
        if !consistent {
            return refuse("sparsity that does not fit the shape");
        }
        let own = strides(shape);
        // An index of a blocked dimension counts blocks.
        let mut block_sizes = vec![1; rank];
        for (level, &dim) in sparsity.traversal_order.iter().enumerate() {
            if let Some(&blocked) = dim.checked_sub(rank).and_then(|b| sparsity.block_map.get(b)) {
                block_sizes[blocked] = match &sparsity.dimensions[level] {
                    SparseDimension::Dense { size } => *size,
                    SparseDimension::Csr { .. } => return refuse("compressed blocks"),
                };
            }
        }
        let step = |&dim: &usize| match dim.checked_sub(rank) {
            None => own[dim] * block_sizes[dim],
            Some(block) => own[sparsity.block_map[block]],
        };
        Ok(Self { sparsity, steps: sparsity.traversal_order.iter().map(step).collect() })
    }

    /// Visits the stored elements in their order with their places; `parent`
    /// is the position among all stored indices of the level above.
    fn fill(
        &self,
        level: usize,
        parent: usize,
        index: &mut Vec<usize>,
        visit: &mut impl FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(dimension) = self.sparsity.dimensions.get(level) else {
            return visit(index.iter().zip(&self.steps).map(|(i, step)| i * step).sum());
        };
        match dimension {
            SparseDimension::Dense { size } => {
                for i in 0..*size {
                    index[level] = i;
                    self.fill(level + 1, parent * size + i, index, visit)?;
                }
            }
            SparseDimension::Csr { segments, indices } => {
                let (Some(&start), Some(&end)) = (segments.get(parent), segments.get(parent + 1))
                else {
                    return refuse("too few segments");
                };
                for position in start..end {
                    let Some(&i) = indices.get(position) else {
                        return refuse("too few indices");
                    };
                    index[level] = i;
                    self.fill(level + 1, position, index, visit)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// [[0, 0, 5, 0], [6, 0, 0, 7]]: rows dense, columns compressed.
    #[test]
    fn compressed_rows() {
        let sparsity = Sparsity {
            traversal_order: vec![0, 1],
            block_map: vec![],
            dimensions: vec![
                SparseDimension::Dense { size: 2 },
                SparseDimension::Csr { segments: vec![0, 1, 3], indices: vec![2, 0, 3] },
            ],
        };
        let dense = densify(&sparsity, &[2, 4], 1, &[5, 6, 7]).unwrap();
        assert_eq!(dense, [0, 0, 5, 0, 6, 0, 0, 7]);
        assert!(densify(&sparsity, &[2, 4], 1, &[5, 6]).is_err());
    }

    /// Blocks of two columns: [[1, 2, 0, 0], [0, 0, 3, 4]].
    #[test]
    fn blocks() {
        let sparsity = Sparsity {
            traversal_order: vec![0, 1, 2],
            block_map: vec![1],
            dimensions: vec![
                SparseDimension::Dense { size: 2 },
                SparseDimension::Csr { segments: vec![0, 1, 2], indices: vec![0, 1] },
                SparseDimension::Dense { size: 2 },
            ],
        };
        let dense = densify(&sparsity, &[2, 4], 1, &[1, 2, 3, 4]).unwrap();
        assert_eq!(dense, [1, 2, 0, 0, 0, 0, 3, 4]);
    }
}
