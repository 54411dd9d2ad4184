"""The operators, shapes and types of `cargo xtask sweep`: the sizes that layers of vision and text models have.

A case is a name and a function that draws the values of an op_case.Case. The first case of an operator is its smallest: it
stands for the operator where there is little time.
"""

from typing import NamedTuple

import numpy as np

from op_case import PADDINGS, Bias, Case, Draw, OutputRange, Weights, int32
from op_families import ALL, DEQUANTIZE, FLOAT, INT8, POSITIVE, QUANTIZE
from op_moves import moves

# Types of layers with weights. "fp16": fp16 weights of an fp32 layer; "int4": those of "dynamic" with four bits.
LAYER = (*ALL, "fp16", "dynamic")

SMALL, MEDIUM, LARGE = (1, 8, 8, 48), (1, 56, 56, 32), (1, 112, 112, 80)
TWO = {"small": SMALL, "medium": MEDIUM}
THREE = TWO | {"large": LARGE}


class Swept(NamedTuple):
    """An operator's cases by name, and the types that each of them takes: names in op_schemes.SCHEMES, "fp16" or "int4"."""

    types: tuple
    cases: dict


class Usual(Draw):
    """Draws values, but no rare choices: every model is what a converter usually makes."""

    def chance(self, probability):
        return False


def named(shape):
    return "x".join(map(str, shape))


def weights(d, shape, axis, fan_in):
    return Weights((d.normal(shape) / np.sqrt(fan_in)).astype(np.float32), axis)


def strided(stride, dilation=1):
    options = {"strideH": stride, "strideW": stride, "padding": PADDINGS["SAME"]}
    return options | ({"dilationHFactor": dilation, "dilationWFactor": dilation} if dilation > 1 else {})


def sides(size):
    """Height and width of a size that is one number for squares."""
    return size if isinstance(size, tuple) else (size, size)


def changes(stride, dilation):
    return (f" s{stride}" if stride > 1 else "") + (f" dilated {dilation}" if dilation > 1 else "")


def conv(size, channels, out, kernel, stride=1, dilation=1, groups=1):
    image, window = sides(size), sides(kernel)
    inputs = channels // groups

    def draw(d):
        filters = weights(d, (out, *window, inputs), 0, window[0] * window[1] * inputs)
        of_image = d.activation((1, *image, channels), (-2.0, 2.0))
        return Case((of_image, filters, Bias(d.normal(out))), ("Conv2DOptions", strided(stride, dilation)))

    grouped = f" in {groups} groups" if groups > 1 else ""
    return f"{named(window)}{changes(stride, dilation)} {named((*image, channels))} to {out}{grouped}", draw


def depthwise(size, channels, kernel, stride=1, dilation=1, multiplier=1):
    image, window = sides(size), sides(kernel)
    out = channels * multiplier

    def draw(d):
        filters = weights(d, (1, *window, out), 3, window[0] * window[1])
        of_image = d.activation((1, *image, channels), (-2.0, 2.0))
        options = strided(stride, dilation) | {"depthMultiplier": multiplier}
        return Case((of_image, filters, Bias(d.normal(out))), ("DepthwiseConv2DOptions", options))

    multiplied = f" to {out}" if multiplier > 1 else ""
    return f"{named(window)}{changes(stride, dilation)} {named((*image, channels))}{multiplied}", draw


def transposed(size, channels, out, kernel, stride=2):
    def draw(d):
        filters = weights(d, (out, kernel, kernel, channels), 0, kernel * kernel * channels)
        image = d.activation((1, size, size, channels), (-2.0, 2.0))
        output = int32([1, size * stride, size * stride, out])
        return Case((output, filters, image, Bias(d.normal(out))), ("TransposeConvOptions", strided(stride)))

    return f"{kernel}x{kernel} s{stride} {named((size, size, channels))} to {out}", draw


def dense(rows, depth, out):
    def draw(d):
        rows_of = d.activation((rows, depth), (-2.0, 2.0))
        inputs = (rows_of, weights(d, (out, depth), 0, depth), Bias(d.normal(out)))
        return Case(inputs, ("FullyConnectedOptions", {}))

    return f"{rows} x {depth} to {out}", draw


def product(batch, rows, depth, columns, transposed_right=False):
    def draw(d):
        right = (columns, depth) if transposed_right else (depth, columns)
        inputs = [d.activation((batch, *shape), (-2.0, 2.0)) for shape in ((rows, depth), right)]
        return Case(tuple(inputs), ("BatchMatMulOptions", {"adjX": False, "adjY": transposed_right}))

    return f"{batch} of {rows}x{depth} by {columns}{' transposed' if transposed_right else ''}", draw


