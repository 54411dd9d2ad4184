//! Shapes and values in subgraphs.

use std::sync::Arc;

use crate::graph::{Operator, Subgraph, Tensor};
use crate::infer::{infer, infer_shapes};
use crate::op::*;
use crate::types::DType;

fn constant(name: &str, shape: &[usize], values: &[i32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Tensor { data: Some(bytes.into()), ..Tensor::new(name, DType::I32, shape) }
}

/// A tensor without a shape.
fn open(name: &str, dtype: DType) -> Tensor {
    Tensor { shape: None, ..Tensor::new(name, dtype, &[]) }
}

fn operator(op: Op, inputs: &[usize], output: usize) -> Operator {
    Operator {
        op,
        version: 1,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: vec![output],
        intermediates: vec![],
    }
}

/// SHAPE → STRIDED_SLICE → PACK → RESHAPE, as Keras exports Flatten.
#[test]
fn computed_shapes_are_propagated() {
    let subgraph = Subgraph {
        tensors: vec![
            Tensor::new("input", DType::F32, &[3, 4, 5]),
            open("shape", DType::I32),
            constant("0", &[1], &[0]),
            constant("1", &[1], &[1]),
            open("batch", DType::I32),
            constant("-1", &[], &[-1]),
            open("new_shape", DType::I32),
            open("output", DType::F32),
        ],
        inputs: vec![0],
        outputs: vec![7],
        operators: vec![
            operator(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[0], 1),
            operator(
                Op::StridedSlice(StridedSliceOptions { shrink_axis_mask: 1, ..Default::default() }),
                &[1, 2, 3, 3],
                4,
            ),
            operator(Op::Pack(PackOptions { values_count: 2, axis: 0 }), &[4, 5], 6),
            operator(Op::Reshape(ReshapeOptions::default()), &[0, 6], 7),
        ],
        ..Default::default()
    };
    let inferred = infer_shapes(subgraph.into()).unwrap();
    assert_eq!(inferred.tensor(7).shape.as_deref(), Some([3, 20].as_slice()));
}

/// A scalar from a shape, by SPLIT, SPLIT_V and UNPACK and a RESHAPE to rank 0, whose shape input
/// has no data. TFLite's spectrograms are exported like this.
#[test]
fn parts_of_a_shape_are_propagated() {
    let split = |op: Op, inputs: &[usize]| {
        let cut = Operator { outputs: vec![6, 7], ..operator(op, inputs, 6) };
        let subgraph = Subgraph {
            tensors: vec![
                Tensor::new("input", DType::F32, &[3, 40]),
                constant("sizes", &[2], &[1, -1]),
                constant("axis", &[], &[0]),
                Tensor::new("no dimensions", DType::I32, &[0]),
                constant("blocks", &[], &[8]),
                open("shape", DType::I32),
                open("height", DType::I32),
                open("width", DType::I32),
                open("scalar", DType::I32),
                open("rest", DType::I32),
                open("range", DType::I32),
            ],
            inputs: vec![0],
            outputs: vec![10],
            operators: vec![
                operator(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[0], 5),
                cut,
                operator(Op::Reshape(ReshapeOptions::default()), &[7, 3], 8),
                operator(Op::FloorDiv, &[8, 4], 9),
                operator(Op::Range, &[2, 9, 6], 10),
            ],
            ..Default::default()
        };
        infer_shapes(subgraph.into()).map(|inferred| inferred.tensor(10).shape.clone())
    };
    let two = Op::Split(SplitOptions { num_splits: 2 });
    let unpack = Op::Unpack(UnpackOptions { num: 2, axis: 0 });
    let split_v = Op::SplitV(SplitOptions { num_splits: 2 });
    for (op, inputs) in [(two, [2, 5].as_slice()), (split_v, &[5, 1, 2]), (unpack, &[5])] {
        // From 0 to 40 / 8 in steps of 3.
        assert_eq!(split(op.clone(), inputs).unwrap(), Some(vec![2]), "{op:?}");
    }
}

/// Callers may resize the shape input.
#[test]
fn empty_inputs_of_variable_size_are_unknown() {
    let reshaped = |signature: Option<Vec<i32>>| {
        let shape = Tensor { shape_signature: signature, ..Tensor::new("shape", DType::I32, &[0]) };
        let subgraph = Subgraph {
            tensors: vec![Tensor::new("input", DType::F32, &[1]), shape, open("y", DType::F32)],
            inputs: vec![0, 1],
            outputs: vec![2],
            operators: vec![operator(Op::Reshape(ReshapeOptions::default()), &[0, 1], 2)],
            ..Default::default()
        };
        infer_shapes(subgraph.into()).unwrap().tensor(2).shape.clone()
    };
    assert_eq!(reshaped(None), Some(vec![]));
    assert_eq!(reshaped(Some(vec![-1])), None);
}

#[test]
fn subgraphs_are_copied_only_if_shared_and_changed() {
    let relu = |result: Tensor| {
        Arc::new(Subgraph {
            tensors: vec![Tensor::new("input", DType::F32, &[2, 3]), result],
            inputs: vec![0],
            outputs: vec![1],
            operators: vec![operator(Op::Relu, &[0], 1)],
            ..Default::default()
        })
    };
    let complete = relu(Tensor::new("result", DType::F32, &[2, 3]));
    assert!(Arc::ptr_eq(&infer_shapes(Arc::clone(&complete)).unwrap(), &complete));
    let shared = relu(open("result", DType::F32));
    assert_eq!(infer_shapes(Arc::clone(&shared)).unwrap(), complete);
    assert_eq!(shared.tensor(1).shape, None);
    let address = Arc::as_ptr(&shared);
    let inferred = infer_shapes(shared).unwrap();
    assert_eq!((Arc::as_ptr(&inferred), &inferred), (address, &complete));
}

/// The propagated result of an operator on two constants.
fn computed(op: Op, operands: [(&[usize], &[i32]); 2]) -> Option<Vec<i32>> {
    let [a, b] = operands.map(|(shape, values)| constant("operand", shape, values));
    let subgraph = Subgraph {
        tensors: vec![a, b, open("result", DType::I32)],
        outputs: vec![2],
        operators: vec![operator(op, &[0, 1], 2)],
        ..Default::default()
    };
    let values = infer(subgraph.into()).unwrap().values[2].clone()?;
    Some(values.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect())
}

#[test]
fn values_are_propagated_element_by_element() {
    let add = |a, b| computed(Op::Add(ArithmeticOptions::default()), [a, b]);
    assert_eq!(add((&[2, 1], &[1, 2]), (&[2, 1], &[3, 5])), Some(vec![4, 7]));
    assert_eq!(add((&[2], &[1, 2]), (&[1, 2], &[3, 5])), Some(vec![4, 7]));
    assert_eq!(add((&[2, 1], &[1, 2]), (&[1, 1], &[3])), Some(vec![4, 5]));
    assert_eq!(add((&[], &[3]), (&[2], &[1, 2])), Some(vec![4, 5]));
    // 2x2 results.
    assert_eq!(add((&[2, 1], &[1, 2]), (&[1, 2], &[3, 5])), None);
}

#[test]
fn values_are_not_propagated_through_activations() {
    let ops = |activation| {
        let arithmetic = ArithmeticOptions { activation, ..Default::default() };
        let options = ActivationOptions { activation };
        [
            Op::Add(arithmetic.clone()),
            Op::Sub(arithmetic),
            Op::Mul(options.clone()),
            Op::Div(options),
        ]
    };
    let values = |op| computed(op, [(&[2], &[-8, 8]), (&[2], &[2, 2])]);
    let plain = [[-6, 10], [-10, 6], [-16, 16], [-4, 4]];
    assert_eq!(ops(Activation::None).map(values), plain.map(|values| Some(values.to_vec())));
    assert_eq!(ops(Activation::Relu6).map(values), [None, None, None, None]);
}

/// Paddings to whole blocks computed from an image size, as TensorFlow exports dilated
/// convolutions.
#[test]
fn computed_paddings_are_propagated() {
    let sizes = StridedSliceOptions::default();
    let all = StridedSliceOptions { begin_mask: 3, end_mask: 3, ..Default::default() };
    let subgraph = Subgraph {
        tensors: vec![
            Tensor::new("input", DType::F32, &[1, 9, 10, 3]),
            open("shape", DType::I32),
            constant("1", &[1], &[1]),
            constant("3", &[1], &[3]),
            open("sizes", DType::I32),
            constant("block", &[2], &[3, 3]),
            open("size modulo block", DType::I32),
            open("less", DType::I32),
            open("behind", DType::I32),
            constant("before", &[2], &[0, 0]),
            open("columns", DType::I32),
            constant("0 0", &[2], &[0, 0]),
            constant("1 1", &[2], &[1, 1]),
            open("the same", DType::I32),
            open("output", DType::F32),
        ],
        inputs: vec![0],
        outputs: vec![14],
        operators: vec![
            operator(Op::Shape(ShapeOptions { out_type: DType::I32 }), &[0], 1),
            operator(Op::StridedSlice(sizes), &[1, 2, 3, 2], 4),
            operator(Op::FloorMod, &[4, 5], 6),
            operator(Op::Sub(ArithmeticOptions::default()), &[5, 6], 7),
            operator(Op::FloorMod, &[7, 5], 8),
            operator(Op::Pack(PackOptions { values_count: 2, axis: 0 }), &[9, 8], 10),
            operator(Op::StridedSlice(all), &[10, 11, 11, 12], 13),
            operator(Op::SpaceToBatchNd, &[0, 5, 13], 14),
        ],
        ..Default::default()
    };
    let inferred = infer(subgraph.into()).unwrap();
    let values = inferred.values[13].as_deref().unwrap();
    assert_eq!(values, [0i32, 0, 0, 2].map(i32::to_le_bytes).as_flattened());
    assert_eq!(inferred.subgraph.tensor(14).shape.as_deref(), Some([9, 3, 4, 3].as_slice()));
}

#[test]
fn errors_name_the_operator() {
    let subgraph = Subgraph {
        tensors: vec![Tensor::new("a", DType::F32, &[2]), Tensor::new("b", DType::F32, &[3])],
        operators: vec![Operator {
            op: Op::Add(ArithmeticOptions::default()),
            version: 1,
            inputs: vec![Some(0), Some(1)],
            outputs: vec![0],
            intermediates: vec![],
        }],
        ..Default::default()
    };
    let error = infer_shapes(subgraph.into()).unwrap_err().to_string();
    assert!(error.starts_with("operator 0 (ADD)"), "{error}");
}

/// A custom operator with a stated result shape, followed by a RESHAPE to [2, 3].
fn after_a_custom_operator(stated: Tensor) -> Result<Vec<Option<Vec<usize>>>, String> {
    let custom = CustomOptions { code: "Mystery".into(), ..Default::default() };
    let options = ReshapeOptions { new_shape: Some(vec![2, 3]) };
    let operator = |op: Op, input: usize, output: usize| Operator {
        op,
        version: 1,
        inputs: vec![Some(input)],
        outputs: vec![output],
        intermediates: vec![],
    };
    let tensor = |shape: &[usize]| Tensor::new("x", DType::F32, shape);
    let graph = Subgraph {
        tensors: vec![tensor(&[7]), stated, tensor(&[2, 3])],
        inputs: vec![0],
        outputs: vec![2],
        operators: vec![operator(Op::Custom(custom), 0, 1), operator(Op::Reshape(options), 1, 2)],
        ..Subgraph::default()
    };
    let inferred = infer_shapes(Arc::new(graph)).map_err(|error| error.to_string())?;
    Ok(inferred.tensors.iter().map(|tensor| tensor.shape.clone()).collect())
}

#[test]
fn shapes_after_wrong_stated_shapes_are_unknown() {
    let stated = |shape: &[usize]| Tensor::new("stated", DType::F32, shape);
    let shapes = after_a_custom_operator(stated(&[6])).unwrap();
    assert_eq!(shapes[1..], [Some(vec![6]), Some(vec![2, 3])]);
    for wrong in [&[][..], &[5], &[0]] {
        let shapes = after_a_custom_operator(stated(wrong)).unwrap();
        assert_eq!(shapes[1..], [Some(wrong.to_vec()), None], "{wrong:?}");
    }
    let open = Tensor { shape_signature: Some(vec![]), ..stated(&[]) };
    assert_eq!(after_a_custom_operator(open).unwrap()[1..], [None, None]);
}

#[test]
fn slices_of_resizable_inputs_may_be_unknown() {
    let slice = |shape: &[usize], signature: Option<Vec<i32>>| {
        let constant = |values: &[i32]| Tensor {
            data: Some(
                values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>().into(),
            ),
            ..Tensor::new("bounds", DType::I32, &[values.len()])
        };
        let x = Tensor { shape_signature: signature, ..Tensor::new("x", DType::F32, shape) };
        let options = StridedSliceOptions { shrink_axis_mask: 1, ..Default::default() };
        let graph = Subgraph {
            tensors: vec![
                x,
                constant(&[3]),
                constant(&[4]),
                constant(&[1]),
                Tensor::new("y", DType::F32, &[]),
            ],
            inputs: vec![0],
            outputs: vec![4],
            operators: vec![Operator {
                op: Op::StridedSlice(options),
                version: 1,
                inputs: (0..4).map(Some).collect(),
                outputs: vec![4],
                intermediates: vec![],
            }],
            ..Subgraph::default()
        };
        infer_shapes(Arc::new(graph))
            .map(|graph| graph.tensors[4].shape.clone())
            .map_err(|e| e.to_string())
    };
    assert_eq!(slice(&[4], None), Ok(Some(vec![])));
    assert_eq!(slice(&[0], None), Ok(None));
    assert_eq!(slice(&[1], Some(vec![-1])), Ok(None));
    assert!(slice(&[1], None).unwrap_err().contains("does not exist in a dimension of 1"));
}
