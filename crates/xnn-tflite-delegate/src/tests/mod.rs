//! Tests of the delegate with a fake TFLite interpreter.

mod boundary;
mod hosted;
mod lifetimes;
mod partitions;
mod shapes;
mod stored;

use std::ffi::c_int;

use crate::abi::{OK, TfLiteDelegate};
use crate::builtin_data::{ActivationParams, FullyConnectedParams};
use crate::delegate::Delegate;
use crate::fake::{FLOAT32, Fake};
use crate::options::Options;

const ADD: i32 = 0;
const FULLY_CONNECTED: i32 = 9;
const RESHAPE: i32 = 22;
const NEG: i32 = 59;
const STRIDED_SLICE: i32 = 45;
const TRANSPOSE: i32 = 39;
const SLICE: i32 = 65;
const STABLEHLO_COMPOSITE: i32 = 206;
const SHAPE: i32 = 77;
const TRANSPOSE_CONV: i32 = 67;
const ABS: i32 = 101;
const DEQUANTIZE: i32 = 6;
/// Code of an operator that this project does not know.
const UNHEARD_OF: i32 = 250;
/// `kTfLiteFloat16`.
const FLOAT16: c_int = 10;

const FULLY_CONNECTED_PARAMS: FullyConnectedParams = FullyConnectedParams {
    activation: 0,
    weights_format: 0,
    keep_num_dims: 0,
    asymmetric_quantize_inputs: 0,
};

fn add_params() -> Option<ActivationParams> {
    Some(ActivationParams { activation: 0 })
}

/// A delegate that is destroyed when dropped.
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
        // SAFETY: created by `with`, dropped once.
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

const INPUT: [f32; 6] = [-3.0, -2.0, -0.5, 0.0, 1.0, 2.5];

impl Chain {
    fn new() -> Self {
        let fake = Fake::new();
        let [input, a, b, last, sum] = [(); 5].map(|()| fake.tensor(FLOAT32, &[1, 6]));
        fake.node::<()>(ABS, None, &[input], &[a]);
        fake.node::<()>(NEG, None, &[a], &[b]);
        fake.node::<()>(ABS, None, &[b], &[last]);
        fake.node(ADD, add_params(), &[a, last], &[sum]);
        fake.set_outputs(&[last, sum]);
        Self { fake, input, sum, last }
    }

    /// Runs the graph, and checks its outputs.
    fn check(&self, offset: usize) {
        assert_eq!(self.fake.allocate(offset), OK, "{}", self.fake.messages());
        self.fake.write(self.input, &INPUT);
        assert_eq!(self.fake.invoke(), OK, "{}", self.fake.messages());
        assert_eq!(self.fake.read(self.last), INPUT.map(f32::abs));
        assert_eq!(self.fake.read(self.sum), INPUT.map(|value| value.abs() * 2.0));
    }
}

/// Addresses of the packed weights of a delegate's only kernel.
fn packed_addresses(fake: &Fake) -> Vec<*const u8> {
    let entries = fake.program().packed().unwrap().entries;
    entries.iter().map(|entry| entry.data.as_ptr()).collect()
}
