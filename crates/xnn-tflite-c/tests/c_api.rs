//! The C API as a program sees it: models, options, interpreters, tensors, errors, cancellation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    non_snake_case,
    reason = "tests fail by panicking; functions have TFLite's names"
)]

mod common;

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use common::{Messages, bytes_of, create, floats, input, model, model_of, output, write};
use tensorflowlite_c::abi::{ERROR, OK};
use tensorflowlite_c::c_api::*;
use tensorflowlite_c::common::TfLiteTypeGetName;
use tensorflowlite_c::experimental::*;
use tensorflowlite_c::opaque::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::tensor::*;
use tensorflowlite_c::{APPLICATION_ERROR, CANCELLED};
use xnn_model::op::{ArithmeticOptions, Op};
use xnn_model::{DType, Dialect};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// `y = tanh(x) + 1`, where the first dimension of `x` is open.
fn sum() -> Vec<u8> {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[1, 3]);
    let one = graph.constant_f32("one", &[1], &[1.0]);
    let between = graph.tensor("between", DType::F32, &[1, 3]);
    let y = graph.tensor("y", DType::F32, &[1, 3]);
    graph.op(Op::Tanh, &[x], &[between]);
    let options = ArithmeticOptions::default();
    graph.op(Op::Add(options), &[between, one], &[y]).output(y);
    let mut model = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build();
    std::sync::Arc::make_mut(&mut model.subgraphs[0]).tensors[x].shape_signature =
        Some(vec![-1, 3]);
    xnn_model::write::to_tflite(&model).unwrap()
}

#[test]
fn versions_have_three_numbers() {
    // SAFETY: static strings.
    let versions = unsafe {
        [TfLiteVersion(), TfLiteExtensionApisVersion()].map(|text| CStr::from_ptr(text).to_str())
    };
    for version in versions {
        let numbers: Vec<u32> = version.unwrap().split('.').map(|it| it.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3);
    }
    assert_eq!(TfLiteSchemaVersion(), 3);
}

#[test]
fn a_model_runs() {
    let bytes = sum();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    let interpreter = Some(&*interpreter);
    assert_eq!(TfLiteInterpreterGetInputTensorCount(interpreter), 1);
    assert_eq!(TfLiteInterpreterGetOutputTensorCount(interpreter), 1);
    // Before tensors are allocated, they have names, types and dimensions, but no memory.
    let x = input(interpreter, 0);
    assert_eq!((TfLiteTensorNumDims(x), TfLiteTensorByteSize(x)), (2, 12));
    assert!(TfLiteTensorData(x).is_null());
    // SAFETY: the name lives as long as the tensor.
    assert_eq!(unsafe { CStr::from_ptr(TfLiteTensorName(x)) }, c"x");
    assert_eq!(TfLiteInterpreterInvoke(interpreter), ERROR);
    assert_eq!(messages.take(), ["Invoke called on model that is not ready."]);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
    assert_eq!(write(x, &[0.0, 1.0, -1.0]), OK);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
    let y = output(interpreter, 0);
    for (y, x) in floats(y).iter().zip([0.0f32, 1.0, -1.0]) {
        assert!((y - (x.tanh() + 1.0)).abs() < 1e-5);
    }
    // Addresses stay the same.
    let data = TfLiteTensorData(y);
    assert_eq!(write(x, &[5.0; 3]), OK);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
    assert_eq!(TfLiteTensorData(output(interpreter, 0)), data);
    assert!(floats(y).iter().all(|y| *y > 1.99));
    assert!(messages.take().is_empty());
}

#[test]
fn indices_are_those_of_all_tensors() {
    let bytes = sum();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    let interpreter = Some(&*interpreter);
    // SAFETY: both arrays have one element.
    let (x, y) = unsafe {
        (
            *TfLiteInterpreterInputTensorIndices(interpreter),
            *TfLiteInterpreterOutputTensorIndices(interpreter),
        )
    };
    assert_eq!(TfLiteInterpreterGetInputTensorIndex(interpreter, 0), x);
    assert_eq!(TfLiteInterpreterGetOutputTensorIndex(interpreter, 0), y);
    for position in [-1, 1] {
        assert_eq!(TfLiteInterpreterGetInputTensorIndex(interpreter, position), -1);
        assert!(TfLiteInterpreterGetInputTensor(interpreter, position).is_null());
        assert!(TfLiteInterpreterGetOutputTensor(interpreter, position).is_null());
    }
    assert_eq!(
        TfLiteInterpreterGetTensor(interpreter, y).cast_const(),
        TfLiteInterpreterGetOutputTensor(interpreter, 0)
    );
    // The constant, which is the tensor after the input.
    // SAFETY: the tensor lives as long as the interpreter.
    let one = unsafe { TfLiteInterpreterGetTensor(interpreter, x + 1).as_ref() };
    assert_eq!(floats(one), [1.0]);
    assert_eq!(TfLiteOpaqueTensorGetAllocationType(one), 1);
    for index in [-1, 4, c_int::MAX] {
        assert!(TfLiteInterpreterGetTensor(interpreter, index).is_null());
    }
    assert_eq!(TfLiteInterpreterEnsureTensorDataIsReadable(interpreter, y), OK);
    assert_eq!(TfLiteInterpreterEnsureTensorDataIsReadable(interpreter, 9), ERROR);
}

