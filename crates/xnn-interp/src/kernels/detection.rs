//! Non-maximum suppression: NON_MAX_SUPPRESSION_V4 and _V5, and the custom
//! TFLite_Detection_PostProcess.

mod boxes;
mod post_process;

use std::cmp::Ordering;

use xnn_model::{DType, Op};

use self::boxes::{Corners, overlap};
use crate::call::{Call, size};
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};

pub(super) use post_process::post_process;

pub(super) fn suppression(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    let soft = matches!(context.operator.op, Op::NonMaxSuppressionV5);
    context.expect_input(0, DType::F32)?;
    context.expect_input(1, DType::F32)?;
    context.expect_output(0, DType::I32)?;
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
    if rest.is_empty() {
        Ok(boxes.to_vec())
    } else {
        refuse("boxes must have four coordinates each")
    }
}

/// Selects boxes greedily by score. With a `sigma`, overlapping boxes lose score instead of being
/// dropped.
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
        /// Number of selected boxes that it has been compared with.
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
        // The boxes that were selected last are the likeliest to overlap.
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
        // A selected box returns to the queue too: it overlaps itself the next time, and is dropped
        // unless it has no area.
        if candidate.score > threshold {
            queue.push(candidate);
        }
    }
    chosen
}
