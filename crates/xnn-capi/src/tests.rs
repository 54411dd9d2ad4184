//! Parts that C tests cannot reach: models that tests build, and panics.

use std::ffi::{CStr, c_char};
use std::ptr;

use xnn_delegate::model::to_tflite;
use xnn_model::DType;
use xnn_model::op::{GatherOptions, Op};
use xnn_testing::GraphBuilder;

use crate::element::{xnnd_string_t, xnnd_type_t};
use crate::error::xnnd_error_code_t::{
    XNND_ERROR_INTERNAL, XNND_ERROR_INVALID_ARGUMENT, XNND_ERROR_INVALID_STATE,
};
use crate::error::{
    guard, xnnd_error_code, xnnd_error_code_t, xnnd_error_delete, xnnd_error_message, xnnd_error_t,
};
use crate::model::{xnnd_model_delete, xnnd_model_from_copy};
use crate::session::{
    xnnd_session_delete, xnnd_session_input, xnnd_session_new, xnnd_session_output,
    xnnd_session_run, xnnd_session_t,
};
use crate::tensor::{
    xnnd_tensor_data, xnnd_tensor_read_strings, xnnd_tensor_t, xnnd_tensor_type,
    xnnd_tensor_write_strings,
};

/// Code and text of an error, which is deleted.
fn taken(error: *mut xnnd_error_t) -> (xnnd_error_code_t, String) {
    // SAFETY: the error comes from this crate, and is deleted once.
    unsafe {
        let text = CStr::from_ptr(xnnd_error_message(error)).to_str().unwrap().to_owned();
        let code = xnnd_error_code(error);
        xnnd_error_delete(error);
        (code, text)
    }
}

#[track_caller]
fn ok(error: *mut xnnd_error_t) {
    assert_eq!(taken(error), (xnnd_error_code_t::XNND_OK, String::new()));
}

fn string(text: &str) -> xnnd_string_t {
    xnnd_string_t { data: text.as_ptr().cast::<c_char>(), size: text.len() }
}

#[test]
fn a_panic_is_an_error() {
    let error = taken(guard(|| panic!("of a test")));
    assert_eq!(error, (XNND_ERROR_INTERNAL, "internal error: of a test".into()));
}

#[test]
fn strings_are_written_and_read() {
    let mut graph = GraphBuilder::new("main");
    let words = graph.input("words", DType::String, &[3]);
    let order = graph.constant_i32("order", &[2], &[2, 0]);
    let chosen = graph.tensor("chosen", DType::String, &[2]);
    graph.op(Op::Gather(GatherOptions::default()), &[words, order], &[chosen]).output(chosen);
    let file = to_tflite(&graph.build_model()).unwrap();

    let (mut model, mut session) = (ptr::null_mut(), ptr::null_mut::<xnnd_session_t>());
    let (mut input, mut output) = (ptr::null::<xnnd_tensor_t>(), ptr::null::<xnnd_tensor_t>());
    let words = ["one", "", "th\0ree"].map(string);
    let mut read = [string(""); 2];
    // SAFETY: all objects come from this crate, and arrays have the given sizes.
    unsafe {
        ok(xnnd_model_from_copy(file.as_ptr().cast(), file.len(), ptr::null(), &raw mut model));
        ok(xnnd_session_new(model, ptr::null(), &raw mut session));
        xnnd_model_delete(model);
        ok(xnnd_session_input(session, 0, &raw mut input));
        ok(xnnd_session_output(session, 0, &raw mut output));
        assert_eq!(xnnd_tensor_type(input), xnnd_type_t::XNND_TYPE_STRING);

        let mut data = ptr::null_mut();
        let (code, text) = taken(xnnd_tensor_data(input, &raw mut data, ptr::null_mut()));
        assert_eq!(code, XNND_ERROR_INVALID_ARGUMENT);
        assert!(text.contains("xnnd_tensor_write_strings"), "{text}");
        let too_few = taken(xnnd_tensor_write_strings(input, words.as_ptr(), 2));
        assert_eq!(too_few.0, XNND_ERROR_INVALID_ARGUMENT);
        ok(xnnd_tensor_write_strings(input, words.as_ptr(), 3));
        let early = taken(xnnd_tensor_read_strings(output, read.as_mut_ptr(), 2));
        assert_eq!(early.0, XNND_ERROR_INVALID_STATE);
        ok(xnnd_session_run(session));
        let too_few = taken(xnnd_tensor_read_strings(output, read.as_mut_ptr(), 1));
        assert!(too_few.1.contains("expected 2 elements, found 1"), "{}", too_few.1);
        ok(xnnd_tensor_read_strings(output, read.as_mut_ptr(), 2));
        let found =
            read.map(|it| std::slice::from_raw_parts(it.data.cast::<u8>(), it.size).to_vec());
        assert_eq!(found, [b"th\0ree".to_vec(), b"one".to_vec()]);
        xnnd_session_delete(session);
    }
}
