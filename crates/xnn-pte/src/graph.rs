//! Reads XN01 graphs from delegates.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use xnn_format::{Blob, ConstantSource, ReadOptions};

use crate::error::{Error, ErrorKind, Result};
use crate::program::{Delegate, Method, PteProgram};

/// The graph in an XNNPACK delegate's payload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct XnnpackGraph {
    /// The payload as a blob, with all constants.
    pub blob: Blob,
    /// The constants from the program's named data, sorted by key.
    pub named: Vec<NamedConstant>,
}

/// A constant of a payload from the program's named data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedConstant {
    /// The key; ExecuTorch uses the SHA-256 of the bytes.
    pub key: String,
    /// Size in bytes.
    pub size: usize,
}

impl PteProgram {
    /// Reads the graph of one of the program's XNNPACK delegates.
    ///
    /// # Errors
    /// The delegate belongs to another backend, [`Blob::from_bytes_with`] refuses the payload, or
    /// the program does not have a named constant. The error names the method and the delegate.
    pub fn xnnpack_graph(&self, method: &Method, delegate: &Delegate) -> Result<XnnpackGraph> {
        self.read_graph(delegate)
            .map_err(|error| error.in_method(&method.name).in_delegate(delegate.index))
    }

    fn read_graph(&self, delegate: &Delegate) -> Result<XnnpackGraph> {
        if !delegate.is_xnnpack() {
            return Err(Error::from(ErrorKind::Backend(delegate.backend.clone())));
        }
        let constants = Recorder { program: self, taken: RefCell::default() };
        let options =
            ReadOptions { limits: self.limits.graph.clone(), constants: Some(&constants) };
        let blob = Blob::from_bytes_with(delegate.payload.clone(), &options)?;
        let taken = constants.taken.into_inner().into_iter();
        let named = taken.map(|(key, size)| NamedConstant { key, size }).collect();
        Ok(XnnpackGraph { blob, named })
    }
}

/// Named data of a program, recording the used keys.
struct Recorder<'a> {
    program: &'a PteProgram,
    taken: RefCell<BTreeMap<String, usize>>,
}

impl ConstantSource for Recorder<'_> {
    fn get(&self, key: &str) -> Option<Bytes> {
        let bytes = self.program.get(key)?;
        self.taken.borrow_mut().insert(key.to_owned(), bytes.len());
        Some(bytes)
    }
}
