//! TFLite_Detection_PostProcess: decodes boxes and suppresses overlapping ones.

use std::collections::BTreeMap;
use std::ops::Range;

use xnn_model::flexbuffer::{Scalar, scalars};
use xnn_model::{DType, Op, Tensor};

use super::super::order::descending;
use super::boxes::{Corners, overlap};
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::quant::{Affine, affine};

/// Options of TFLite_Detection_PostProcess.
struct PostProcess {
    max_detections: usize,
    max_classes_per_detection: usize,
    detections_per_class: usize,
    regular: bool,
    score_threshold: f32,
    iou_threshold: f32,
    classes: usize,
    /// Scales of y, x, height and width.
    scales: [f32; 4],
}

impl PostProcess {
    fn of(op: &Op) -> Result<Self, Refusal> {
        let Op::Custom(custom) = op else {
            return refuse(format!("{op} is not a custom operator"));
        };
        let options = scalars(&custom.options)
            .ok_or_else(|| Refusal("the options are not a FlexBuffer map".into()))?;
        let count = |name: &str, default: i64| {
            let value = options.get(name).map_or(default, |value| value.as_i64());
            usize::try_from(value).or_else(|_| refuse(format!("{name} is {value}")))
        };
        Ok(Self {
            max_detections: count("max_detections", 0)?,
            max_classes_per_detection: count("max_classes_per_detection", 0)?,
            detections_per_class: count("detections_per_class", 100)?,
            regular: options.get("use_regular_nms").is_some_and(|value| value.as_bool()),
            score_threshold: real(&options, "nms_score_threshold"),
            iou_threshold: real(&options, "nms_iou_threshold"),
            classes: count("num_classes", 0)?,
            scales: ["y_scale", "x_scale", "h_scale", "w_scale"].map(|name| real(&options, name)),
        })
    }
}

fn real(options: &BTreeMap<String, Scalar>, name: &str) -> f32 {
    options.get(name).map_or(0.0, |value| value.as_f32())
}

/// An input of floats, or of 8-bit integers that are converted one at a time, since only a few of
/// all scores are needed.
#[derive(Clone, Copy)]
enum Reals<'a> {
    Floats(&'a [f32]),
    Bytes(&'a [u8], Affine),
}

/// Views an input.
type View = for<'a> fn(&'a Call<'_>, usize, Affine) -> Result<Reals<'a>, Refusal>;

fn view(tensor: &Tensor) -> Result<View, Refusal> {
    match tensor.dtype {
        DType::F32 => Ok(|call, position, _| Ok(Reals::Floats(call.input(position)?))),
        DType::U8 => Ok(|call, position, params| Ok(Reals::Bytes(call.input(position)?, params))),
        other => refuse(format!("element type {other}")),
    }
}

impl Reals<'_> {
    fn at(&self, index: usize) -> f32 {
        match self {
            Self::Floats(values) => values[index],
            Self::Bytes(values, params) => real_of(values[index], *params),
        }
    }

    /// The elements of a range.
    fn read(&self, range: Range<usize>) -> Vec<f32> {
        match self {
            Self::Floats(values) => values[range].to_vec(),
            Self::Bytes(values, params) => {
                values[range].iter().map(|&value| real_of(value, *params)).collect()
            }
        }
    }

    /// The largest element of a range.
    fn largest(&self, range: Range<usize>) -> f32 {
        match self {
            Self::Floats(values) => values[range].iter().copied().fold(f32::MIN, f32::max),
            Self::Bytes(values, params) => {
                let reals = values[range].iter().map(|&value| real_of(value, *params));
                reals.fold(f32::MIN, f32::max)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Bytes(values, _) => values.len(),
        }
    }
}

fn real_of(value: u8, params: Affine) -> f32 {
    (f32::from(value) - params.zero_point as f32) * params.scale
}

pub(in crate::kernels) fn post_process(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let options = PostProcess::of(&context.operator.op)?;
    if !(options.iou_threshold > 0.0 && options.iou_threshold <= 1.0) {
        return refuse(format!("an overlap threshold of {}", options.iou_threshold));
    }
    let mut views = Vec::new();
    for position in 0..3 {
        let tensor = context.input(position)?;
        let params = affine(tensor).unwrap_or(Affine { scale: 1.0, zero_point: 0 });
        views.push((view(tensor)?, params));
    }
    for position in 0..4 {
        context.expect_output(position, DType::F32)?;
    }
    run(move |call| {
        let [images, count, code] = call.dims(0)?;
        let [scored_images, scored, columns] = call.dims(1)?;
        if images != 1 || scored_images != 1 {
            return refuse(format!("boxes of {images} images, but scores of {scored_images}"));
        }
        let [anchored, 4] = call.dims(2)? else {
            return refuse("anchors must have four coordinates each");
        };
        let background = columns.checked_sub(options.classes).filter(|&b| b <= 1);
        let (Some(background), true) =
            (background, code >= 4 && scored == count && anchored == count)
        else {
            return refuse(format!(
                "{count} boxes, {scored} × {columns} scores, {anchored} anchors"
            ));
        };
        // If the output slots can be allocated, the intermediate results are not too large either.
        let slots = options.max_detections.checked_mul(options.max_classes_per_detection);
        let slots = slots.ok_or_else(|| Refusal("the number of detections overflows".into()))?;
        call.allocate(0, &[1, slots, 4])?;
        call.allocate(1, &[1, slots])?;
        call.allocate(2, &[1, slots])?;
        call.allocate(3, &[1])?;
        let view = |position: usize| {
            let (view, params) = views[position];
            view(call, position, params)
        };
        let [codes, anchors] = [view(0)?, view(2)?].map(|input| input.read(0..input.len()));
        let boxes = decode(&codes, code, &anchors, options.scales);
        if boxes.iter().any(|c| c[0] > c[2] || c[1] > c[3]) {
            return refuse("a box with a negative size");
        }
        let scores = Scores { values: view(1)?, columns, background, classes: options.classes };
        let found = if options.regular {
            regular(&options, &boxes, &scores)
        } else {
            fast(&options, &boxes, &scores)
        };
        for position in 0..4 {
            call.output::<f32>(position)?.fill(0.0);
        }
        let (targets, _) = call.output::<f32>(0)?.as_chunks_mut::<4>();
        targets.iter_mut().zip(&found.boxes).for_each(|(out, d)| *out = boxes[d.anchor]);
        let classes = call.output::<f32>(1)?.iter_mut().zip(&found.boxes);
        classes.for_each(|(out, d)| *out = d.class as f32);
        let scores = call.output::<f32>(2)?.iter_mut().zip(&found.boxes);
        scores.for_each(|(out, d)| *out = d.score);
        call.output::<f32>(3)?.fill(found.count as f32);
        Ok(())
    })
}

/// Decodes boxes from their offsets to the anchors.
fn decode(codes: &[f32], width: usize, anchors: &[f32], scales: [f32; 4]) -> Vec<Corners> {
    let (anchors, _) = anchors.as_chunks::<4>();
    let scales = scales.map(f64::from);
    let boxes = codes.chunks_exact(width).zip(anchors);
    boxes
        .map(|(code, anchor)| {
            let code = [code[0], code[1], code[2], code[3]].map(f64::from);
            let anchor = anchor.map(f64::from);
            let center = |i: usize| (code[i] / scales[i] * anchor[i + 2] + anchor[i]) as f32;
            let half = |i: usize| (0.5 * (code[i] / scales[i]).exp() * anchor[i]) as f32;
            let (y, x, h, w) = (center(0), center(1), half(2), half(3));
            [y - h, x - w, y + h, x + w]
        })
        .collect()
}

/// Scores `[boxes, columns]`, with an optional background class in the first columns.
struct Scores<'a> {
    values: Reals<'a>,
    columns: usize,
    background: usize,
    classes: usize,
}

