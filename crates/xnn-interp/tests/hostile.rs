//! Random models, for which kernels must return a result or an error without a panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use common::{Builder, map, model};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use xnn_interp::{Entry, InterpOptions, Interpreter, supported_operators};
use xnn_model::op::{Activation, CustomOptions, Padding};
use xnn_model::{
    DType, Model, ModelLimits, Op, Operator, Quantization, Subgraph, Tensor, ZeroPoints,
};

/// Number of models per operator, unless `XNN_HOSTILE_ROUNDS` is set.
const ROUNDS: usize = 30;

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

fn rounds() -> usize {
    let asked = std::env::var("XNN_HOSTILE_ROUNDS").ok();
    asked.map_or(ROUNDS, |rounds| rounds.parse().expect("a number"))
}

fn pick<T: Clone>(rng: &mut ChaCha8Rng, choices: &[T]) -> T {
    choices[rng.random_range(0..choices.len())].clone()
}

const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::I8,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::I32,
    DType::I32,
    DType::I64,
    DType::Bool,
    DType::F16,
    DType::U32,
    DType::Resource,
    DType::Complex64,
    DType::Complex128,
    DType::String,
    DType::I4,
];

fn number(rng: &mut ChaCha8Rng) -> i32 {
    match rng.random_range(0..12) {
        0 => i32::MAX,
        1 => i32::MIN,
        2 => rng.random(),
        3 => rng.random_range(-100..1000),
        _ => rng.random_range(-3..6),
    }
}

fn real(rng: &mut ChaCha8Rng) -> f32 {
    match rng.random_range(0..10) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => f32::from_bits(rng.random()),
        3 => 0.0,
        _ => rng.random_range(-2.0..2.0),
    }
}

fn dims(rng: &mut ChaCha8Rng) -> Vec<usize> {
    let rank = pick(rng, &[0, 1, 1, 2, 2, 3, 4, 4, 4, 5, 6, 9]);
    let sizes = [0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 8, 17];
    (0..rank).map(|_| pick(rng, &sizes)).collect()
}

/// Scales whose ratios and squares leave the range of fixed-point multipliers, or of floats.
const SCALES: [f32; 7] = [f32::MIN_POSITIVE, 1e-30, 1e-12, 1.0, 1e9, 1e30, f32::MAX];

fn quantization(rng: &mut ChaCha8Rng, shape: &[usize]) -> Option<Quantization> {
    let scale = |rng: &mut ChaCha8Rng| {
        if rng.random_bool(0.7) { rng.random_range(0.001..0.5) } else { real(rng) }
    };
    match rng.random_range(0..5) {
        0 => None,
        1 => {
            // One per slice: the reader refuses files with another number.
            let axis = rng.random_range(0..shape.len().max(1));
            let channels = *shape.get(axis)?;
            let scales = (0..channels).map(|_| scale(rng)).collect();
            let zero_points = ZeroPoints::default();
            Some(Quantization::PerAxis { scales, zero_points, axis })
        }
        2 => {
            let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
            let edges = [-32768, -129, -128, 127, 128, 255, 256, 32767, low, high, high + 1];
            let scale = if rng.random_bool(0.5) { scale(rng) } else { pick(rng, &SCALES) };
            Some(Quantization::PerTensor { scale, zero_point: pick(rng, &edges) })
        }
        _ => Some(Quantization::PerTensor {
            scale: scale(rng),
            zero_point: pick(rng, &[0, 0, 3, -128]),
        }),
    }
}

/// Random bytes that often are small values of the type.
fn elements(rng: &mut ChaCha8Rng, dtype: DType, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    match dtype {
        DType::I32 => {
            bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&number(rng).to_ne_bytes()))
        }
        DType::I64 => bytes
            .chunks_exact_mut(8)
            .for_each(|c| c.copy_from_slice(&i64::from(number(rng)).to_ne_bytes())),
        DType::F32 => {
            bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&real(rng).to_ne_bytes()))
        }
        DType::Bool => bytes.fill(1),
        _ => rng.fill_bytes(&mut bytes),
    }
    bytes
}

