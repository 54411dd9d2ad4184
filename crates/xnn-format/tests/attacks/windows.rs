//! Windows over images: adjustments, paddings and indirection pointers.

use xnn_format::{Conv2d, Graph, GraphLimits, NodeOp, Padding2d, Pooling2d, Size2d, flags};

use super::refused;
use crate::common::{Builder, conv2d, every_node, one_to_one};

#[test]
fn adjustments_and_windows() {
    for graph in every_node(1) {
        let change = |change: &dyn Fn(&mut NodeOp)| {
            let mut graph = graph.clone();
            change(&mut graph.nodes[0].op);
            graph
        };
        match &graph.nodes[0].op {
            NodeOp::ConvTranspose2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.adjustment.width = 2;
                });
                refused(&graph, "the adjustment is not smaller than the stride");
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.padding = Padding2d { top: 1000, ..Padding2d::default() };
                });
                refused(&graph, "beyond the reach");
                let graph = change(&|op| {
                    let NodeOp::ConvTranspose2d(conv) = op else { unreachable!() };
                    conv.kernel.height = 4000;
                    conv.padding = Padding2d { top: 3000, ..Padding2d::default() };
                });
                refused(&graph, "the filter is");
            }
            NodeOp::DepthwiseConv2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::DepthwiseConv2d(conv) = op else { unreachable!() };
                    conv.group_input_channels = 0;
                });
                refused(&graph, "0 input channels per group instead of 1");
            }
            NodeOp::AveragePooling2d(_) => {
                let graph = change(&|op| {
                    let NodeOp::AveragePooling2d(window) = op else { unreachable!() };
                    window.stride.height = 0;
                });
                refused(&graph, "the stride is 0 x 2");
            }
            NodeOp::ArgMaxPooling2d { .. } => {
                let graph = change(&|op| {
                    let NodeOp::ArgMaxPooling2d { window, .. } = op else { unreachable!() };
                    window.stride.height = 1;
                });
                refused(&graph, "the stride must equal the window");
            }
            _ => {}
        }
    }
}

/// A window as large as a small image, at each pixel.
fn wide_window(
    side: usize,
    kernel: u32,
    op: impl FnOnce(Pooling2d, &mut Builder) -> NodeOp,
) -> Graph {
    let mut b = Builder::new(0);
    let (input, output) = (b.input(&[1, side, side, 1]), b.output(&[1, side, side, 1]));
    let window = Pooling2d {
        padding: Padding2d::default(),
        kernel: Size2d { height: kernel, width: kernel },
        stride: Size2d::ONE,
        dilation: Size2d::ONE,
        input,
        output,
    };
    let op = op(window, &mut b);
    b.node(op).flags = flags::TENSORFLOW_SAME_PADDING;
    b.graph
}

/// 900 weights at each pixel.
fn wide_filter(
    op: impl FnOnce(Conv2d) -> NodeOp,
) -> impl FnOnce(Pooling2d, &mut Builder) -> NodeOp {
    |window, b| {
        let filter = b.weights(&[1, 30, 30, 1]);
        let conv = conv2d(1, 1, 1, [window.input, filter, window.output], None);
        let Pooling2d { kernel, stride, dilation, padding, .. } = window;
        op(Conv2d { kernel, stride, dilation, padding, ..conv })
    }
}

#[test]
fn indirection_pointers_have_the_limit_of_values() {
    let mut larger = wide_window(10, 30, wide_filter(NodeOp::ConvTranspose2d));
    larger.nodes[0].flags = 0;
    let resized = one_to_one(0, &[1, 2, 3, 1], &[1, 150, 150, 1], |input, output| {
        NodeOp::StaticResizeBilinear2d { new_height: 150, new_width: 150, input, output }
    });
    let mut b = Builder::new(0);
    b.arg_max_and_back([2, 5, 5, 1], Size2d { height: 4, width: 5 });

    let cases = [
        (wide_window(10, 30, |window, _| NodeOp::AveragePooling2d(window)), 900 * 10 * 10),
        (wide_window(10, 30, |window, _| NodeOp::MaxPooling2d(window)), 900 * 10 * 10),
        (wide_window(10, 30, wide_filter(NodeOp::Conv2d)), 900 * 10 * 10),
        (wide_window(10, 30, wide_filter(NodeOp::DepthwiseConv2d)), 900 * 10 * 10),
        (larger, 900 * 39 * 39),
        (resized, 4 * 150 * 150),
        (b.graph, 20 * 2 * 5 * 5),
    ];
    for (graph, pointers) in cases {
        let mut limits = GraphLimits::default();
        limits.max_value_bytes = 8 * pointers;
        graph.check_with(&limits).unwrap();
        limits.max_value_bytes -= 1;
        let error = graph.check_with(&limits).unwrap_err().to_string();
        let expected = format!("pointers into the image is {}, above the limit", 8 * pointers);
        assert!(error.contains(&expected), "{error}");
    }
    let huge = wide_window(10, 1 << 23, |window, _| NodeOp::MaxPooling2d(window));
    refused(&huge, "pointers into the image is");
}

/// A dilated window of 3 covers 7 pixels: with 6 pixels of padding, it still covers one of the
/// image.
#[test]
fn paddings_beyond_the_reach_of_windows() {
    type Put = fn(Pooling2d, &mut Builder) -> NodeOp;
    let convolution: Put = |window, b| {
        let filter = b.weights(&[1, 3, 3, 1]);
        let conv = conv2d(1, 1, 1, [window.input, filter, window.output], None);
        let Pooling2d { kernel, stride, dilation, padding, .. } = window;
        NodeOp::Conv2d(Conv2d { kernel, stride, dilation, padding, ..conv })
    };
    let maximum: Put = |window, _| NodeOp::MaxPooling2d(window);
    for op in [convolution, maximum] {
        for side in 0..4 {
            let graph = |pixels: u32| {
                let mut b = Builder::new(0);
                let sides: [u32; 4] = std::array::from_fn(|at| if at == side { pixels } else { 0 });
                let [top, right, bottom, left] = sides;
                let result = |before, after| 9 + (before + after) as usize - 6;
                let input = b.input(&[1, 9, 9, 1]);
                let output = b.output(&[1, result(top, bottom), result(left, right), 1]);
                let window = Pooling2d {
                    padding: Padding2d { top, right, bottom, left },
                    kernel: Size2d { height: 3, width: 3 },
                    stride: Size2d::ONE,
                    dilation: Size2d { height: 3, width: 3 },
                    input,
                    output,
                };
                let op = op(window, &mut b);
                b.node(op);
                b.graph
            };
            graph(9).check().unwrap();
            refused(&graph(10), "is beyond the reach of a window of 3 x 3");
            refused(&graph(6_619_138), "is beyond the reach");
        }
    }
}
