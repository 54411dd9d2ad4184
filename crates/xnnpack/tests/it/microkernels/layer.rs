//! A convolution, depthwise convolution or fully connected layer: naive loops, and its runtime.

use std::fmt::Debug;
use std::sync::Arc;

use crate::fixture::{Fixture, f32};
use xnnpack::{
    AlignedBuffer, Binding, Conv2d, Datatype, DepthwiseConv2d, Element, ExternalId, Flags,
    FullyConnected, OutputRange, OutputSlice, Padding2d, Runtime, RuntimeOptions, TensorSpec,
    ThreadPool, Unary, UnaryOp,
};

/// Number of bytes around an output that must not be written to.
const GUARD: usize = 64;
const UNTOUCHED: u8 = 0xA5;
const INPUT: ExternalId = ExternalId(0);
const OUTPUT: ExternalId = ExternalId(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Filters `[1, height, width, outputs]`; one group per input channel.
    Depthwise,
    /// Filters `[outputs, height, width, inputs of a group]`.
    Convolution,
    /// Filters `[outputs, inputs]`; batches are rows.
    FullyConnected,
    /// Fully connected with filters `[inputs, outputs]`.
    Transposed,
}

/// Shapes of a layer. Pairs are height and width.
#[derive(Clone, Debug)]
pub struct Layer {
    pub form: Form,
    /// Batches that one runtime is run with, in this order.
    pub batches: [usize; 2],
    pub size: [usize; 2],
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// Padding before and after, along height and width.
    pub padding: [[usize; 2]; 2],
    pub groups: usize,
    pub group_inputs: usize,
    pub group_outputs: usize,
    pub threads: usize,
    /// Flags of a fully connected layer, beside that of its form.
    pub flags: Flags,
}

/// Types of a layer's tensors.
pub struct Types {
    pub input: TensorSpec,
    pub filter: TensorSpec,
    pub bias: TensorSpec,
    pub output: TensorSpec,
    pub output_range: OutputRange,
}

