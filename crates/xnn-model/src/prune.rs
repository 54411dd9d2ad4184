//! Removes unused tensors.

use std::sync::Arc;

use crate::graph::Model;
use crate::types::{Quantization, SubgraphId, TensorId};

impl Model {
    /// Removes tensors, including constants, that no operator, input, output, signature or
    /// quantization refers to, and renumbers the others.
    pub fn drop_unused_tensors(&mut self) {
        for id in 0..self.subgraphs.len() {
            self.drop_unused_tensors_of(id);
        }
    }

    fn drop_unused_tensors_of(&mut self, id: SubgraphId) {
        let used = self.used_tensors(id);
        let mut next = 0;
        let number = |used: &bool| {
            let new = used.then_some(next);
            next += usize::from(*used);
            new
        };
        let places: Vec<Option<TensorId>> = used.iter().map(number).collect();
        // Every referenced tensor is used and has a new index.
        let renumber = |id: &mut TensorId| {
            if let Some(Some(new)) = places.get(*id) {
                *id = *new;
            }
        };
        let Some(graph) = self.subgraphs.get_mut(id).map(Arc::make_mut) else { return };
        let mut used = used.into_iter();
        graph.tensors.retain(|_| used.next().unwrap_or(true));
        for tensor in &mut graph.tensors {
            if let Some(Quantization::Blockwise { scales, zero_points, .. }) =
                &mut tensor.quantization
            {
                renumber(scales);
                zero_points.iter_mut().for_each(renumber);
            }
        }
        for operator in &mut graph.operators {
            operator.inputs.iter_mut().flatten().for_each(renumber);
            operator.outputs.iter_mut().for_each(renumber);
            operator.intermediates.iter_mut().for_each(renumber);
        }
        graph.inputs.iter_mut().for_each(renumber);
        graph.outputs.iter_mut().for_each(renumber);
        for signature in self.signatures.iter_mut().filter(|s| s.subgraph == id) {
            let named = signature.inputs.iter_mut().chain(&mut signature.outputs);
            named.for_each(|(_, tensor)| renumber(tensor));
        }
    }

    /// Whether each tensor of a subgraph is referenced.
    fn used_tensors(&self, id: SubgraphId) -> Vec<bool> {
        let Some(graph) = self.subgraphs.get(id) else { return Vec::new() };
        let mut used = vec![false; graph.tensors.len()];
        let mut mark = |id: TensorId| {
            if let Some(mark) = used.get_mut(id) {
                *mark = true;
            }
        };
        for operator in &graph.operators {
            operator.inputs.iter().flatten().copied().for_each(&mut mark);
            operator.outputs.iter().chain(&operator.intermediates).copied().for_each(&mut mark);
        }
        graph.inputs.iter().chain(&graph.outputs).copied().for_each(&mut mark);
        for signature in self.signatures.iter().filter(|s| s.subgraph == id) {
            let named = signature.inputs.iter().chain(&signature.outputs);
            named.for_each(|(_, tensor)| mark(*tensor));
        }
        // One pass suffices: scales are not quantized themselves.
        for (index, tensor) in graph.tensors.iter().enumerate() {
            if used.get(index) == Some(&true)
                && let Some(Quantization::Blockwise { scales, zero_points, .. }) =
                    tensor.quantization
            {
                for id in [Some(scales), zero_points].into_iter().flatten() {
                    if let Some(mark) = used.get_mut(id) {
                        *mark = true;
                    }
                }
            }
        }
        used
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is a failed test")]

    use super::*;
    use crate::graph::{Dialect, Operator, Signature, Subgraph, Tensor};
    use crate::op::Op;
    use crate::types::DType;

    #[test]
    fn references_to_used_tensors_are_renumbered() {
        let tensor = |name: &str| Tensor::new(name, DType::F32, &[1]);
        let mut weights = tensor("weights");
        weights.quantization =
            Some(Quantization::Blockwise { scales: 1, zero_points: None, block_size: 1 });
        let names = ["unused", "scales", "x", "unused too", "y", "signature only"];
        let mut tensors: Vec<Tensor> = names.map(tensor).into();
        tensors.push(weights);
        let operator = Operator {
            op: Op::FullyConnected(Default::default()),
            version: 1,
            inputs: vec![Some(2), Some(6), None],
            outputs: vec![4],
            intermediates: vec![],
        };
        let graph = Subgraph {
            name: String::new(),
            tensors,
            inputs: vec![2],
            outputs: vec![4],
            operators: vec![operator],
        };
        let signature = Signature {
            key: "main".into(),
            subgraph: 0,
            inputs: vec![("x".into(), 2), ("more".into(), 5)],
            outputs: vec![("y".into(), 4)],
        };
        let mut model = Model {
            dialect: Dialect::Tflite,
            version: 3,
            description: String::new(),
            subgraphs: vec![Arc::new(graph)],
            signatures: vec![signature],
            metadata: vec![],
            files: Default::default(),
            pages: Default::default(),
        };
        model.drop_unused_tensors();
        let graph = &model.subgraphs[0];
        let name = |id: TensorId| graph.tensor(id).name.as_str();
        assert_eq!(graph.tensors.len(), 5);
        assert_eq!((name(graph.inputs[0]), name(graph.outputs[0])), ("x", "y"));
        let [x, weights, bias] = graph.operators[0].inputs[..] else { panic!() };
        assert_eq!((x.map(name), weights.map(name), bias), (Some("x"), Some("weights"), None));
        let Some(Quantization::Blockwise { scales, .. }) =
            graph.tensor(weights.unwrap()).quantization
        else {
            panic!()
        };
        assert_eq!(name(scales), "scales");
        assert_eq!(name(model.signatures[0].inputs[1].1), "signature only");
    }
}
