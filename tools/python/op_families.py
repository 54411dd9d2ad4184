"""Random single-operator cases in real numbers, one function per operator family.

A family draws shapes, options and values, and says nothing of data types: `opcases.py` turns its `Case` into a model
in any of the schemes that FAMILIES names for the operator. Layouts are TFLite's: NHWC activations, OHWI weights,
1HWO for depthwise.
"""

import numpy as np

import op_moves as move
from op_case import PADDINGS, Bias, Case, OutputRange, Plain, int32


def window(d, height, width):
    """A kernel, strides and dilations whose window fits the image, so that VALID padding leaves something."""
    kernel, dilation = [], []
    for size in (height, width):
        kernel.append(d.int(1, min(5, size)))
        dilation.append(d.int(1, (size - 1) // (kernel[-1] - 1)) if kernel[-1] > 1 and d.chance(0.2) else 1)
    return (
        kernel,
        {"strideH": d.int(1, 3), "strideW": d.int(1, 3)},
        dict(zip(("dilationHFactor", "dilationWFactor"), dilation)),
    )


def conv_2d(d):
    batch, height, width, channels = d.image()
    groups = d.of([g for g in (1, 1, 1, 2, 4) if channels % g == 0])
    out = groups * d.int(1, 20 // groups)
    (kh, kw), strides, dilations = window(d, height, width)
    weights = d.weights((out, kh, kw, channels // groups), 0, kh * kw * channels // groups)
    options = strides | dilations | d.padding() | d.fused()
    # LiteRT insists on a bias for this operator alone.
    inputs = (d.activation((batch, height, width, channels)), weights, Bias(d.normal(out)))
    return Case(inputs, ("Conv2DOptions", options))


def depthwise_conv_2d(d):
    batch, height, width, channels = d.image()
    multiplier = d.of([1, 1, 1, 2, 3])
    (kh, kw), strides, dilations = window(d, height, width)
    weights = d.weights((1, kh, kw, channels * multiplier), 3, kh * kw)
    options = strides | dilations | d.padding() | d.fused() | {"depthMultiplier": multiplier}
    inputs = (d.activation((batch, height, width, channels)), weights, *d.optional_bias(channels * multiplier))
    return Case(inputs, ("DepthwiseConv2DOptions", options))


def transpose_conv(d):
    batch, height, width, channels = d.image(most=7)
    out, kh, kw = d.int(1, 12), d.int(1, 4), d.int(1, 4)
    stride_h, stride_w = d.int(1, min(3, kh)), d.int(1, min(3, kw))
    if d.chance(0.5):
        padding, size = PADDINGS["SAME"], (height * stride_h, width * stride_w)
    else:
        padding, size = PADDINGS["VALID"], ((height - 1) * stride_h + kh, (width - 1) * stride_w + kw)
    weights = d.weights((out, kh, kw, channels), 0, kh * kw * channels)
    inputs = (
        int32([batch, *size, out]),
        weights,
        d.activation((batch, height, width, channels)),
        *d.optional_bias(out),
    )
    return Case(inputs, ("TransposeConvOptions", {"padding": padding, "strideH": stride_h, "strideW": stride_w}))


def fully_connected(d):
    depth, out = d.int(1, 64), d.int(1, 40)
    keep = d.chance(0.4)
    leading = d.shape(0, 3, 4) if keep else (d.int(1, 5),)
    # Without keep_num_dims a higher rank is flattened to [-1, depth].
    if not keep and d.chance(0.3):
        leading = (d.int(1, 3), d.int(1, 3))
    options = d.fused() | {"keepNumDims": keep}
    inputs = (d.activation((*leading, depth)), d.weights((out, depth), 0, depth), *d.optional_bias(out))
    return Case(inputs, ("FullyConnectedOptions", options))


def batch_matmul(d):
    rows, depth, columns = d.int(1, 9), d.int(1, 24), d.int(1, 17)
    leading = d.shape(0, 2, 3)
    adj_x, adj_y = d.chance(0.3), d.chance(0.5)
    left = (depth, rows) if adj_x else (rows, depth)
    right = (columns, depth) if adj_y else (depth, columns)
    shared = leading if d.chance(0.7) else tuple(1 for _ in leading)
    inputs = (d.activation((*leading, *left)), d.activation((*shared, *right)))
    return Case(inputs, ("BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y}))


def binary(options=None, second_range=None, fused=True, output=OutputRange.CALIBRATED, first_range=None):
    """A family of two broadcast operands, of which one is a constant now and then."""

    def family(d):
        full = d.shape(1, 5, 6)
        shapes = [full, full]
        if d.chance(0.6):
            narrow = tuple(size if d.chance(0.5) else 1 for size in full)
            shapes[d.int(0, 1)] = narrow[d.int(0, len(full) - 1) :]
        constant = d.of([None, None, 0, 1])
        spans = [first_range or d.range(), second_range or d.range()]
        if output is OutputRange.SAME:
            spans[1] = spans[0]
        inputs = tuple(d.activation(shapes[i], spans[i], constant == i) for i in range(2))
        return Case(inputs, (options, d.fused() if fused else {}) if options else None, output)

    return family


def unary(options=None, span=None, output=OutputRange.CALIBRATED, rank=(1, 5), **draws):
    """An elementwise family; `draws` give the fields of the options."""

    def family(d):
        fields = {field: draw(d) for field, draw in draws.items()}
        shape = d.shape(*rank, 7)
        return Case((d.activation(shape, span),), (options, fields) if options else None, output)

    return family


def prelu(d):
    shape = d.image()
    slopes = (1, 1, shape[3]) if d.chance(0.7) else (shape[3],)
    return Case((d.activation(shape), d.activation(slopes, (-0.4, 0.9), constant=True)))


def pool_2d(d):
    shape = d.image()
    kernel, strides, _ = window(d, shape[1], shape[2])
    if d.chance(0.2):
        kernel = shape[1:3]  # global
    options = strides | d.padding() | d.fused() | {"filterHeight": kernel[0], "filterWidth": kernel[1]}
    return Case((d.activation(shape),), ("Pool2DOptions", options), OutputRange.SAME)


def reduction(output):
    def family(d):
        shape = d.shape(1, 5, 7)
        options = {"keepDims": d.chance(0.5)}
        return Case((d.activation(shape), int32(d.axes(len(shape)))), ("ReducerOptions", options), output)

    return family


def add_n(d):
    shape = d.shape(1, 4, 6)
    return Case(tuple(d.activation(shape) for _ in range(d.int(2, 5))), ("AddNOptions", {}))


def atan2(d):
    shape = d.shape(1, 4, 6)
    return Case((d.activation(shape), d.activation(shape)), ("ATan2Options", {}))


def floor_div(d):
    """Constant powers of two: the divisors by which the quotient in single precision is right."""
    shape = d.shape(1, 4, 6)
    divisor = 2.0 ** d.rng.integers(-3, 5, shape if d.chance(0.5) else shape[-1:])
    return Case((d.activation(shape), Plain(divisor.astype(np.float32))), ("FloorDivOptions", {}))


def floor_mod(d):
    """The divisor is a constant that stays away from zero, on either side of it."""
    shape = d.shape(1, 4, 6)
    divisor = d.activation(shape if d.chance(0.5) else shape[-1:], d.of([(0.4, 3.0), (-3.0, -0.4)]), constant=True)
    return Case((d.activation(shape), divisor), ("FloorModOptions", {}))


def fake_quant(d):
    low, high = sorted(d.rng.uniform(-4.0, 4.0, 2).tolist())
    options = {"min": low, "max": high + 0.5, "numBits": d.int(2, 16), "narrowRange": d.chance(0.5)}
    return Case((d.activation(d.shape(1, 4, 6)),), ("FakeQuantOptions", options))


def local_response_normalization(d):
    options = {"radius": d.int(1, 5), "bias": 1.0, "alpha": float(d.rng.uniform(0.1, 1.0)), "beta": 0.5}
    return Case((d.activation(d.image()),), ("LocalResponseNormalizationOptions", options))


def cumsum(d):
    shape = d.shape(1, 4, 6)
    options = {"exclusive": d.chance(0.3), "reverse": d.chance(0.3)}
    return Case((d.activation(shape), int32(d.int(-len(shape), len(shape) - 1))), ("CumsumOptions", options))


def softmax(d):
    shape = (*d.shape(0, 3, 5), d.int(1, 40))
    beta = 1.0 if d.chance(0.7) else float(d.rng.uniform(0.2, 2.0))
    return Case((d.activation(shape),), ("SoftmaxOptions", {"beta": beta}), OutputRange.FIXED)


FLOAT, INT8, UINT8 = ("fp32",), ("fp32", "int8"), ("fp32", "uint8")
ALL = ("fp32", "int8", "uint8")
WEIGHTED = (*ALL, "dynamic")
QUANTIZE = ("fp32_to_int8", "fp32_to_uint8", "int8", "uint8", "int8_to_uint8", "uint8_to_int8")
DEQUANTIZE = ("int8_to_fp32", "uint8_to_fp32")
POSITIVE = (0.05, 6.0)

FAMILIES = {
    "CONV_2D": (conv_2d, WEIGHTED),
    "DEPTHWISE_CONV_2D": (depthwise_conv_2d, WEIGHTED),
    "TRANSPOSE_CONV": (transpose_conv, WEIGHTED),
    "FULLY_CONNECTED": (fully_connected, WEIGHTED),
    "BATCH_MATMUL": (batch_matmul, INT8),
    "ADD": (binary("AddOptions"), ALL),
    "SUB": (binary("SubOptions"), ALL),
    "MUL": (binary("MulOptions"), ALL),
    "DIV": (binary("DivOptions", second_range=(0.4, 3.0)), UINT8),
    "MAXIMUM": (binary("MaximumMinimumOptions", fused=False, output=OutputRange.SAME), ALL),
    "MINIMUM": (binary("MaximumMinimumOptions", fused=False, output=OutputRange.SAME), ALL),
    "SQUARED_DIFFERENCE": (binary("SquaredDifferenceOptions", fused=False), INT8),
    "POW": (binary("PowOptions", fused=False, first_range=POSITIVE, second_range=(-2.0, 2.0)), FLOAT),
    "FLOOR_DIV": (floor_div, FLOAT),
    "ABS": (unary("AbsOptions"), INT8),
    "NEG": (unary("NegOptions"), FLOAT),
    "SIGN": (unary("SignOptions"), FLOAT),
    "SQUARE": (unary("SquareOptions"), FLOAT),
    "SQRT": (unary(span=(0.0, 9.0)), FLOAT),
    "RSQRT": (unary(span=POSITIVE), INT8),
    "EXP": (unary("ExpOptions", span=(-4.0, 3.0)), INT8),
    "LOG": (unary(span=POSITIVE), INT8),
    "SIN": (unary(), FLOAT),
    "COS": (unary("CosOptions"), FLOAT),
    "CEIL": (unary(), FLOAT),
    "FLOOR": (unary(), FLOAT),
    "ROUND": (unary(), FLOAT),
    "RELU": (unary(), ALL),
    "RELU6": (unary(), ALL),
    "RELU_N1_TO_1": (unary(), ALL),
    "RELU_0_TO_1": (unary(), ALL),
    "ELU": (unary(), INT8),
    "LEAKY_RELU": (unary("LeakyReluOptions", alpha=lambda d: float(d.rng.uniform(-0.3, 1.2))), ALL),
    "HARD_SWISH": (unary("HardSwishOptions"), ALL),
    "GELU": (unary("GeluOptions", approximate=lambda d: d.chance(0.5)), ALL),
    "LOGISTIC": (unary(output=OutputRange.FIXED), ALL),
    "TANH": (unary(output=OutputRange.FIXED), ALL),
    "PRELU": (prelu, ALL),
    "SOFTMAX": (softmax, ALL),
    "LOG_SOFTMAX": (unary("LogSoftmaxOptions", output=OutputRange.FIXED), ALL),
    "L2_NORMALIZATION": (unary("L2NormOptions", output=OutputRange.FIXED, rank=(1, 4)), ALL),
    "AVERAGE_POOL_2D": (pool_2d, ALL),
    "MAX_POOL_2D": (pool_2d, ALL),
    "MEAN": (reduction(OutputRange.CALIBRATED), ALL),
    "SUM": (reduction(OutputRange.CALIBRATED), ALL),
    "REDUCE_MAX": (reduction(OutputRange.SAME), ALL),
    "REDUCE_MIN": (reduction(OutputRange.SAME), ALL),
    "RESHAPE": (move.reshape, ALL),
    "SQUEEZE": (move.squeeze, ALL),
    "EXPAND_DIMS": (move.expand_dims, ALL),
    "TRANSPOSE": (move.transpose, ALL),
    "PAD": (move.pad, ALL),
    "PADV2": (move.pad_v2, ALL),
    "MIRROR_PAD": (move.mirror_pad, ALL),
    "CONCATENATION": (move.concatenation, ALL),
    "PACK": (move.pack, ALL),
    "UNPACK": (move.unpack, ALL),
    "SPLIT": (move.split, ALL),
    "SPLIT_V": (move.split_v, ALL),
    "SLICE": (move.slice_, ALL),
    "STRIDED_SLICE": (move.strided_slice, ALL),
    "TILE": (move.tile, ALL),
    "BROADCAST_TO": (move.broadcast_to, ALL),
    "DEPTH_TO_SPACE": (move.depth_to_space, ALL),
    "SPACE_TO_DEPTH": (move.space_to_depth, ALL),
    "RESIZE_BILINEAR": (move.resize("ResizeBilinearOptions"), ALL),
    "RESIZE_NEAREST_NEIGHBOR": (move.resize("ResizeNearestNeighborOptions"), ALL),
    "QUANTIZE": (unary("QuantizeOptions", output=OutputRange.IDENTITY), QUANTIZE),
    "DEQUANTIZE": (unary("DequantizeOptions", output=OutputRange.IDENTITY), DEQUANTIZE),
    "ADD_N": (add_n, FLOAT),
    "ATAN2": (atan2, FLOAT),
    "FLOOR_MOD": (floor_mod, FLOAT),
    "FAKE_QUANT": (fake_quant, FLOAT),
    "L2_POOL_2D": (pool_2d, FLOAT),
    "LOCAL_RESPONSE_NORMALIZATION": (local_response_normalization, FLOAT),
    "REDUCE_PROD": (reduction(OutputRange.CALIBRATED), FLOAT),
    "CUMSUM": (cumsum, FLOAT),
    "GATHER": (move.gather, ALL),
    "REVERSE_V2": (move.reverse_v2, ALL),
    "DYNAMIC_UPDATE_SLICE": (move.dynamic_update_slice, INT8),
    "FILL": (move.fill, INT8),
    "SPACE_TO_BATCH_ND": (move.space_to_batch, ALL),
    "BATCH_TO_SPACE_ND": (move.batch_to_space, ALL),
}
