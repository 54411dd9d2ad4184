//! The delegate against a runtime of the tests' own.

mod fake;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::Mutex;

use xnn_format::{Datatype, Graph, Node, NodeOp, Quantization, UnaryOp, Value, WriteOptions};
use xnn_model::Op;

use self::fake::{FLOAT32, Fake};
use crate::abi::{ERROR, OK, TfLiteDelegate};
use crate::builtin_data::{
    ActivationParams, CompositeParams, DimsParams, FullyConnectedParams, StridedSliceParams,
    StridedSliceParams8, TransposeConvParams, TransposeConvParams4, builtin,
};
use crate::delegate::{self, Delegate};
use crate::options::Options;
use crate::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};

const ADD: i32 = 0;
const FULLY_CONNECTED: i32 = 9;
const RESHAPE: i32 = 22;
const NEG: i32 = 59;
const STRIDED_SLICE: i32 = 45;
const TRANSPOSE: i32 = 39;
const SLICE: i32 = 65;
const STABLEHLO_COMPOSITE: i32 = 206;
const TRANSPOSE_CONV: i32 = 67;
const ABS: i32 = 101;
const DEQUANTIZE: i32 = 6;
/// No operator that this project knows.
const UNHEARD_OF: i32 = 250;
/// `kTfLiteFloat16`.
const FLOAT16: c_int = 10;

fn add_params() -> Option<ActivationParams> {
    Some(ActivationParams { activation: 0 })
}

/// A delegate that is destroyed in the end.
struct Owned(*mut TfLiteDelegate);

impl Owned {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(options: &[(&str, &str)]) -> Self {
        Self(Delegate::create(Options::parse(options.iter().copied()).unwrap()))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by `with`, dropped once.
        unsafe { Delegate::destroy(self.0) };
    }
}

/// input -> ABS -> NEG -> ABS -> output, and ABS + ABS -> output.
struct Chain {
    fake: Fake,
    input: c_int,
    sum: c_int,
    last: c_int,
}

fn chain() -> Chain {
    let fake = Fake::new();
    let [input, a, b, last, sum] = [(); 5].map(|()| fake.tensor(FLOAT32, &[1, 6]));
    fake.node::<()>(ABS, None, &[input], &[a]);
    fake.node::<()>(NEG, None, &[a], &[b]);
    fake.node::<()>(ABS, None, &[b], &[last]);
    fake.node(ADD, add_params(), &[a, last], &[sum]);
    fake.set_outputs(&[last, sum]);
    Chain { fake, input, sum, last }
}

const INPUT: [f32; 6] = [-3.0, -2.0, -0.5, 0.0, 1.0, 2.5];

impl Chain {
    /// Runs everything, and checks what comes out.
    fn check(&self, offset: usize) {
        assert_eq!(self.fake.allocate(offset), OK, "{}", self.fake.messages());
        self.fake.write(self.input, &INPUT);
        assert_eq!(self.fake.invoke(), OK, "{}", self.fake.messages());
        assert_eq!(self.fake.read(self.last), INPUT.map(f32::abs));
        assert_eq!(self.fake.read(self.sum), INPUT.map(|value| value.abs() * 2.0));
    }
}

#[test]
fn a_whole_graph_becomes_one_kernel() {
    let chain = chain();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    assert_eq!((chain.fake.replacements(), chain.fake.left()), (1, vec![]));
    chain.check(0);
}

#[test]
fn memory_that_xnnpack_cannot_use_is_copied() {
    let chain = chain();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    chain.check(4);
}

#[test]
fn kernels_are_what_tflite_groups() {
    let chain = chain();
    let delegate = Owned::with(&[("disable", "NEG")]);
    assert_eq!(chain.fake.apply(delegate.0), OK);
    assert_eq!((chain.fake.replacements(), chain.fake.left()), (2, vec![NEG]));
    chain.check(0);
}

#[test]
fn options_limit_what_is_taken() {
    for options in [[("min_partition_macs", "1")], [("max_partitions", "0")]] {
        let chain = chain();
        let delegate = Owned::with(&options);
        assert_eq!(chain.fake.apply(delegate.0), OK);
        assert_eq!(chain.fake.replacements(), 0, "{options:?}");
    }
}

