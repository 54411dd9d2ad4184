//! Tables.

use std::collections::HashMap;

use xnn_model::DType;

use crate::call::Call;
use crate::error::{Refusal, refuse};
use crate::node::{Node, Run, run};

fn handle_of(call: &Call<'_>) -> Result<u64, Refusal> {
    match call.input::<u64>(0)? {
        [handle, ..] => Ok(*handle),
        [] => refuse("an empty handle"),
    }
}

/// Tables map 64-bit integers to 64-bit integers; strings are refused.
fn expect_integers(node: &Node<'_>, positions: &[usize]) -> Result<(), Refusal> {
    positions.iter().try_for_each(|&position| match node.input(position)?.dtype {
        DType::I64 | DType::I32 => Ok(()),
        other => node.unsupported(other),
    })
}

pub(super) fn import(node: &Node<'_>) -> Result<Run, Refusal> {
    node.expect_input(0, DType::Resource)?;
    expect_integers(node, &[1, 2])?;
    run(|call| {
        let handle = handle_of(call)?;
        let (keys, values) = (call.ints(1)?, call.ints(2)?);
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
    expect_integers(node, &[1, 2])?;
    node.expect_output(0, node.input(2)?.dtype)?;
    run(|call| {
        let handle = handle_of(call)?;
        let (keys, default) = (call.ints(1)?, call.int(2)?);
        let table = call.tables.get(handle);
        let values: Vec<i64> = keys
            .iter()
            .map(|key| table.and_then(|table| table.get(key)).copied().unwrap_or(default))
            .collect();
        match call.outputs.first().map(|output| output.dtype()) {
            Some(DType::I32) => {
                let output = call.output::<i32>(0)?;
                output.iter_mut().zip(values).for_each(|(out, value)| *out = value as i32);
            }
            _ => call.output::<i64>(0)?.copy_from_slice(&values),
        }
        Ok(())
    })
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
