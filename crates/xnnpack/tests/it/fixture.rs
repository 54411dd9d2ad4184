//! A subgraph with the memory of its inputs and outputs.

pub use xnn_testing::assert_close;
use xnnpack::{
    AlignedBuffer, Binding, Conv2d, Datatype, Deconv2d, DefineOperator, DepthwiseConv2d, Element,
    Error, ExternalId, Flags, OutputRange, Padding2d, Quantization, Result, Role, Runtime,
    RuntimeOptions, StaticData, Subgraph, TensorSpec, ValueId,
};

/// Builds a subgraph and runs it once.
pub struct Fixture {
    pub graph: Subgraph,
    inputs: Vec<(ExternalId, AlignedBuffer)>,
    outputs: Vec<ExternalId>,
}

impl Fixture {
    pub fn new() -> Self {
        Self { graph: Subgraph::new().unwrap(), inputs: Vec::new(), outputs: Vec::new() }
    }

    fn next_id(&self) -> ExternalId {
        ExternalId(u32::try_from(self.inputs.len() + self.outputs.len()).unwrap())
    }

    pub fn input<T: Element>(&mut self, spec: TensorSpec, data: &[T]) -> ValueId {
        let id = self.next_id();
        self.inputs.push((id, AlignedBuffer::of(data)));
        self.graph.define_tensor(spec.role(Role::Input(id))).unwrap()
    }

    pub fn constant<T: Element>(&mut self, spec: TensorSpec, data: &[T]) -> ValueId {
        self.graph.define_tensor(spec.role(Role::Static(StaticData::of(data)))).unwrap()
    }

    pub fn output(&mut self, spec: TensorSpec) -> ValueId {
        let id = self.next_id();
        self.outputs.push(id);
        self.graph.define_tensor(spec.role(Role::Output(id))).unwrap()
    }

    pub fn internal(&mut self, spec: TensorSpec) -> ValueId {
        self.graph.define_tensor(spec).unwrap()
    }

    pub fn node(mut self, node: impl DefineOperator) -> Self {
        self.graph.define(node).unwrap();
        self
    }

    /// Returns the error of defining a node.
    #[track_caller]
    pub fn refusal(&mut self, node: impl DefineOperator) -> Error {
        self.graph.define(node).expect_err("the node should have been refused")
    }

    /// Runs and returns the elements of the first output.
    pub fn run<T: Element>(self) -> Vec<T> {
        self.run_with(&RuntimeOptions::default()).unwrap().swap_remove(0)
    }

    pub fn run_with<T: Element>(self, options: &RuntimeOptions) -> Result<Vec<Vec<T>>> {
        let Self { graph, inputs, outputs } = self;
        let mut runtime = Runtime::new(graph, options)?;
        runtime.reshape()?;
        let mut buffers: Vec<_> = outputs
            .iter()
            .map(|&id| (id, AlignedBuffer::new(runtime.external(id).unwrap().bytes)))
            .collect();
        let mut bindings: Vec<_> =
            inputs.iter().map(|(id, buffer)| Binding::Input(*id, buffer.input())).collect();
        bindings
            .extend(buffers.iter_mut().map(|(id, buffer)| Binding::Output(*id, buffer.output())));
        runtime.run(&mut bindings)?;
        drop(bindings);
        Ok(buffers.iter().map(|(_, buffer)| buffer.elements::<T>().unwrap().to_vec()).collect())
    }
}

pub fn f32(dims: &[usize]) -> TensorSpec {
    TensorSpec::new(Datatype::F32, dims)
}

pub fn any_f32() -> TensorSpec {
    TensorSpec::inferred(Datatype::F32)
}

pub fn qint8(dims: &[usize], zero_point: i32, scale: f32) -> TensorSpec {
    TensorSpec::new(Datatype::Qint8, dims).quantized(Quantization::PerTensor { zero_point, scale })
}

pub fn any_qint8(zero_point: i32, scale: f32) -> TensorSpec {
    TensorSpec::inferred(Datatype::Qint8).quantized(Quantization::PerTensor { zero_point, scale })
}

pub fn quint8(dims: &[usize], zero_point: i32, scale: f32) -> TensorSpec {
    TensorSpec::new(Datatype::Quint8, dims).quantized(Quantization::PerTensor { zero_point, scale })
}

/// A convolution of one channel with a kernel of 2 x 2, without padding.
pub fn conv(input: ValueId, filter: ValueId, bias: Option<ValueId>, output: ValueId) -> Conv2d {
    Conv2d {
        padding: Padding2d::default(),
        kernel: [2, 2],
        stride: [1, 1],
        dilation: [1, 1],
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        output_range: OutputRange::default(),
        input,
        filter,
        bias,
        output,
        flags: Flags::NONE,
    }
}

/// A depthwise convolution with a kernel of 3 x 3, without padding.
pub fn depthwise(
    input_channels: usize,
    input: ValueId,
    filter: ValueId,
    bias: Option<ValueId>,
    output: ValueId,
) -> DepthwiseConv2d {
    DepthwiseConv2d {
        padding: Padding2d::default(),
        kernel: [3, 3],
        stride: [1, 1],
        dilation: [1, 1],
        depth_multiplier: 1,
        input_channels,
        output_range: OutputRange::default(),
        input,
        filter,
        bias,
        output,
        flags: Flags::NONE,
    }
}

/// A transposed convolution of one channel with a kernel and stride of 2 x 2, without padding.
pub fn deconv(input: ValueId, filter: ValueId, bias: Option<ValueId>, output: ValueId) -> Deconv2d {
    Deconv2d {
        padding: Padding2d::default(),
        adjustment: [0, 0],
        kernel: [2, 2],
        stride: [2, 2],
        dilation: [1, 1],
        groups: 1,
        group_input_channels: 1,
        group_output_channels: 1,
        output_range: OutputRange::default(),
        input,
        filter,
        bias,
        output,
        flags: Flags::NONE,
    }
}

/// Returns 0, 1, 2, ...
pub fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|index| f32::from(u16::try_from(index).unwrap())).collect()
}
