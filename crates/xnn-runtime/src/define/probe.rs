//! Capabilities of the linked XNNPACK on this processor, found by probing once.

use std::sync::OnceLock;

use xnnpack::{
    AlignedBuffer, Binding, Datatype, ExternalId, Flags, FullyConnected, FullyConnectedSparse,
    OutputRange, Quantization, Result, Role, Runtime, RuntimeOptions, StaticData, Subgraph,
    TensorSpec, Unary, UnaryOp,
};

const INPUT: ExternalId = ExternalId(0);
const OUTPUT: ExternalId = ExternalId(1);

/// Whether there are sparse kernels. There are none on processors whose dense kernels use wide
/// vectors.
pub(super) fn has_sparse_kernels() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| sparse_layer().is_ok())
}

/// Whether products with blockwise int4 weights are correct. At the pinned revision the kernel for
/// AVX512-VNNI with GFNI is wrong. The build script of `xnnpack-sys` omits it, but an installed
/// library may have it.
pub(super) fn blockwise_products_are_right() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let expected = BLOCK as f32;
        // The error of dynamic quantization is at most half of 1/255.
        last_of_two_rows().is_ok_and(|got| (got - expected).abs() < expected / 255.0)
    })
}

/// Number of inputs of the probe, which form one block.
const BLOCK: usize = 32;

fn sparse_layer() -> Result<Runtime> {
    let mut graph = Subgraph::new()?;
    let matrix = || TensorSpec::new(Datatype::F32, &[1, 1]);
    let node = FullyConnectedSparse {
        output_range: OutputRange::default(),
        input: graph.define_tensor(matrix().role(Role::Input(INPUT)))?,
        filter: graph.define_tensor(matrix().role(Role::Static(StaticData::of(&[1f32]))))?,
        bias: None,
        output: graph.define_tensor(matrix().role(Role::Output(OUTPUT)))?,
    };
    graph.define(node)?;
    Runtime::new(graph, &RuntimeOptions::default())
}

/// Computes the sum of [`BLOCK`] ones as the second row of a product with weights of 1.
fn last_of_two_rows() -> Result<f32> {
    /// Two 4-bit weights of 1.
    const ONES: u8 = 0x99;
    /// 1 as bf16.
    const SCALE: u16 = 0x3f80;

    let mut graph = Subgraph::new()?;
    let input = TensorSpec::new(Datatype::F32, &[2, BLOCK]).role(Role::Input(INPUT));
    let input = graph.define_tensor(input)?;
    let dynamic = Quantization::Dynamic { nonbatch_dims: 1 };
    let rows = graph.define_tensor(TensorSpec::inferred(Datatype::Qdint8).quantized(dynamic))?;
    let blockwise = Quantization::Blockwise {
        zero_point: 8,
        axis: 0,
        block_size: BLOCK,
        scales: [SCALE].into(),
    };
    let filter = TensorSpec::new(Datatype::Qbint4, &[1, BLOCK])
        .quantized(blockwise)
        .role(Role::Static(StaticData::of(&[ONES; BLOCK / 2])));
    let filter = graph.define_tensor(filter)?;
    let output = TensorSpec::inferred(Datatype::F32).role(Role::Output(OUTPUT));
    let output = graph.define_tensor(output)?;
    graph.define(Unary { op: UnaryOp::Convert, input, output: rows })?;
    graph.define(FullyConnected {
        output_range: OutputRange::default(),
        input: rows,
        filter,
        bias: None,
        output,
        flags: Flags::NONE,
    })?;

    let mut runtime = Runtime::new(graph, &RuntimeOptions::default())?;
    runtime.reshape()?;
    let ones = AlignedBuffer::of(&[1f32; 2 * BLOCK]);
    let mut sums = AlignedBuffer::of(&[0f32; 2]);
    runtime
        .run(&mut [Binding::Input(INPUT, ones.input()), Binding::Output(OUTPUT, sums.output())])?;
    Ok(sums.elements().and_then(<[f32]>::last).copied().unwrap_or(f32::NAN))
}
