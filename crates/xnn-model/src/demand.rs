//! Multiply-accumulates, work and memory of operators, by the shapes of their tensors.

use smallvec::SmallVec;
use xnn_file::{Amplification, Demand, peak_bytes, saturating_elements as elements};

use crate::error::Error;
use crate::graph::{Operator, Subgraph};
use crate::op::{Op, Pool2dOptions};
use crate::types::TensorId;

/// A shape; `None` if unknown.
pub type Shape<'a> = Option<&'a [usize]>;

/// Multiply-accumulates of an operator; 0 for operators without a product of matrices or filters
/// and for unknown shapes. Saturates.
#[must_use]
pub fn macs(op: &Op, inputs: &[Shape<'_>], outputs: &[Shape<'_>]) -> u64 {
    let Some(&Some(output)) = outputs.first() else { return 0 };
    let input = |position: usize| inputs.get(position).copied().flatten();
    let macs = match op {
        Op::Conv2d(_) | Op::Conv3d(_) | Op::DepthwiseConv2d(_) | Op::FullyConnected(_) => {
            input(1).map(|filter| per_channel(output, filter))
        }
        Op::TransposeConv(_) | Op::Conv3dTranspose(_) => {
            input(1).zip(input(2)).map(|(filter, image)| per_channel(image, filter))
        }
        Op::BatchMatMul(options) => input(0).and_then(|rows| {
            let depth = rows.len().checked_sub(if options.adj_x { 2 } else { 1 })?;
            Some(elements(output).saturating_mul(*rows.get(depth)? as u64))
        }),
        _ => None,
    };
    macs.unwrap_or(0)
}

/// Elements of an image times the weights per channel.
fn per_channel(image: &[usize], filter: &[usize]) -> u64 {
    let channels = image.last().map_or(1, |&channels| channels as u64);
    elements(image).saturating_mul(elements(filter).checked_div(channels).unwrap_or(0))
}

/// Outputs of a convolution that kernels compute at once, 8 to 32; fewer take as long.
const CHANNELS_AT_ONCE: u64 = 16;

/// Work of an operator: its multiply-accumulates, where a convolution has at least 16 outputs, or the
/// number of element reads and writes if that is larger. Unknown shapes count as 0. Saturates.
#[must_use]
pub fn work(op: &Op, inputs: &[Shape<'_>], outputs: &[Shape<'_>]) -> u64 {
    let all = |shapes: &[Shape<'_>]| {
        shapes.iter().flatten().map(|shape| elements(shape)).fold(0, u64::saturating_add)
    };
    let (read, written) = (all(inputs), all(outputs));
    let first = inputs.first().copied().flatten();
    let element_reads = match op {
        Op::Conv2d(_) | Op::Conv3d(_) => {
            let channels = outputs.first().copied().flatten().and_then(<[usize]>::last);
            let channels = channels.map_or(1, |&channels| channels.max(1) as u64);
            let products = macs(op, inputs, outputs).saturating_mul(CHANNELS_AT_ONCE);
            products / channels
        }
        Op::AveragePool2d(pool) | Op::L2Pool2d(pool) | Op::MaxPool2d(pool) => {
            written.saturating_mul(window(pool))
        }
        Op::LocalResponseNormalization(options) => {
            let radius = u64::try_from(options.radius).unwrap_or(0);
            written.saturating_mul(radius.saturating_mul(2).saturating_add(1))
        }
        // Each row is multiplied by all weights and the state.
        Op::BidirectionalSequenceLstm(_)
        | Op::BidirectionalSequenceRnn(_)
        | Op::Gru(_)
        | Op::Lstm(_)
        | Op::Rnn(_)
        | Op::Svdf(_)
        | Op::UnidirectionalSequenceLstm(_)
        | Op::UnidirectionalSequenceRnn(_) => {
            let input = first.unwrap_or(&[]);
            let rows = input.split_last().map_or(1, |(_, rows)| elements(rows));
            rows.saturating_mul(read.saturating_sub(elements(input)))
        }
        // Each box may be compared with all selected boxes, or with all boxes if their number is
        // unknown.
        Op::NonMaxSuppressionV4 | Op::NonMaxSuppressionV5 => {
            let boxes = first.and_then(|boxes| boxes.first()).map_or(0, |&boxes| boxes as u64);
            let chosen = outputs.first().copied().flatten().map_or(boxes, elements);
            boxes.saturating_mul(chosen.min(boxes))
        }
        Op::Custom(custom) => match (custom.code.as_str(), inputs, outputs) {
            ("Convolution2DTransposeBias", &[Some(image), Some(filter), ..], _) => {
                per_channel(image, filter)
            }
            // All scores, times the number of selected boxes.
            ("TFLite_Detection_PostProcess", &[_, Some(scores), ..], &[Some(chosen), ..]) => {
                elements(scores).saturating_mul(elements(chosen))
            }
            _ => 0,
        },
        _ => 0,
    };
    macs(op, inputs, outputs).max(element_reads).max(read).max(written)
}

