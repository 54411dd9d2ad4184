//! Weights in fp16.

use crate::graph::{Subgraph, TensorId};
use crate::op::Op;
use crate::types::DType;

/// Numbers from which on weights are left in fp16: 64 KiB of floats.
const MANY: usize = 1 << 14;

/// Of each operator, whether it makes floats of many fp16 weights, and nothing but convolutions and fully connected layers
/// read them, as weights: those can be packed from fp16.
#[must_use]
pub fn half_filters(graph: &Subgraph) -> Vec<bool> {
    let mut filters: Vec<bool> = graph.tensors.iter().map(|tensor| !tensor.is_variable).collect();
    let mut is_read = vec![false; graph.tensors.len()];
    let mut exclude = |id: TensorId| {
        if let Some(is_filter) = filters.get_mut(id) {
            *is_filter = false;
        }
    };
    graph.outputs.iter().copied().for_each(&mut exclude);
    for operator in &graph.operators {
        let has_filter = matches!(operator.op, Op::Conv2d(_) | Op::FullyConnected(_));
        for (position, &input) in operator.inputs.iter().enumerate() {
            let Some(id) = input else { continue };
            if has_filter && position == 1 {
                is_read.get_mut(id).into_iter().for_each(|is_read| *is_read = true);
            } else {
                exclude(id);
            }
        }
    }
    let is_filter = |id: TensorId| filters.get(id) == Some(&true) && is_read.get(id) == Some(&true);
    let is_half = |operator: &crate::graph::Operator| {
        let (Op::Dequantize, &[Some(input)], &[output]) =
            (&operator.op, operator.inputs.as_slice(), operator.outputs.as_slice())
        else {
            return false;
        };
        let (Some(halves), Some(floats)) = (graph.tensors.get(input), graph.tensors.get(output))
        else {
            return false;
        };
        (halves.dtype, floats.dtype) == (DType::F16, DType::F32)
            && halves.shape == floats.shape
            && floats.elements().is_some_and(|elements| elements >= MANY)
            && is_filter(output)
    };
    graph.operators.iter().map(is_half).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Operator, Tensor};

    /// Weights of this shape, read by these operators at these positions.
    fn graph(shape: &[usize], readers: &[&(Op, usize)]) -> Subgraph {
        let mut graph = Subgraph::default();
        graph.tensors.push(Tensor::new("halves", DType::F16, shape));
        graph.tensors.push(Tensor::new("floats", DType::F32, shape));
        graph.tensors.push(Tensor::new("other", DType::F32, shape));
        let operator = |op: Op, inputs: Vec<usize>, outputs: Vec<usize>| Operator {
            op,
            version: 1,
            inputs: inputs.into_iter().map(Some).collect(),
            outputs,
            intermediates: Vec::new(),
        };
        graph.operators.push(operator(Op::Dequantize, vec![0], vec![1]));
        for (op, position) in readers {
            let mut inputs = vec![2; 3];
            inputs[*position] = 1;
            graph.operators.push(operator(op.clone(), inputs, Vec::new()));
        }
        graph
    }

    #[test]
    fn filters_of_products_are_found() {
        let layers = [Op::Conv2d(Default::default()), Op::FullyConnected(Default::default())];
        let [conv, matrix] = layers.clone().map(|op| (op, 1));
        let large = &[MANY / 16, 16][..];
        let found = |graph: &Subgraph| half_filters(graph)[0];
        assert!(found(&graph(large, &[&conv])));
        assert!(found(&graph(large, &[&conv, &matrix])));
        assert!(!found(&graph(large, &[])), "nobody reads them");
        assert!(!found(&graph(&[MANY / 16 - 1, 16], &[&conv])), "few");
        assert!(!found(&graph(large, &[&conv, &(layers[0].clone(), 0)])), "an image, too");
        assert!(!found(&graph(large, &[&matrix, &(layers[1].clone(), 2)])), "a bias, too");
        assert!(!found(&graph(large, &[&(Op::DepthwiseConv2d(Default::default()), 1)])));
        for change in [
            |graph: &mut Subgraph| graph.outputs.push(1),
            |graph: &mut Subgraph| graph.tensors[1].is_variable = true,
            |graph: &mut Subgraph| graph.tensors[0].dtype = DType::I8,
            |graph: &mut Subgraph| graph.tensors[1].dtype = DType::F16,
            |graph: &mut Subgraph| graph.tensors[1].shape = Some(vec![MANY]),
            |graph: &mut Subgraph| graph.operators[0].op = Op::Abs,
            |graph: &mut Subgraph| graph.operators[0].inputs[0] = None,
            |graph: &mut Subgraph| graph.operators[0].outputs[0] = 7,
        ] {
            let mut graph = graph(large, &[&conv]);
            change(&mut graph);
            assert!(!found(&graph));
        }
    }
}
