//! Constants, read in place or copied.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use xnn_format::{Graph, Node, NodeOp, Value, ValueId, readable_behind};
use xnnpack::{AlignedBuffer, Role, StaticData};

use super::value::{input_id, missing, output_id};
use crate::error::{Result, RuntimeError};

/// Size in bytes up to which constants that runs read are copied: reading one byte of a file may
/// bring megabytes around it into memory, if the system caches the file in pieces of that size.
const SMALL: usize = 4096;

/// Roles of all values.
pub(super) struct Roles {
    pub(super) of_values: Vec<Role>,
    /// See [`Defined::read_in_place`](super::Defined::read_in_place).
    pub(super) read_in_place: Vec<Bytes>,
}

/// Roles of all values.
pub(super) fn roles(graph: &Graph, storage: &Bytes) -> Result<Roles> {
    let packed: HashSet<ValueId> = graph.nodes.iter().flat_map(packed_inputs).collect();
    let mut copies = Copies::within(storage);
    let mut read_in_place = Vec::new();
    let mut role = |id: ValueId, value: &Value| {
        let Some(data) = &value.data else { return Ok(Role::Internal) };
        let element = value.datatype.byte_size(&[1]).unwrap_or(1);
        let is_aligned = data.as_ptr().addr().is_multiple_of(element);
        let is_packed = packed.contains(&id);
        let may_stay = data.len() > SMALL || is_packed || !copies.has_capacity(data);
        if !(is_aligned && may_stay) {
            return Ok(Role::Static(copies.of(data)?));
        }
        if !is_packed {
            read_in_place.push(data.clone());
        }
        Ok(Role::Static(static_data(data, storage)?))
    };
    let roles = (0u32..).map(ValueId).zip(&graph.values).map(|(id, value)| {
        role(id, value).map_err(|error: RuntimeError| error.of_value(graph, id.index()))
    });
    let mut roles = roles.collect::<Result<Vec<Role>>>()?;
    for (position, &id) in graph.inputs.iter().enumerate() {
        *roles.get_mut(id.index()).ok_or_else(|| missing(id))? = Role::Input(input_id(position));
    }
    for (position, &id) in graph.outputs.iter().enumerate() {
        let role = roles.get_mut(id.index()).ok_or_else(|| missing(id))?;
        *role = Role::Output(output_id(graph, position));
    }
    Ok(Roles { of_values: roles, read_in_place })
}

/// Operands of a node that XNNPACK packs, so that runs do not read them.
fn packed_inputs(node: &Node) -> Vec<ValueId> {
    match node.op {
        NodeOp::Conv2d(_)
        | NodeOp::DepthwiseConv2d(_)
        | NodeOp::ConvTranspose2d(_)
        | NodeOp::FullyConnected { .. }
        | NodeOp::BatchMatrixMultiply { .. } => node.inputs().into_iter().skip(1).collect(),
        _ => Vec::new(),
    }
}

/// Copies of constants that are small, or not aligned to their elements. Values that share bytes of
/// a file share the copy.
struct Copies<'s> {
    known: HashMap<(usize, usize), StaticData>,
    storage: &'s Bytes,
    /// Number of bytes that may still be copied. Overlapping constants must not multiply the size
    /// of the storage.
    left: usize,
}

impl<'s> Copies<'s> {
    fn within(storage: &'s Bytes) -> Self {
        Self { known: HashMap::new(), storage, left: storage.len() }
    }

    /// Whether a copy of `data` is within the limit.
    fn has_capacity(&self, data: &Bytes) -> bool {
        self.known.contains_key(&Self::key(data)) || self.taken_by(data) <= self.left
    }

    fn of(&mut self, data: &Bytes) -> Result<StaticData> {
        if !self.has_capacity(data) {
            let reason = "constants that are not aligned overlap, so that copies of them would exceed the size of the file";
            return Err(RuntimeError::graph(reason));
        }
        let taken = self.taken_by(data);
        match self.known.entry(Self::key(data)) {
            Entry::Occupied(copy) => Ok(copy.get().clone()),
            Entry::Vacant(place) => {
                self.left -= taken;
                Ok(place.insert(AlignedBuffer::try_copy_of(data)?.into()).clone())
            }
        }
    }

    fn key(data: &Bytes) -> (usize, usize) {
        (data.as_ptr().addr(), data.len())
    }

    /// Number of bytes that count towards the limit. Constants outside of the storage are limited
    /// elsewhere.
    fn taken_by(&self, data: &Bytes) -> usize {
        match readable_behind(data, self.storage) {
            Some(_) => data.len(),
            None => 0,
        }
    }
}

