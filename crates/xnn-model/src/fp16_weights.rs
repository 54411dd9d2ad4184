//! Finds fp16 weights of fp32 layers.

use crate::graph::Subgraph;
use crate::op::Op;
use crate::types::{DType, TensorId};

/// Minimum number of elements of weights that remain in fp16: 64 KiB as fp32.
const MIN_ELEMENTS: usize = 1 << 14;

/// Whether each operator is a DEQUANTIZE of fp16 weights that can be packed from fp16: at least
/// 16384 elements, read only as the weights of CONV_2D and FULLY_CONNECTED.
#[must_use]
pub fn fp16_weights(graph: &Subgraph) -> Vec<bool> {
    let mut weights: Vec<bool> = graph.tensors.iter().map(|tensor| !tensor.is_variable).collect();
    let mut is_read = vec![false; graph.tensors.len()];
    let mut exclude = |id: TensorId| {
        if let Some(is_weights) = weights.get_mut(id) {
            *is_weights = false;
        }
    };
    graph.outputs.iter().copied().for_each(&mut exclude);
    for operator in &graph.operators {
        let has_weights = matches!(operator.op, Op::Conv2d(_) | Op::FullyConnected(_));
        for (position, &input) in operator.inputs.iter().enumerate() {
            let Some(id) = input else { continue };
            if has_weights && position == 1 {
                is_read.get_mut(id).into_iter().for_each(|is_read| *is_read = true);
            } else {
                exclude(id);
            }
        }
    }
    let is_weights =
        |id: TensorId| weights.get(id) == Some(&true) && is_read.get(id) == Some(&true);
    let is_fp16 = |operator: &crate::graph::Operator| {
        let (Op::Dequantize, &[Some(input)], &[output]) =
            (&operator.op, operator.inputs.as_slice(), operator.outputs.as_slice())
        else {
            return false;
        };
        let (Some(fp16), Some(fp32)) = (graph.tensors.get(input), graph.tensors.get(output)) else {
            return false;
        };
        (fp16.dtype, fp32.dtype) == (DType::F16, DType::F32)
            && fp16.shape == fp32.shape
            && fp32.elements().is_some_and(|elements| elements >= MIN_ELEMENTS)
            && is_weights(output)
    };
    graph.operators.iter().map(is_fp16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Operator, Tensor};

    /// fp16 weights of this shape, read by these operators at these input positions.
    fn graph(shape: &[usize], readers: &[&(Op, usize)]) -> Subgraph {
        let mut graph = Subgraph::default();
        graph.tensors.push(Tensor::new("fp16", DType::F16, shape));
        graph.tensors.push(Tensor::new("fp32", DType::F32, shape));
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
    fn weights_of_layers_are_found() {
        let layers = [Op::Conv2d(Default::default()), Op::FullyConnected(Default::default())];
        let [conv, matrix] = layers.clone().map(|op| (op, 1));
        let large = &[MIN_ELEMENTS / 16, 16][..];
        let found = |graph: &Subgraph| fp16_weights(graph)[0];
        assert!(found(&graph(large, &[&conv])));
        assert!(found(&graph(large, &[&conv, &matrix])));
        assert!(!found(&graph(large, &[])), "not read");
        assert!(!found(&graph(&[MIN_ELEMENTS / 16 - 1, 16], &[&conv])), "too few elements");
        assert!(!found(&graph(large, &[&conv, &(layers[0].clone(), 0)])), "also read as an image");
        assert!(!found(&graph(large, &[&matrix, &(layers[1].clone(), 2)])), "also read as a bias");
        assert!(!found(&graph(large, &[&(Op::DepthwiseConv2d(Default::default()), 1)])));
        for change in [
            |graph: &mut Subgraph| graph.outputs.push(1),
            |graph: &mut Subgraph| graph.tensors[1].is_variable = true,
            |graph: &mut Subgraph| graph.tensors[0].dtype = DType::I8,
            |graph: &mut Subgraph| graph.tensors[1].dtype = DType::F16,
            |graph: &mut Subgraph| graph.tensors[1].shape = Some(vec![MIN_ELEMENTS]),
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