#[test]
fn inputs_are_resized() {
    let bytes = sum();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    let interpreter = Some(&*interpreter);
    let resize = |position, dims: &[c_int]| {
        // SAFETY: the dimensions live during the call.
        unsafe {
            TfLiteInterpreterResizeInputTensor(
                interpreter,
                position,
                dims.as_ptr(),
                dims.len() as i32,
            )
        }
    };
    let mut x_of_4 = [0.0; 12];
    x_of_4[11] = 7.0;
    // Before and after the first allocation.
    for batch in [2, 4, 1, 4] {
        assert_eq!(resize(0, &[batch, 3]), OK);
        let x = input(interpreter, 0);
        let size = 12 * batch as usize;
        assert_eq!((TfLiteTensorDim(x, 0), TfLiteTensorByteSize(x)), (batch, size));
        assert_eq!(TfLiteInterpreterInvoke(interpreter), ERROR);
        assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
        let y = output(interpreter, 0);
        assert_eq!((TfLiteTensorDim(y, 0), TfLiteTensorByteSize(y)), (batch, size));
        assert_eq!(write(input(interpreter, 0), &x_of_4[..size / 4]), OK);
        assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
        assert_eq!(floats(output(interpreter, 0)).last().copied().unwrap() > 1.5, batch == 4);
    }
    // Equal dimensions change nothing.
    assert_eq!(resize(0, &[4, 3]), OK);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
    messages.take();
    assert_eq!(resize(1, &[4, 3]), ERROR);
    assert_eq!(messages.take(), ["there is no input 1; the model has 1 inputs"]);
    assert_eq!(resize(0, &[-1, 3]), ERROR);
    assert!(messages.take()[0].contains("negative"));
    // Dimensions that do not fit are an error of the allocation, and valid ones work again.
    assert_eq!(resize(0, &[c_int::MAX, c_int::MAX, c_int::MAX]), ERROR);
    assert!(messages.take()[0].contains("too large"));
    assert_eq!(resize(0, &[2, 3]), OK);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
}

#[test]
fn sizes_of_copies_must_match() {
    let bytes = sum();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    let interpreter = Some(&*interpreter);
    let x = input(interpreter, 0);
    assert_eq!(write(x, &[0.0; 3]), ERROR, "not allocated");
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
    assert_eq!(write(x, &[0.0; 2]), ERROR);
    assert_eq!(write(x, &[0.0; 4]), ERROR);
    assert_eq!(write(x, &[0.25; 3]), OK);
    let mut copy = [0u8; 12];
    // SAFETY: the buffer has 12 bytes.
    let status = unsafe { TfLiteTensorCopyToBuffer(x, copy.as_mut_ptr().cast(), 12) };
    assert_eq!((status, &copy[..]), (OK, bytes_of(&[0.25; 3])));
    // SAFETY: the size is checked first.
    let status = unsafe { TfLiteTensorCopyToBuffer(x, copy.as_mut_ptr().cast(), 11) };
    assert_eq!(status, ERROR);
}

#[test]
fn null_pointers_are_accepted() {
    assert!(TfLiteInterpreterCreate(None, None).is_none());
    TfLiteModelDelete(None);
    TfLiteInterpreterDelete(None);
    TfLiteInterpreterOptionsDelete(None);
    assert!(TfLiteInterpreterOptionsCopy(None).is_none());
    TfLiteInterpreterOptionsSetNumThreads(None, 1);
    assert_eq!(TfLiteInterpreterAllocateTensors(None), ERROR);
    assert_eq!(TfLiteInterpreterInvoke(None), ERROR);
    assert_eq!(TfLiteInterpreterCancel(None), ERROR);
    assert_eq!(TfLiteInterpreterGetInputTensorCount(None), 0);
    assert!(TfLiteInterpreterGetInputTensor(None, 0).is_null());
    assert_eq!((TfLiteTensorNumDims(None), TfLiteTensorDim(None, 0)), (-1, -1));
    assert_eq!(TfLiteTensorByteSize(None), 0);
    assert!(TfLiteTensorData(None).is_null());
    // SAFETY: null is accepted.
    unsafe {
        assert!(TfLiteModelCreate(ptr::null(), 7).is_none());
        assert!(TfLiteModelCreateFromFile(ptr::null()).is_none());
        assert_eq!(TfLiteTensorCopyFromBuffer(None, ptr::null(), 4), ERROR);
    }
}

