//! Models of any batch: resized, not built again, they compute for each sample of a batch what they
//! compute for it alone, and every operator agrees with its reference kernel.

#![allow(clippy::unwrap_used, reason = "tests")]

use xnn_delegate::verify::Verifier;
use xnn_delegate::{Model, Runner, RunnerOptions};
use xnn_model::DType;
use xnn_model::op::{ActivationOptions, Conv2dOptions, FullyConnectedOptions, Op, Padding};
use xnn_testing::{FP32_PART as PART, GraphBuilder, Q8_STEPS as STEPS, Random};

/// One after the other, in the same runner.
const BATCHES: [usize; 3] = [1, 3, 2];

#[test]
fn built_models_of_any_batch() {
    for dtype in [DType::F32, DType::I8, DType::U8] {
        let delegated = check(&convolution_and_dense(dtype).build_model()).unwrap();
        assert_eq!(delegated, 4, "{dtype}");
    }
}

/// A convolution, a product of its result with itself, a mean and a layer of weights.
fn convolution_and_dense(dtype: DType) -> GraphBuilder {
    let mut random = Random::new(9);
    let mut graph = GraphBuilder::new("main");
    let x = graph.input("x", dtype, &[1, 6, 5, 3]);
    let kernel = graph.constant("kernel", dtype, &[4, 3, 3, 3], random.weights(dtype, 108));
    let features = graph.tensor("features", dtype, &[1, 3, 3, 4]);
    let squares = graph.tensor("squares", dtype, &[1, 3, 3, 4]);
    let axes = graph.constant_i32("axes", &[2], &[1, 2]);
    let pooled = graph.tensor("pooled", dtype, &[1, 4]);
    let weights = graph.constant("weights", dtype, &[7, 4], random.weights(dtype, 28));
    let y = graph.tensor("y", dtype, &[1, 7]);
    if dtype != DType::F32 {
        let middle = if dtype == DType::U8 { 128 } else { 0 };
        let scales = [(x, 0.02), (kernel, 0.01), (features, 0.05), (squares, 0.2), (pooled, 0.1)];
        for (id, scale) in scales.into_iter().chain([(weights, 0.02), (y, 0.1)]) {
            graph.quantize(id, scale, middle);
        }
    }
    let options = Conv2dOptions {
        padding: Padding::Same,
        stride_h: 2,
        stride_w: 2,
        ..Conv2dOptions::default()
    };
    graph
        .op_with_optional(Op::Conv2d(options), &[Some(x), Some(kernel), None], &[features])
        .op(Op::Mul(ActivationOptions::default()), &[features, features], &[squares])
        .op(Op::Mean(Default::default()), &[squares, axes], &[pooled])
        .op_with_optional(
            Op::FullyConnected(FullyConnectedOptions::default()),
            &[Some(pooled), Some(weights), None],
            &[y],
        )
        .output(y);
    graph
}

/// How many operators went to XNNPACK.
fn check(model: &Model) -> Result<usize, String> {
    let text = |error: xnn_delegate::Error| error.to_string();
    let mut runner = Runner::from_model(model).map_err(text)?;
    let mut verifier = Verifier::new(model, &RunnerOptions::default()).map_err(text)?;
    let samples: Vec<Vec<Vec<u8>>> = (0..3).map(|seed| sample(&runner, seed)).collect();
    let mut alone: Vec<Vec<Vec<u8>>> = Vec::new();
    for sample in &samples {
        alone.push(run(&mut runner, std::slice::from_ref(sample)).map_err(text)?);
    }
    for batch in BATCHES {
        let together = run(&mut runner, &samples[..batch]).map_err(text)?;
        for (output, spec) in runner.outputs().iter().enumerate() {
            let rows: Vec<u8> = alone[..batch].iter().flat_map(|it| it[output].clone()).collect();
            if spec.dims.first() == Some(&batch) && !agree(spec.dtype, &together[output], &rows) {
                return Err(format!("batch {batch}, output {output}: not what samples give alone"));
            }
        }
        fill(verifier.reference_mut(), &samples[..batch]).map_err(text)?;
        let verification = verifier.verify().map_err(text)?;
        if let Some(far) = verification.operators.iter().find(|it| !it.is_within(STEPS, PART)) {
            return Err(format!("batch {batch}: {far:?}"));
        }
    }
    Ok(runner.coverage().delegated)
}

/// Elements for every input of batch 1.
fn sample(runner: &Runner, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    let inputs = runner.inputs().iter();
    inputs.map(|spec| random.tensor(spec.dtype, spec.dims.iter().product())).collect()
}

fn run(runner: &mut Runner, samples: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u8>>, xnn_delegate::Error> {
    fill(runner, samples)?;
    runner.run()?;
    Ok((0..runner.outputs().len())
        .map(|output| runner.output_bytes(output).unwrap().to_vec())
        .collect())
}

/// Resizes the inputs to the batch that these samples make, and fills them.
fn fill(runner: &mut Runner, samples: &[Vec<Vec<u8>>]) -> Result<(), xnn_delegate::Error> {
    let dims: Vec<Vec<usize>> =
        runner.inputs().iter().map(|spec| [&[samples.len()], &spec.dims[1..]].concat()).collect();
    let resized: Vec<(usize, &[usize])> =
        dims.iter().enumerate().map(|(input, dims)| (input, dims.as_slice())).collect();
    runner.resize_inputs(&resized)?;
    for input in 0..dims.len() {
        let elements: Vec<u8> = samples.iter().flat_map(|sample| sample[input].clone()).collect();
        runner.input_bytes_mut(input).unwrap().copy_from_slice(&elements);
    }
    Ok(())
}

/// Whether results of the same engine agree. 8-bit results must be identical.
fn agree(dtype: DType, ours: &[u8], theirs: &[u8]) -> bool {
    if dtype != DType::F32 {
        return ours == theirs;
    }
    let reals = |bytes: &[u8]| -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect()
    };
    let (ours, theirs) = (reals(ours), reals(theirs));
    let range = theirs.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(a, b)| a == b || (a - b).abs() <= PART * range)
}
