//! Signature runners: names, tensors, strict resizing, state that signatures share.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use common::{Messages, create, floats, write};
use tensorflowlite_c::abi::{ERROR, OK, TfLiteTensor};
use tensorflowlite_c::c_api::*;
use tensorflowlite_c::experimental::*;
use tensorflowlite_c::signature_runner::*;
use tensorflowlite_c::tensor::*;
use tensorflowlite_c::{TfLiteInterpreter, TfLiteSignatureRunner};
use xnn_model::op::{Op, VarHandleOptions};
use xnn_model::{DType, Dialect};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// Two entry points that negate and compute tanh; the outputs' names are not in alphabetical order.
fn two() -> Vec<u8> {
    let graph = |name: &str, op: Op| {
        let mut graph = GraphBuilder::new(name);
        let x = graph.input("x_tensor", DType::F32, &[2]);
        let y = graph.tensor("y_tensor", DType::F32, &[2]);
        graph.op(op, &[x], &[y]).output(y).output(x);
        graph
    };
    ModelBuilder::new(Dialect::Tflite)
        .subgraph(graph("first", Op::Neg))
        .subgraph(graph("second", Op::Tanh))
        .signature("negate", 0, &[("x", 0)], &[("same", 0), ("negated", 1)])
        .signature("curve", 1, &[("x", 0)], &[("same", 0), ("bent", 1)])
        .build_file()
}

fn runner(interpreter: &TfLiteInterpreter, key: &CStr) -> Option<Box<TfLiteSignatureRunner>> {
    // SAFETY: the key is a C string.
    unsafe { TfLiteInterpreterGetSignatureRunner(Some(interpreter), key.as_ptr()) }
}

fn text<'a>(string: *const c_char) -> &'a CStr {
    assert!(!string.is_null());
    // SAFETY: a string that lives as long as the interpreter.
    unsafe { CStr::from_ptr(string) }
}

fn input<'a>(runner: &'a TfLiteSignatureRunner, name: &CStr) -> Option<&'a TfLiteTensor> {
    // SAFETY: the tensor lives as long as the runner.
    unsafe { TfLiteSignatureRunnerGetInputTensor(Some(runner), name.as_ptr()).as_ref() }
}

fn output<'a>(runner: &'a TfLiteSignatureRunner, name: &CStr) -> Option<&'a TfLiteTensor> {
    // SAFETY: the tensor lives as long as the runner.
    unsafe { TfLiteSignatureRunnerGetOutputTensor(Some(runner), name.as_ptr()).as_ref() }
}

#[test]
fn signatures_run() {
    let bytes = two();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    assert_eq!(TfLiteInterpreterGetSignatureCount(Some(&interpreter)), 2);
    assert_eq!(text(TfLiteInterpreterGetSignatureKey(Some(&interpreter), 1)), c"curve");
    for index in [-1, 2] {
        assert!(TfLiteInterpreterGetSignatureKey(Some(&interpreter), index).is_null());
    }
    assert!(runner(&interpreter, c"other").is_none());
    let curve = runner(&interpreter, c"curve").unwrap();
    assert_eq!(TfLiteSignatureRunnerGetInputCount(Some(&curve)), 1);
    assert_eq!(TfLiteSignatureRunnerGetOutputCount(Some(&curve)), 2);
    assert_eq!(text(TfLiteSignatureRunnerGetInputName(Some(&curve), 0)), c"x");
    // In alphabetical order.
    let names = [0, 1].map(|i| text(TfLiteSignatureRunnerGetOutputName(Some(&curve), i)));
    assert_eq!(names, [c"bent", c"same"]);
    assert!(TfLiteSignatureRunnerGetOutputName(Some(&curve), 2).is_null());
    assert!(input(&curve, c"y").is_none());
    assert!(output(&curve, c"negated").is_none());
    assert_eq!(
        messages.take(),
        ["Input name y was not found", "Output name negated was not found"]
    );
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&curve)), ERROR);
    assert_eq!(TfLiteSignatureRunnerAllocateTensors(Some(&curve)), OK);
    assert_eq!(write(input(&curve, c"x"), &[0.0, 20.0]), OK);
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&curve)), OK);
    assert_eq!(floats(output(&curve, c"bent")), [0.0, 1.0]);
    assert_eq!(floats(output(&curve, c"same")), [0.0, 20.0]);
    // The signature of the main subgraph shares its tensors with the interpreter.
    let negate = runner(&interpreter, c"negate").unwrap();
    assert_eq!(TfLiteInterpreterAllocateTensors(Some(&interpreter)), OK);
    assert_eq!(write(input(&negate, c"x"), &[3.0, -4.0]), OK);
    assert_eq!(TfLiteInterpreterInvoke(Some(&interpreter)), OK);
    assert_eq!(floats(output(&negate, c"negated")), [-3.0, 4.0]);
    assert_eq!(TfLiteSignatureRunnerCancel(Some(&negate)), ERROR, "not enabled");
    // A runner may outlive the interpreter.
    TfLiteInterpreterDelete(Some(interpreter));
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&curve)), OK);
    TfLiteSignatureRunnerDelete(Some(curve));
    TfLiteSignatureRunnerDelete(None);
}

