//! Transposed convolutions of floats.

use crate::fixture::{Fixture, assert_close, deconv, f32};
use xnn_testing::Random;
use xnnpack::{Deconv2d, OutputRange, Padding2d};

/// Channels around whole tiles of 2, 16 and 32 channels.
const OUTPUTS: [usize; 9] = [1, 2, 3, 7, 8, 15, 16, 17, 33];
const INPUTS: [usize; 6] = [1, 2, 3, 4, 5, 17];

/// A layer from `[H, W, inputs]` to `[OH, OW, outputs]` with filters `[outputs, K, K, inputs]`.
pub struct Layer {
    pub size: [usize; 2],
    pub inputs: usize,
    pub outputs: usize,
    pub kernel: usize,
    pub stride: usize,
    pub cut: usize,
}

impl Layer {
    fn output_size(&self) -> [usize; 2] {
        self.size.map(|size| (size - 1) * self.stride + self.kernel - 2 * self.cut)
    }

    pub fn expected(&self, input: &[f32], filter: &[f32], bias: &[f32]) -> Vec<f32> {
        let ([height, width], [rows, columns]) = (self.size, self.output_size());
        let mut output = bias.repeat(rows * columns);
        for y in 0..height * self.kernel {
            for x in 0..width * self.kernel {
                let [(y, ky), (x, kx)] = [y, x].map(|i| (i / self.kernel, i % self.kernel));
                let [row, column] = [y * self.stride + ky, x * self.stride + kx];
                let inside =
                    |at: usize, end: usize| at.checked_sub(self.cut).filter(|&at| at < end);
                let (Some(row), Some(column)) = (inside(row, rows), inside(column, columns)) else {
                    continue;
                };
                let pixel = &input[(y * width + x) * self.inputs..][..self.inputs];
                for o in 0..self.outputs {
                    let at = ((o * self.kernel + ky) * self.kernel + kx) * self.inputs;
                    let products = pixel.iter().zip(&filter[at..]).map(|(a, b)| a * b);
                    output[(row * columns + column) * self.outputs + o] += products.sum::<f32>();
                }
            }
        }
        output
    }

    /// The output of XNNPACK.
    pub fn run(
        &self,
        output_range: OutputRange,
        data: &[f32],
        weights: &[f32],
        biases: &[f32],
    ) -> Vec<f32> {
        let (inputs, outputs, k) = (self.inputs, self.outputs, self.kernel);
        let [height, width] = self.size;
        let mut fixture = Fixture::new();
        let input = fixture.input(f32(&[1, height, width, inputs]), data);
        let filter = fixture.constant(f32(&[outputs, k, k, inputs]), weights);
        let bias = Some(fixture.constant(f32(&[outputs]), biases));
        let [rows, columns] = self.output_size();
        let output = fixture.output(f32(&[1, rows, columns, outputs]));
        let cut = self.cut as u32;
        let node = Deconv2d {
            padding: Padding2d { top: cut, right: cut, bottom: cut, left: cut },
            kernel: [k as u32; 2],
            stride: [self.stride as u32; 2],
            group_input_channels: inputs,
            group_output_channels: outputs,
            output_range,
            ..deconv(input, filter, bias, output)
        };
        fixture.node(node).run()
    }

    fn check(&self, random: &mut Random) {
        let [height, width] = self.size;
        let data = random.f32s(height * width * self.inputs, -1.0, 1.0);
        let weights =
            random.f32s(self.outputs * self.kernel * self.kernel * self.inputs, -1.0, 1.0);
        let biases = random.f32s(self.outputs, -1.0, 1.0);
        let actual = self.run(OutputRange::default(), &data, &weights, &biases);
        // Without fused multiplication and addition, each product of a sum is rounded, too.
        let expected = self.expected(&data, &weights, &biases);
        let largest = expected.iter().fold(1.0, |largest: f32, value| largest.max(value.abs()));
        assert_close(&actual, &expected, 1e-6 * largest.max(10.0));
    }
}

#[test]
fn transposed_convolutions() {
    let random = &mut Random::new(31);
    for (kernel, stride) in [(5, 1), (3, 1), (2, 2), (3, 2)] {
        for outputs in OUTPUTS {
            for inputs in INPUTS {
                let size = [5, 20].map(|most| 3 + random.below(most));
                let cut = random.below(kernel.min(3));
                Layer { size, inputs, outputs, kernel, stride, cut }.check(random);
            }
        }
    }
    // XNNPACK's tile of two channels is faster for more outputs if there are many inputs.
    for outputs in [2, 3, 4] {
        Layer { size: [3, 20], inputs: 64, outputs, kernel: 2, stride: 2, cut: 0 }.check(random);
    }
}
