//! Signatures: entry points with names of their own for inputs and outputs.

use std::sync::Arc;

use crate::error::Error;
use crate::graph::{Model, SubgraphId, TensorId};

impl Model {
    /// The model as the signature with this key presents it, and the subgraph
    /// that the signature runs: inputs and outputs of that subgraph have the
    /// signature's names instead of their own. Their order stays.
    ///
    /// # Errors
    ///
    /// There is no such signature (the error lists those that there are), or
    /// it names a tensor that is no input or output of its subgraph.
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
                        "signature {key:?}: {name:?} is tensor {id}, which is no {role} of subgraph {}",
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
            [] => format!("there is no signature {key:?}: the model has none"),
            known => format!("there is no signature {key:?}; there are: {}", known.join(", ")),
        })
    }
}
