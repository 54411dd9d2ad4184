//! ARG_MAX and ARG_MIN. The first of equal elements counts.

use xnn_model::{DType, Op};

use super::copy::around;
use crate::call::axis;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::tensor::Element;

pub(super) fn min_max(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.input(0)?.dtype {
        DType::F32 => of_ordered::<f32>(context),
        DType::U8 | DType::Bool => of_bytes::<u8>(context, 0x80),
        DType::I8 => of_bytes::<i8>(context, 0),
        DType::I16 => of_ordered::<i16>(context),
        DType::I32 => of_ordered::<i32>(context),
        DType::I64 => of_ordered::<i64>(context),
        other => context.unsupported(other),
    }
}

fn of_ordered<T: Element + PartialOrd>(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    match context.operator.op {
        Op::ArgMax(_) => select::<T>(context, |row| first_best(row, |a, b| a > b), |a, b| a > b),
        _ => select::<T>(context, |row| first_best(row, |a, b| a < b), |a, b| a < b),
    }
}

/// XOR with `flip` turns the bytes into signed integers of the same order.
fn of_bytes<T: Element + PartialOrd>(
    context: &OperatorContext<'_>,
    flip: u8,
) -> Result<Run, Refusal> {
    match context.operator.op {
        Op::ArgMax(_) => select::<T>(
            context,
            move |row| first_largest(bytemuck::cast_slice(row), flip),
            |a, b| a > b,
        ),
        _ => select::<T>(
            context,
            move |row| first_largest(bytemuck::cast_slice(row), !flip),
            |a, b| a < b,
        ),
    }
}

/// Position of the first element that no other element `beats`, which must have no branches.
///
/// One pass finds the best element in parallel lanes, a second one its position; both are
/// vectorized. NaN beats nothing, and nothing beats it, so it counts only in the first position.
fn first_best<T: Copy + PartialEq>(row: &[T], beats: impl Fn(T, T) -> bool) -> usize {
    const LANES: usize = 16;
    let Some(&first) = row.first() else { return 0 };
    let better = |best: T, x: T| if beats(x, best) { x } else { best };
    let mut best = [first; LANES];
    let (groups, rest) = row.as_chunks::<LANES>();
    for group in groups {
        best.iter_mut().zip(group).for_each(|(best, &x)| *best = better(*best, x));
    }
    let best = best.iter().chain(rest).fold(first, |best, &x| better(best, x));
    row.iter().position(|&x| x == best).unwrap_or(0)
}

/// Position of the first largest byte, compared as a signed integer after XOR with `flip`.
///
/// The byte and its distance from the end form one integer, so a single pass for the maximum finds
/// both.
fn first_largest(row: &[u8], flip: u8) -> usize {
    const SPAN: usize = 256;
    const FROM_END: [i16; SPAN] = {
        let mut table = [0; SPAN];
        let mut i = 0;
        while i < SPAN {
            table[i] = (SPAN - 1 - i) as i16;
            i += 1;
        }
        table
    };
    let mut best = (i16::MIN, 0);
    for (index, span) in row.chunks(SPAN).enumerate() {
        let keys = span.iter().zip(&FROM_END);
        let keys =
            keys.map(|(&byte, from_end)| i16::from((byte ^ flip).cast_signed()) << 8 | from_end);
        let largest = keys.fold(i16::MIN, i16::max);
        if index == 0 || largest >> 8 > best.0 {
            best = (largest >> 8, index * SPAN + (SPAN - 1 - usize::from(largest as u8)));
        }
    }
    best.1
}

/// `of_row` finds the position in contiguous elements; `beats` compares two elements of a strided
/// row.
fn select<T: Element>(
    context: &OperatorContext<'_>,
    of_row: impl Fn(&[T]) -> usize + Send + Sync + 'static,
    beats: impl Fn(T, T) -> bool + Send + Sync + 'static,
) -> Result<Run, Refusal> {
    let wide = match context.output(0)?.dtype {
        DType::I32 => false,
        DType::I64 => true,
        other => return context.unsupported(other),
    };
    run(move |call| {
        let shape = call.shape(0)?;
        let (_, along, behind) = around(shape, axis(call.int(1)?, shape.len())?);
        if along == 0 {
            return refuse("the input has no elements along the axis");
        }
        let input = call.input::<T>(0)?;
        let block = (along * behind).max(1);
        let apart = |block: &[T], i: usize| {
            let mut best = 0;
            for j in 1..along {
                if beats(block[j * behind + i], block[best * behind + i]) {
                    best = j;
                }
            }
            best
        };
        let blocks = input.chunks_exact(block);
        let best = blocks.flat_map(|block| {
            (0..behind).map(|i| if behind == 1 { of_row(block) } else { apart(block, i) })
        });
        if wide {
            call.output::<i64>(0)?.iter_mut().zip(best).for_each(|(out, i)| *out = i as i64);
        } else {
            call.output::<i32>(0)?.iter_mut().zip(best).for_each(|(out, i)| *out = i as i32);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn plain<T: Copy + PartialOrd>(row: &[T], greatest: bool) -> usize {
        (1..row.len()).fold(0, |best, i| {
            let beats = if greatest { row[i] > row[best] } else { row[i] < row[best] };
            if beats { i } else { best }
        })
    }

    #[test]
    fn the_first_of_the_best_is_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for length in (1..80).chain([255, 256, 257, 600]) {
            for spread in [1u8, 3, 255] {
                let bytes: Vec<u8> = (0..length).map(|_| rng.random_range(0..=spread)).collect();
                let signed: Vec<i8> =
                    bytes.iter().map(|b| b.wrapping_mul(7).cast_signed()).collect();
                let raw: Vec<u8> = signed.iter().map(|b| b.cast_unsigned()).collect();
                assert_eq!(first_largest(&bytes, 0x80), plain(&bytes, true));
                assert_eq!(first_largest(&bytes, 0x7f), plain(&bytes, false));
                assert_eq!(first_largest(&raw, 0), plain(&signed, true));
                assert_eq!(first_largest(&raw, 0xff), plain(&signed, false));
                let floats: Vec<f32> = signed.iter().map(|&b| b.into()).collect();
                assert_eq!(first_best(&floats, |a, b| a > b), plain(&floats, true));
                assert_eq!(first_best(&floats, |a, b| a < b), plain(&floats, false));
            }
        }
    }

    #[test]
    fn what_is_no_number_counts_where_it_comes_first() {
        for nan in 0..40 {
            let mut row: Vec<f32> = (0..40u8).map(|i| f32::from(i % 7)).collect();
            row[nan] = f32::NAN;
            assert_eq!(first_best(&row, |a, b| a > b), plain(&row, true), "{nan}");
        }
        assert_eq!(first_best(&[-1.0, -0.0, 0.0f32], |a, b| a > b), 1);
    }
}