fn fill(rng: &mut ChaCha8Rng, tensor: &mut Tensor) {
    let size = tensor.shape.as_deref().and_then(xnn_model::element_count);
    if let Some(size) = size.and_then(|count| tensor.dtype.byte_size(count)) {
        let short = usize::from(rng.random_bool(0.03));
        tensor.data = Some(Bytes::from(elements(rng, tensor.dtype, size.saturating_sub(short))));
    }
}

/// Options of one operator family, with random values.
fn scramble(rng: &mut ChaCha8Rng, op: &mut Op) {
    let activations = [
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::Tanh,
        Activation::SignBit,
    ];
    let activation = pick(rng, &activations);
    let padding = pick(rng, &[Padding::Same, Padding::Valid]);
    let (flag, other) = (rng.random_bool(0.5), rng.random_bool(0.5));
    let mut n = || number(rng);
    match op {
        Op::Conv2d(o) => {
            (o.stride_w, o.stride_h, o.dilation_w, o.dilation_h) = (n(), n(), n(), n());
            (o.padding, o.activation) = (padding, activation);
        }
        Op::DepthwiseConv2d(o) => {
            (o.stride_w, o.stride_h, o.dilation_w, o.dilation_h) = (n(), n(), n(), n());
            (o.padding, o.activation, o.depth_multiplier) = (padding, activation, n());
        }
        Op::Conv3d(o) | Op::Conv3dTranspose(o) => {
            (o.stride_d, o.stride_h, o.stride_w) = (n(), n(), n());
            (o.dilation_d, o.dilation_h, o.dilation_w, o.padding) = (n(), n(), n(), padding);
        }
        Op::TransposeConv(o) => (o.stride_w, o.stride_h, o.padding) = (n(), n(), padding),
        Op::AveragePool2d(o) | Op::MaxPool2d(o) | Op::L2Pool2d(o) => {
            (o.stride_w, o.stride_h, o.filter_width, o.filter_height) = (n(), n(), n(), n());
            (o.padding, o.activation) = (padding, activation);
        }
        Op::FullyConnected(o) => (o.keep_num_dims, o.activation) = (flag, activation),
        Op::Concatenation(o) => (o.axis, o.activation) = (n(), activation),
        Op::LocalResponseNormalization(o) => o.radius = n(),
        Op::Lstm(o) => (o.basic, o.activation) = (flag, activation),
        Op::UnidirectionalSequenceLstm(o) => (o.time_major, o.activation) = (flag, activation),
        Op::BidirectionalSequenceLstm(o) => (o.time_major, o.merge_outputs) = (flag, other),
        Op::Svdf(o) => (o.rank, o.activation) = (n(), activation),
        Op::ResizeBilinear(o) | Op::ResizeNearestNeighbor(o) => {
            (o.align_corners, o.half_pixel_centers) = (flag, other);
        }
        Op::SpaceToDepth(o) | Op::DepthToSpace(o) => o.block_size = n(),
        Op::Gather(o) => (o.axis, o.batch_dims) = (n(), n()),
        Op::Squeeze(o) => o.squeeze_dims = vec![n(), n()],
        Op::Split(o) | Op::SplitV(o) => o.num_splits = n(),
        Op::StridedSlice(o) => {
            (o.begin_mask, o.end_mask, o.ellipsis_mask) = (n(), n(), n());
            (o.new_axis_mask, o.shrink_axis_mask, o.offset) = (n(), n(), flag);
        }
        Op::Pack(o) => (o.values_count, o.axis) = (n(), n()),
        Op::Unpack(o) => (o.num, o.axis) = (n(), n()),
        Op::OneHot(o) => o.axis = n(),
        Op::MirrorPad(o) => o.symmetric = flag,
        Op::ReverseSequence(o) => (o.seq_dim, o.batch_dim) = (n(), n()),
        Op::BatchMatMul(o) => (o.adj_x, o.adj_y) = (flag, other),
        Op::Cumsum(o) => (o.exclusive, o.reverse) = (flag, other),
        Op::Reshape(o) => o.new_shape = flag.then(|| vec![n(), n()]),
        Op::Bucketize(o) => o.boundaries = (0..5).map(|_| real(rng)).collect(),
        Op::FakeQuant(o) => (o.min, o.max, o.num_bits) = (real(rng), real(rng), number(rng)),
        Op::LeakyRelu(o) => o.alpha = real(rng),
        Op::Softmax(o) => o.beta = real(rng),
        Op::Sum(o) | Op::Mean(o) | Op::ReduceMax(o) | Op::ReduceMin(o) => o.keep_dims = flag,
        Op::RandomUniform(o) | Op::RandomStandardNormal(o) | Op::Multinomial(o) => {
            (o.seed, o.seed2) = (n().into(), n().into());
        }
        // FlexBuffer maps of the options that these read, in the order of names.
        Op::Custom(o) if o.code == "AudioSpectrogram" => {
            let numbers = ["magnitude_squared", "stride", "window_size"];
            o.options = map(&numbers.map(|name| (name, n() as f32))).into();
        }
        Op::Custom(o) if o.code == "Mfcc" => {
            let counts = ["dct_coefficient_count", "filterbank_channel_count"];
            let limits = ["lower_frequency_limit", "upper_frequency_limit"];
            let numbers = [counts, limits].concat();
            let numbers: Vec<_> = numbers.into_iter().map(|name| (name, n() as f32)).collect();
            o.options = map(&numbers).into();
        }
        Op::Custom(o) => {
            let mut options = vec![0; rng.random_range(0..40)];
            rng.fill_bytes(&mut options);
            o.options = options.into();
        }
        _ => {}
    }
}