#[test]
fn partitions_that_are_not_worth_it_stay_unless_they_are_kept() {
    for (options, replaced) in [(&[][..], 0), (&[("keep_small", "true")][..], 1)] {
        let fake = Fake::new();
        let [a, b] = [(); 2].map(|()| fake.tensor(FLOAT32, &[4096]));
        let c = fake.tensor(FLOAT32, &[1]);
        let [begin, size] = [0i32, 1].map(|at| fake.constant(2, &[1], &[at]));
        fake.node::<()>(UNHEARD_OF, None, &[a], &[b]);
        fake.node::<()>(SLICE, None, &[b, begin, size], &[c]);
        fake.set_outputs(&[c]);
        let delegate = Owned::with(options);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.replacements(), replaced, "{options:?}");
    }
}

#[test]
fn optimizations_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let changes = |option: Option<(&str, &str)>| {
        let fake = Fake::new();
        let [a, b, c] = [[2, 3], [3, 2], [2, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
        let order = fake.constant(2, &[2], &[1i32, 0]);
        fake.node::<()>(TRANSPOSE, None, &[a, order], &[b]);
        fake.node::<()>(TRANSPOSE, None, &[b, order], &[c]);
        fake.set_outputs(&[c]);
        let explain = ("explain", path.to_str().unwrap());
        let options: Vec<_> = option.into_iter().chain([explain]).collect();
        let delegate = Owned::with(&options);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        let text = std::fs::read_to_string(&path).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["partitions"][0]["optimization"]["changes"]["transposes"].as_u64()
    };
    assert!(changes(None).is_some());
    assert_eq!(changes(Some(("disable_pass", "clamps"))), changes(None));
    assert_eq!(changes(Some(("disable_pass", "transposes"))), None);
    assert_eq!(changes(Some(("no_optimize", "true"))), None);
}

#[test]
fn composites_are_known_by_their_names() {
    // `{"scale": 0.5}` as a FlexBuffer.
    let scale = b"scale\0\x01\x07\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\x3f\x0e\x05\x26\x01";
    let attention = c"odml.scaled_dot_product_attention";
    for (name, version, replaced) in [(attention, 0, 1), (attention, 1, 0), (c"odml.other", 0, 0)] {
        let fake = Fake::new();
        let [q, k, v, output] = [(); 4].map(|()| fake.tensor(FLOAT32, &[1, 2, 1, 2]));
        let params = CompositeParams {
            name: name.as_ptr(),
            subgraph_index: 1,
            version,
            attributes: scale.as_ptr().cast(),
            attributes_size: scale.len(),
        };
        fake.node(STABLEHLO_COMPOSITE, Some(params), &[q, k, v], &[output]);
        fake.set_outputs(&[output]);
        let delegate = Owned::new();
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.replacements(), replaced, "{name:?} {version}");
        if replaced == 0 {
            continue;
        }
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        // Both keys are alike, so each query gets the mean of the values.
        for (id, values) in [(q, [1.0, 2.0, 3.0, 4.0]), (k, [1.0; 4]), (v, [1.0, 2.0, 5.0, 8.0])] {
            fake.write(id, &values);
        }
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(output), [3.0, 5.0, 3.0, 5.0]);
    }
}

#[test]
fn unknown_operators_and_options_stay() {
    let fake = Fake::new();
    let [a, b, c] = [(); 3].map(|()| fake.tensor(FLOAT32, &[4]));
    fake.node::<()>(UNHEARD_OF, None, &[a], &[b]);
    fake.node::<ActivationParams>(ADD, None, &[b, b], &[c]);
    fake.custom("NobodyKnows", &[1, 2, 3], &[c], &[a]);
    fake.set_outputs(&[c]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!(fake.replacements(), 0);
}

#[test]
fn constants_that_others_read_are_left_to_the_interpreter() {
    let fake = Fake::new();
    let half = fake.constant(FLOAT16, &[2], &[0x3c00u16, 0x4000]);
    let [weights, input, sum, other] = [(); 4].map(|()| fake.tensor(FLOAT32, &[2]));
    fake.node::<()>(DEQUANTIZE, None, &[half], &[weights]);
    fake.node(ADD, add_params(), &[input, weights], &[sum]);
    fake.node::<()>(UNHEARD_OF, None, &[weights], &[other]);
    fake.set_outputs(&[sum, other]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!((fake.replacements(), fake.left()), (1, vec![DEQUANTIZE, UNHEARD_OF]));
}

#[test]
fn kernels_follow_their_inputs() {
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 4]));
    let shape = fake.constant(2, &[1], &[-1i32]);
    let flat = fake.tensor(FLOAT32, &[4]);
    let dims = DimsParams { dims: [0; 8], count: 0 };
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.node(RESHAPE, Some(dims), &[output, shape], &[flat]);
    fake.set_outputs(&[flat]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!(fake.replacements(), 1);
    for rows in [1, 3, 2] {
        fake.resize(input, &[rows, 4]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(fake.dims(flat), [rows * 4]);
        let values: Vec<f32> = (0..rows * 4).map(|i| 1.0 - i as f32).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(flat), values.iter().map(|value| value.abs()).collect::<Vec<_>>());
    }
}

