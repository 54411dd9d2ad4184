"""Gives the real operands of a case their types: fp32, 8-bit per tensor or per channel, dynamic range."""

from dataclasses import dataclass, replace

import numpy as np

from op_case import Activation, Bias, OutputRange, Weights
from tflite_build import Quantization, Tensor

FLOAT32, INT8, UINT8, INT32 = (np.dtype(name) for name in ("float32", "int8", "uint8", "int32"))
SMALLEST_SPAN = 1e-2
SMALLEST_WEIGHT = 1e-3


@dataclass(frozen=True)
class Scheme:
    """The types that a case takes."""

    inputs: np.dtype
    outputs: np.dtype
    weights: np.dtype

    def is_float(self):
        return {self.inputs, self.outputs, self.weights} == {FLOAT32}


SCHEMES = {
    "fp32": Scheme(FLOAT32, FLOAT32, FLOAT32),
    "int8": Scheme(INT8, INT8, INT8),
    "uint8": Scheme(UINT8, UINT8, UINT8),
    "dynamic": Scheme(FLOAT32, FLOAT32, INT8),
    "fp32_to_int8": Scheme(FLOAT32, INT8, FLOAT32),
    "fp32_to_uint8": Scheme(FLOAT32, UINT8, FLOAT32),
    "int8_to_fp32": Scheme(INT8, FLOAT32, FLOAT32),
    "uint8_to_fp32": Scheme(UINT8, FLOAT32, FLOAT32),
    "int8_to_uint8": Scheme(INT8, UINT8, FLOAT32),
    "uint8_to_int8": Scheme(UINT8, INT8, FLOAT32),
}

# The output range that each of these operators has by definition, in 256 steps.
FIXED_OUTPUT = {
    "LOGISTIC": (0.0, 1.0),
    "SOFTMAX": (0.0, 1.0),
    "LOG_SOFTMAX": (-16.0, 0.0),
    "TANH": (-1.0, 1.0),
    "L2_NORMALIZATION": (-1.0, 1.0),
}


@dataclass(frozen=True)
class Operand:
    """An operand in its final type: the tensor, its values, and whether those are fed at run time."""

    tensor: Tensor
    value: np.ndarray
    fed: bool = False

    def dequantized(self):
        """The operand as fp32; plain ones stay as they are."""
        quantization = self.tensor.quantization
        if quantization is None:
            return self
        steps = self.value.astype(np.float64) - quantization.zero_points[0]
        real = (steps * along_axis(quantization, self.value.ndim)).astype(np.float32)
        return replace(self, tensor=Tensor(FLOAT32, real.shape), value=real)


def store(case, scheme, rng):
    """Draw the values of the activations, and put all operands into the types of the scheme."""
    operands = []
    scales = None  # of the bias: input x weights
    source = next(operand for operand in case.inputs if isinstance(operand, Activation))
    for part in case.inputs:
        if isinstance(part, Activation):
            real = rng.uniform(part.low, part.high, part.shape).astype(np.float32)
            operands.append(stored(real, scheme.inputs, activation_parameters(part, scheme), not part.constant))
        elif isinstance(part, Weights):
            parameters = weights_parameters(part, scheme)
            scales = bias_parameters(activation_parameters(source, scheme), parameters)
            operands.append(stored(part.values, scheme.weights, parameters))
        elif isinstance(part, Bias):
            operands.append(stored(part.values, FLOAT32 if scales is None else INT32, scales))
        else:
            operands.append(stored(part.values, part.values.dtype, None))
    return operands


def stored(real, dtype, quantization, fed=False):
    value = real.astype(dtype)
    if quantization is not None:
        limits = np.iinfo(dtype)
        steps = np.rint(real / along_axis(quantization, real.ndim)) + quantization.zero_points[0]
        value = np.clip(steps, limits.min, limits.max).astype(dtype)
    return Operand(Tensor(dtype, real.shape, quantization), value, fed)


def along_axis(quantization, rank):
    """The scales in a shape that broadcasts over a tensor of this rank."""
    scales = np.array(quantization.scales)
    if len(scales) == 1:
        return scales[0]
    shape = [1] * rank
    shape[quantization.axis] = len(scales)
    return scales.reshape(shape)


def activation_parameters(activation, scheme):
    return None if scheme.inputs == FLOAT32 else asymmetric(activation.low, activation.high, scheme.inputs)


def weights_parameters(weights, scheme):
    if scheme.weights == FLOAT32:
        return None
    if scheme.weights == UINT8:
        return asymmetric(float(weights.values.min()), float(weights.values.max()), UINT8)
    axis = weights.axis
    others = None if axis is None else tuple(i for i in range(weights.values.ndim) if i != axis)
    largest = np.atleast_1d(np.abs(weights.values).max(axis=others))
    scales = np.maximum(largest, SMALLEST_WEIGHT) / 127.0
    return Quantization(tuple(float(np.float32(scale)) for scale in scales), (0,) * len(scales), axis or 0)


def bias_parameters(source, weights):
    if source is None or weights is None:
        return None
    scales = tuple(float(np.float32(source.scales[0]) * np.float32(scale)) for scale in weights.scales)
    return Quantization(scales, (0,) * len(scales))


def asymmetric(low, high, dtype):
    """Per-tensor parameters that hold low..high, and zero exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    limits = np.iinfo(dtype)
    scale = float(np.float32(max(high - low, SMALLEST_SPAN) / (limits.max - limits.min)))
    zero_point = int(np.clip(round(limits.min - low / scale), limits.min, limits.max))
    return Quantization((scale,), (zero_point,))


def output_parameters(op, case, scheme, operands, real, d):
    """The quantization of each output, given its real values."""
    if scheme.outputs == FLOAT32:
        return [None] * case.outputs
    if case.output is OutputRange.SAME:
        return [next(operand for operand in operands if operand.fed).tensor.quantization] * case.outputs
    if case.output is OutputRange.FIXED:
        low, high = FIXED_OUTPUT[op]
        scale = (high - low) / 256
        limits = np.iinfo(scheme.outputs)
        # A range that ends at zero has zero as its largest value.
        zero_point = limits.max if high == 0.0 else limits.min - round(low / scale)
        return [Quantization((scale,), (int(zero_point),))] * case.outputs
    return [asymmetric(*stretched(float(r.min()), float(r.max()), d), scheme.outputs) for r in real]


def stretched(low, high, d):
    """The range as a calibration would find it, more or less; now and then far too small or too large."""
    factor = 2.0 ** d.rng.uniform(-9.0, 9.0) if d.chance(0.08) else d.rng.uniform(0.7, 1.4)
    return low * factor, high * factor
