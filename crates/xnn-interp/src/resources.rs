//! Variables and tables, which live longer than a run.

use std::collections::HashMap;

use crate::storage::TensorBuf;
use crate::tensor::TensorRef;

/// What VAR_HANDLE and HASHTABLE name.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    handles: HashMap<Name, u64>,
    variables: HashMap<u64, TensorBuf>,
    tables: HashMap<u64, HashMap<i64, TableValue>>,
    /// Subgraphs that CALL_ONCE has run.
    pub(crate) initialized: Vec<usize>,
}

/// A value of a table.
pub(crate) type TableValue = i64;

/// What a resource is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Variable { container: String, shared_name: String },
    Table { id: i32 },
}

impl Resources {
    /// The handle for a name, the same for the life of the interpreter.
    pub(crate) fn handle(&mut self, name: &Name) -> u64 {
        if let Some(&handle) = self.handles.get(name) {
            return handle;
        }
        let handle = self.handles.len() as u64;
        self.handles.insert(name.clone(), handle);
        handle
    }

    pub(crate) fn variable(&self, handle: u64) -> Option<&TensorBuf> {
        self.variables.get(&handle)
    }

    /// `None` if there is no memory for the value.
    pub(crate) fn assign(&mut self, handle: u64, value: TensorRef<'_>) -> Option<()> {
        let variable = self.variables.entry(handle);
        variable.or_insert_with(|| TensorBuf::empty(value.dtype)).output().assign(value)
    }

    pub(crate) fn table(&self, handle: u64) -> Option<&HashMap<i64, TableValue>> {
        self.tables.get(&handle)
    }

    pub(crate) fn import(&mut self, handle: u64, table: HashMap<i64, TableValue>) {
        // A table is filled once; later imports do nothing.
        self.tables.entry(handle).or_insert(table);
    }

    /// Forgets all values; handles stay.
    pub(crate) fn reset(&mut self) {
        self.variables.clear();
        self.tables.clear();
        self.initialized.clear();
    }
}
