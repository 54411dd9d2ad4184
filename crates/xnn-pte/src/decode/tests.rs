//! Tests of valid programs and of programs with one error each.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use flatbuffers::{FlatBufferBuilder, WIPOffset};
use xnn_format::ConstantSource;

use super::*;
use crate::open::is_program;

/// A file with an XNNPACK delegate in segment 0, a delegate of another backend in the flatbuffer,
/// one call of each, two calls of an operator, and named data in segment 1.
struct Spec {
    delegate_place: Option<(fb::DataLocation, u32)>,
    inline_index: u32,
    /// Offsets and sizes.
    segments: [(u64, u64); 2],
    operator_called: i32,
    delegate_called: i32,
    input: i32,
    dims: Vec<i32>,
    dim_order: Vec<u8>,
    keys: Vec<(&'static str, u32)>,
    header: bool,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            delegate_place: Some((fb::DataLocation::SEGMENT, 0)),
            inline_index: 0,
            segments: [(0, 7), (16, 5)],
            operator_called: 0,
            delegate_called: 0,
            input: 0,
            dims: vec![1, 3, 8, 9],
            dim_order: vec![0, 2, 3, 1],
            keys: vec![("weights", 1)],
            header: true,
        }
    }
}

/// The part of the file with the segments.
const REGION: &[u8] = b"payload---------named";

impl Spec {
    fn file(&self) -> Vec<u8> {
        let flatbuffer = self.flatbuffer();
        if !self.header {
            return flatbuffer;
        }
        let (size, region) = (flatbuffer.len() as u64 + 32, REGION.len() as u64);
        let start = size.next_multiple_of(16);
        let root = u32::from_le_bytes(*flatbuffer.first_chunk().unwrap()) + 32;
        let mut file = root.to_le_bytes().to_vec();
        file.extend_from_slice(b"ET12eh00");
        file.extend(32u32.to_le_bytes());
        for field in [size, start, region] {
            file.extend(field.to_le_bytes());
        }
        file.extend_from_slice(&flatbuffer[8..]);
        file.resize(start as usize, 0);
        file.extend_from_slice(REGION);
        file
    }

    fn flatbuffer(&self) -> Vec<u8> {
        let builder = &mut FlatBufferBuilder::new();
        let plan = self.plan(builder);
        let plans = builder.create_vector(&[plan]);
        let data = Some(builder.create_vector(b"inline"));
        let inline = fb::BackendDelegateInlineData::create(
            builder,
            &fb::BackendDelegateInlineDataArgs { data },
        );
        let inline = builder.create_vector(&[inline]);
        let segments = self.segments.map(|(offset, size)| {
            fb::DataSegment::create(builder, &fb::DataSegmentArgs { offset, size })
        });
        let segments = builder.create_vector(&segments);
        let named: Vec<_> = self.keys.iter().map(|key| named(builder, *key)).collect();
        let named = builder.create_vector(&named);
        let program = fb::Program::create(
            builder,
            &fb::ProgramArgs {
                version: 0,
                execution_plan: Some(plans),
                backend_delegate_data: Some(inline),
                segments: Some(segments),
                named_data: Some(named),
            },
        );
        builder.finish(program, Some("ET12"));
        builder.finished_data().to_vec()
    }

    fn plan<'a>(&self, builder: &mut FlatBufferBuilder<'a>) -> WIPOffset<fb::ExecutionPlan<'a>> {
        let values = [self.tensor(builder), null(builder)];
        let values = builder.create_vector(&values);
        let inputs = builder.create_vector(&[self.input]);
        let outputs = builder.create_vector(&[1]);
        let instructions = [
            delegate_call(builder, self.delegate_called),
            operator_call(builder, self.operator_called),
            operator_call(builder, self.operator_called),
            delegate_call(builder, 1),
        ];
        let instructions = Some(builder.create_vector(&instructions));
        let chain = fb::Chain::create(builder, &fb::ChainArgs { instructions });
        let chains = builder.create_vector(&[chain]);
        let operators = [operator(builder, "aten::cumsum", "out"), operator(builder, "unused", "")];
        let operators = builder.create_vector(&operators);
        let delegates = [
            delegate(builder, "XnnpackBackend", self.delegate_place),
            delegate(builder, "Other", Some((fb::DataLocation::INLINE, self.inline_index))),
        ];
        let delegates = builder.create_vector(&delegates);
        let name = builder.create_string("forward");
        fb::ExecutionPlan::create(
            builder,
            &fb::ExecutionPlanArgs {
                name: Some(name),
                values: Some(values),
                inputs: Some(inputs),
                outputs: Some(outputs),
                chains: Some(chains),
                operators: Some(operators),
                delegates: Some(delegates),
            },
        )
    }

    fn tensor<'a>(&self, builder: &mut FlatBufferBuilder<'a>) -> WIPOffset<fb::EValue<'a>> {
        let sizes = Some(builder.create_vector(&self.dims));
        let dim_order = Some(builder.create_vector(&self.dim_order));
        let scalar_type = fb::ScalarType::FLOAT;
        let tensor = fb::Tensor::create(builder, &fb::TensorArgs { scalar_type, sizes, dim_order });
        let (val_type, val) = (fb::KernelTypes::Tensor, Some(tensor.as_union_value()));
        fb::EValue::create(builder, &fb::EValueArgs { val_type, val })
    }

    fn read(&self) -> Result<PteProgram> {
        PteProgram::from_bytes(self.file())
    }

    #[track_caller]
    fn assert_refused(&self, expected: &str) {
        let message = self.read().map_or_else(|error| error.to_string(), |_| "accepted".into());
        assert_eq!(message, expected);
    }
}

