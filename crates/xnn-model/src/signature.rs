//! Selects signatures: entry points with named inputs and outputs.

use std::sync::Arc;

use crate::error::Error;
use crate::graph::Model;
use crate::types::{SubgraphId, TensorId};

impl Model {
    /// Returns the model with the names of the signature `key`, and the index of the signature's
    /// subgraph. Inputs and outputs of the subgraph are renamed to the signature's names; their
    /// order does not change.
    ///
    /// # Errors
    ///
    /// The model does not have the signature (the error lists its signatures), or the signature
    /// refers to a tensor that is not an input or output of its subgraph.
    pub fn at_signature(&self, key: &str) -> Result<(Self, SubgraphId), Error> {
        let signature = self.signature(key).ok_or_else(|| self.no_signature(key))?;
        let mut model = self.clone();
        let graph = model.subgraphs.get_mut(signature.subgraph).map(Arc::make_mut);
        let graph = graph.ok_or_else(|| {
            Error::invalid(format!("signature {key:?} runs subgraph {}", signature.subgraph))
        })?;
        let roles = [
            ("input", &signature.inputs, &graph.inputs),
            ("output", &signature.outputs, &graph.outputs),
        ];
        for (role, names, ids) in roles {
            for (name, id) in names {
                let tensor = graph.tensors.get_mut::<TensorId>(*id).filter(|_| ids.contains(id));
                let tensor = tensor.ok_or_else(|| {
                    Error::invalid(format!(
                        "signature {key:?}: {name:?} is tensor {id}, which is not an {role} of subgraph {}",
                        signature.subgraph
                    ))
                })?;
                tensor.name.clone_from(name);
            }
        }
        Ok((model, signature.subgraph))
    }

    fn no_signature(&self, key: &str) -> Error {
        let known: Vec<String> = self.signatures.iter().map(|s| format!("{:?}", s.key)).collect();
        Error::invalid(match known.as_slice() {
            [] => format!("no signature {key:?}: the model has no signatures"),
            known => format!("no signature {key:?}; the model has {}", known.join(", ")),
        })
    }
}