/// Returns a constant, with the bytes after it as padding if it is in `storage`.
pub(crate) fn static_data(data: &Bytes, storage: &Bytes) -> Result<StaticData> {
    let Some(behind) = readable_behind(data, storage) else {
        return Ok(StaticData::new(data.clone()));
    };
    let end = storage.len() - behind;
    Ok(StaticData::from_slice_of(storage, end - data.len()..end)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use xnn_format::{Datatype, Quantization};

    use super::*;

    /// Constants of values that share `len` bytes of `file` at `offset`. The first `packed` of them
    /// are filters.
    fn constants(
        file: &Bytes,
        [offset, len]: [usize; 2],
        datatypes: &[Datatype],
        packed: u32,
    ) -> Vec<StaticData> {
        let value = |&datatype: &Datatype| Value {
            data: Some(file.slice(offset..offset + len)),
            ..Value::new(datatype, Quantization::None, &[2])
        };
        let values = datatypes.iter().map(value).collect();
        let [input, output] = [ValueId(100), ValueId(101)];
        let node = |filter| {
            let filter = ValueId(filter);
            Node::new(NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false })
        };
        let nodes = (0..packed).map(node).collect();
        let roles = roles(&Graph { values, nodes, ..Graph::default() }, file);
        let constant = |role| if let Role::Static(data) = role { Some(data) } else { None };
        roles.unwrap().of_values.into_iter().filter_map(constant).collect()
    }

    fn file(len: usize) -> Bytes {
        Bytes::from_owner(AlignedBuffer::of(&vec![7u8; len]))
    }

    fn lies_in(constant: &StaticData, file: &Bytes) -> bool {
        file.as_ptr_range().contains(&constant.bytes().as_ptr())
    }

    #[test]
    fn values_that_share_bytes_share_their_copy() {
        let file = file(32);
        for offset in [0, 1, 4, 6] {
            let constants = constants(&file, [offset, 8], &[Datatype::F32; 3], 3);
            assert_eq!(constants.len(), 3);
            for constant in &constants {
                assert_eq!(constant.bytes(), [7; 8]);
                assert_eq!(constant.bytes().as_ptr(), constants[0].bytes().as_ptr());
                assert!(constant.bytes().as_ptr().addr().is_multiple_of(4));
                assert_eq!(lies_in(constant, &file), offset.is_multiple_of(4));
            }
        }
        let constants = constants(&file, [1, 8], &[Datatype::F32, Datatype::QInt8], 2);
        let [float, byte] = <[_; 2]>::try_from(constants).unwrap();
        assert!(!lies_in(&float, &file));
        assert!(lies_in(&byte, &file), "bytes need no alignment");
    }

    #[test]
    fn small_constants_that_runs_read_are_copied() {
        let file = file(SMALL + 64);
        for (len, packed, copied) in
            [(4, 0, true), (SMALL, 0, true), (SMALL + 4, 0, false), (4, 1, false)]
        {
            let constants = constants(&file, [0, len], &[Datatype::F32], packed);
            assert_eq!(constants[0].bytes().len(), len);
            assert_eq!(lies_in(&constants[0], &file), !copied, "{len} {packed}");
        }
    }

    #[test]
    fn copies_of_overlapping_parts_are_limited() {
        let file = file(64);
        let graph = |places: &[[usize; 2]]| Graph {
            values: places
                .iter()
                .map(|&[start, end]| Value {
                    data: Some(file.slice(start..end)),
                    ..Value::new(Datatype::F32, Quantization::None, &[2])
                })
                .collect(),
            ..Graph::default()
        };
        // The size of the file, with a shared part.
        assert!(roles(&graph(&[[1, 33], [33, 61], [1, 33]]), &file).is_ok());
        let error = roles(&graph(&[[1, 33], [5, 37], [9, 41]]), &file).err().unwrap();
        assert!(error.to_string().contains("not aligned overlap"), "{error}");
        // Constants outside of the storage are not limited here.
        assert!(roles(&graph(&[[1, 33], [5, 37], [9, 41]]), &Bytes::new()).is_ok());
        // Aligned constants are not copied.
        let roles = roles(&graph(&[[0, 32], [4, 36], [8, 40]]), &file).unwrap();
        assert_eq!(roles.read_in_place, [file.slice(8..40)]);
        let in_place = roles.of_values.iter().map(|role| match role {
            Role::Static(data) => lies_in(data, &file),
            _ => false,
        });
        assert_eq!(in_place.collect::<Vec<_>>(), [false, false, true]);
    }
}
