//! Detection of objects.

use xnn_interp::Error;
use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::common::{Builder, Value, floats, load, map};

/// Options of a model without a background class that keeps `boxes` boxes.
fn options(boxes: f32, classes_of_each: f32, classes: f32) -> [(&'static str, f32); 9] {
    [
        ("h_scale", 1.0),
        ("max_classes_per_detection", classes_of_each),
        ("max_detections", boxes),
        ("nms_iou_threshold", 0.5),
        ("nms_score_threshold", 0.5),
        ("num_classes", classes),
        ("w_scale", 1.0),
        ("x_scale", 1.0),
        ("y_scale", 1.0),
    ]
}

/// Boxes equal to their anchors. Returns boxes, classes, scores and their number.
fn detect(
    options: &[(&str, f32)],
    boxes: [usize; 3],
    scores: Value,
    anchors: &[f32],
) -> Result<[Vec<f32>; 4], Error> {
    let options = map(options).into();
    let custom = CustomOptions { code: "TFLite_Detection_PostProcess".into(), options };
    let mut b = Builder::new();
    let boxes = b.input(DType::F32, &boxes);
    let scored = b.input(DType::F32, scores.buf.shape());
    let anchors = b.constant(&[anchors.len() / 4, 4], anchors);
    let outputs: Vec<usize> = (0..4).map(|_| b.tensor(DType::F32, &[])).collect();
    outputs.iter().for_each(|&id| b.graph.tensors[id].shape = None);
    b.graph.outputs = outputs.clone();
    b.op(Op::Custom(custom), &[boxes, scored, anchors], &outputs);
    let mut interpreter = load(&b.model())?;
    interpreter.set_input(1, scores.buf)?;
    interpreter.run()?;
    let output = |at| interpreter.output(at).unwrap().as_slice::<f32>().unwrap().to_vec();
    Ok([0, 1, 2, 3].map(output))
}

#[test]
fn detection_post_processing_keeps_the_best_boxes() {
    // The first two anchors overlap; the third does not.
    let anchors = [0.5f32, 0.5, 1., 1., 0.5, 0.6, 1., 1., 10.5, 10.5, 1., 1.];
    // The background class is first.
    let scores = floats(&[1, 3, 2], &[0.1, 0.8, 0.1, 0.9, 0.1, 0.6]);
    let [boxes, classes, scores, count] =
        detect(&options(2., 1., 1.), [1, 3, 4], scores, &anchors).unwrap();
    assert_eq!(count, [2.0]);
    assert_eq!(scores, [0.9, 0.6]);
    assert_eq!(classes, [0.0, 0.0]);
    let expected = [0.0, 0.1, 1.0, 1.1, 10.0, 10.0, 11.0, 11.0];
    boxes.iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{a} {b}"));
}

#[test]
fn classes_without_a_score_come_last() {
    let scores = [&[3.0][..], &[1.0; 10], &[f32::NAN], &[0.0; 12]].concat();
    let scores = floats(&[1, 1, 24], &scores);
    let options = options(1., 24., 24.);
    let [_, classes, ..] = detect(&options, [1, 1, 4], scores, &[0.5, 0.5, 1., 1.]).unwrap();
    let expected: Vec<f32> = (0..11).chain(12..24).chain([11]).map(|c| c as f32).collect();
    assert_eq!(classes, expected);
}

#[test]
fn detections_of_other_images_are_refused() {
    let detect = |boxes, scores| detect(&options(1., 1., 1.), boxes, scores, &[0.5, 0.5, 1., 1.]);
    for (boxes, images) in [(1, 0), (0, 1), (2, 1), (2, 2)] {
        let scores = floats(&[images, 1, 1], &vec![0.5; images]);
        let error = detect([boxes, 1, 4], scores).unwrap_err().to_string();
        assert!(error.contains("images"), "{error}");
    }
}

#[test]
fn detections_beyond_the_limit_are_refused() {
    let detect = |options: [(&'static str, f32); 9], regular: bool| {
        // The seventh option in the order of names.
        let (head, tail) = options.split_at(6);
        let regular = [("use_regular_nms", f32::from(u8::from(regular)))];
        let scores = floats(&[1, 1, 1], &[0.5]);
        let options = [head, &regular, tail].concat();
        detect(&options, [1, 1, 4], scores, &[0.5, 0.5, 1., 1.])
    };
    for regular in [false, true] {
        assert!(detect(options(1., 1., 1.), regular).is_ok());
        assert!(detect(options(1., 1e15, 1.), regular).is_err());
        assert!(detect(options(1e15, 1., 1.), regular).is_err());
        // The number of slots overflows.
        let error = detect(options(1e15, 1e15, 1.), regular).unwrap_err().to_string();
        assert!(error.contains("overflows"), "{error}");
    }
}
