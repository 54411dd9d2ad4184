//! Helpers of the tests of the C API.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};

use tensorflowlite_c::abi::{TfLiteStatus, TfLiteTensor};
use tensorflowlite_c::c_api::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::tensor::*;
use tensorflowlite_c::{Callback, TfLiteInterpreter, TfLiteInterpreterOptions, TfLiteModel};

unsafe extern "C" {
    fn vsnprintf(to: *mut c_char, size: usize, format: *const c_char, args: *mut c_void) -> c_int;
}

/// Messages that an error reporter got.
#[derive(Default)]
pub struct Messages(RefCell<Vec<String>>);

impl Messages {
    /// A reporter that collects messages here. They must outlive its use.
    pub fn reporter(&self) -> (Option<Callback>, *mut c_void) {
        (Some(collect), (&raw const *self).cast_mut().cast())
    }

    pub fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// Formats a message as C programs do.
unsafe extern "C" fn collect(messages: *mut c_void, format: *const c_char, args: *mut c_void) {
    let mut text = [0u8; 4096];
    // SAFETY: the library passes a format with its arguments, and the data of the reporter.
    let (messages, text) = unsafe {
        vsnprintf(text.as_mut_ptr().cast(), text.len(), format, args);
        (&*messages.cast::<Messages>(), CStr::from_ptr(text.as_ptr().cast()))
    };
    messages.0.borrow_mut().push(text.to_string_lossy().into_owned());
}

/// A model in memory, which must outlive it.
pub fn model(bytes: &[u8]) -> Box<TfLiteModel> {
    model_of(bytes, &Messages::default()).unwrap()
}

pub fn model_of(bytes: &[u8], messages: &Messages) -> Option<Box<TfLiteModel>> {
    let (reporter, data) = messages.reporter();
    // SAFETY: bytes and messages live during the call, and the bytes as long as the model.
    unsafe {
        TfLiteModelCreateWithErrorReporter(bytes.as_ptr().cast(), bytes.len(), reporter, data)
    }
}

/// An interpreter whose messages are collected.
pub fn create(
    bytes: &[u8],
    messages: &Messages,
    set: impl FnOnce(&mut TfLiteInterpreterOptions),
) -> Option<Box<TfLiteInterpreter>> {
    let mut options = TfLiteInterpreterOptionsCreate().unwrap();
    let (reporter, data) = messages.reporter();
    TfLiteInterpreterOptionsSetErrorReporter(Some(&mut options), reporter, data);
    set(&mut options);
    TfLiteInterpreterCreate(Some(&*model(bytes)), Some(&*options))
}

pub fn input(interpreter: Option<&TfLiteInterpreter>, index: i32) -> Option<&TfLiteTensor> {
    // SAFETY: the tensor lives as long as the interpreter.
    unsafe { TfLiteInterpreterGetInputTensor(interpreter, index).as_ref() }
}

pub fn output(interpreter: Option<&TfLiteInterpreter>, index: i32) -> Option<&TfLiteTensor> {
    // SAFETY: the tensor lives as long as the interpreter.
    unsafe { TfLiteInterpreterGetOutputTensor(interpreter, index).as_ref() }
}

pub fn bytes_of(values: &[f32]) -> &[u8] {
    // SAFETY: floats have no padding.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

pub fn write(tensor: Option<&TfLiteTensor>, values: &[f32]) -> TfLiteStatus {
    // SAFETY: the values live during the call.
    unsafe { TfLiteTensorCopyFromBuffer(tensor, values.as_ptr().cast(), size_of_val(values)) }
}

/// The elements of a tensor of floats.
pub fn floats(tensor: Option<&TfLiteTensor>) -> Vec<f32> {
    let size = TfLiteTensorByteSize(tensor);
    let mut values = vec![0.0f32; size / 4];
    // SAFETY: the buffer has the size of the tensor.
    let status = unsafe { TfLiteTensorCopyToBuffer(tensor, values.as_mut_ptr().cast(), size) };
    assert_eq!(status, 0);
    values
}
