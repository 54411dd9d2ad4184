//! Boxes around what is seen.

use xnn_model::op::*;
use xnn_model::{DType, Op};

use super::common;

#[test]
fn detection_post_processing_keeps_the_best_boxes() {
    // {"h_scale": 1.0, "max_classes_per_detection": 1, "max_detections": 2,
    //  "nms_iou_threshold": 0.5, "nms_score_threshold": 0.5, "num_classes": 1,
    //  "w_scale": 1.0, "x_scale": 1.0, "y_scale": 1.0} as a FlexBuffer.
    let keys = [
        "h_scale",
        "max_classes_per_detection",
        "max_detections",
        "nms_iou_threshold",
        "nms_score_threshold",
        "num_classes",
        "w_scale",
        "x_scale",
        "y_scale",
    ];
    let values = [1.0f32, 1., 2., 0.5, 0.5, 1., 1., 1., 1.];
    let mut options = Vec::new();
    let mut starts = Vec::new();
    for key in keys {
        starts.push(options.len());
        options.extend(key.as_bytes());
        options.push(0);
    }
    options.resize(options.len().next_multiple_of(4), 0);
    options.extend(9u32.to_le_bytes());
    let keys_at = options.len();
    for start in starts {
        let back = (options.len() - start) as u32;
        options.extend(back.to_le_bytes());
    }
    let back = (options.len() - keys_at) as u32;
    options.extend(back.to_le_bytes());
    options.extend(4u32.to_le_bytes());
    options.extend(9u32.to_le_bytes());
    let map_at = options.len();
    values.iter().for_each(|value| options.extend(value.to_le_bytes()));
    options.extend([0b1110; 9]);
    let back = (options.len() - map_at) as u8;
    options.extend([back, 0b10_0100 | 2, 1]);
    let custom =
        CustomOptions { code: "TFLite_Detection_PostProcess".into(), options: options.into() };
    let mut b = common::Builder::new();
    let boxes = b.input(DType::F32, &[1, 3, 4]);
    let scores = b.input(DType::F32, &[1, 3, 2]);
    // The first two anchors overlap, the third is elsewhere.
    let anchors = b.constant(&[3, 4], &[0.5f32, 0.5, 1., 1., 0.5, 0.6, 1., 1., 10.5, 10.5, 1., 1.]);
    let outputs: Vec<usize> = (0..4).map(|_| b.tensor(DType::F32, &[])).collect();
    outputs.iter().for_each(|&id| b.graph.tensors[id].shape = None);
    b.graph.outputs = outputs.clone();
    b.op(Op::Custom(custom), &[boxes, scores, anchors], &outputs);
    let mut interpreter = common::load(&b.model()).unwrap();
    // Background first.
    let scores = [0.1f32, 0.8, 0.1, 0.9, 0.1, 0.6];
    let scores = xnn_interp::TensorBuf::from_slice(&[1, 3, 2], &scores).unwrap();
    interpreter.set_input(1, scores).unwrap();
    interpreter.run().unwrap();
    let output = |position| interpreter.output(position).unwrap().as_slice::<f32>().unwrap();
    assert_eq!(output(3), [2.0]);
    assert_eq!(output(2), [0.9, 0.6]);
    assert_eq!(output(1), [0.0, 0.0]);
    let expected = [0.0, 0.1, 1.0, 1.1, 10.0, 10.0, 11.0, 11.0];
    output(0).iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-6, "{a} {b}"));
}