#[test]
fn other_shapes_find_the_weights_packed() {
    let fake = Fake::new();
    let [input, output] = [[1, 2], [1, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
    let weights = fake.constant(FLOAT32, &[3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let params = FullyConnectedParams {
        activation: 0,
        weights_format: 0,
        keep_num_dims: 0,
        asymmetric_quantize_inputs: 0,
    };
    fake.node(FULLY_CONNECTED, Some(params), &[input, weights], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    let packed = || {
        let entries = fake.program().packed().unwrap().entries;
        entries.iter().map(|entry| entry.data.as_ptr()).collect::<Vec<_>>()
    };
    let first = packed();
    assert_eq!(first.len(), 1);
    for rows in [3, 1, 2] {
        fake.resize(input, &[rows, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        assert_eq!(packed(), first);
        fake.write(input, &[1.0, 10.0].repeat(rows as usize));
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(output), [21.0, 43.0, 65.0].repeat(rows as usize));
    }
}

#[test]
fn other_shapes_are_optimized_no_more_than_the_first() {
    for (option, nodes) in [(None, 1), (Some(("no_optimize", "true")), 3)] {
        let fake = Fake::new();
        let [a, b, c] = [[2, 3], [3, 2], [2, 3]].map(|dims| fake.tensor(FLOAT32, &dims));
        let d = fake.tensor(FLOAT32, &[2, 3]);
        let order = fake.constant(2, &[2], &[1i32, 0]);
        fake.node::<()>(TRANSPOSE, None, &[a, order], &[b]);
        fake.node::<()>(TRANSPOSE, None, &[b, order], &[c]);
        fake.node::<()>(ABS, None, &[c], &[d]);
        fake.set_outputs(&[d]);
        let delegate = Owned::with(option.as_slice());
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        for rows in [2, 4] {
            fake.resize(a, &[rows, 3]);
            assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
            assert_eq!(fake.program().graph().nodes.len(), nodes, "{option:?}, {rows} rows");
        }
    }
}

#[test]
fn shapes_that_cannot_be_computed_are_an_error() {
    let fake = Fake::new();
    let [a, b, sum] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 4]));
    fake.node(ADD, add_params(), &[a, b], &[sum]);
    fake.set_outputs(&[sum]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    fake.resize(a, &[1, 3]);
    assert_eq!(fake.allocate(0), ERROR);
    assert!(fake.messages().contains("inputs of these shapes"), "{}", fake.messages());
    fake.resize(a, &[1, 4]);
    assert_eq!(fake.allocate(0), OK);
}

/// `count` times ABS as a blob.
fn blob(dims: &[usize]) -> Vec<u8> {
    let mut graph = Graph::default();
    let [input, output] =
        [(); 2].map(|()| graph.push_value(Value::new(Datatype::F32, Quantization::None, dims)));
    graph.nodes.push(Node::new(NodeOp::Unary { op: UnaryOp::Abs, input, output }));
    graph.inputs.push(input);
    graph.outputs.push(output);
    xnn_format::write(&graph, &WriteOptions::default()).unwrap()
}

#[test]
fn blobs_in_custom_operators_run() {
    let fake = Fake::new();
    let [a, b, c] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    fake.custom("XNNGraph", &blob(&[1, 2]), &[a], &[b]);
    fake.node::<()>(ABS, None, &[b], &[c]);
    fake.set_outputs(&[c]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
    assert_eq!((fake.replacements(), fake.left()), (2, vec![]));
    for rows in [1, 2] {
        fake.resize(a, &[rows, 2]);
        fake.resize(b, &[rows, 2]);
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        let values: Vec<f32> = (0..rows * 2).map(|i| -1.0 - i as f32).collect();
        fake.write(a, &values);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(b), values.iter().map(|value| -value).collect::<Vec<_>>());
    }
}

/// A layer that makes `factor` times the sum of two numbers, as a blob.
fn layer(factor: f32) -> Vec<u8> {
    let mut graph = Graph::default();
    let value = |dims: &[usize]| Value::new(Datatype::F32, Quantization::None, dims);
    let weights = [factor; 2].map(f32::to_le_bytes).concat();
    let input = graph.push_value(value(&[1, 2]));
    let filter = graph.push_value(value(&[1, 2]).with_data(weights.into()));
    let output = graph.push_value(value(&[1, 1]));
    let op = NodeOp::FullyConnected { input, filter, bias: None, output, sparse: false };
    graph.nodes.push(Node::new(op));
    graph.inputs.push(input);
    graph.outputs.push(output);
    xnn_format::write(&graph, &WriteOptions::default()).unwrap()
}

#[test]
fn a_folder_of_packed_weights_serves_later_interpreters() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    for (factor, count) in [(2.0, 1), (2.0, 1), (3.0, 2), (2.0, 2)] {
        let fake = Fake::new();
        let [a, b] = [[1, 2], [1, 1]].map(|dims| fake.tensor(FLOAT32, &dims));
        fake.custom("XNNGraph", &layer(factor), &[a], &[b]);
        fake.set_outputs(&[b]);
        let delegate = Owned::with(&[("cache_dir", folder.path().to_str().unwrap())]);
        assert_eq!(fake.apply(delegate.0), OK, "{}", fake.messages());
        assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
        fake.write(a, &[1.0, 10.0]);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(b), [11.0 * factor]);
        assert_eq!(files(), count);
    }
}

#[test]
fn damaged_blobs_are_an_error() {
    let fake = Fake::new();
    let [a, b] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 2]));
    fake.custom("XNNGraph", b"not a blob", &[a], &[b]);
    fake.set_outputs(&[b]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), ERROR);
    assert!(fake.messages().contains("XNNGraph"), "{}", fake.messages());
}

