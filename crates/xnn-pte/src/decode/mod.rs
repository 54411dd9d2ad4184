//! Reads programs from flatbuffers.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use flatbuffers::{ForwardsUOffset, Vector};

use crate::error::{Error, ErrorKind, Result};
use crate::generated::program as fb;
use crate::header::Layout;
use crate::limits::PteLimits;
use crate::program::{Argument, CompileSpec, Delegate, Method, Operator, PteProgram, TensorType};

pub(crate) const IDENTIFIER: &[u8] = b"ET12";
/// Position of the identifier in a flatbuffer.
pub(crate) const IDENTIFIER_AT: Range<usize> = 4..8;

/// Verifies and reads a program.
pub(crate) fn program(file: &Bytes, limits: &PteLimits) -> Result<PteProgram> {
    let identifier = file.get(IDENTIFIER_AT).ok_or(ErrorKind::TooShort(file.len()))?;
    if identifier != IDENTIFIER {
        return Err(ErrorKind::Identifier(identifier.escape_ascii().to_string()).into());
    }
    let layout = Layout::of(file)?;
    let flatbuffer = file.slice(layout.flatbuffer);
    let verifier = limits.verifier(flatbuffer.len());
    let root = fb::root_as_program_with_opts(&verifier, &flatbuffer)?;
    let reader = Reader {
        flatbuffer: &flatbuffer,
        region: file.slice(layout.segments),
        segments: root.segments(),
        inline: root.backend_delegate_data(),
    };
    // The verifier accepts a file of zeros as an empty program.
    let plans =
        root.execution_plan().ok_or_else(|| Error::invalid("the program has no methods"))?;
    let methods = plans.iter().map(|plan| reader.method(&plan));
    Ok(PteProgram {
        version: root.version(),
        file_size: file.len(),
        methods: methods.collect::<Result<_>>()?,
        named_data: reader.named_data(root.named_data())?,
        limits: limits.clone(),
    })
}

type Tables<'a, T> = Option<Vector<'a, ForwardsUOffset<T>>>;

/// Data that the tables of a program refer to.
struct Reader<'a> {
    flatbuffer: &'a Bytes,
    /// The part of the file with the segments.
    region: Bytes,
    segments: Tables<'a, fb::DataSegment<'a>>,
    inline: Tables<'a, fb::BackendDelegateInlineData<'a>>,
}

impl Reader<'_> {
    fn method(&self, plan: &fb::ExecutionPlan<'_>) -> Result<Method> {
        let name = plan.name().unwrap_or_default();
        let read = || {
            let calls = Calls::of(plan)?;
            Ok(Method {
                name: name.to_owned(),
                inputs: arguments(plan, plan.inputs(), "input")?,
                outputs: arguments(plan, plan.outputs(), "output")?,
                delegates: self.delegates(plan, &calls)?,
                operators: operators(plan, &calls),
            })
        };
        read().map_err(|error: Error| error.in_method(name))
    }

    fn delegates(&self, plan: &fb::ExecutionPlan<'_>, calls: &Calls) -> Result<Vec<Delegate>> {
        let delegates = plan.delegates().into_iter().flatten().enumerate();
        delegates
            .map(|(index, delegate)| {
                Ok(Delegate {
                    index,
                    backend: delegate.id().unwrap_or_default().to_owned(),
                    payload: self
                        .payload(delegate.processed())
                        .map_err(|error| error.in_delegate(index))?,
                    compile_specs: self.compile_specs(&delegate),
                    calls: calls.delegates.get(&index).copied().unwrap_or_default(),
                })
            })
            .collect()
    }

    fn payload(&self, place: Option<fb::BackendDelegateDataReference<'_>>) -> Result<Bytes> {
        let place = place.ok_or_else(|| Error::invalid("it has no payload"))?;
        let index = place.index();
        match place.location() {
            fb::DataLocation::INLINE => {
                let entry = entry(self.inline, index, "inline data")?;
                let data = entry.data().map(|data| self.flatbuffer.slice_ref(data.bytes()));
                Ok(data.unwrap_or_default())
            }
            fb::DataLocation::SEGMENT => self.segment(index),
            other => {
                Err(Error::invalid(format!("its payload has the unknown location {}", other.0)))
            }
        }
    }

    fn segment(&self, index: u32) -> Result<Bytes> {
        let segment = entry(self.segments, index, "segment")?;
        let (offset, size) = (segment.offset(), segment.size());
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            (end <= self.region.len()).then_some(start..end)
        };
        let range = range().ok_or_else(|| {
            Error::invalid(format!(
                "segment {index} of {size} bytes at {offset} extends beyond the {} bytes of segments",
                self.region.len()
            ))
        })?;
        Ok(self.region.slice(range))
    }

    fn compile_specs(&self, delegate: &fb::BackendDelegate<'_>) -> Vec<CompileSpec> {
        let specs = delegate.compile_specs();
        let spec = |spec: fb::CompileSpec<'_>| CompileSpec {
            key: spec.key().unwrap_or_default().to_owned(),
            value: spec
                .value()
                .map(|value| self.flatbuffer.slice_ref(value.bytes()))
                .unwrap_or_default(),
        };
        specs.into_iter().flatten().map(spec).collect()
    }

    fn named_data(
        &self,
        entries: Tables<'_, fb::NamedData<'_>>,
    ) -> Result<BTreeMap<String, Bytes>> {
        let mut named = BTreeMap::new();
        for entry in entries.into_iter().flatten() {
            let key = entry.key().unwrap_or_default();
            let bytes = self.segment(entry.segment_index())?;
            if named.insert(key.to_owned(), bytes).is_some() {
                return Err(Error::invalid(format!("the named data {key:?} exist twice")));
            }
        }
        Ok(named)
    }
}