#[test]
fn damaged_models_are_reported() {
    let bytes = sum();
    let messages = Messages::default();
    assert!(model_of(&bytes[..bytes.len() / 2], &messages).is_none());
    assert_eq!(messages.take().len(), 1);
    let path = c"/a/path/that/does/not/exist.tflite";
    let (reporter, data) = messages.reporter();
    // SAFETY: path and messages live during the call.
    let model =
        unsafe { TfLiteModelCreateFromFileWithErrorReporter(path.as_ptr(), reporter, data) };
    assert!(model.is_none());
    assert!(messages.take()[0].contains("exist.tflite"));
}

#[test]
fn models_outlive_neither_files_nor_interpreters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sum.tflite");
    std::fs::write(&path, sum()).unwrap();
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string.
    let model = unsafe { TfLiteModelCreateFromFile(path.as_ptr()) };
    let interpreters: Vec<_> =
        (0..2).map(|_| TfLiteInterpreterCreate(model.as_deref(), None).unwrap()).collect();
    TfLiteModelDelete(model);
    for interpreter in interpreters {
        assert_eq!(TfLiteInterpreterAllocateTensors(Some(&interpreter)), OK);
        assert_eq!(TfLiteInterpreterInvoke(Some(&interpreter)), OK);
        TfLiteInterpreterDelete(Some(interpreter));
    }
}

#[test]
fn runs_are_cancelled() {
    let endless = ModelBuilder::looping(2.0).build_file();
    let messages = Messages::default();
    let unable = create(&endless, &messages, |_| {}).unwrap();
    assert_eq!(TfLiteInterpreterCancel(Some(&unable)), ERROR, "not enabled");
    let interpreter = create(&endless, &messages, |options| {
        assert_eq!(TfLiteInterpreterOptionsEnableCancellation(Some(options), true), OK);
    });
    let interpreter = interpreter.unwrap();
    assert_eq!(TfLiteInterpreterAllocateTensors(Some(&interpreter)), OK);
    for _ in 0..2 {
        let has_ended = AtomicBool::new(false);
        let status = thread::scope(|scope| {
            let run = scope.spawn(|| {
                let status = TfLiteInterpreterInvoke(Some(&interpreter));
                has_ended.store(true, Ordering::Relaxed);
                status
            });
            // The run lowers the flag when it begins, so one call may come too early.
            while !has_ended.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
                assert_eq!(TfLiteInterpreterCancel(Some(&interpreter)), OK);
            }
            run.join().unwrap()
        });
        assert_eq!(status, CANCELLED);
        assert_eq!(messages.take(), ["Client requested cancel during Invoke()"]);
    }
}

#[test]
fn memory_of_the_caller_is_used() {
    let bytes = sum();
    let messages = Messages::default();
    let interpreter = create(&bytes, &messages, |_| {}).unwrap();
    let interpreter = Some(&*interpreter);
    #[repr(align(64))]
    struct Aligned([f32; 32]);
    let mut memory = Aligned([0.5; 32]);
    let start = memory.0.as_mut_ptr();
    let x = TfLiteInterpreterGetInputTensorIndex(interpreter, 0);
    let y = TfLiteInterpreterGetOutputTensorIndex(interpreter, 0);
    let set = |index, offset: usize, bytes, flags| {
        let data = start.wrapping_add(offset).cast();
        let allocation = TfLiteCustomAllocation { data, bytes };
        TfLiteInterpreterSetCustomAllocationForTensor(interpreter, index, Some(&allocation), flags)
    };
    assert_eq!(set(x, 0, 8, 0), ERROR, "too small");
    assert_eq!(set(x, 1, 12, 0), ERROR, "not aligned");
    assert_eq!(set(x + 1, 0, 12, 0), ERROR, "a constant");
    assert_eq!(set(-1, 0, 12, 0), ERROR, "no tensor");
    assert_eq!(set(x, 0, 12, 0), OK);
    assert_eq!(set(y, 17, 12, 1), OK);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), OK);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), OK);
    let expected = 0.5f32.tanh() + 1.0;
    // SAFETY: the memory lives, and nothing else accesses it.
    let result = unsafe { std::slice::from_raw_parts(start.add(17), 3) };
    assert!(result.iter().all(|y| (y - expected).abs() < 1e-5), "{result:?}");
    // A larger input needs more memory.
    let dims: [c_int; 2] = [20, 3];
    // SAFETY: the dimensions live during the call.
    let status = unsafe { TfLiteInterpreterResizeInputTensor(interpreter, 0, dims.as_ptr(), 2) };
    assert_eq!(status, OK);
    messages.take();
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), ERROR);
    assert!(messages.take()[0].contains("240 bytes"));
}