#[test]
fn only_open_dimensions_are_resized() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 2]);
    let y = graph.tensor("y", DType::F32, &[1, 2]);
    graph.op(Op::Neg, &[x], &[y]).output(y);
    let builder = ModelBuilder::new(Dialect::Tflite).subgraph(graph);
    let mut model = builder.signature("run", 0, &[("x", x)], &[("y", y)]).build();
    let main = std::sync::Arc::make_mut(&mut model.subgraphs[0]);
    main.tensors[x].shape_signature = Some(vec![-1, 2]);
    let bytes = xnn_model::write::to_tflite(&model).unwrap();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    let run = runner(&interpreter, c"run").unwrap();
    let resize = |name: &CStr, dims: &[c_int]| {
        let (start, len) = (dims.as_ptr(), dims.len() as i32);
        // SAFETY: name and dimensions live during the call.
        unsafe { TfLiteSignatureRunnerResizeInputTensor(Some(&run), name.as_ptr(), start, len) }
    };
    assert_eq!(resize(c"x", &[3, 2]), OK);
    assert_eq!(TfLiteSignatureRunnerAllocateTensors(Some(&run)), OK);
    assert_eq!(TfLiteTensorByteSize(output(&run, c"y")), 24);
    assert_eq!(resize(c"x", &[3, 4]), ERROR);
    assert_eq!(
        messages.take(),
        ["Attempting to resize dimension 1 of tensor 0 with value 2 to 4. \
          ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."]
    );
    assert_eq!(resize(c"x", &[3]), ERROR);
    assert_eq!(resize(c"z", &[3, 2]), ERROR);
    assert_eq!(messages.take().len(), 2);
}

#[test]
fn a_model_without_signatures_has_a_runner_of_its_main_subgraph() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[2]);
    let y = graph.tensor("y", DType::F32, &[2]);
    graph.op(Op::Neg, &[x], &[y]).output(y);
    let bytes = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    // SAFETY: null is accepted.
    let main = unsafe { TfLiteInterpreterGetSignatureRunner(Some(&interpreter), ptr::null()) };
    let main = main.unwrap();
    assert_eq!(text(TfLiteSignatureRunnerGetInputName(Some(&main), 0)), c"x");
    assert_eq!(TfLiteSignatureRunnerAllocateTensors(Some(&main)), OK);
    assert_eq!(write(input(&main, c"x"), &[1.0, 2.0]), OK);
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&main)), OK);
    assert_eq!(floats(output(&main, c"y")), [-1.0, -2.0]);
    let bytes = two();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    // SAFETY: null is accepted.
    let main = unsafe { TfLiteInterpreterGetSignatureRunner(Some(&interpreter), ptr::null()) };
    assert!(main.is_none());
}

#[test]
fn signatures_share_variables() {
    let handle = |graph: &mut GraphBuilder| {
        let handle = graph.tensor("handle", DType::Resource, &[1]);
        let options = VarHandleOptions { container: String::new(), shared_name: "state".into() };
        graph.op(Op::VarHandle(options), &[], &[handle]);
        handle
    };
    let mut set = GraphBuilder::new("set");
    let x = set.input("x", DType::F32, &[2]);
    let state = handle(&mut set);
    set.op(Op::AssignVariable, &[state, x], &[]).output(x);
    let mut get = GraphBuilder::new("get");
    let state = handle(&mut get);
    let value = get.tensor("value", DType::F32, &[2]);
    get.op(Op::ReadVariable, &[state], &[value]).output(value);
    let bytes = ModelBuilder::new(Dialect::Tflite)
        .subgraph(set)
        .subgraph(get)
        .signature("set", 0, &[("x", x)], &[("x", x)])
        .signature("get", 1, &[], &[("value", value)])
        .build_file();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    let [set, get] = [c"set", c"get"].map(|key| runner(&interpreter, key).unwrap());
    for runner in [&set, &get] {
        assert_eq!(TfLiteSignatureRunnerAllocateTensors(Some(runner)), OK);
    }
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&get)), ERROR, "not assigned yet");
    for values in [[1.0, 2.0], [3.0, 4.0]] {
        assert_eq!(write(input(&set, c"x"), &values), OK);
        assert_eq!(TfLiteSignatureRunnerInvoke(Some(&set)), OK);
        for _ in 0..2 {
            assert_eq!(TfLiteSignatureRunnerInvoke(Some(&get)), OK);
            assert_eq!(floats(output(&get, c"value")), values);
        }
    }
    assert_eq!(TfLiteInterpreterResetVariableTensors(Some(&interpreter)), OK);
    assert_eq!(TfLiteSignatureRunnerInvoke(Some(&get)), ERROR, "reset");
}