#[test]
fn a_delegate_may_go_before_its_interpreter() {
    let chain = chain();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    drop(delegate);
    chain.check(0);
}

#[test]
fn a_delegate_serves_several_interpreters() {
    let delegate = Owned::with(&[("num_threads", "2")]);
    let chains = [chain(), chain()];
    for chain in &chains {
        assert_eq!(chain.fake.apply(delegate.0), OK);
    }
    drop(delegate);
    chains.iter().for_each(|chain| chain.check(0));
}

#[test]
fn nodes_without_kernel_are_an_error_with_and_without_reporter() {
    let chain = chain();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    // SAFETY: zeros are null pointers and numbers.
    let mut node: crate::abi::TfLiteNode = unsafe { std::mem::zeroed() };
    // SAFETY: as TFLite would call, if it had lost what `init` returned.
    assert_eq!(unsafe { delegate::invoke(chain.fake.context(), &raw mut node) }, ERROR);
    assert!(chain.fake.messages().contains("no kernel"), "{}", chain.fake.messages());
    chain.fake.context_mut().report_error = None;
    // SAFETY: as above.
    assert_eq!(unsafe { delegate::invoke(chain.fake.context(), &raw mut node) }, ERROR);
    // SAFETY: as above.
    assert_eq!(unsafe { delegate::invoke(ptr::null_mut(), &raw mut node) }, ERROR);
}

#[test]
fn runtimes_without_a_function_are_an_error() {
    let chain = chain();
    chain.fake.context_mut().preview_delegate_partitioning = None;
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), ERROR);
    assert!(chain.fake.messages().contains("PreviewDelegatePartitioning"));
}

#[test]
fn nodes_that_name_no_tensor_are_an_error() {
    let fake = Fake::new();
    let a = fake.tensor(FLOAT32, &[1]);
    fake.node::<()>(ABS, None, &[a], &[7]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), ERROR);
    assert!(fake.messages().contains("tensor 7"), "{}", fake.messages());
}

#[test]
fn panics_become_errors() {
    let fake = Fake::new();
    // SAFETY: the fake's context.
    let status = unsafe { delegate::guard(fake.context(), |_| panic!("the sky is falling")) };
    assert_eq!(status, ERROR);
    assert!(fake.messages().contains("the sky is falling"), "{}", fake.messages());
}