#[test]
fn quantization_is_told_in_both_ways() {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::I8, &[2]);
    let y = graph.tensor("y", DType::F32, &[2]);
    graph.quantize(x, 0.5, -3).op(Op::Dequantize, &[x], &[y]).output(y);
    let bytes = ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    let x = input(Some(&interpreter), 0);
    let params = TfLiteTensorQuantizationParams(x);
    assert_eq!((params.scale, params.zero_point), (0.5, -3));
    let quantization = TfLiteOpaqueTensorGetQuantization(x);
    assert_eq!(quantization.kind, 1);
    // SAFETY: the kind says which structure this is.
    unsafe {
        let affine = quantization.params.cast::<tensorflowlite_c::abi::TfLiteAffineQuantization>();
        assert_eq!(tensorflowlite_c::abi::floats((*affine).scale), [0.5]);
        assert_eq!(tensorflowlite_c::abi::ints((*affine).zero_point), [-3]);
        assert_eq!(CStr::from_ptr(TfLiteTypeGetName(TfLiteTensorType(x))), c"INT8");
    }
    let y = output(Some(&interpreter), 0);
    assert_eq!(TfLiteTensorQuantizationParams(y), TfLiteQuantizationParams::default());
    assert_eq!(TfLiteOpaqueTensorGetQuantization(y).kind, 0);
}

#[test]
fn shape_signatures_are_told() {
    let bytes = sum();
    let interpreter = create(&bytes, &Messages::default(), |_| {}).unwrap();
    let (x, y) = (input(Some(&interpreter), 0), output(Some(&interpreter), 0));
    let mut value = 7;
    assert_eq!(TfLiteOpaqueTensorGetNumDimsSignature(x, Some(&mut value)), OK);
    assert_eq!(value, 2);
    for (axis, expected) in [(0, -1), (1, 3)] {
        assert_eq!(TfLiteOpaqueTensorGetDimSignature(x, axis, Some(&mut value)), OK);
        assert_eq!(value, expected);
    }
    assert_eq!(TfLiteOpaqueTensorGetDimSignature(x, 2, Some(&mut value)), ERROR);
    assert_eq!(TfLiteOpaqueTensorGetNumDimsSignature(y, Some(&mut value)), OK);
    assert_eq!(value, -1);
}

#[test]
fn options_can_be_copied() {
    let mut options = TfLiteInterpreterOptionsCreate().unwrap();
    let messages = Messages::default();
    let (reporter, data) = messages.reporter();
    TfLiteInterpreterOptionsSetErrorReporter(Some(&mut options), reporter, data);
    let copy = TfLiteInterpreterOptionsCopy(Some(&options)).unwrap();
    TfLiteInterpreterOptionsDelete(Some(options));
    let bytes = sum();
    let model = model(&bytes);
    let interpreter = TfLiteInterpreterCreate(Some(&model), Some(&copy)).unwrap();
    assert_eq!(TfLiteInterpreterInvoke(Some(&interpreter)), ERROR);
    assert_eq!(messages.take().len(), 1);
    assert_eq!(
        TfLiteInterpreterModifyGraphWithDelegate(Some(&interpreter), ptr::null_mut()),
        APPLICATION_ERROR
    );
    assert!(messages.take()[0].contains("TfLiteXNNPackDelegateCreate"));
}

/// The model of `tests/clients/client.py` that runs until it is cancelled. `XNN_BLESS=1` writes it.
#[test]
fn the_endless_model_of_the_client_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/endless.tflite");
    let bytes = ModelBuilder::looping(2.0).build_file();
    if std::env::var("XNN_BLESS").as_deref() == Ok("1") {
        std::fs::write(path, &bytes).unwrap();
    }
    assert!(std::fs::read(path).is_ok_and(|read| read == bytes), "{path} differs");
}
