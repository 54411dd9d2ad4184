//! Non-maximum suppression: NON_MAX_SUPPRESSION_V4 and _V5, and the custom
//! TFLite_Detection_PostProcess.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use xnn_model::flexbuffer::{Scalar, scalars};
use xnn_model::{DType, Op, Tensor};

use super::select::descending;
use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};
use crate::quant::{Affine, affine};

/// Two opposite corners: y and x of one, then of the other.
type Corners = [f32; 4];

/// Intersection over union; 0 where a box has no area.
fn overlap(a: Corners, b: Corners) -> f32 {
    let sorted = |[y1, x1, y2, x2]: Corners| [y1.min(y2), x1.min(x2), y1.max(y2), x1.max(x2)];
    let (a, b) = (sorted(a), sorted(b));
    let area = |c: Corners| (c[2] - c[0]) * (c[3] - c[1]);
    let (area_a, area_b) = (area(a), area(b));
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let intersection = height * width;
    intersection / (area_a + area_b - intersection)
}

pub(super) fn suppression(node: &Node<'_>) -> Result<Run, Refusal> {
    let soft = matches!(node.operator.op, Op::NonMaxSuppressionV5);
    node.expect_input(0, DType::F32)?;
    node.expect_input(1, DType::F32)?;
    node.expect_output(0, DType::I32)?;
    run(move |call| {
        let boxes = corners(call, 0)?;
        let scores = call.input::<f32>(1)?;
        if scores.len() != boxes.len() {
            return refuse(format!("{} scores for {} boxes", scores.len(), boxes.len()));
        }
        let scalar = |position| -> Result<f32, Refusal> {
            call.input::<f32>(position)?
                .first()
                .copied()
                .ok_or_else(|| Refusal(format!("input {position} is empty")))
        };
        let most = size(call.int(2)?)?;
        let (iou, threshold) = (scalar(3)?, scalar(4)?);
        let sigma = if soft { scalar(5)? } else { 0.0 };
        let chosen = select(&boxes, scores, most, iou, threshold, sigma);
        let indices = call.output::<i32>(0)?;
        indices.fill(0);
        indices.iter_mut().zip(&chosen).for_each(|(out, (index, _))| *out = *index as i32);
        if soft {
            let output = call.output::<f32>(1)?;
            output.fill(0.0);
            output.iter_mut().zip(&chosen).for_each(|(out, (_, score))| *out = *score);
        }
        let count = call.output::<i32>(if soft { 2 } else { 1 })?;
        count.fill(chosen.len() as i32);
        Ok(())
    })
}

fn corners(call: &Call<'_>, position: usize) -> Result<Vec<Corners>, Refusal> {
    let (boxes, rest) = call.input::<f32>(position)?.as_chunks::<4>();
    if rest.is_empty() { Ok(boxes.to_vec()) } else { refuse("boxes without four numbers each") }
}

/// Greedy choice by score; with a `sigma`, overlapping boxes lose score instead
/// of being dropped at once.
fn select(
    boxes: &[Corners],
    scores: &[f32],
    most: usize,
    iou: f32,
    threshold: f32,
    sigma: f32,
) -> Vec<(usize, f32)> {
    struct Candidate {
        index: usize,
        score: f32,
        /// Chosen boxes that have been held against it.
        seen: usize,
    }
    let scale = if sigma > 0.0 { -0.5 / sigma } else { 0.0 };
    let mut queue: Vec<Candidate> = scores
        .iter()
        .enumerate()
        .filter(|&(_, &score)| score > threshold)
        .map(|(index, &score)| Candidate { index, score, seen: 0 })
        .collect();
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    let most = most.min(queue.len());
    while chosen.len() < most {
        let best = queue
            .iter()
            .enumerate()
            .max_by(|(i, a), (j, b)| {
                a.score.partial_cmp(&b.score).unwrap_or(Ordering::Equal).then(j.cmp(i))
            })
            .map(|(at, _)| at);
        let Some(best) = best else { break };
        let mut candidate = queue.swap_remove(best);
        let before = candidate.score;
        let mut suppressed = false;
        // The latest chosen boxes are the likeliest to overlap.
        for &(other, _) in chosen[candidate.seen..].iter().rev() {
            let overlap = overlap(boxes[candidate.index], boxes[other]);
            if overlap >= iou {
                suppressed = true;
                break;
            }
            if sigma > 0.0 {
                candidate.score *= (scale * overlap * overlap).exp();
            }
            if candidate.score <= threshold {
                break;
            }
        }
        candidate.seen = chosen.len();
        if suppressed {
            continue;
        }
        if candidate.score == before {
            chosen.push((candidate.index, candidate.score));
        }
        // A chosen box too: it meets itself next time, and stays out unless it
        // has no area.
        if candidate.score > threshold {
            queue.push(candidate);
        }
    }
    chosen
}

/// Options of TFLite_Detection_PostProcess.
struct PostProcess {
    max_detections: usize,
    max_classes_per_detection: usize,
    detections_per_class: usize,
    regular: bool,
    score_threshold: f32,
    iou_threshold: f32,
    classes: usize,
    /// Of y, x, height, width.
    scales: [f32; 4],
}

