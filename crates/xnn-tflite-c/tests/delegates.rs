//! Delegates and kernels that callers bring along: which are accepted, and why others are not.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use common::{Messages, create};
use tensorflowlite_c::abi::{ERROR, OK, TfLiteDelegate};
use tensorflowlite_c::c_api::*;
use tensorflowlite_c::common::*;
use tensorflowlite_c::experimental::*;
use tensorflowlite_c::external_delegate::*;
use tensorflowlite_c::opaque::*;
use tensorflowlite_c::operator::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::xnnpack_delegate::*;
use tensorflowlite_c::{APPLICATION_ERROR, TfLiteInterpreter, UNRESOLVED};
use xnn_model::op::{CustomOptions, Op};
use xnn_model::{DType, Dialect};
use xnn_testing::{GraphBuilder, ModelBuilder};

/// A model with one operator, for the rest of the process: interpreters use its memory.
fn with(op: Op) -> &'static [u8] {
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", DType::F32, &[2]);
    let y = graph.tensor("y", DType::F32, &[2]);
    graph.op(op, &[x], &[y]).output(y);
    ModelBuilder::new(Dialect::Tflite).subgraph(graph).build_file().leak()
}

fn custom(code: &str) -> Op {
    Op::Custom(CustomOptions { code: code.into(), options: Default::default() })
}

fn with_delegate(
    delegate: *mut TfLiteDelegate,
    messages: &Messages,
) -> Option<Box<TfLiteInterpreter>> {
    create(with(Op::Neg), messages, |options| {
        TfLiteInterpreterOptionsAddDelegate(Some(options), delegate);
    })
}

#[test]
fn the_xnnpack_delegate_is_accepted() {
    let messages = Messages::default();
    let options =
        TfLiteXNNPackDelegateOptions { num_threads: 2, ..TfLiteXNNPackDelegateOptionsDefault() };
    // SAFETY: null, and options that live during the call.
    let delegates = unsafe {
        [TfLiteXNNPackDelegateCreate(ptr::null()), TfLiteXNNPackDelegateCreate(&raw const options)]
    };
    for delegate in delegates {
        let interpreter = with_delegate(delegate, &messages).unwrap();
        assert_eq!(TfLiteInterpreterModifyGraphWithDelegate(Some(&interpreter), delegate), OK);
        TfLiteXNNPackDelegateDelete(delegate);
        assert_eq!(TfLiteInterpreterAllocateTensors(Some(&interpreter)), OK);
        assert_eq!(TfLiteInterpreterInvoke(Some(&interpreter)), OK);
        // A deleted delegate is like one of another library.
        assert!(with_delegate(delegate, &messages).is_none());
        assert!(messages.take()[0].contains("another library"));
    }
    let cache = TfLiteXNNPackDelegateWeightsCacheCreate();
    assert!(TfLiteXNNPackDelegateWeightsCacheFinalizeHard(cache.as_deref()));
    TfLiteXNNPackDelegateWeightsCacheDelete(cache);
}

#[test]
fn delegates_of_callers_are_rejected() {
    let messages = Messages::default();
    let mut data = 7;
    let builder = TfLiteOpaqueDelegateBuilder {
        data: (&raw mut data).cast(),
        prepare: ptr::null_mut(),
        copy_from_buffer_handle: ptr::null_mut(),
        copy_to_buffer_handle: ptr::null_mut(),
        free_buffer_handle: ptr::null_mut(),
        flags: 0,
    };
    let delegate = TfLiteOpaqueDelegateCreate(Some(&builder));
    // SAFETY: the delegate lives.
    assert_eq!(TfLiteOpaqueDelegateGetData(unsafe { delegate.as_ref() }), builder.data);
    assert!(with_delegate(delegate, &messages).is_none());
    assert!(messages.take()[0].contains("another library"));
    let interpreter = create(with(Op::Neg), &messages, |_| {}).unwrap();
    let status = TfLiteInterpreterModifyGraphWithDelegate(Some(&interpreter), delegate);
    assert_eq!((status, messages.take().len()), (APPLICATION_ERROR, 1));
    // SAFETY: the delegate is not used afterwards.
    unsafe { TfLiteOpaqueDelegateDelete(delegate) };
    let mut plain = TfLiteDelegateCreate();
    assert!(with_delegate(&raw mut plain, &messages).is_none());
    // Null is no delegate.
    assert!(with_delegate(ptr::null_mut(), &messages).is_some());
}

