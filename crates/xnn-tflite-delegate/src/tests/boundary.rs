//! Tests of the C interface: damaged graphs, errors, panics, options.

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::Mutex;

use xnn_model::Op;
use xnn_model::op::Activation;

use super::{ABS, Chain, INPUT, NEG, Owned, STRIDED_SLICE, TRANSPOSE_CONV};
use crate::abi::{ERROR, OK};
use crate::builtin_data::{StridedSliceParams, TransposeConvParams, builtin};
use crate::delegate;
use crate::fake::{FLOAT32, Fake};
use crate::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};

#[test]
fn nodes_without_kernel_are_an_error() {
    let chain = Chain::new();
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), OK);
    // SAFETY: zeros are valid null pointers and integers.
    let mut node: crate::abi::TfLiteNode = unsafe { std::mem::zeroed() };
    // SAFETY: a call of TFLite without the pointer that `init` returned.
    assert_eq!(unsafe { delegate::invoke(chain.fake.context(), &raw mut node) }, ERROR);
    assert!(chain.fake.messages().contains("no kernel"), "{}", chain.fake.messages());
    chain.fake.context_mut().report_error = None;
    // SAFETY: as above.
    assert_eq!(unsafe { delegate::invoke(chain.fake.context(), &raw mut node) }, ERROR);
    // SAFETY: as above.
    assert_eq!(unsafe { delegate::invoke(ptr::null_mut(), &raw mut node) }, ERROR);
}

#[test]
fn interpreters_without_a_function_are_an_error() {
    let chain = Chain::new();
    chain.fake.context_mut().preview_delegate_partitioning = None;
    let delegate = Owned::new();
    assert_eq!(chain.fake.apply(delegate.0), ERROR);
    assert!(chain.fake.messages().contains("PreviewDelegatePartitioning"));
}

/// Callers may use the same memory for a state that a model reads and writes.
#[test]
fn outputs_may_overlap_with_inputs() {
    let fake = Fake::new();
    let [input, first, second] = [(); 3].map(|()| fake.tensor(FLOAT32, &[1, 6]));
    fake.node::<()>(ABS, None, &[input], &[first]);
    fake.node::<()>(NEG, None, &[input], &[second]);
    fake.set_outputs(&[first, second]);
    let delegate = Owned::new();
    assert_eq!(fake.apply(delegate.0), OK);
    assert_eq!(fake.allocate(0), OK, "{}", fake.messages());
    fake.tensor_mut(first).data = fake.tensor_mut(input).data;
    for _ in 0..2 {
        fake.write(input, &INPUT);
        assert_eq!(fake.invoke(), OK, "{}", fake.messages());
        assert_eq!(fake.read(first), INPUT.map(f32::abs));
        assert_eq!(fake.read(second), INPUT.map(|value| -value));
    }
}

#[test]
fn nodes_with_missing_tensors_are_an_error() {
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

/// Interpreters set these members for every version of an operator, and their kernels use them.
#[test]
fn all_members_of_options_are_read() {
    let tail = TransposeConvParams { padding: 1, stride_width: 2, stride_height: 3, activation: 1 };
    // SAFETY: the structure of the operator.
    match unsafe { builtin(TRANSPOSE_CONV, (&raw const tail).cast()) } {
        Op::TransposeConv(o) => {
            assert_eq!((o.stride_w, o.stride_h, o.activation), (2, 3, Activation::Relu));
        }
        other => panic!("{other}"),
    }

    let tail = StridedSliceParams {
        begin_mask: 1,
        end_mask: 2,
        ellipsis_mask: 0,
        new_axis_mask: 0,
        shrink_axis_mask: 4,
        offset: 1,
    };
    // SAFETY: the structure of the operator.
    match unsafe { builtin(STRIDED_SLICE, (&raw const tail).cast()) } {
        Op::StridedSlice(o) => {
            assert_eq!((o.begin_mask, o.end_mask, o.shrink_axis_mask, o.offset), (1, 2, 4, true));
        }
        other => panic!("{other}"),
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
    assert!(create("disable", "MEAN,SOFTMAXX", Some(report)).is_null());
    assert!(
        REPORTED.lock().unwrap().iter().any(|message| message.contains("did you mean SOFTMAX?"))
    );
    let delegate = create("num_threads", "2", None);
    assert!(!delegate.is_null());
    // SAFETY: null pointers for no options.
    let plain = unsafe { tflite_plugin_create_delegate(ptr::null(), ptr::null(), 0, None) };
    assert!(!plain.is_null());
    for delegate in [delegate, plain, ptr::null_mut()] {
        // SAFETY: created above, or null.
        unsafe { tflite_plugin_destroy_delegate(delegate) };
    }
}
