//! Fuzz target `delegate`: random graphs and options through the functions that TFLite calls.
//!
//! The guarantees of an interpreter hold: the tensors of nodes exist, each is written by at most
//! one node, and constants have memory. Types, shapes, quantization, operators and their parameters
//! are random.

use std::ffi::{CString, c_char, c_int};

use crate::abi::{OK, TfLiteDelegate};
use crate::fake::{Fake, bytes};
use crate::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};

/// Keys of the delegate, and one that it does not know.
const KEYS: [&str; 8] = [
    "num_threads",
    "keep_small",
    "no_optimize",
    "u8_as_s8",
    "dynamic_range",
    "disable",
    "max_partitions",
    "unheard_of",
];
const VALUES: [&str; 8] = ["1", "2", "true", "false", "exact", "rows", "SOFTMAX,MEAN", ""];
const DIMS: [c_int; 8] = [1, 2, 3, 4, 5, 8, 16, 0];
/// TFLite's codes of element types; floats and 8-bit integers are most frequent.
const TYPES: [c_int; 8] = [1, 1, 1, 9, 3, 2, 10, 4];
const MAX_TENSORS: usize = 12;
const MAX_NODES: usize = 6;
/// Maximal number of elements of a tensor. Larger tensors would only take longer.
const MAX_ELEMENTS: i64 = 4096;
/// Maximal number of words in the options of an operator, and how many of them are random.
const PARAMS: usize = 64;
const RANDOM_PARAMS: usize = 6;
/// Operators whose options contain pointers, which must be valid.
const COMPOSITE: i32 = 206;
const LAST_BUILTIN: i32 = 209;

/// Applies a delegate with random options to a random graph, and runs its kernels with the graph's
/// shapes and with other ones.
pub fn drive(bytes: &[u8]) {
    let script = &mut Script(bytes);
    let Some(delegate) = delegate(script) else { return };
    let (fake, inputs) = graph(script);
    if fake.apply(delegate) == OK && fake.allocate(0) == OK {
        let _ = fake.invoke_kernels();
        for &input in &inputs {
            let dims = fake.dims(input);
            let dims: Vec<c_int> = dims.iter().map(|dim| dim * script.pick(&DIMS)).collect();
            if elements(&dims) <= MAX_ELEMENTS {
                fake.resize(input, &dims);
            }
        }
        if fake.allocate(8) == OK {
            let _ = fake.invoke_kernels();
        }
    }
    drop(fake);
    // SAFETY: created above, destroyed once.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}

fn elements(dims: &[c_int]) -> i64 {
    dims.iter().map(|&dim| i64::from(dim)).product()
}

/// Random bytes, followed by zeros.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    fn pick<T: Copy>(&mut self, table: &[T]) -> T {
        table[self.below(table.len())]
    }
}

fn delegate(script: &mut Script<'_>) -> Option<*mut TfLiteDelegate> {
    let count = script.below(3);
    let text = |text: &str| CString::new(text).unwrap();
    let named: Vec<CString> = (0..count).map(|_| text(script.pick(&KEYS))).collect();
    let given: Vec<CString> = (0..count).map(|_| text(script.pick(&VALUES))).collect();
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|string| string.as_ptr()).collect()
    };
    let (keys, values) = (pointers(&named), pointers(&given));
    // SAFETY: both have `count` strings, which outlive the call.
    let delegate =
        unsafe { tflite_plugin_create_delegate(keys.as_ptr(), values.as_ptr(), count, None) };
    (!delegate.is_null()).then_some(delegate.cast())
}

/// Returns a graph, and its tensors that no node writes.
fn graph(script: &mut Script<'_>) -> (Fake, Vec<c_int>) {
    let fake = Fake::new();
    let count = 2 + script.below(MAX_TENSORS);
    let mut unwritten: Vec<c_int> = (0..count).filter_map(|_| tensor(script, &fake)).collect();
    let mut written = Vec::new();
    for _ in 0..=script.below(MAX_NODES) {
        let id = |script: &mut Script<'_>| script.below(count + 1) as c_int - 1;
        let inputs: Vec<c_int> = (0..script.below(6)).map(|_| id(script)).collect();
        // Earlier nodes must not read outputs of this one.
        let Some(output) = unwritten.pop().filter(|id| !inputs.contains(id)) else { break };
        let code = i32::from(script.byte()) % (LAST_BUILTIN + 1);
        let mut params = [0u64; PARAMS];
        if code != COMPOSITE {
            params[..RANDOM_PARAMS].fill_with(|| u64::from(script.byte()) << (script.byte() % 64));
        }
        fake.node(code, Some(params), &inputs, &[output]);
        written.push(output);
    }
    fake.set_outputs(&written);
    (fake, unwritten)
}

/// Adds a tensor; `None` if it is a constant.
fn tensor(script: &mut Script<'_>, fake: &Fake) -> Option<c_int> {
    let element_type = script.pick(&TYPES);
    let mut dims: Vec<c_int> = (0..script.below(6)).map(|_| script.pick(&DIMS)).collect();
    while elements(&dims) > MAX_ELEMENTS {
        dims.pop();
    }
    let (is_constant, is_quantized) = (script.byte() % 3 == 0, script.byte() % 2 == 0);
    let id = if is_constant {
        let data: Vec<u8> = (0..bytes(element_type, &dims)).map(|_| script.byte()).collect();
        fake.constant(element_type, &dims, &data)
    } else {
        fake.tensor(element_type, &dims)
    };
    if is_quantized {
        let scale = f32::from(script.byte()) / 64.0;
        let (zero_point, axis) = (i32::from(script.byte() as i8), script.below(4) as i32);
        let count = if script.byte() % 4 == 0 { dims.first().copied().unwrap_or(1) } else { 1 };
        fake.quantize(id, &vec![scale; count as usize], zero_point, axis);
    }
    (!is_constant).then_some(id)
}