def unary(shapes, options=None, span=(-4.0, 4.0), output=OutputRange.CALIBRATED):
    def case(shape):
        return lambda d: Case((d.activation(shape, span),), options, output)

    return {name: case(shape) for name, shape in shapes.items()}


def binary(shapes, options, output=OutputRange.CALIBRATED, second=(-2.0, 2.0), channel=False):
    """Two computed operands; with `channel` also one by a constant for each channel."""

    def case(shape):
        return lambda d: Case((d.activation(shape, (-2.0, 2.0)), d.activation(shape, second)), (options, {}), output)

    def by_channel(d):
        factors = d.activation(MEDIUM[-1:], second, constant=True)
        return Case((d.activation(MEDIUM, (-2.0, 2.0)), factors), (options, {}), output)

    cases = {name: case(shape) for name, shape in shapes.items()}
    return cases | ({"medium by channel": by_channel} if channel else {})


def prelu(shape):
    slopes = (1, 1, shape[3])
    return lambda d: Case((d.activation(shape, (-2.0, 2.0)), d.activation(slopes, (-0.4, 0.9), constant=True)))


def pool(size, channels, kernel, stride):
    def draw(d):
        options = strided(stride) | {"filterHeight": kernel, "filterWidth": kernel}
        if kernel == size:
            options["padding"] = PADDINGS["VALID"]
        return Case((d.activation((1, size, size, channels), (-2.0, 2.0)),), ("Pool2DOptions", options), OutputRange.SAME)

    return f"{kernel}x{kernel} s{stride} {named((size, size, channels))}", draw


def reduction(shape, axes, output):
    def draw(d):
        return Case((d.activation(shape, (-2.0, 2.0)), int32(axes)), ("ReducerOptions", {"keepDims": True}), output)

    return f"axes {','.join(map(str, axes))} of {named(shape)}", draw


def reductions(output):
    return dict([
        reduction((1, 7, 7, 512), (1, 2), output),
        reduction((1, 56, 56, 64), (1, 2), output),
        reduction((128, 512), (1,), output),
    ])  # fmt: skip


def softmax(shape, options="SoftmaxOptions"):
    fields = {"beta": 1.0} if options == "SoftmaxOptions" else {}
    return named(shape), lambda d: Case((d.activation(shape, (-4.0, 4.0)),), (options, fields), OutputRange.FIXED)


def resize(options, size, channels, to):
    def draw(d):
        fields = (options, {"halfPixelCenters": True})
        return moves([d.activation((1, size, size, channels), (-2.0, 2.0)), int32([to, to])], fields)

    return f"{named((size, size, channels))} to {to}x{to}", draw


def moved(shape, *constants, options=None, outputs=1, leading=(), copies=1):
    """Moves an activation, or several of a shape, as constants behind and before it say."""

    def draw(d):
        activations = [d.activation(shape, (-2.0, 2.0)) for _ in range(copies)]
        return moves([*map(int32, leading), *activations, *map(int32, constants)], options, outputs)

    return draw


def moves_of(case, shapes=TWO):
    """The case, a function of a shape, for each size."""
    return {name: case(shape) for name, shape in shapes.items()}


def sum_of_three(shape):
    return lambda d: Case(tuple(d.activation(shape, (-2.0, 2.0)) for _ in range(3)), ("AddNOptions", {}))


def by_constant(options, span):
    """An operand by a constant for each channel."""

    def case(shape):
        return lambda d: Case((d.activation(shape, (-2.0, 2.0)), d.activation(shape[-1:], span, constant=True)), (options, {}))

    return moves_of(case)


def running_sum(axis):
    return lambda d: Case((d.activation((128, 512), (-2.0, 2.0)), int32(axis)), ("CumsumOptions", {}))


def fill(shape):
    return lambda d: moves([int32(shape), d.activation(())], ("FillOptions", {}))


def updated(rows):
    """Writes rows into a cache of 1,024."""

    def draw(d):
        cache, new = (d.activation((1, count, 256), (-2.0, 2.0)) for count in (1024, rows))
        return moves([cache, new, int32([0, 512, 0])], ("DynamicUpdateSliceOptions", {}))

    return f"{rows} rows of 1024x256", draw


