#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use super::*;
use crate::graph::Tensor;
use crate::op::*;

fn shape_fact(shape: &[usize]) -> Option<Fact<'static>> {
    Some(Fact { dtype: DType::F32, shape: Some(Cow::Owned(shape.to_vec())), data: None })
}

fn ints_fact(values: &[i32]) -> Option<Fact<'static>> {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Some(Fact {
        dtype: DType::I32,
        shape: Some(Cow::Owned(vec![values.len()])),
        data: Some(Cow::Owned(data)),
    })
}

fn infer(op: &Op, inputs: &[Option<Fact<'_>>], outputs: usize) -> Vec<Vec<usize>> {
    let shapes = infer_op_shapes(op, inputs, outputs).unwrap();
    shapes
        .into_iter()
        .map(|shape| match shape {
            OutputShape::Known(shape) => shape,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn refused(op: &Op, inputs: &[Option<Fact<'_>>]) -> String {
    infer_op_shapes(op, inputs, 1).unwrap_err().to_string()
}

#[test]
fn windows() {
    let conv = |padding, stride, dilation| {
        Op::Conv2d(Conv2dOptions {
            padding,
            stride_w: stride,
            stride_h: stride,
            dilation_w: dilation,
            dilation_h: dilation,
            ..Default::default()
        })
    };
    let inputs = [shape_fact(&[1, 224, 224, 3]), shape_fact(&[8, 3, 3, 3]), shape_fact(&[8])];
    assert_eq!(infer(&conv(Padding::Same, 2, 1), &inputs, 1), [[1, 112, 112, 8]]);
    assert_eq!(infer(&conv(Padding::Valid, 2, 1), &inputs, 1), [[1, 111, 111, 8]]);
    assert_eq!(infer(&conv(Padding::Valid, 1, 2), &inputs, 1), [[1, 220, 220, 8]]);
    assert!(refused(&conv(Padding::Same, 0, 1), &inputs).contains("stride"));
    let misfit = [shape_fact(&[1, 8, 8, 3]), shape_fact(&[8, 3, 3, 2])];
    assert!(refused(&conv(Padding::Same, 1, 1), &misfit).contains("input channels"));
}

/// Sizes that TFLite's kernels take and refuse.
#[test]
fn transposed_convolutions() {
    let (same, valid) = (Padding::Same, Padding::Valid);
    for (padding, from, to, kernel, stride, fits) in [
        (same, 2, 4, 2, 2, true),
        (same, 2, 3, 2, 2, true),
        (same, 2, 5, 2, 2, false),
        (same, 3, 4, 2, 2, false),
        (same, 4, 2, 3, 2, false),
        (same, 2, 4, 3, 2, true),
        (same, 1, 5, 1, 2, false),
        (valid, 2, 4, 2, 2, true),
        (valid, 2, 3, 2, 2, false),
        (valid, 2, 5, 2, 2, true),
        (valid, 2, 6, 2, 2, false),
        (valid, 2, 4, 3, 2, false),
        (valid, 2, 6, 3, 2, true),
        (valid, 2, 9, 3, 4, true),
    ] {
        let op = Op::TransposeConv(TransposeConvOptions {
            padding,
            stride_w: stride,
            stride_h: stride,
            ..Default::default()
        });
        let asked = [1, to, to, 2];
        for batch in [0, 1, 3] {
            let image = [batch, from, from, 3];
            let inputs =
                [ints_fact(&asked), shape_fact(&[2, kernel, kernel, 3]), shape_fact(&image)];
            let to = usize::try_from(to).unwrap();
            match fits {
                true => assert_eq!(infer(&op, &inputs, 1), [[batch, to, to, 2]]),
                false => assert!(refused(&op, &inputs).contains("does not become"), "{asked:?}"),
            }
        }
    }
}

#[test]
fn rows_of_nothing() {
    for (keep_num_dims, input, weights, output) in [
        (false, &[2, 0][..], [3, 0], &[2, 3][..]),
        (false, &[2, 5, 0], [3, 0], &[10, 3]),
        (true, &[2, 5, 0], [3, 0], &[2, 5, 3]),
        (false, &[0], [3, 0], &[1, 3]),
        (false, &[2, 0, 4], [3, 4], &[0, 3]),
        (false, &[0, 2], [3, 2], &[0, 3]),
    ] {
        let op = Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() });
        assert_eq!(infer(&op, &[shape_fact(input), shape_fact(&weights)], 1), [output]);
    }
}

#[test]
fn reshapes_of_nothing() {
    for (input, target, output) in [
        ([0, 3], &[-1, 3][..], &[0, 3][..]),
        ([0, 3], &[3, -1], &[3, 0]),
        ([0, 3], &[0, -1], &[0, 3]),
        ([2, 0], &[0, -1], &[0, 2]),
        ([0, 3], &[-1, 0], &[3, 0]),
        ([2, 0], &[1, -1, 3], &[1, 0, 3]),
    ] {
        let inputs = [shape_fact(&input), ints_fact(target)];
        assert_eq!(infer(&Op::Reshape(ReshapeOptions::default()), &inputs, 1), [output]);
    }
}

#[test]
fn same_padding_puts_the_odd_pixel_behind() {
    let window = Window { size: 3, stride: 2, dilation: 1 };
    assert_eq!(window.output(224, Padding::Same), 112);
    assert_eq!(window.padding(224, 112), (0, 1));
    assert_eq!(window.padding(225, 113), (1, 1));
}

#[test]
fn reshape_fills_the_open_dimension() {
    let op = Op::Reshape(ReshapeOptions::default());
    let reshape = |input: &[usize], to: &[i32]| [shape_fact(input), ints_fact(to)];
    assert_eq!(infer(&op, &reshape(&[2, 6], &[3, -1]), 1), [[3, 4]]);
    assert_eq!(infer(&op, &reshape(&[2, 6], &[12]), 1), [[12]]);
    assert!(refused(&op, &reshape(&[2, 6], &[-1, -1])).contains("open"));
    assert!(refused(&op, &reshape(&[2, 6], &[5, -1])).contains("cannot become"));
    assert!(refused(&op, &reshape(&[2, 6], &[-2, -6])).contains("not a size"));
    let by_option = Op::Reshape(ReshapeOptions { new_shape: Some(vec![4, 3]) });
    assert_eq!(infer(&by_option, &[shape_fact(&[2, 6])], 1), [[4, 3]]);
    let scalar = Op::Reshape(ReshapeOptions { new_shape: Some(vec![0]) });
    assert_eq!(infer(&scalar, &[shape_fact(&[1])], 1), [Vec::<usize>::new()]);
}

#[test]
fn strided_slices() {
    let slice = |begin: &[i32], end: &[i32], strides: &[i32]| {
        [shape_fact(&[4, 5, 6]), ints_fact(begin), ints_fact(end), ints_fact(strides)]
    };
    let plain = Op::StridedSlice(StridedSliceOptions::default());
    assert_eq!(infer(&plain, &slice(&[1, 0, -2], &[3, 5, 6], &[1, 2, 1]), 1), [[2, 3, 2]]);
    assert_eq!(infer(&plain, &slice(&[3, 4, 5], &[0, -6, 2], &[-1, -2, -1]), 1), [[3, 3, 3]]);
    assert_eq!(infer(&plain, &slice(&[2, 0, 0], &[1, 5, 6], &[1, 1, 1]), 1), [[0, 5, 6]]);
    assert!(refused(&plain, &slice(&[0], &[1], &[0])).contains("stride"));
    let shrink = |mask| {
        Op::StridedSlice(StridedSliceOptions { shrink_axis_mask: mask, ..Default::default() })
    };
    assert_eq!(infer(&shrink(1), &slice(&[-1], &[0], &[1]), 1), [[5, 6]]);
    assert!(refused(&shrink(1), &slice(&[4], &[5], &[1])).contains("does not exist"));
    let around = Op::StridedSlice(StridedSliceOptions {
        ellipsis_mask: 0b010,
        new_axis_mask: 0b001,
        ..Default::default()
    });
    assert_eq!(infer(&around, &slice(&[0, 0, 1], &[0, 0, 3], &[1, 1, 1]), 1), [[1, 4, 5, 2]]);
}

#[test]
fn broadcasting() {
    let add = Op::Add(ArithmeticOptions::default());
    let pair = |a: &[usize], b: &[usize]| [shape_fact(a), shape_fact(b)];
    assert_eq!(infer(&add, &pair(&[2, 1, 3], &[4, 1]), 1), [[2, 4, 3]]);
    assert_eq!(infer(&add, &pair(&[], &[4, 1]), 1), [[4, 1]]);
    assert!(refused(&add, &pair(&[2], &[3])).contains("do not broadcast"));
}

#[test]
fn splits() {
    let split = Op::Split(SplitOptions { num_splits: 3 });
    let inputs = [ints_fact(&[-1]), shape_fact(&[2, 6])];
    assert_eq!(infer(&split, &inputs, 3), [[2, 2], [2, 2], [2, 2]]);
    // As many parts of nothing as one likes, and no room for them.
    let most = Op::Split(SplitOptions { num_splits: i32::MAX });
    let nothing = [ints_fact(&[0]), shape_fact(&[0])];
    assert!(infer_op_shapes(&most, &nothing, 1).unwrap_err().to_string().contains("1 outputs"));
    let split_v = Op::SplitV(SplitOptions { num_splits: 2 });
    let inputs = |sizes: &[i32]| [shape_fact(&[7]), ints_fact(sizes), ints_fact(&[0])];
    assert_eq!(infer(&split_v, &inputs(&[3, -1]), 2), [[3], [4]]);
    assert!(infer_op_shapes(&split_v, &inputs(&[3, 3]), 2).is_err());
    assert!(infer_op_shapes(&split_v, &inputs(&[8, -1]), 2).is_err());
}

#[test]
fn products() {
    let fc = |keep_num_dims| {
        Op::FullyConnected(FullyConnectedOptions { keep_num_dims, ..Default::default() })
    };
    let inputs = [shape_fact(&[2, 3, 8]), shape_fact(&[5, 8]), None];
    assert_eq!(infer(&fc(true), &inputs, 1), [vec![2, 3, 5]]);
    assert_eq!(infer(&fc(false), &inputs, 1), [vec![6, 5]]);
    let matmul = Op::BatchMatMul(BatchMatMulOptions { adj_y: true, ..Default::default() });
    let inputs = [shape_fact(&[7, 1, 2, 3]), shape_fact(&[4, 5, 3])];
    assert_eq!(infer(&matmul, &inputs, 1), [[7, 4, 2, 5]]);
    assert!(refused(&matmul, &[shape_fact(&[2, 3]), shape_fact(&[3, 5])]).contains("multiply"));
}

#[test]
fn unknown_inputs_make_dynamic_outputs() {
    let fill = Op::Fill;
    let unknown = Some(Fact { dtype: DType::I32, shape: Some(Cow::Owned(vec![2])), data: None });
    assert_eq!(infer_op_shapes(&fill, &[unknown], 1).unwrap(), [OutputShape::Dynamic]);
    assert_eq!(infer(&fill, &[ints_fact(&[2, 3])], 1), [[2, 3]]);
    let custom = Op::Custom(CustomOptions::default());
    assert_eq!(infer_op_shapes(&custom, &[], 1).unwrap(), [OutputShape::Stated]);
}

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

/// SHAPE → STRIDED_SLICE → PACK → RESHAPE, as Keras exports flattening.
#[test]
fn a_computed_shape_is_followed() {
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

/// A scalar out of a shape, by the three operators that cut and a RESHAPE to no dimensions, whose list of them no byte
/// is needed for: TFLite's spectrograms are exported so.
#[test]
fn parts_of_a_shape_are_followed() {
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

/// Callers may give other sizes.
#[test]
fn sizes_that_are_open_are_waited_for() {
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
fn subgraphs_are_copied_only_if_somebody_else_has_them_and_shapes_are_missing() {
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

/// What is known of the result of a function of constants.
fn computed(op: Op, operands: [(&[usize], &[i32]); 2]) -> Option<Vec<i32>> {
    let [a, b] = operands.map(|(shape, values)| constant("operand", shape, values));
    let subgraph = Subgraph {
        tensors: vec![a, b, open("result", DType::I32)],
        outputs: vec![2],
        operators: vec![operator(op, &[0, 1], 2)],
        ..Default::default()
    };
    let values = super::infer(subgraph.into()).unwrap().values[2].clone()?;
    Some(values.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes)).collect())
}

#[test]
fn values_are_followed_element_by_element() {
    let add = |a, b| computed(Op::Add(ArithmeticOptions::default()), [a, b]);
    assert_eq!(add((&[2, 1], &[1, 2]), (&[2, 1], &[3, 5])), Some(vec![4, 7]));
    assert_eq!(add((&[2], &[1, 2]), (&[1, 2], &[3, 5])), Some(vec![4, 7]));
    assert_eq!(add((&[2, 1], &[1, 2]), (&[1, 1], &[3])), Some(vec![4, 5]));
    assert_eq!(add((&[], &[3]), (&[2], &[1, 2])), Some(vec![4, 5]));
    // 2x2 results.
    assert_eq!(add((&[2, 1], &[1, 2]), (&[1, 2], &[3, 5])), None);
}

#[test]
fn values_are_not_followed_through_activations() {
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

/// Paddings to whole blocks, from the size of an image, as TensorFlow exports dilated convolutions.
#[test]
fn computed_paddings_are_followed() {
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
    let inferred = super::infer(subgraph.into()).unwrap();
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

/// A custom operator whose result the file states, and a RESHAPE to [2, 3] behind it.
fn behind_a_custom_operator(stated: Tensor) -> Result<Vec<Option<Vec<usize>>>, String> {
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
fn what_the_file_states_wrongly_is_left_to_the_run() {
    let stated = |shape: &[usize]| Tensor::new("stated", DType::F32, shape);
    let shapes = behind_a_custom_operator(stated(&[6])).unwrap();
    assert_eq!(shapes[1..], [Some(vec![6]), Some(vec![2, 3])]);
    for wrong in [&[][..], &[5], &[0]] {
        let shapes = behind_a_custom_operator(stated(wrong)).unwrap();
        assert_eq!(shapes[1..], [Some(wrong.to_vec()), None], "{wrong:?}");
    }
    let open = Tensor { shape_signature: Some(vec![]), ..stated(&[]) };
    assert_eq!(behind_a_custom_operator(open).unwrap()[1..], [None, None]);
}

#[test]
fn slices_of_what_is_open_are_left_to_the_run() {
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