#[test]
fn tails_of_options_are_read_only_in_versions_that_have_them() {
    let base = || TransposeConvParams { padding: 1, stride_width: 2, stride_height: 3 };
    let tail = TransposeConvParams4 { base: base(), activation: 1 };
    let read = |version| {
        // SAFETY: the longest version of the structure.
        unsafe { builtin(TRANSPOSE_CONV, version, (&raw const tail).cast()) }
    };
    let activation = |op| match op {
        Op::TransposeConv(options) => options.activation,
        other => panic!("{other}"),
    };
    assert_eq!(activation(read(3)), xnn_model::op::Activation::None);
    assert_eq!(activation(read(4)), xnn_model::op::Activation::Relu);

    let base = StridedSliceParams {
        begin_mask: 1,
        end_mask: 2,
        ellipsis_mask: 0,
        new_axis_mask: 0,
        shrink_axis_mask: 4,
    };
    let tail = StridedSliceParams8 { base, offset: 1 };
    for (version, offset) in [(7, false), (8, true)] {
        // SAFETY: the longest version of the structure.
        match unsafe { builtin(STRIDED_SLICE, version, (&raw const tail).cast()) } {
            Op::StridedSlice(o) => {
                assert_eq!(
                    (o.begin_mask, o.end_mask, o.shrink_axis_mask, o.offset),
                    (1, 2, 4, offset)
                );
            }
            other => panic!("{other}"),
        }
    }
}

static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn report(message: *const c_char) {
    // SAFETY: a string.
    let message = unsafe { CStr::from_ptr(message) };
    REPORTED.lock().unwrap().push(message.to_str().unwrap().to_owned());
}

#[test]
fn the_plugin_functions_check_options() {
    let create = |key: &str, value: &str, report| {
        let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
        let (keys, values) = ([key.as_ptr()], [value.as_ptr()]);
        // SAFETY: one key and one value.
        unsafe { tflite_plugin_create_delegate(keys.as_ptr(), values.as_ptr(), 1, report) }
    };
    assert!(create("colour", "blue", Some(report)).is_null());
    assert!(REPORTED.lock().unwrap().iter().any(|message| message.contains("\"colour\"")));
    assert!(create("colour", "blue", None).is_null());
    let delegate = create("num_threads", "2", None);
    assert!(!delegate.is_null());
    // SAFETY: null where there are no options.
    let plain = unsafe { tflite_plugin_create_delegate(ptr::null(), ptr::null(), 0, None) };
    assert!(!plain.is_null());
    for delegate in [delegate, plain, ptr::null_mut()] {
        // SAFETY: made above, or null.
        unsafe { tflite_plugin_destroy_delegate(delegate) };
    }
}

#[test]
fn reports_are_written_for_each_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let delegate = Owned::with(&[("explain", path.to_str().unwrap()), ("disable", "NEG")]);
    let chains = [chain(), chain()];
    for chain in &chains {
        assert_eq!(chain.fake.apply(delegate.0), OK);
    }
    for name in ["report.json", "report.1.json"] {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["summary"], "delegated 3 of 4 nodes in 2 partitions");
        assert_eq!(report["nodes"][1]["reason"]["code"], "disabled");
    }
}

/// Makes, resizes, runs and destroys delegate and interpreter, in both orders.
fn cycle(delegate_first: bool) {
    let fake = Fake::new();
    let [input, output] = [(); 2].map(|()| fake.tensor(FLOAT32, &[1, 8]));
    fake.node::<()>(ABS, None, &[input], &[output]);
    fake.set_outputs(&[output]);
    let delegate = Owned::with(&[("num_threads", "2")]);
    assert_eq!(fake.apply(delegate.0), OK);
    for rows in [1, 5] {
        fake.resize(input, &[rows, 8]);
        assert_eq!(fake.allocate(0), OK);
        let values: Vec<f32> = (0..rows * 8).map(|i| -(i as f32)).collect();
        fake.write(input, &values);
        assert_eq!(fake.invoke(), OK);
        assert_eq!(fake.read(output).last(), Some(&((rows * 8 - 1) as f32)));
    }
    if delegate_first {
        drop(delegate);
        drop(fake);
    } else {
        drop(fake);
        drop(delegate);
    }
}

/// What memory checkers are to watch.
#[test]
fn cycles_leave_nothing_behind() {
    for round in 0..200 {
        cycle(round % 2 == 0);
    }
}

#[test]
fn threads_with_interpreters_of_their_own_do_not_meet() {
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || (0..10).for_each(|round| cycle((thread + round) % 2 == 0)));
        }
    });
}