def pad_with_value(shape):
    def draw(d):
        image, value = d.activation(shape, (-2.0, 2.0)), d.activation((1,), (-2.0, 2.0), constant=True)
        return moves([image, int32([[0, 0], [1, 1], [1, 1], [0, 0]]), value], ("PadV2Options", {}))

    return draw


def gather(d):
    return moves([d.activation((4096, 256), (-2.0, 2.0)), int32(d.rng.integers(0, 4096, 128))], ("GatherOptions", {"axis": 0}))


def halves(shape):
    return [size // 2 if axis in (1, 2) else size for axis, size in enumerate(shape)]


SWEPT = {
    "CONV_2D": Swept(LAYER, dict([
        conv(7, 512, 512, 1), conv(224, 3, 32, 3, 2), conv(56, 64, 128, 1), conv(28, 96, 24, 1), conv(14, 256, 256, 1),
        conv(56, 64, 64, 3), conv(14, 128, 128, 3), conv(28, 64, 128, 3, 2), conv(28, 32, 32, 5), conv(28, 64, 64, 3, 1, 2),
        conv(224, 3, 64, 7, 2), conv(224, 3, 96, 4, 4), conv(56, 64, 128, 1, 2), conv(28, 128, 128, 3, groups=32),
        conv(14, 256, 256, 1, groups=4), conv((1, 400), 64, 64, (1, 5)), conv((49, 10), 1, 64, (10, 4), 2),
    ])),
    "DEPTHWISE_CONV_2D": Swept(LAYER, dict([
        depthwise(7, 512, 3), depthwise(112, 32, 3), depthwise(112, 64, 3, 2), depthwise(14, 256, 3), depthwise(28, 120, 5),
        depthwise(28, 96, 5, 2), depthwise(28, 64, 3, 1, 2), depthwise(14, 192, 7), depthwise(28, 48, 9, 2),
        depthwise((1, 200), 144, (1, 31)), depthwise(28, 32, 3, multiplier=2),
    ])),
    "FULLY_CONNECTED": Swept((*LAYER, "int4"), dict([
        dense(1, 256, 256), dense(1, 1024, 1000), dense(64, 256, 256), dense(64, 512, 512), dense(128, 64, 10),
    ])),
    "TRANSPOSE_CONV": Swept((*ALL, "fp16"), dict([
        transposed(28, 64, 32, 2), transposed(14, 64, 32, 4), transposed(28, 32, 16, 3),
    ])),
    "BATCH_MATMUL": Swept(INT8, dict([product(4, 64, 32, 64, True), product(8, 128, 64, 128), product(4, 1, 64, 128)])),
    "ADD": Swept(ALL, binary(THREE, "AddOptions", channel=True)),
    "ADD_N": Swept(FLOAT, moves_of(sum_of_three)),
    "SUB": Swept(ALL, binary(TWO, "SubOptions")),
    "MUL": Swept(ALL, binary(THREE, "MulOptions", channel=True)),
    "DIV": Swept(FLOAT, binary(TWO, "DivOptions", second=(0.4, 3.0))),
    "FLOOR_DIV": Swept(FLOAT, by_constant("FloorDivOptions", (0.5, 0.5))),
    "FLOOR_MOD": Swept(FLOAT, by_constant("FloorModOptions", (0.4, 3.0))),
    "POW": Swept(FLOAT, by_constant("PowOptions", (0.4, 3.0))),
    "ATAN2": Swept(FLOAT, binary(TWO, "ATan2Options")),
    "MAXIMUM": Swept(ALL, binary(TWO, "MaximumMinimumOptions", OutputRange.SAME)),
    "MINIMUM": Swept(ALL, binary(TWO, "MaximumMinimumOptions", OutputRange.SAME)),
    "SQUARED_DIFFERENCE": Swept(INT8, binary(TWO, "SquaredDifferenceOptions")),
    "AVERAGE_POOL_2D": Swept(ALL, dict([pool(7, 512, 7, 1), pool(56, 64, 2, 2), pool(28, 64, 3, 1)])),
    "MAX_POOL_2D": Swept(ALL, dict([pool(28, 64, 2, 2), pool(112, 64, 3, 2), pool(14, 128, 5, 1)])),
    "L2_POOL_2D": Swept(FLOAT, dict([pool(7, 512, 7, 1), pool(56, 64, 2, 2), pool(28, 64, 3, 1)])),
    "MEAN": Swept(ALL, reductions(OutputRange.CALIBRATED)),
    "SUM": Swept(FLOAT, reductions(OutputRange.CALIBRATED)),
    "REDUCE_MAX": Swept(ALL, reductions(OutputRange.SAME)),
    "REDUCE_MIN": Swept(ALL, reductions(OutputRange.SAME)),
    "REDUCE_PROD": Swept(FLOAT, reductions(OutputRange.CALIBRATED)),
    "CUMSUM": Swept(FLOAT, {"axis 1 of 128x512": running_sum(1), "axis 0 of 128x512": running_sum(0)}),
    "RESIZE_BILINEAR": Swept(ALL, dict([
        resize("ResizeBilinearOptions", 14, 32, 28), resize("ResizeBilinearOptions", 33, 21, 257),
    ])),
    "RESIZE_NEAREST_NEIGHBOR": Swept(ALL, dict([
        resize("ResizeNearestNeighborOptions", 14, 32, 28), resize("ResizeNearestNeighborOptions", 56, 32, 112),
    ])),
    "SOFTMAX": Swept(ALL, dict([softmax((1, 1001)), softmax((4, 128, 128)), softmax((2048, 21))])),
    "LOG_SOFTMAX": Swept(ALL, dict([softmax((1, 1001), "LogSoftmaxOptions"), softmax((2048, 21), "LogSoftmaxOptions")])),
    "L2_NORMALIZATION": Swept(ALL, unary(
        {"1x1001": (1, 1001), "128x512": (128, 512)}, ("L2NormOptions", {}), output=OutputRange.FIXED,
    )),
    "LOCAL_RESPONSE_NORMALIZATION": Swept(FLOAT, unary(
        TWO, ("LocalResponseNormalizationOptions", {"radius": 5, "bias": 1.0, "alpha": 1e-4, "beta": 0.5}),
    )),
    "LOGISTIC": Swept(ALL, unary(THREE, output=OutputRange.FIXED)),
    "TANH": Swept(ALL, unary(TWO, output=OutputRange.FIXED)),
    "HARD_SWISH": Swept(ALL, unary(THREE, ("HardSwishOptions", {}))),
    "ELU": Swept(INT8, unary(TWO)),
    "GELU": Swept(ALL, unary(TWO, ("GeluOptions", {"approximate": False}))),
    "LEAKY_RELU": Swept(ALL, unary(TWO, ("LeakyReluOptions", {"alpha": 0.2}))),
    "PRELU": Swept(ALL, {name: prelu(shape) for name, shape in TWO.items()}),
    "RELU": Swept(ALL, unary(TWO)),
    "RELU_N1_TO_1": Swept(ALL, unary(TWO)),
    "RELU_0_TO_1": Swept(ALL, unary(TWO)),
    "RELU6": Swept(ALL, unary(TWO, span=(-2.0, 8.0))),
    "ABS": Swept(INT8, unary(TWO, ("AbsOptions", {}))),
    "NEG": Swept(FLOAT, unary(TWO, ("NegOptions", {}))),
    "SIGN": Swept(FLOAT, unary(TWO, ("SignOptions", {}))),
    "EXP": Swept(INT8, unary(TWO, ("ExpOptions", {}))),
    "LOG": Swept(INT8, unary(TWO, span=POSITIVE)),
    "SIN": Swept(FLOAT, unary(TWO)),
    "COS": Swept(FLOAT, unary(TWO, ("CosOptions", {}))),
    "SQRT": Swept(FLOAT, unary(TWO, span=POSITIVE)),
    "RSQRT": Swept(INT8, unary(TWO, span=POSITIVE)),
    "SQUARE": Swept(FLOAT, unary(TWO, ("SquareOptions", {}))),
    "FLOOR": Swept(FLOAT, unary(TWO)),
    "CEIL": Swept(FLOAT, unary(TWO)),
    "ROUND": Swept(FLOAT, unary(TWO)),
    "FAKE_QUANT": Swept(FLOAT, unary(TWO, ("FakeQuantOptions", {"min": -3.0, "max": 3.0, "numBits": 8}))),
    "CONCATENATION": Swept(INT8, moves_of(
        lambda shape: moved(shape, options=("ConcatenationOptions", {"axis": 3}), copies=2), THREE,
    )),
    "SPLIT": Swept(INT8, moves_of(
        lambda shape: moved(shape, leading=[3], options=("SplitOptions", {"numSplits": 2}), outputs=2),
    )),
    "SPLIT_V": Swept(INT8, moves_of(
        lambda shape: moved(shape, [shape[3] - 8, 8], 3, options=("SplitVOptions", {"numSplits": 2}), outputs=2),
    )),
    "UNPACK": Swept(INT8, moves_of(
        lambda shape: moved(shape, options=("UnpackOptions", {"num": shape[1], "axis": 1}), outputs=shape[1]),
    )),
    "SLICE": Swept(INT8, moves_of(lambda shape: moved(shape, [0, 1, 1, 0], halves(shape), options=("SliceOptions", {})))),
    "STRIDED_SLICE": Swept(INT8, moves_of(lambda shape: moved(
        shape, [0, 0, 0, 0], shape, [1, 2, 2, 1], options=("StridedSliceOptions", {}),
    ))),
    "PAD": Swept(INT8, moves_of(lambda shape: moved(shape, [[0, 0], [1, 1], [1, 1], [0, 0]], options=("PadOptions", {})))),
    "PADV2": Swept(INT8, moves_of(pad_with_value)),
    "MIRROR_PAD": Swept(INT8, moves_of(
        lambda shape: moved(shape, [[0, 0], [1, 1], [1, 1], [0, 0]], options=("MirrorPadOptions", {"mode": 0})),
    )),
    "TRANSPOSE": Swept(INT8, {
        "small to NCHW": moved(SMALL, [0, 3, 1, 2], options=("TransposeOptions", {})),
        "medium to NCHW": moved(MEDIUM, [0, 3, 1, 2], options=("TransposeOptions", {})),
        "heads 1x128x8x64": moved((1, 128, 8, 64), [0, 2, 1, 3], options=("TransposeOptions", {})),
    }),
    "TILE": Swept(INT8, moves_of(lambda shape: moved(shape, [1, 2, 2, 1], options=("TileOptions", {})))),
    "BROADCAST_TO": Swept(INT8, moves_of(
        lambda shape: moved((1, 1, 1, shape[3]), shape, options=("BroadcastToOptions", {})),
    )),
    "FILL": Swept(INT8, moves_of(fill)),
    "REVERSE_V2": Swept(INT8, {
        "medium rows": moved(MEDIUM, [1], options=("ReverseV2Options", {})),
        "medium channels": moved(MEDIUM, [3], options=("ReverseV2Options", {})),
        "channels 224x224x3": moved((1, 224, 224, 3), [3], options=("ReverseV2Options", {})),
    }),
    "DYNAMIC_UPDATE_SLICE": Swept(INT8, dict([updated(1), updated(128)])),
    "PACK": Swept(INT8, moves_of(
        lambda shape: moved(shape, options=("PackOptions", {"valuesCount": 2, "axis": 0}), copies=2),
    )),
    "GATHER": Swept(INT8, {"128 rows of 4096x256": gather}),
    "SPACE_TO_DEPTH": Swept(INT8, moves_of(lambda shape: moved(shape, options=("SpaceToDepthOptions", {"blockSize": 2})))),
    "DEPTH_TO_SPACE": Swept(INT8, moves_of(lambda shape: moved(shape, options=("DepthToSpaceOptions", {"blockSize": 2})))),
    "SPACE_TO_BATCH_ND": Swept(INT8, moves_of(
        lambda shape: moved(shape, [2, 2], [[0, 0], [0, 0]], options=("SpaceToBatchNDOptions", {})),
    )),
    "BATCH_TO_SPACE_ND": Swept(INT8, moves_of(
        lambda shape: moved((4, *shape[1:]), [2, 2], [[0, 0], [0, 0]], options=("BatchToSpaceNDOptions", {})),
    )),
    "RESHAPE": Swept(INT8, moves_of(lambda shape: moved(shape, [1, -1], options=("ReshapeOptions", {"newShape": [1, -1]})))),
    "SQUEEZE": Swept(INT8, moves_of(lambda shape: moved(shape, options=("SqueezeOptions", {"squeezeDims": [0]})))),
    "EXPAND_DIMS": Swept(INT8, moves_of(lambda shape: moved(shape, 0, options=("ExpandDimsOptions", {})))),
    "QUANTIZE": Swept(QUANTIZE, unary(TWO, ("QuantizeOptions", {}), output=OutputRange.IDENTITY)),
    "DEQUANTIZE": Swept(DEQUANTIZE, unary(TWO, ("DequantizeOptions", {}), output=OutputRange.IDENTITY)),
}  # fmt: skip