/// A model of one operator with operands of all kinds.
fn random_model(rng: &mut ChaCha8Rng, op: &Op) -> Model {
    let mut b = Builder::new();
    let (common, shape) = (pick(rng, DTYPES), dims(rng));
    let tensor = |b: &mut Builder, rng: &mut ChaCha8Rng, index: usize| {
        let dtype = match (index, rng.random_range(0..10)) {
            (0, 0..8) | (_, 0..5) => common,
            (_, 5..8) => DType::I32,
            _ => pick(rng, DTYPES),
        };
        let shape = if rng.random_bool(0.5) { shape.clone() } else { dims(rng) };
        let id = b.tensor(dtype, &shape);
        b.graph.tensors[id].quantization = quantization(rng, &shape);
        id
    };
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for index in 0..pick(rng, &[1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 24]) {
        let id = tensor(&mut b, rng, index);
        match rng.random_range(0..10) {
            0 if index > 0 => {
                inputs.push(None);
                continue;
            }
            1 => b.graph.tensors[id].is_variable = true,
            2..6 if index > 0 => fill(rng, &mut b.graph.tensors[id]),
            _ => b.graph.inputs.push(id),
        }
        inputs.push(Some(id));
    }
    for index in 0..pick(rng, &[1, 1, 1, 1, 2, 3, 4]) {
        let id = tensor(&mut b, rng, index);
        if rng.random_bool(0.8) {
            b.graph.tensors[id].shape = None;
        }
        outputs.push(id);
    }
    b.graph.outputs.clone_from(&outputs);
    let mut op = op.clone();
    if rng.random_bool(0.7) {
        scramble(rng, &mut op);
    }
    b.graph.operators.push(Operator { op, version: 1, inputs, outputs, intermediates: vec![] });
    b.model()
}

