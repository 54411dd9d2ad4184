//! Entry points and options.

use std::fmt;
use std::sync::Arc;

use xnn_model::{ModelLimits, SubgraphId};

use crate::delegate::Delegate;

/// The entry point of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The first subgraph.
    #[default]
    Main,
    /// The subgraph with this index.
    Subgraph(SubgraphId),
    /// The subgraph of the signature with this key.
    Signature(&'a str),
}

/// Options of an interpreter.
#[derive(Clone, Default)]
pub struct InterpOptions {
    /// Limits on sizes, loops and calls.
    pub limits: ModelLimits,
    /// Engines that may claim operators, in order of precedence.
    pub delegates: Vec<Arc<dyn Delegate>>,
    /// Keeps every intermediate tensor for [`Interpreter::tensor`](crate::Interpreter::tensor),
    /// which takes more memory.
    pub keep_intermediates: bool,
}

impl fmt::Debug for InterpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let delegates: Vec<&str> = self.delegates.iter().map(|d| d.name()).collect();
        f.debug_struct("InterpOptions")
            .field("limits", &self.limits)
            .field("delegates", &delegates)
            .field("keep_intermediates", &self.keep_intermediates)
            .finish()
    }
}
