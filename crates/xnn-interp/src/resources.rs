//! Variables, hash tables and random generators, which outlive a run.

use std::collections::HashMap;

use xnn_model::Op;

use crate::error::{Refusal, refuse};
use crate::philox::Generators;
use crate::storage::TensorBuf;

/// All state that outlives a run.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    pub(crate) variables: Variables,
    pub(crate) tables: Tables,
    pub(crate) generators: Generators,
    /// Subgraphs that CALL_ONCE has already run.
    pub(crate) initialized: Vec<usize>,
}

/// Values of variables by handle; `None` until the first assignment.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<Option<TensorBuf>>);

/// Hash tables by handle.
#[derive(Debug, Default)]
pub(crate) struct Tables(HashMap<u64, HashMap<Atom, Atom>>);

/// A key or value of a hash table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    Int(i64),
    String(Box<[u8]>),
}

impl Atom {
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            Self::String(_) => None,
        }
    }

    pub(crate) fn string(&self) -> Option<&[u8]> {
        match self {
            Self::Int(_) => None,
            Self::String(string) => Some(string),
        }
    }
}

/// The name of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Variable { container: String, shared_name: String },
    Table { id: i32 },
}

impl Name {
    /// The resource that an operator creates a handle of.
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
    /// This many resources, without values.
    pub(crate) fn new(count: usize) -> Self {
        let variables = Variables((0..count).map(|_| None).collect());
        Self { variables, ..Self::default() }
    }

    /// Moves values from the resources of another plan, matched by name. Positions in `names` and
    /// `other_names` are handles. Generators remain, because they belong to one operator.
    pub(crate) fn adopt(&mut self, names: &[Name], other: &mut Self, other_names: &[Name]) {
        for (handle, name) in names.iter().enumerate() {
            let Some(place) = other_names.iter().position(|other| other == name) else { continue };
            let value = other.variables.0.get_mut(place).and_then(Option::take);
            if let (Some(value), Some(mine)) = (value, self.variables.0.get_mut(handle)) {
                *mine = Some(value);
            }
            if let Some(table) = other.tables.get(place as u64) {
                self.tables.import(handle as u64, table.clone());
            }
        }
        for &subgraph in &other.initialized {
            if !self.initialized.contains(&subgraph) {
                self.initialized.push(subgraph);
            }
        }
    }

    /// Removes all values. Handles stay valid.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.variables.0.len());
    }
}

impl Variables {
    pub(crate) fn get(&self, handle: u64) -> Result<&TensorBuf, Refusal> {
        match self.0.get(usize::try_from(handle).unwrap_or(usize::MAX)) {
            Some(Some(value)) => Ok(value),
            Some(None) => refuse("the variable is read before it is assigned"),
            None => refuse(format!("handle {handle} does not belong to a variable")),
        }
    }

    /// The slot of a variable's value.
    pub(crate) fn place(&mut self, handle: u64) -> Result<&mut Option<TensorBuf>, Refusal> {
        let place = self.0.get_mut(usize::try_from(handle).unwrap_or(usize::MAX));
        place.ok_or_else(|| Refusal(format!("handle {handle} does not belong to a variable")))
    }
}

impl Tables {
    pub(crate) fn get(&self, handle: u64) -> Option<&HashMap<Atom, Atom>> {
        self.0.get(&handle)
    }

    pub(crate) fn import(&mut self, handle: u64, table: HashMap<Atom, Atom>) {
        // A table is filled once; later imports have no effect.
        self.0.entry(handle).or_insert(table);
    }
}