/// Changes a few fields of a valid graph.
fn mutate(rng: &mut ChaCha8Rng, graph: &mut Subgraph) {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..graph.tensors.len());
        let tensor = &mut graph.tensors[at];
        match rng.random_range(0..9) {
            0 => tensor.dtype = pick(rng, DTYPES),
            1 => tensor.shape = Some(dims(rng)),
            2 | 3 => match tensor.shape.as_mut().and_then(|shape| {
                let d = rng.random_range(0..shape.len().max(1));
                shape.get_mut(d)
            }) {
                Some(dim) => *dim = pick(rng, &[0, 1, 2, 3, 7, 20]),
                None => tensor.shape = None,
            },
            4 => {
                let shape = tensor.shape.clone().unwrap_or_default();
                tensor.quantization = quantization(rng, &shape);
            }
            5 => fill(rng, tensor),
            6 => tensor.data = None,
            _ => {
                let at = rng.random_range(0..graph.operators.len());
                scramble(rng, &mut graph.operators[at].op);
            }
        }
        let tensor = &mut graph.tensors[at];
        if let (Some(Quantization::PerAxis { scales, axis, .. }), Some(shape)) =
            (&tensor.quantization, &tensor.shape)
            && shape.get(*axis) != Some(&scales.len())
        {
            tensor.quantization = None;
        }
        // A constant whose type or shape has changed gets as many bytes as it needs.
        if tensor.data.is_some() && rng.random_bool(0.9) {
            fill(rng, tensor);
        }
    }
}

/// Loads and runs a model, and returns its panic if there is one.
fn panic_of(rng: &mut ChaCha8Rng, model: &Model) -> Option<String> {
    let mut limits = ModelLimits::default();
    limits.max_tensor_bytes = 1 << 18;
    limits.max_loop_iterations = 10;
    let options = InterpOptions { limits, ..InterpOptions::default() };
    let run = AssertUnwindSafe(|| {
        let Ok(mut interpreter) = Interpreter::new(model, Entry::Main, &options) else { return };
        for round in 0..3 {
            for position in 0..interpreter.inputs() {
                if round == 1 && rng.random_bool(0.3) {
                    let _ = interpreter.resize_input(position, &dims(rng));
                }
                if let Ok(input) = interpreter.input_mut(position) {
                    let bytes = elements(rng, input.dtype, input.bytes.len());
                    input.bytes.copy_from_slice(&bytes);
                }
            }
            let _ = interpreter.run();
        }
        interpreter.reset_variables();
    });
    panic::catch_unwind(run).err().map(|_| PLACE.take())
}

/// Runs the `models` of each name, and fails with the places of all panics.
fn expect_no_panics(seed: u64, named: impl Iterator<Item = (String, Vec<Model>)>) {
    let default = panic::take_hook();
    panic::set_hook(Box::new(|info| PLACE.set(info.to_string())));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (name, models) in named {
        for model in &models {
            if let Some(place) = panic_of(&mut rng, model) {
                found.entry(place).or_insert_with(|| name.clone());
            }
        }
    }
    panic::set_hook(default);
    let list: Vec<String> = found.iter().map(|(place, name)| format!("{name}: {place}")).collect();
    assert!(list.is_empty(), "{} panics:\n{}", list.len(), list.join("\n"));
}

#[test]
fn kernels_do_not_panic() {
    let builtins: Vec<Op> = (-20..400).filter_map(Op::from_code).collect();
    let custom =
        |code: &str| Op::Custom(CustomOptions { code: code.into(), options: Bytes::new() });
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let named = supported_operators().map(|name| {
        let builtin = builtins.iter().find(|op| op.name() == name).cloned();
        let op = builtin.unwrap_or_else(|| custom(name));
        (name.to_owned(), (0..rounds()).map(|_| random_model(&mut rng, &op)).collect())
    });
    expect_no_panics(1, named);
    changed_valid_models_do_not_panic();
}

/// Changes the cases that are compared with LiteRT: of single operators, and of those without an
/// XNNPACK node.
fn changed_valid_models_do_not_panic() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let entries =
        ["operators", "kernels"].map(|cases| std::fs::read_dir(golden.join(cases)).unwrap());
    let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    paths.sort();
    assert!(paths.len() > 100);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let named = paths.into_iter().map(|path| {
        let sound = Model::open(path.join("model.tflite")).unwrap();
        let changed = (0..rounds() / 3).map(|_| {
            let mut graphs: Vec<Subgraph> = sound.subgraphs.iter().map(|g| (**g).clone()).collect();
            graphs.iter_mut().for_each(|graph| mutate(&mut rng, graph));
            let mut changed = model(vec![]);
            changed.subgraphs = graphs.into_iter().map(Arc::new).collect();
            changed
        });
        (path.display().to_string(), changed.collect())
    });
    expect_no_panics(2, named);
}