impl Scores<'_> {
    /// The range of a box's scores.
    fn of_box(&self, index: usize) -> Range<usize> {
        let first = index * self.columns + self.background;
        first..first + self.classes
    }
}

/// A box with a class.
#[derive(Clone, Copy)]
struct Detection {
    anchor: usize,
    class: usize,
    score: f32,
}

struct Found {
    boxes: Vec<Detection>,
    count: usize,
}

/// Sorts positions by their scores, the largest first. Of equal scores, the order stays.
fn sort(positions: &mut [usize], scores: &[f32]) {
    positions.sort_by(|&a, &b| descending(scores[a], scores[b]));
}

/// Selects boxes in the order of their scores, without those that overlap a better one.
fn suppress(options: &PostProcess, boxes: &[Corners], scores: &[f32], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..scores.len()).filter(|&i| scores[i] >= options.score_threshold).collect();
    sort(&mut order, scores);
    let mut chosen: Vec<usize> = Vec::new();
    for candidate in order {
        if chosen.len() >= most {
            break;
        }
        let covered =
            chosen.iter().any(|&c| overlap(boxes[c], boxes[candidate]) > options.iou_threshold);
        if !covered {
            chosen.push(candidate);
        }
    }
    chosen
}

/// Suppression by the best class of each box, which keeps its best classes.
fn fast(options: &PostProcess, boxes: &[Corners], scores: &Scores<'_>) -> Found {
    let keep = options.max_classes_per_detection.min(scores.classes);
    let ranked = |own: &[f32]| {
        let mut classes: Vec<usize> = (0..own.len()).collect();
        sort(&mut classes, own);
        classes.truncate(keep);
        classes
    };
    let best: Vec<f32> =
        (0..boxes.len()).map(|index| scores.values.largest(scores.of_box(index))).collect();
    let chosen = suppress(options, boxes, &best, options.max_detections);
    let blank = Detection { anchor: 0, class: 0, score: 0.0 };
    let mut found = Vec::new();
    for &anchor in &chosen {
        let own = scores.values.read(scores.of_box(anchor));
        let classes = ranked(&own);
        let detections =
            classes.iter().map(|&class| Detection { anchor, class, score: own[class] });
        found.extend(detections);
        // A box with fewer classes than slots keeps its slots together.
        found.extend(vec![blank; options.max_classes_per_detection - keep]);
    }
    Found { boxes: found, count: chosen.len() }
}

/// Suppression class by class, which keeps the best boxes of all classes.
fn regular(options: &PostProcess, boxes: &[Corners], scores: &Scores<'_>) -> Found {
    let per_class = options.detections_per_class.min(options.max_detections);
    let mut found: Vec<Detection> = Vec::new();
    for class in 0..scores.classes {
        let own: Vec<f32> = (0..boxes.len())
            .map(|index| scores.values.at(scores.of_box(index).start + class))
            .collect();
        let chosen = suppress(options, boxes, &own, per_class);
        found.extend(chosen.into_iter().map(|anchor| Detection {
            anchor,
            class,
            score: own[anchor],
        }));
        // The sort is stable: of equal scores, earlier classes come first.
        found.sort_by(|a, b| descending(a.score, b.score));
        found.truncate(options.max_detections);
    }
    let count = found.len();
    Found { boxes: found, count }
}