fn null<'a>(builder: &mut FlatBufferBuilder<'a>) -> WIPOffset<fb::EValue<'a>> {
    fb::EValue::create(builder, &fb::EValueArgs::default())
}

fn operator<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    name: &str,
    overload: &str,
) -> WIPOffset<fb::Operator<'a>> {
    let name = Some(builder.create_string(name));
    let overload = Some(builder.create_string(overload));
    fb::Operator::create(builder, &fb::OperatorArgs { name, overload })
}

fn operator_call<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    op_index: i32,
) -> WIPOffset<fb::Instruction<'a>> {
    let call = fb::KernelCall::create(builder, &fb::KernelCallArgs { op_index });
    let instr_args = Some(call.as_union_value());
    let instr_args_type = fb::InstructionArguments::KernelCall;
    fb::Instruction::create(builder, &fb::InstructionArgs { instr_args_type, instr_args })
}

fn delegate_call<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    delegate_index: i32,
) -> WIPOffset<fb::Instruction<'a>> {
    let call = fb::DelegateCall::create(builder, &fb::DelegateCallArgs { delegate_index });
    let instr_args = Some(call.as_union_value());
    let instr_args_type = fb::InstructionArguments::DelegateCall;
    fb::Instruction::create(builder, &fb::InstructionArgs { instr_args_type, instr_args })
}

fn delegate<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    id: &str,
    place: Option<(fb::DataLocation, u32)>,
) -> WIPOffset<fb::BackendDelegate<'a>> {
    let id = Some(builder.create_string(id));
    let processed = place.map(|(location, index)| {
        let args = fb::BackendDelegateDataReferenceArgs { location, index };
        fb::BackendDelegateDataReference::create(builder, &args)
    });
    let key = Some(builder.create_string("threads"));
    let value = Some(builder.create_vector(b"4"));
    let spec = fb::CompileSpec::create(builder, &fb::CompileSpecArgs { key, value });
    let compile_specs = Some(builder.create_vector(&[spec]));
    fb::BackendDelegate::create(builder, &fb::BackendDelegateArgs { id, processed, compile_specs })
}

fn named<'a>(
    builder: &mut FlatBufferBuilder<'a>,
    (key, segment_index): (&str, u32),
) -> WIPOffset<fb::NamedData<'a>> {
    let key = Some(builder.create_string(key));
    fb::NamedData::create(builder, &fb::NamedDataArgs { key, segment_index })
}

#[test]
fn everything_is_read() {
    let program = Spec::default().read().unwrap();
    let [method] = program.methods() else { panic!("{program:?}") };
    assert_eq!(method.name, "forward");
    let [Argument::Tensor(input)] = method.inputs.as_slice() else { panic!("{method:?}") };
    assert_eq!((input.element.as_str(), input.dims.as_slice()), ("float", &[1, 3, 8, 9][..]));
    assert_eq!(input.dim_order, [0, 2, 3, 1]);
    assert_eq!(method.outputs, [Argument::Other]);
    assert_eq!(method.operators, [Operator { name: "aten::cumsum.out".into(), calls: 2 }]);
    let [xnnpack, other] = method.delegates.as_slice() else { panic!("{method:?}") };
    assert_eq!((xnnpack.index, xnnpack.is_xnnpack(), xnnpack.calls), (0, true, 1));
    assert_eq!((other.index, other.is_xnnpack(), other.calls), (1, false, 1));
    assert_eq!(xnnpack.payload, "payload");
    assert_eq!(other.payload, "inline");
    let [spec] = other.compile_specs.as_slice() else { panic!("{other:?}") };
    assert_eq!((spec.key.as_str(), &spec.value[..]), ("threads", &b"4"[..]));
    assert_eq!(program.get("weights").unwrap(), "named");
    assert_eq!(program.get("bias"), None);
}

#[test]
fn graphs_are_read_from_xnnpack_delegates_only() {
    let program = Spec::default().read().unwrap();
    let method = &program.methods()[0];
    let errors = method
        .delegates
        .iter()
        .map(|delegate| program.xnnpack_graph(method, delegate).unwrap_err().to_string());
    let errors: Vec<String> = errors.collect();
    assert!(errors[0].starts_with("method \"forward\": delegate 0: "), "{}", errors[0]);
    assert!(errors[0].contains("XNNPACK graph"), "{}", errors[0]);
    assert!(errors[1].contains("the backend \"Other\""), "{}", errors[1]);
}