#[test]
fn the_external_delegate_of_this_project_is_accepted() {
    let create_external = |path: &CStr, options: &[(&CStr, &CStr)]| {
        let mut all = TfLiteExternalDelegateOptionsDefault(path.as_ptr());
        let insert = all.insert.unwrap();
        for (key, value) in options {
            // SAFETY: the strings live until the delegate is created.
            let status = unsafe { insert(Some(&mut all), key.as_ptr(), value.as_ptr()) };
            assert_eq!(status, OK);
        }
        // SAFETY: see above.
        unsafe { TfLiteExternalDelegateCreate(Some(&all)) }
    };
    let own = c"/usr/lib/libxnn_delegate.so";
    let delegate = create_external(own, &[(c"num_threads", c"2")]);
    assert!(with_delegate(delegate, &Messages::default()).is_some());
    TfLiteExternalDelegateDelete(delegate);
    assert!(create_external(own, &[(c"num_threads", c"none")]).is_null());
    assert!(create_external(own, &[(c"max_memory", c"1")]).is_null());
    assert!(create_external(c"libvx_delegate.so", &[]).is_null());
    let mut full = TfLiteExternalDelegateOptionsDefault(own.as_ptr());
    full.count = 256;
    // SAFETY: null strings are accepted.
    let status =
        unsafe { TfLiteExternalDelegateOptionsInsert(Some(&mut full), ptr::null(), ptr::null()) };
    assert_eq!(status, ERROR);
}

#[test]
fn kernels_of_callers_are_rejected_where_they_would_run() {
    let messages = Messages::default();
    let name = CString::new("Mine").unwrap();
    let register = |op: Op, builtin: c_int, custom: *const c_char| {
        create(with(op), &messages, |options| {
            TfLiteInterpreterOptionsAddBuiltinOp(Some(&mut *options), builtin, ptr::null(), 1, 1);
            // SAFETY: null, or a C string.
            unsafe {
                TfLiteInterpreterOptionsAddCustomOp(Some(options), custom, ptr::null(), 1, 1)
            };
        })
    };
    let neg = Op::Neg.code();
    assert!(register(Op::Neg, Op::Exp.code(), name.as_ptr()).is_some());
    assert!(register(Op::Neg, neg, ptr::null()).is_none());
    assert!(messages.take()[0].contains("operator 0 (NEG)"));
    assert!(register(custom("Mine"), neg, name.as_ptr()).is_none());
    assert!(messages.take()[0].contains("operator 0 (Mine)"));
    // SAFETY: a C string.
    let operator = unsafe { TfLiteOperatorCreate(32, name.as_ptr(), 1, ptr::null_mut()) };
    assert_eq!(TfLiteOperatorGetVersion(operator.as_deref()), 1);
    // SAFETY: the name lives as long as the operator.
    let read = unsafe { CStr::from_ptr(TfLiteOperatorGetCustomName(operator.as_deref())) };
    assert_eq!(read, name.as_c_str());
    let interpreter = create(with(custom("Mine")), &messages, |options| {
        TfLiteInterpreterOptionsAddOperator(Some(options), operator.as_deref());
    });
    assert!(interpreter.is_none());
    TfLiteOperatorDelete(operator);
    messages.take();
    // Without a registration, the operator is an error of the allocation, as in TFLite.
    let interpreter = create(with(custom("Mine")), &messages, |_| {}).unwrap();
    assert_eq!(TfLiteInterpreterAllocateTensors(Some(&interpreter)), UNRESOLVED);
    assert!(messages.take()[0].contains("Mine"));
}

#[test]
fn operators_cannot_be_resolved_by_functions() {
    unsafe extern "C" fn find() {}
    let messages = Messages::default();
    for (function, works) in [(None, true), (Some(find as Resolver), false)] {
        let interpreter = create(with(Op::Neg), &messages, |options| {
            TfLiteInterpreterOptionsSetOpResolver(Some(options), function, None, ptr::null_mut());
        });
        assert_eq!((interpreter.is_some(), messages.take().is_empty()), (works, works));
    }
}

#[test]
fn arrays_are_made_and_compared() {
    let array = TfLiteIntArrayCreate(3);
    // SAFETY: the array has three elements; arrays are freed once.
    unsafe {
        array.cast::<c_int>().add(2).write(5);
        let copy = TfLiteIntArrayCopy(array);
        assert_eq!(TfLiteIntArrayEqual(array, copy), 1);
        assert_eq!(TfLiteIntArrayEqualsArray(array, 3, [0, 5, 0].as_ptr()), 1);
        assert_eq!(TfLiteIntArrayEqualsArray(array, 2, [0, 5].as_ptr()), 0);
        assert_eq!(TfLiteIntArrayEqual(array, ptr::null()), 0);
        assert_eq!(TfLiteIntArrayEqual(ptr::null(), ptr::null()), 1);
        TfLiteIntArrayFree(copy);
        TfLiteIntArrayFree(array);
        TfLiteIntArrayFree(ptr::null_mut());
        let floats = TfLiteFloatArrayCreate(2);
        TfLiteFloatArrayFree(TfLiteFloatArrayCopy(floats));
        TfLiteFloatArrayFree(floats);
    }
    assert!(TfLiteIntArrayCreate(-1).is_null());
    assert_eq!(TfLiteIntArrayGetSizeInBytes(3), 16);
}
