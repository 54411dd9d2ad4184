//! HASHTABLE operators.

use std::collections::HashMap;

use xnn_model::DType;

use super::strings::expect_atoms;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::operator::{OperatorContext, Run, run};
use crate::resources::Atom;
use crate::tensor::width;

fn handle_of(call: &Call<'_>) -> Result<u64, Refusal> {
    match call.input::<u64>(0)? {
        [handle, ..] => Ok(*handle),
        [] => refuse("the handle is empty"),
    }
}

/// Keys or values of a table.
fn atoms(call: &Call<'_>, position: usize) -> Result<Vec<Atom>, Refusal> {
    Ok(match call.tensor(position)?.dtype {
        DType::String => {
            call.strings(position)?.into_iter().map(|string| Atom::String(string.into())).collect()
        }
        _ => call.ints(position)?.into_iter().map(Atom::Int).collect(),
    })
}

pub(super) fn import(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::Resource)?;
    expect_atoms(context, 1)?;
    expect_atoms(context, 2)?;
    run(|call| {
        let handle = handle_of(call)?;
        let (keys, values) = (atoms(call, 1)?, atoms(call, 2)?);
        if keys.len() != values.len() {
            return refuse(format!("{} keys, but {} values", keys.len(), values.len()));
        }
        let mut table = HashMap::new();
        // The first value of a key is kept.
        for (key, value) in keys.into_iter().zip(values) {
            table.entry(key).or_insert(value);
        }
        call.tables.import(handle, table);
        Ok(())
    })
}

pub(super) fn find(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::Resource)?;
    expect_atoms(context, 1)?;
    expect_atoms(context, 2)?;
    context.expect_output(0, context.input(2)?.dtype)?;
    run(|call| {
        let handle = handle_of(call)?;
        let keys = atoms(call, 1)?;
        let default = match atoms(call, 2)?.as_mut_slice() {
            [default] => std::mem::replace(default, Atom::Int(0)),
            many => {
                return refuse(format!(
                    "the default value has {} elements, expected 1",
                    many.len()
                ));
            }
        };
        let table = call.tables.get(handle);
        let found = |key| table.and_then(|table| table.get(key)).unwrap_or(&default);
        let values: Vec<Atom> = keys.iter().map(|key| found(key).clone()).collect();
        put(call, &values)
    })
}

/// Writes the first output, whose type must be that of the values.
fn put(call: &mut Call<'_>, values: &[Atom]) -> Result<(), Refusal> {
    let other = || Refusal("the table has values of another type".into());
    let ints = || values.iter().map(Atom::int).collect::<Option<Vec<_>>>().ok_or_else(other);
    match call.outputs.first().map(|output| output.dtype()) {
        Some(DType::String) => {
            let strings: Option<Vec<&[u8]>> = values.iter().map(Atom::string).collect();
            let shape = call.output_shape(0)?;
            call.put_strings(0, &shape, &strings.ok_or_else(other)?)?;
        }
        Some(DType::I32) => {
            let output = call.output::<i32>(0)?;
            output.iter_mut().zip(ints()?).for_each(|(out, value)| *out = value as i32);
        }
        _ => call.output::<i64>(0)?.copy_from_slice(&ints()?),
    }
    Ok(())
}

pub(super) fn size(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::Resource)?;
    context.expect_output(0, DType::I64)?;
    run(|call| {
        let handle = handle_of(call)?;
        let entries = call.tables.get(handle).map_or(0, HashMap::len);
        call.output::<i64>(0)?.fill(entries as i64);
        Ok(())
    })
}

/// HASHTABLE_LOOKUP, whose table is in tensors: rows of values sorted by key. Returns a row per
/// key, which is zero if the key is missing, and whether each key was found.
pub(super) fn lookup(context: &OperatorContext<'_>) -> Result<Run, Refusal> {
    context.expect_input(0, DType::I32)?;
    context.expect_input(1, DType::I32)?;
    let dtype = context.input(2)?.dtype;
    context.expect_output(0, dtype)?;
    context.expect_output(1, DType::U8)?;
    let width = width(dtype)?;
    run(move |call| {
        let (wanted, keys) = (call.input::<i32>(0)?, call.input::<i32>(1)?);
        let values = call.tensor(2)?;
        let Some((rows, row)) = values.shape.split_first() else {
            return refuse("the values must have at least one dimension");
        };
        if *rows != keys.len() {
            return refuse(format!("{} keys, but {rows} rows of values", keys.len()));
        }
        let size = row.iter().product::<usize>() * width;
        let places: Vec<Option<usize>> =
            wanted.iter().map(|key| keys.binary_search(key).ok()).collect();
        let hits = call.output::<u8>(1)?.iter_mut();
        hits.zip(&places).for_each(|(hit, place)| *hit = u8::from(place.is_some()));
        let output = call.output_bytes(0)?;
        for (out, place) in output.chunks_exact_mut(size.max(1)).zip(places) {
            match place.and_then(|place| values.bytes.get(place * size..)?.get(..size)) {
                Some(row) => out.copy_from_slice(row),
                None => out.fill(0),
            }
        }
        Ok(())
    })
}