#[test]
fn payloads_must_exist() {
    let place = |place| Spec { delegate_place: place, ..Spec::default() };
    place(None).assert_refused("method \"forward\": delegate 0: it has no payload");
    place(Some((fb::DataLocation::SEGMENT, 2)))
        .assert_refused("method \"forward\": delegate 0: segment 2 does not exist; there are 2");
    place(Some((fb::DataLocation(7), 0)))
        .assert_refused("method \"forward\": delegate 0: its payload has the unknown location 7");
    Spec { inline_index: 1, ..Spec::default() }.assert_refused(
        "method \"forward\": delegate 1: inline data 1 does not exist; there are 1",
    );
}

#[test]
fn segments_must_be_in_range() {
    let segment = |offset, size| Spec { segments: [(offset, size), (0, 0)], ..Spec::default() };
    segment(0, 21).read().unwrap();
    segment(21, 0).read().unwrap();
    for (offset, size) in [(0, 22), (21, 1), (u64::MAX, 1), (1, u64::MAX)] {
        segment(offset, size).assert_refused(&format!(
            "method \"forward\": delegate 0: segment 0 of {size} bytes at {offset} extends beyond \
             the 21 bytes of segments"
        ));
    }
}

#[test]
fn files_without_extended_header_have_no_segments() {
    Spec { header: false, ..Spec::default() }.assert_refused(
        "method \"forward\": delegate 0: segment 0 of 7 bytes at 0 extends beyond the 0 bytes of \
         segments",
    );
    Spec {
        header: false,
        delegate_place: Some((fb::DataLocation::INLINE, 0)),
        keys: Vec::new(),
        ..Spec::default()
    }
    .read()
    .unwrap();
}

#[test]
fn calls_must_refer_to_operators_and_delegates() {
    for index in [2, -1, i32::MAX] {
        Spec { operator_called: index, ..Spec::default() }.assert_refused(&format!(
            "method \"forward\": operator {index} does not exist; there are 2"
        ));
        Spec { delegate_called: index, ..Spec::default() }.assert_refused(&format!(
            "method \"forward\": delegate {index} does not exist; there are 2"
        ));
    }
}

#[test]
fn inputs_must_be_values_with_valid_shapes() {
    for index in [2, -1] {
        Spec { input: index, ..Spec::default() }.assert_refused(&format!(
            "method \"forward\": input 0: value {index} does not exist; there are 2"
        ));
    }
    Spec { dims: vec![1, -3, 8, 9], ..Spec::default() }
        .assert_refused("method \"forward\": input 0: the dimension -3 is negative");
    for order in [vec![0, 2, 3], vec![0, 2, 2, 1], vec![0, 2, 3, 4]] {
        Spec { dim_order: order.clone(), ..Spec::default() }.assert_refused(&format!(
            "method \"forward\": input 0: the dim_order {order:?} is not a permutation of 4 dimensions"
        ));
    }
}

#[test]
fn keys_of_named_data_are_unique_and_refer_to_segments() {
    let keys = |keys: &[(&'static str, u32)]| Spec { keys: keys.to_vec(), ..Spec::default() };
    keys(&[("a", 1), ("b", 1)]).read().unwrap();
    keys(&[("a", 1), ("a", 0)]).assert_refused("the named data \"a\" exist twice");
    keys(&[("a", 2)]).assert_refused("segment 2 does not exist; there are 2");
}

#[test]
fn other_files_are_refused() {
    let message = |file: &[u8]| PteProgram::from_bytes(file.to_vec()).unwrap_err().to_string();
    assert!(message(b"").contains("too short (0 bytes)"));
    assert!(message(b"\0\0\0\0ET1").contains("too short (7 bytes)"));
    assert!(message(b"\0\0\0\0TFL3").contains("found \"TFL3\""));
    assert!(message(b"\0\0\0\0ET12").contains("no methods"));
    assert!(message(b"\x09\0\0\0ET12").contains("damaged"));
    assert!(is_program(b"\0\0\0\0ET12") && !is_program(b"\0\0\0\0ET13") && !is_program(b"ET12"));
}

#[test]
fn limits_hold() {
    let file = Spec::default().file();
    let reads = |limits: &PteLimits| PteProgram::from_bytes_with(file.clone(), limits).is_ok();
    assert!(reads(&PteLimits { max_depth: 5, ..PteLimits::default() }));
    assert!(!reads(&PteLimits { max_depth: 4, ..PteLimits::default() }));
    // The program, its method, 2 values, a tensor, a chain, 4 instructions and calls, 2 operators,
    // 2 delegates with place and option, a piece of inline data, 2 segments, a key.
    let tables = 1 + 1 + 2 + 1 + 1 + 4 + 4 + 2 + 2 * 3 + 1 + 2 + 1;
    assert!(reads(&PteLimits { max_tables: tables, ..PteLimits::default() }));
    assert!(!reads(&PteLimits { max_tables: tables - 1, ..PteLimits::default() }));
    assert!(!reads(&PteLimits { max_apparent_factor: 0, ..PteLimits::default() }));
}
