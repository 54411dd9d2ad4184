//! Variables and tables, which live longer than a run.

use std::collections::HashMap;

use xnn_model::Op;

use crate::error::{Refusal, refuse};
use crate::storage::TensorBuf;
use crate::tensor::TensorRef;

/// What VAR_HANDLE and HASHTABLE name, by handle.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    variables: Vec<Option<TensorBuf>>,
    tables: HashMap<u64, HashMap<i64, TableValue>>,
    /// Subgraphs that CALL_ONCE has run.
    pub(crate) initialized: Vec<usize>,
}

/// A value of a table.
pub(crate) type TableValue = i64;

/// What a resource is known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Variable { container: String, shared_name: String },
    Table { id: i32 },
}

impl Name {
    /// The resource that an operator stands for.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        Some(match op {
            Op::VarHandle(options) => Self::Variable {
                container: options.container.clone(),
                shared_name: options.shared_name.clone(),
            },
            Op::Hashtable(options) => Self::Table { id: options.table_id },
            _ => return None,
        })
    }
}

impl Resources {
    /// So many resources, without values.
    pub(crate) fn new(count: usize) -> Self {
        let variables = (0..count).map(|_| None).collect();
        Self { variables, ..Self::default() }
    }

    pub(crate) fn variable(&self, handle: u64) -> Result<&TensorBuf, Refusal> {
        match self.variables.get(usize::try_from(handle).unwrap_or(usize::MAX)) {
            Some(Some(value)) => Ok(value),
            Some(None) => refuse("a variable that has not been assigned"),
            None => refuse(format!("handle {handle} stands for no variable")),
        }
    }

    pub(crate) fn assign(&mut self, handle: u64, value: TensorRef<'_>) -> Result<(), Refusal> {
        let place = self.variables.get_mut(usize::try_from(handle).unwrap_or(usize::MAX));
        let Some(place) = place else {
            return refuse(format!("handle {handle} stands for no variable"));
        };
        let variable = place.get_or_insert_with(|| TensorBuf::empty(value.dtype));
        let assigned = variable.output().assign(value);
        assigned.ok_or_else(|| Refusal("there is no memory for the variable".into()))
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
        *self = Self::new(self.variables.len());
    }
}