impl Layer {
    pub fn dense(form: Form, inputs: usize, outputs: usize) -> Self {
        Self {
            form,
            batches: [1; 2],
            size: [1; 2],
            kernel: [1; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding: [[0; 2]; 2],
            groups: 1,
            group_inputs: inputs,
            group_outputs: outputs,
            threads: 1,
            flags: Flags::NONE,
        }
    }

    /// Whether it runs on a depthwise microkernel.
    pub fn is_depthwise(&self) -> bool {
        matches!(self.form, Form::Depthwise | Form::Convolution) && self.group_inputs == 1
    }

    pub fn images(&self) -> usize {
        self.batches[0].max(self.batches[1])
    }

    pub fn inputs(&self) -> usize {
        self.groups * self.group_inputs
    }

    pub fn outputs(&self) -> usize {
        self.groups * self.group_outputs
    }

    /// Number of products per output.
    pub fn depth(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.group_inputs
    }

    /// Whether a weight connects input and output channels of the same of `parts` parts of a group, as all weights other than 0 of
    /// merged groups do.
    pub fn connects_part(&self, weight: usize, parts: usize) -> bool {
        let (input, output) = (weight % self.group_inputs, weight / self.depth());
        let output = output % self.group_outputs;
        input * parts / self.group_inputs == output * parts / self.group_outputs
    }

    /// Number of input elements with the largest batch.
    pub fn input_elements(&self) -> usize {
        self.images() * self.size[0] * self.size[1] * self.inputs()
    }

    /// Number of elements that the dilated kernel spans.
    pub fn reach(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    pub fn output_size(&self) -> [usize; 2] {
        [0, 1].map(|axis| {
            let padded = self.size[axis] + self.padding[axis][0] + self.padding[axis][1];
            (padded - self.reach(axis)) / self.stride[axis] + 1
        })
    }

    /// Position of an output's input along an axis; `None` in the padding.
    fn input_at(&self, axis: usize, output: usize, kernel: usize) -> Option<usize> {
        (output * self.stride[axis] + kernel * self.dilation[axis])
            .checked_sub(self.padding[axis][0])
            .filter(|&at| at < self.size[axis])
    }

    /// Adds to each bias the products of inputs and weights, which `add` gets by position, going
    /// through the kernel column by column.
    pub fn sums<S: Copy>(&self, bias: &[S], add: impl Fn(S, usize, usize) -> S) -> Vec<S> {
        let [height, width] = self.size;
        let [output_height, output_width] = self.output_size();
        let [kernel_height, kernel_width] = self.kernel;
        let mut sums = Vec::new();
        for image in 0..self.images() {
            for (y, x) in pairs(output_height, output_width) {
                for (output, &bias) in bias.iter().enumerate() {
                    let group = output / self.group_outputs;
                    let mut sum = bias;
                    for (kernel_x, kernel_y) in pairs(kernel_width, kernel_height) {
                        let at = self.input_at(0, y, kernel_y).zip(self.input_at(1, x, kernel_x));
                        let Some((row, column)) = at else { continue };
                        let pixel = (image * height + row) * width + column;
                        let input = pixel * self.inputs() + group * self.group_inputs;
                        let place = kernel_y * kernel_width + kernel_x;
                        let weight = if self.form == Form::Depthwise {
                            place * self.outputs() + output
                        } else {
                            output * self.depth() + place * self.group_inputs
                        };
                        for channel in 0..self.group_inputs {
                            sum = add(sum, input + channel, weight + channel);
                        }
                    }
                    sums.push(sum);
                }
            }
        }
        sums
    }

    fn input_dims(&self, batch: usize) -> Vec<usize> {
        match self.form {
            Form::FullyConnected | Form::Transposed => vec![batch, self.group_inputs],
            _ => vec![batch, self.size[0], self.size[1], self.inputs()],
        }
    }

    fn filter_dims(&self) -> Vec<usize> {
        let [height, width] = self.kernel;
        match self.form {
            Form::Depthwise => vec![1, height, width, self.outputs()],
            Form::Convolution => vec![self.outputs(), height, width, self.group_inputs],
            Form::FullyConnected => vec![self.group_outputs, self.group_inputs],
            Form::Transposed => vec![self.group_inputs, self.group_outputs],
        }
    }

    /// Dimension of the filter's output channels.
    pub fn filter_axis(&self) -> usize {
        match self.form {
            Form::Depthwise => 3,
            Form::Convolution | Form::FullyConnected => 0,
            Form::Transposed => 1,
        }
    }

    /// The flag that chooses microkernels of fully connected layers for many rows.
    fn many_rows(&self, filter: Datatype) -> Flags {
        let is_of_bytes = matches!(filter, Datatype::Qint8 | Datatype::Qcint8 | Datatype::Quint8);
        if is_of_bytes && self.images() > 8 { Flags::MANY_ROWS } else { Flags::NONE }
    }

    fn runtime<I: Element, F: Element, B: Element>(
        &self,
        types: Types,
        filter: &[F],
        bias: &[B],
    ) -> Runtime {
        let Types { input, filter: filter_type, bias: bias_type, output, output_range } = types;
        let shaped = |spec: TensorSpec, dims: Vec<usize>| TensorSpec { dims: Some(dims), ..spec };
        let mut fixture = Fixture::new();
        let dims = self.input_dims(self.batches[0]);
        let input = if input.datatype == Datatype::Qdint8 {
            let floats = fixture.input::<I>(f32(&dims), &[]);
            let quantized = fixture.internal(input);
            let convert = Unary { op: UnaryOp::Convert, input: floats, output: quantized };
            fixture.graph.define(convert).unwrap();
            quantized
        } else {
            fixture.input::<I>(shaped(input, dims), &[])
        };
        let many_rows = self.many_rows(filter_type.datatype);
        let filter_type = shaped(filter_type, self.filter_dims());
        let filter = match self.form {
            Form::Transposed => fixture.constant(filter_type, &transposed(filter, self.depth())),
            _ => fixture.constant(filter_type, filter),
        };
        let bias = Some(fixture.constant(shaped(bias_type, vec![self.outputs()]), bias));
        let output = fixture.output(output);
        let flags = Flags::NONE;
        let [kernel, stride, dilation] =
            [self.kernel, self.stride, self.dilation].map(|pair| pair.map(narrow));
        let [[top, bottom], [left, right]] = self.padding.map(|sides| sides.map(narrow));
        let padding = Padding2d { top, right, bottom, left };
        let (groups, group_output_channels) = (narrow(self.groups), self.group_outputs);
        let fixture = match self.form {
            Form::Depthwise => fixture.node(DepthwiseConv2d {
                padding,
                kernel,
                stride,
                dilation,
                depth_multiplier: narrow(self.group_outputs),
                input_channels: self.groups,
                output_range,
                input,
                filter,
                bias,
                output,
                flags,
            }),
            Form::Convolution => fixture.node(Conv2d {
                padding,
                kernel,
                stride,
                dilation,
                groups,
                group_input_channels: self.group_inputs,
                group_output_channels,
                output_range,
                input,
                filter,
                bias,
                output,
                flags,
            }),
            Form::FullyConnected => {
                let flags = self.flags | many_rows;
                fixture.node(FullyConnected { output_range, input, filter, bias, output, flags })
            }
            Form::Transposed => {
                let flags = Flags::TRANSPOSE_WEIGHTS | self.flags | many_rows;
                fixture.node(FullyConnected { output_range, input, filter, bias, output, flags })
            }
        };
        let pool = (self.threads > 1).then(|| Arc::new(ThreadPool::new(self.threads).unwrap()));
        let options = RuntimeOptions { threadpool: pool, ..RuntimeOptions::default() };
        Runtime::new(fixture.graph, &options).unwrap()
    }

    /// Outputs of runs with each of the batches, and with the first one again.
    pub fn run<I: Element, F: Element, B: Element>(
        &self,
        types: Types,
        input: &[I],
        filter: &[F],
        bias: &[B],
    ) -> Vec<Vec<I>> {
        let mut runtime = self.runtime::<I, F, B>(types, filter, bias);
        let run_batch = |batch| {
            runtime.reshape_external(INPUT, &self.input_dims(batch)).unwrap();
            runtime.reshape().unwrap();
            run_guarded(&mut runtime, &input[..input.len() / self.images() * batch], self)
        };
        let [first, second] = self.batches;
        [first, second, first].into_iter().map(run_batch).collect()
    }
}

/// Runs a runtime with one input. Asserts that nothing around the output is written to.
#[track_caller]
pub fn run_guarded<I: Element, O: Element>(
    runtime: &mut Runtime,
    input: &[I],
    layer: &impl Debug,
) -> Vec<O> {
    let input = AlignedBuffer::of(input);
    let bytes = runtime.external(OUTPUT).unwrap().bytes;
    let mut memory = AlignedBuffer::new(GUARD + bytes + GUARD);
    memory.as_mut_slice().fill(UNTOUCHED);
    let output = OutputSlice::within(memory.as_mut_slice(), GUARD..GUARD + bytes).unwrap();
    let bindings = &mut [Binding::Input(INPUT, input.input()), Binding::Output(OUTPUT, output)];
    runtime.run(bindings).unwrap();
    let (front, rest) = memory.as_slice().split_at(GUARD);
    for guard in [front, &rest[bytes..]] {
        assert!(
            guard.iter().all(|&byte| byte == UNTOUCHED),
            "written outside of the output: {layer:?}"
        );
    }
    let guard = GUARD / size_of::<O>();
    let elements = memory.elements::<O>().unwrap();
    elements[guard..elements.len() - guard].to_vec()
}

/// Transposes a matrix with rows of `length` elements.
pub fn transposed<T: Copy>(matrix: &[T], length: usize) -> Vec<T> {
    (0..length).flat_map(|column| matrix[column..].iter().step_by(length).copied()).collect()
}

fn narrow(size: usize) -> u32 {
    u32::try_from(size).unwrap()
}

fn pairs(outer: usize, inner: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |first| (0..inner).map(move |second| (first, second)))
}