/// Number of calls of operators and delegates in a method, by index.
#[derive(Default)]
struct Calls {
    operators: BTreeMap<usize, usize>,
    delegates: BTreeMap<usize, usize>,
}

impl Calls {
    fn of(plan: &fb::ExecutionPlan<'_>) -> Result<Self> {
        let operators = plan.operators().map_or(0, |operators| operators.len());
        let delegates = plan.delegates().map_or(0, |delegates| delegates.len());
        let mut calls = Self::default();
        let chains = plan.chains();
        let instructions = chains.into_iter().flatten().filter_map(|chain| chain.instructions());
        for instruction in instructions.flatten() {
            if let Some(call) = instruction.instr_args_as_kernel_call() {
                let index = index_below(operators, call.op_index(), "operator")?;
                *calls.operators.entry(index).or_default() += 1;
            } else if let Some(call) = instruction.instr_args_as_delegate_call() {
                let index = index_below(delegates, call.delegate_index(), "delegate")?;
                *calls.delegates.entry(index).or_default() += 1;
            }
        }
        Ok(calls)
    }
}

/// The called operators; the calls of equal names are added.
fn operators(plan: &fb::ExecutionPlan<'_>, calls: &Calls) -> Vec<Operator> {
    let mut by_name = BTreeMap::new();
    for (index, operator) in plan.operators().into_iter().flatten().enumerate() {
        let Some(calls) = calls.operators.get(&index) else { continue };
        let mut name = operator.name().unwrap_or_default().to_owned();
        if let Some(overload) = operator.overload().filter(|overload| !overload.is_empty()) {
            name.push('.');
            name.push_str(overload);
        }
        *by_name.entry(name).or_default() += calls;
    }
    by_name.into_iter().map(|(name, calls)| Operator { name, calls }).collect()
}

fn arguments(
    plan: &fb::ExecutionPlan<'_>,
    indices: Option<Vector<'_, i32>>,
    role: &str,
) -> Result<Vec<Argument>> {
    let count = plan.values().map_or(0, |values| values.len());
    let argument = |(position, index)| {
        let index = index_below(count, index, "value")
            .map_err(|error| Error::invalid(format!("{role} {position}: {error}")))?;
        let value = plan.values().map(|values| values.get(index));
        match value.and_then(|value| value.val_as_tensor()) {
            Some(tensor) => tensor_type(&tensor)
                .map(Argument::Tensor)
                .map_err(|error| Error::invalid(format!("{role} {position}: {error}"))),
            None => Ok(Argument::Other),
        }
    };
    indices.into_iter().flatten().enumerate().map(argument).collect()
}

fn tensor_type(tensor: &fb::Tensor<'_>) -> Result<TensorType> {
    let dim = |dim| {
        usize::try_from(dim).map_err(|_| Error::invalid(format!("the dimension {dim} is negative")))
    };
    let dims: Vec<usize> = tensor.sizes().into_iter().flatten().map(dim).collect::<Result<_>>()?;
    let dim_order: Vec<usize> = tensor.dim_order().into_iter().flatten().map(usize::from).collect();
    let mut sorted = dim_order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..dims.len()) {
        return Err(Error::invalid(format!(
            "the dim_order {dim_order:?} is not a permutation of {} dimensions",
            dims.len()
        )));
    }
    let scalar_type = tensor.scalar_type();
    let element = match scalar_type.variant_name() {
        Some(name) => name.to_lowercase(),
        None => format!("type {}", scalar_type.0),
    };
    Ok(TensorType { element, dims, dim_order })
}

fn entry<'a, T: flatbuffers::Follow<'a, Inner = T> + 'a>(
    list: Tables<'a, T>,
    index: u32,
    what: &str,
) -> Result<T> {
    let count = list.map_or(0, |list| list.len());
    let found = usize::try_from(index).ok().filter(|&index| index < count);
    let entry = found.and_then(|index| list.map(|list| list.get(index)));
    entry.ok_or_else(|| Error::invalid(format!("{what} {index} does not exist; there are {count}")))
}

fn index_below(count: usize, index: i32, what: &str) -> Result<usize> {
    let found = usize::try_from(index).ok().filter(|&index| index < count);
    found.ok_or_else(|| Error::invalid(format!("{what} {index} does not exist; there are {count}")))
}
