//! Tables.

use std::collections::HashMap;

use xnn_model::DType;

use super::copy::width;
use super::strings::expect_atoms;
use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};
use crate::resources::Atom;

fn handle_of(call: &Call<'_>) -> Result<u64, Refusal> {
    match call.input::<u64>(0)? {
        [handle, ..] => Ok(*handle),
        [] => refuse("an empty handle"),
    }
}

/// Keys or values: integers, or strings.
fn atoms(call: &Call<'_>, position: usize) -> Result<Vec<Atom>, Refusal> {
    Ok(match call.tensor(position)?.dtype {
        DType::String => {
            call.strings(position)?.into_iter().map(|string| Atom::String(string.into())).collect()
        }
        _ => call.ints(position)?.into_iter().map(Atom::Int).collect(),
    })
}

pub(super) fn import(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::Resource)?;
    expect_atoms(node, 1)?;
    expect_atoms(node, 2)?;
    run(|call| {
        let handle = handle_of(call)?;
        let (keys, values) = (atoms(call, 1)?, atoms(call, 2)?);
        if keys.len() != values.len() {
            return refuse(format!("{} keys and {} values", keys.len(), values.len()));
        }
        let mut table = HashMap::new();
        // The first value of a key stays.
        for (key, value) in keys.into_iter().zip(values) {
            table.entry(key).or_insert(value);
        }
        call.tables.import(handle, table);
        Ok(())
    })
}

pub(super) fn find(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::Resource)?;
    expect_atoms(node, 1)?;
    expect_atoms(node, 2)?;
    node.expect_output(0, node.input(2)?.dtype)?;
    run(|call| {
        let handle = handle_of(call)?;
        let keys = atoms(call, 1)?;
        let default = match atoms(call, 2)?.as_mut_slice() {
            [default] => std::mem::replace(default, Atom::Int(0)),
            many => return refuse(format!("{} defaults", many.len())),
        };
        let table = call.tables.get(handle);
        let found = |key| table.and_then(|table| table.get(key)).unwrap_or(&default);
        let values: Vec<Atom> = keys.iter().map(|key| found(key).clone()).collect();
        put(call, &values)
    })
}

/// Writes the first output, whose type the values must have.
fn put(call: &mut Call<'_>, values: &[Atom]) -> Result<(), Refusal> {
    let other = || Refusal("a table with values of another type".into());
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

pub(super) fn size(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::Resource)?;
    node.expect_output(0, DType::I64)?;
    run(|call| {
        let handle = handle_of(call)?;
        let entries = call.tables.get(handle).map_or(0, HashMap::len);
        call.output::<i64>(0)?.fill(entries as i64);
        Ok(())
    })
}

/// HASHTABLE_LOOKUP, which has its table in tensors: rows of values by ascending keys, zeros where there is no such key,
/// and whether there is one.
pub(super) fn lookup(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::I32)?;
    node.expect_input(1, DType::I32)?;
    let dtype = node.input(2)?.dtype;
    node.expect_output(0, dtype)?;
    node.expect_output(1, DType::U8)?;
    let width = width(dtype)?;
    run(move |call| {
        let (wanted, keys) = (call.input::<i32>(0)?, call.input::<i32>(1)?);
        let values = call.tensor(2)?;
        let Some((rows, row)) = values.shape.split_first() else {
            return refuse("values without rows");
        };
        if *rows != keys.len() {
            return refuse(format!("{} keys for {rows} rows", keys.len()));
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