/// Size in bytes of the indirection pointers that an engine may need for the windows of an
/// operator: one per element of the window and pixel of the result.
fn pointers(op: &Op, inputs: &[Shape<'_>], outputs: &[Shape<'_>]) -> u64 {
    let window = match op {
        Op::AveragePool2d(pool) | Op::L2Pool2d(pool) | Op::MaxPool2d(pool) => window(pool),
        Op::Conv2d(_) | Op::DepthwiseConv2d(_) | Op::TransposeConv(_) => {
            match inputs.get(1).copied().flatten() {
                Some(&[_, height, width, _]) => (height as u64).saturating_mul(width as u64),
                _ => 0,
            }
        }
        _ => 0,
    };
    match outputs.first().copied().flatten() {
        Some(&[_, height, width, _]) if window > 1 => [height, width]
            .iter()
            .fold(8 * window.min(u64::MAX / 8), |n, &dim| n.saturating_mul(dim as u64)),
        _ => 0,
    }
}

fn window(pool: &Pool2dOptions) -> u64 {
    let side = |side: i32| u64::try_from(side).unwrap_or(0);
    side(pool.filter_height).saturating_mul(side(pool.filter_width))
}

impl Subgraph {
    /// Approximate size of the subgraph in a file, in bytes: see [`xnn_file::stored_bytes`].
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        let constants = self.tensors.iter().filter_map(|tensor| tensor.data.as_deref());
        xnn_file::stored_bytes(self.tensors.len() + self.operators.len(), constants)
    }

    /// Memory and work of one run, without called subgraphs. Unknown shapes count as 0.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let variables = self.tensors.iter().enumerate().filter(|(_, tensor)| tensor.is_variable);
        let ends = self.inputs.iter().chain(&self.outputs).copied();
        let kept: Vec<TensorId> = variables.map(|(id, _)| id).chain(ends).collect();
        let steps = self.operators.iter().map(|operator| {
            let inputs = operator.inputs.iter().flatten().copied().collect();
            [inputs, SmallVec::from_slice(&operator.outputs)]
        });
        let steps: Vec<[SmallVec<[TensorId; 4]>; 2]> = steps.collect();
        let size = |id| if self.is_constant(id) { 0 } else { self.bytes_of(id) };
        let sizes: Vec<u64> = (0..self.tensors.len()).map(size).collect();
        let bytes = peak_bytes(&steps, &kept, &sizes);
        let each = self.operators.iter().map(|operator| self.demand_of(operator));
        each.fold(Demand { bytes, work: 0 }, Demand::and)
    }

    fn is_constant(&self, id: TensorId) -> bool {
        self.tensors.get(id).is_some_and(|tensor| tensor.is_constant() && !tensor.is_variable)
    }

    /// Multiply-accumulates of an operator of this subgraph: see [`macs`].
    #[must_use]
    pub fn macs_of(&self, operator: &Operator) -> u64 {
        let [inputs, outputs] = self.shapes_of(operator);
        macs(&operator.op, &inputs, &outputs)
    }

    /// Shapes of an operator's inputs and outputs.
    fn shapes_of(&self, operator: &Operator) -> [SmallVec<[Shape<'_>; 4]>; 2] {
        let shape = |id: TensorId| self.tensors.get(id)?.shape.as_deref();
        let inputs = operator.inputs.iter().map(|&id| id.and_then(shape)).collect();
        [inputs, operator.outputs.iter().map(|&id| shape(id)).collect()]
    }

    /// Memory and work of an operator, without tensors that are not constant.
    fn demand_of(&self, operator: &Operator) -> Demand {
        let [inputs, outputs] = self.shapes_of(operator);
        let constants = operator.inputs.iter().flatten().filter(|&&id| self.is_constant(id));
        let bytes = constants.map(|&id| self.bytes_of(id)).fold(0, u64::saturating_add);
        Demand {
            bytes: bytes.saturating_add(pointers(&operator.op, &inputs, &outputs)),
            work: work(&operator.op, &inputs, &outputs),
        }
    }

    /// Size of a tensor in bytes; 0 for unknown shapes and types without a fixed size.
    fn bytes_of(&self, id: TensorId) -> u64 {
        let Some(tensor) = self.tensors.get(id) else { return 0 };
        let (Some(shape), Some(bits)) = (tensor.shape.as_deref(), tensor.dtype.bits()) else {
            return 0;
        };
        elements(shape).saturating_mul(bits as u64).div_ceil(8)
    }

    /// Checks that a run does not request more than is allowed for the size of the subgraph.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) if memory or work exceeds its limit.
    pub fn check_demand(&self, allowed: &Amplification) -> Result<(), Error> {
        Ok(allowed.check(self.stored_bytes(), self.demand())?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::graph::Tensor;
    use crate::op::{BatchMatMulOptions, LocalResponseNormalizationOptions};
    use crate::types::DType;

    #[test]
    fn layers_have_multiply_accumulates() {
        let conv = Op::from_code(3).unwrap();
        let shapes: [Shape<'_>; 2] = [Some(&[1, 8, 8, 3]), Some(&[5, 3, 3, 3])];
        assert_eq!(macs(&conv, &shapes, &[Some(&[1, 8, 8, 5])]), 8 * 8 * 5 * 27);
        assert_eq!(macs(&conv, &shapes, &[None]), 0);
        assert_eq!(macs(&conv, &[], &[Some(&[1])]), 0);
        let matmul = |adj_x| {
            let op = Op::BatchMatMul(BatchMatMulOptions { adj_x, ..Default::default() });
            macs(&op, &[Some(&[2, 4, 3]), None], &[Some(&[2, 4, 6])])
        };
        assert_eq!((matmul(false), matmul(true)), (48 * 3, 48 * 4));
        let huge: [Shape<'_>; 2] = [Some(&[usize::MAX]), Some(&[usize::MAX, 9])];
        assert_eq!(macs(&Op::from_code(9).unwrap(), &huge, &[Some(&[usize::MAX, 9])]), u64::MAX);
    }

    #[test]
    fn convolutions_have_at_least_sixteen_outputs() {
        let conv = |outputs: usize| {
            let filter = [outputs, 3, 3, 4];
            let output = [1, 100, 100, outputs];
            let inputs = [Some([1, 100, 100, 4].as_slice()), Some(filter.as_slice())];
            work(&Op::from_code(3).unwrap(), &inputs, &[Some(&output)])
        };
        assert_eq!([1, 2, 15, 16].map(conv), [100 * 100 * 36 * 16; 4]);
        assert_eq!(conv(17), 100 * 100 * 36 * 17);
        assert_eq!(conv(0), 100 * 100 * 4, "reads of the input");
        let filter: Shape<'_> = Some(&[186, 2, 2, 2, 2]);
        let image: Shape<'_> = Some(&[3, 40, 600, 600, 2]);
        let conv_3d = work(&Op::from_code(132).unwrap(), &[image, filter], &[image]);
        assert_eq!(conv_3d, 3 * 40 * 600 * 600 * 186 * 8 * 16);
    }

    #[test]
    fn windows_count_for_each_pixel() {
        let pool = Pool2dOptions { filter_height: 3, filter_width: 5, ..Default::default() };
        let (image, result): (Shape<'_>, Shape<'_>) = (Some(&[1, 9, 9, 2]), Some(&[1, 7, 5, 2]));
        assert_eq!(work(&Op::MaxPool2d(pool.clone()), &[image], &[result]), 70 * 15);
        assert_eq!(pointers(&Op::MaxPool2d(pool), &[image], &[result]), 35 * 15 * 8);
        let options = LocalResponseNormalizationOptions { radius: 2, ..Default::default() };
        assert_eq!(work(&Op::LocalResponseNormalization(options), &[image], &[image]), 162 * 5);
        assert_eq!(work(&Op::Abs, &[image], &[image]), 162);
        // Empty shapes.
        assert_eq!(work(&Op::Abs, &[Some(&[0, usize::MAX, 2])], &[None]), 0);
    }

    #[test]
    fn boxes_are_compared_with_selected_boxes() {
        let boxes: Shape<'_> = Some(&[1000, 4]);
        let suppress = |outputs: &[Shape<'_>]| work(&Op::NonMaxSuppressionV4, &[boxes], outputs);
        assert_eq!(suppress(&[Some(&[10])]), 10_000);
        assert_eq!(suppress(&[None]), 1_000_000);
    }

    #[test]
    fn demand_counts_constants_per_operator_and_size_once() {
        let mut tensors = vec![Tensor::new("", DType::F32, &[1, 100]); 4];
        tensors[1].data = Some(vec![0; 400].into());
        let operator = |inputs: [TensorId; 2], output| Operator {
            op: Op::Maximum,
            version: 1,
            inputs: inputs.map(Some).to_vec(),
            outputs: vec![output],
            intermediates: vec![],
        };
        let operators = vec![operator([0, 1], 2), operator([2, 1], 3)];
        let graph = Subgraph {
            tensors,
            operators,
            inputs: vec![0],
            outputs: vec![3],
            ..Subgraph::default()
        };
        // Input, results, and the constant once per operator.
        assert_eq!(graph.demand(), Demand { bytes: 5 * 400, work: 2 * 200 });
        assert_eq!(graph.stored_bytes(), 400 + 6 * xnn_file::RECORD_BYTES);
        let mut bounds = Amplification::default();
        assert!(graph.check_demand(&bounds).is_ok());
        (bounds.free_bytes, bounds.bytes_per_byte) = (1999, 0);
        let error = graph.check_demand(&bounds).unwrap_err().to_string();
        assert!(error.contains("is 2000, above the limit of 1999"), "{error}");
        (bounds.inputs, bounds.bytes_per_byte) = (1, 2000);
        assert!(graph.check_demand(&bounds).is_ok());
    }
}
