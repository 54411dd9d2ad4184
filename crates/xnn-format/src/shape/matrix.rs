//! Shapes of matrix products.

use super::arrange::{broadcast, product};
use super::shapes::{Dims, Shapes};
use crate::error::{Error, Result, require};
use crate::node::flags;
use crate::value::ValueId;

pub(super) fn fully_connected(
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    flags: u32,
    shapes: &Shapes,
) -> Result<Dims> {
    let [rows, columns] = shapes.rank(filter)?;
    let (outputs, inputs) = match flags & flags::TRANSPOSE_WEIGHTS {
        0 => (rows, columns),
        _ => (columns, rows),
    };
    if let Some(bias) = bias {
        let actual = shapes.of(bias)?;
        require!(actual == [outputs], "the bias is {actual:?} instead of [{outputs}]");
    }
    let dims = shapes.of(input)?;
    if flags & flags::TENSORFLOW_RESHAPE_2D != 0 {
        let elements = product(dims)?;
        require!(elements.is_multiple_of(inputs), "{dims:?} does not divide into rows of {inputs}");
        return Ok(vec![elements / inputs, outputs]);
    }
    match dims.split_last() {
        Some((&last, batch)) if last == inputs => Ok([batch, &[outputs]].concat()),
        _ => {
            Err(Error::invalid(format!("{dims:?} does not end with the filter's {inputs} inputs")))
        }
    }
}

pub(super) fn batch_matrix_multiply(a: &[usize], b: &[usize], flags: u32) -> Result<Dims> {
    let (&[ref batch_a @ .., m, k], &[ref batch_b @ .., rows, columns]) = (a, b) else {
        return Err(Error::invalid(format!("{a:?} and {b:?} are not both matrices")));
    };
    let (k_b, n) = match flags & flags::TRANSPOSE_WEIGHTS {
        0 => (rows, columns),
        _ => (columns, rows),
    };
    require!(k == k_b, "the inner dimensions {k} and {k_b} differ");
    let mut dims = broadcast(batch_a, batch_b)?;
    dims.extend([m, n]);
    Ok(dims)
}

pub(super) fn attention(
    query: &[usize],
    key: &[usize],
    value: &[usize],
    scale: &[usize],
    mask: &[usize],
) -> Result<Dims> {
    let mismatch = || {
        Error::invalid(format!(
            "query {query:?}, key {key:?}, value {value:?}, scale {scale:?} and mask {mask:?} do \
             not match"
        ))
    };
    let &[ref batch @ .., heads, tokens, channels] = query else { return Err(mismatch()) };
    let (&[ref of_keys @ .., keys, key_channels], &[ref of_values @ .., values, value_channels]) =
        (key, value)
    else {
        return Err(mismatch());
    };
    // A single head of keys and values for all queries may omit its dimension.
    let own = [batch, &[heads]].concat();
    let heads_fit = of_keys == of_values && (of_keys == own || of_keys == batch);
    let sizes_fit = key_channels == channels && values == keys;
    if !heads_fit || !sizes_fit || scale != [channels] || mask != [tokens, keys] {
        return Err(mismatch());
    }
    Ok([own.as_slice(), &[tokens, value_channels]].concat())
}
