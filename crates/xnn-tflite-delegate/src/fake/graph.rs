//! Graph of the fake interpreter: nodes, tensors, and the memory that they point to.

use std::collections::HashSet;
use std::ffi::{CString, c_int, c_void};
use std::mem;

use crate::abi::{
    IntArray, TfLiteContext, TfLiteDelegate, TfLiteDelegateParams, TfLiteIntArray, TfLiteNode,
    TfLiteRegistration, TfLiteTensor, ints,
};

#[allow(clippy::vec_box, reason = "nodes stay where they are while others are added")]
pub(super) struct Inner {
    pub(super) context: TfLiteContext,
    pub(super) tensors: Vec<TfLiteTensor>,
    pub(super) nodes: Vec<Box<TfLiteNode>>,
    pub(super) registrations: Vec<Box<TfLiteRegistration>>,
    pub(super) plan: Vec<c_int>,
    pub(super) outputs: Vec<c_int>,
    pub(super) messages: Vec<String>,
    pub(super) replacements: usize,
    /// Memory that pointers of tensors and nodes refer to.
    pub(super) arrays: Vec<IntArray>,
    pub(super) memory: Vec<Vec<u64>>,
    pub(super) strings: Vec<CString>,
    pub(super) handed_out: Vec<TfLiteDelegateParams>,
}

/// Returns a structure of zeros, which is valid for all of TFLite's structures.
pub(super) fn zeroed<T>() -> T {
    // SAFETY: used for `repr(C)` structures of integers and floats, nullable pointers and options
    // of functions.
    unsafe { mem::zeroed() }
}

impl Inner {
    pub(super) fn array(&mut self, elements: &[c_int]) -> *const TfLiteIntArray {
        let array = IntArray::new(elements);
        let pointer = array.as_ptr();
        self.arrays.push(array);
        pointer
    }

    pub(super) fn memory(&mut self, bytes: usize, offset: usize) -> *mut c_void {
        let mut words = vec![0u64; bytes / 8 + 8];
        let pointer = words.as_mut_ptr().cast::<u8>();
        self.memory.push(words);
        // SAFETY: the allocation is longer than `bytes` plus `offset`, which is small.
        unsafe { pointer.add(offset) }.cast()
    }

    /// Groups nodes like TFLite: groups of claimed and other nodes alternate, starting with the
    /// kind that comes first in the plan.
    pub(super) fn subsets(&self, claimed: &HashSet<c_int>) -> Vec<(bool, Vec<c_int>)> {
        // SAFETY: arrays of the fake's own.
        let tensors = |array| unsafe { ints(array) }.iter().copied().filter(|&id| id >= 0);
        let node = |index: c_int| &self.nodes[index as usize];
        let mut unready: HashSet<c_int> =
            self.plan.iter().flat_map(|&index| tensors(node(index).outputs)).collect();
        let mut left = self.plan.clone();
        let mut subsets = Vec::new();
        while let Some(first) =
            left.iter().find(|&&index| tensors(node(index).inputs).all(|id| !unready.contains(&id)))
        {
            let kind = claimed.contains(first);
            let mut subset = Vec::new();
            left.retain(|&index| {
                let ready = tensors(node(index).inputs).all(|id| !unready.contains(&id));
                if claimed.contains(&index) != kind || !ready {
                    return true;
                }
                for id in tensors(node(index).outputs) {
                    unready.remove(&id);
                }
                subset.push(index);
                false
            });
            subsets.push((kind, subset));
        }
        subsets
    }

    pub(super) fn params(
        &mut self,
        subset: &[c_int],
        delegate: *mut TfLiteDelegate,
    ) -> TfLiteDelegateParams {
        let list = |index: &c_int, outputs: bool| -> Vec<c_int> {
            let node = &self.nodes[*index as usize];
            // SAFETY: arrays of the fake's own.
            unsafe { ints(if outputs { node.outputs } else { node.inputs }) }.to_vec()
        };
        let produced: Vec<c_int> = subset.iter().flat_map(|index| list(index, true)).collect();
        let outside = self.plan.iter().filter(|index| !subset.contains(index));
        let read: HashSet<c_int> = outside.flat_map(|index| list(index, false)).collect();
        let inputs: Vec<c_int> = subset
            .iter()
            .flat_map(|index| list(index, false))
            .filter(|id| *id >= 0 && !produced.contains(id))
            .collect();
        let is_output = |id: &c_int| read.contains(id) || self.outputs.contains(id);
        let outputs: Vec<c_int> = produced.into_iter().filter(is_output).collect();
        TfLiteDelegateParams {
            delegate,
            nodes_to_replace: self.array(subset),
            input_tensors: self.array(&inputs),
            output_tensors: self.array(&outputs),
        }
    }
}

/// Size of a tensor in bytes. Elements such as strings count as pointers.
pub(crate) fn bytes(element_type: c_int, dims: &[c_int]) -> usize {
    let size = match element_type {
        1 | 2 | 16 => 4,
        4 | 5 | 8 | 11 | 13..=15 => 8,
        7 | 10 | 17 | 19 => 2,
        12 => 16,
        _ => 1,
    };
    dims.iter().map(|&dim| dim as usize).product::<usize>() * size
}