impl PostProcess {
    fn of(op: &Op) -> Result<Self, Refusal> {
        let Op::Custom(custom) = op else {
            return refuse(format!("{op} is not custom"));
        };
        let options =
            scalars(&custom.options).ok_or_else(|| Refusal("options that are not a map".into()))?;
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

/// Reads an input as floats.
type Reader = fn(&Call<'_>, usize, Affine) -> Result<Vec<f32>, Refusal>;

/// Reads floats, or 8-bit integers that stand for them.
fn reader(tensor: &Tensor) -> Result<Reader, Refusal> {
    match tensor.dtype {
        DType::F32 => Ok(|call, position, _| Ok(call.input::<f32>(position)?.to_vec())),
        DType::U8 => Ok(|call, position, params| {
            let elements = call.input::<u8>(position)?.iter();
            let zero = params.zero_point as f32;
            Ok(elements.map(|&q| (f32::from(q) - zero) * params.scale).collect())
        }),
        other => refuse(format!("element type {other}")),
    }
}

pub(super) fn post_process(node: &Node<'_>) -> Result<Run, Refusal> {
    let options = PostProcess::of(&node.operator.op)?;
    if !(options.iou_threshold > 0.0 && options.iou_threshold <= 1.0) {
        return refuse(format!("an overlap threshold of {}", options.iou_threshold));
    }
    let mut readers = Vec::new();
    for position in 0..3 {
        let tensor = node.input(position)?;
        let params = affine(tensor).unwrap_or(Affine { scale: 1.0, zero_point: 0 });
        readers.push((reader(tensor)?, params));
    }
    for position in 0..4 {
        node.expect_output(position, DType::F32)?;
    }
    run(move |call| {
        let [images, count, code] = call.dims(0)?;
        let [scored_images, scored, columns] = call.dims(1)?;
        if images != 1 || scored_images != 1 {
            return refuse(format!("boxes of {images} images, scores of {scored_images}"));
        }
        let [anchored, 4] = call.dims(2)? else {
            return refuse("anchors without four numbers each");
        };
        let background = columns.checked_sub(options.classes).filter(|&b| b <= 1);
        let (Some(background), true) =
            (background, code >= 4 && scored == count && anchored == count)
        else {
            return refuse(format!(
                "{count} boxes, {scored} × {columns} scores, {anchored} anchors"
            ));
        };
        // Where there is room for all slots, what is computed for them is not too large.
        let slots = options.max_detections.checked_mul(options.max_classes_per_detection);
        let slots = slots.ok_or_else(|| Refusal("more slots than can be counted".into()))?;
        call.allocate(0, &[1, slots, 4])?;
        call.allocate(1, &[1, slots])?;
        call.allocate(2, &[1, slots])?;
        call.allocate(3, &[1])?;
        let mut data = Vec::new();
        for (position, (read, params)) in readers.iter().enumerate() {
            data.push(read(call, position, *params)?);
        }
        let boxes = decode(&data[0], code, &data[2], options.scales);
        if boxes.iter().any(|c| c[0] > c[2] || c[1] > c[3]) {
            return refuse("a box with a negative size");
        }
        let scores = Scores { values: &data[1], columns, background, classes: options.classes };
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

/// Boxes from their offsets to the anchors.
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

/// Scores `[boxes, columns]`; a background class may come first.
struct Scores<'a> {
    values: &'a [f32],
    columns: usize,
    background: usize,
    classes: usize,
}

impl Scores<'_> {
    fn of_box(&self, index: usize) -> &[f32] {
        &self.values[index * self.columns + self.background..][..self.classes]
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

/// Boxes in the order of their scores, without those that overlap a better one.
fn suppress(options: &PostProcess, boxes: &[Corners], scores: &[f32], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..scores.len()).filter(|&i| scores[i] >= options.score_threshold).collect();
    order.sort_by(|&a, &b| descending(&scores[a], &scores[b]));
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

/// Suppression by the best class of each box; a box keeps its best classes.
fn fast(options: &PostProcess, boxes: &[Corners], scores: &Scores<'_>) -> Found {
    let keep = options.max_classes_per_detection.min(scores.classes);
    let ranked = |index: usize| {
        let own = scores.of_box(index);
        let mut classes: Vec<usize> = (0..own.len()).collect();
        classes.sort_by(|&a, &b| descending(&own[a], &own[b]));
        classes.truncate(keep);
        classes
    };
    let best: Vec<f32> = (0..boxes.len())
        .map(|index| scores.of_box(index).iter().copied().fold(f32::MIN, f32::max))
        .collect();
    let chosen = suppress(options, boxes, &best, options.max_detections);
    let blank = Detection { anchor: 0, class: 0, score: 0.0 };
    let mut found = Vec::new();
    for &anchor in &chosen {
        let own = scores.of_box(anchor);
        let classes = ranked(anchor);
        let detections =
            classes.iter().map(|&class| Detection { anchor, class, score: own[class] });
        found.extend(detections);
        // Slots of a box stay together where it has fewer classes than slots.
        found.extend(vec![blank; options.max_classes_per_detection - keep]);
    }
    Found { boxes: found, count: chosen.len() }
}

/// Suppression class by class; the best of all classes remain.
fn regular(options: &PostProcess, boxes: &[Corners], scores: &Scores<'_>) -> Found {
    let per_class = options.detections_per_class.min(options.max_detections);
    let mut found: Vec<Detection> = Vec::new();
    for class in 0..scores.classes {
        let own: Vec<f32> = (0..boxes.len()).map(|index| scores.of_box(index)[class]).collect();
        let chosen = suppress(options, boxes, &own, per_class);
        found.extend(chosen.into_iter().map(|anchor| Detection {
            anchor,
            class,
            score: own[anchor],
        }));
        // Stable: earlier classes stay before later ones of the same score.
        found.sort_by(|a, b| descending(&a.score, &b.score));
        found.truncate(options.max_detections);
    }
    let count = found.len();
    Found { boxes: found, count }
}
