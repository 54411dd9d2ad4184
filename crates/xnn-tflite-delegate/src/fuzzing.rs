//! Random graphs and options through the functions that TFLite calls, for the fuzz target `delegate`.
//!
//! What an interpreter guarantees holds here as well: tensors that nodes name exist, each is written by one node at most, and
//! constants have memory. Everything else is random: types, shapes, quantization, operators and their parameters.

use std::ffi::{CString, c_char, c_int};

use crate::abi::{OK, TfLiteDelegate};
use crate::fake::{Fake, bytes};
use crate::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};

/// Keys that the delegate knows, and one that it does not.
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
/// Types of tensors, as TFLite numbers them; floats and 8-bit integers most often.
const TYPES: [c_int; 8] = [1, 1, 1, 9, 3, 2, 10, 4];
const MAX_TENSORS: usize = 12;
const MAX_NODES: usize = 6;
/// Elements of a tensor. Larger ones only take longer.
const MAX_ELEMENTS: i64 = 4096;
/// Words that the options of an operator have at most, and how many of them are random.
const PARAMS: usize = 64;
const RANDOM_PARAMS: usize = 6;
/// Options of these operators have pointers, which an interpreter never leaves wild.
const COMPOSITE: i32 = 206;
const LAST_BUILTIN: i32 = 209;

/// Has a delegate with random options look at a random graph, and runs what it claims: with the graph's shapes, then with
/// other ones.
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
    // SAFETY: made above, destroyed once.
    unsafe { tflite_plugin_destroy_delegate(delegate.cast()) };
}

fn elements(dims: &[c_int]) -> i64 {
    dims.iter().map(|&dim| i64::from(dim)).product()
}

/// Random bytes, zeros behind the last.
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
    // SAFETY: `count` strings each, which outlive the call.
    let delegate =
        unsafe { tflite_plugin_create_delegate(keys.as_ptr(), values.as_ptr(), count, None) };
    (!delegate.is_null()).then_some(delegate.cast())
}

/// A graph, and those of its tensors that nothing writes.
fn graph(script: &mut Script<'_>) -> (Fake, Vec<c_int>) {
    let fake = Fake::new();
    let count = 2 + script.below(MAX_TENSORS);
    let mut unwritten: Vec<c_int> = (0..count).filter_map(|_| tensor(script, &fake)).collect();
    let mut written = Vec::new();
    for _ in 0..=script.below(MAX_NODES) {
        let id = |script: &mut Script<'_>| script.below(count + 1) as c_int - 1;
        let inputs: Vec<c_int> = (0..script.below(6)).map(|_| id(script)).collect();
        // Nodes that come before must not read what this one writes.
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
