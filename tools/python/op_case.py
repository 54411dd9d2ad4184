"""The parts of a single-operator case in real numbers, and the random choices that make one."""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}
PADDINGS = {"SAME": 0, "VALID": 1}


class OutputRange(Enum):
    """Where a quantized output's parameters come from."""

    CALIBRATED = auto()  # the range of the real result
    SAME = auto()  # the input's parameters, which all inputs share
    FIXED = auto()  # the operator's own, see FIXED_OUTPUT in op_schemes.py
    IDENTITY = auto()  # the input itself, in a type and parameters of the output's own


@dataclass(frozen=True)
class Activation:
    """Values in [low, high], quantized asymmetrically; an input at run time, or a constant of the model."""

    shape: tuple
    low: float
    high: float
    constant: bool = False


@dataclass(frozen=True)
class Weights:
    """A constant, quantized symmetrically: along `axis`, or as a whole where that is None."""

    values: np.ndarray
    axis: int | None


@dataclass(frozen=True)
class Bias:
    """A constant of scale input x weights."""

    values: np.ndarray


@dataclass(frozen=True)
class Plain:
    """A constant that keeps its type: shapes, axes, paddings."""

    values: np.ndarray


@dataclass(frozen=True)
class Case:
    inputs: tuple
    options: tuple[str, dict] | None = None
    output: OutputRange = OutputRange.CALIBRATED
    outputs: int = 1


class Draw:
    """Random choices of the kinds that the families need."""

    def __init__(self, rng):
        self.rng = rng

    def int(self, low, high):
        """An integer in low..=high."""
        return int(self.rng.integers(low, high, endpoint=True))

    def of(self, choices):
        choices = list(choices)
        return choices[self.int(0, len(choices) - 1)]

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def normal(self, shape):
        return self.rng.normal(size=shape).astype(np.float32)

    def shape(self, low_rank, high_rank, longest=9):
        return tuple(self.int(1, longest) for _ in range(self.int(low_rank, high_rank)))

    def image(self, least=1, most=12):
        return self.int(1, 2), self.int(least, most), self.int(least, most), self.int(1, 20)

    def range(self):
        """A range around zero, or from zero as behind a RELU."""
        low = 0.0 if self.chance(0.3) else -float(self.rng.uniform(0.3, 8.0))
        return low, float(self.rng.uniform(0.3, 8.0))

    def activation(self, shape, span=None, constant=False):
        low, high = span or self.range()
        return Activation(tuple(shape), low, high, constant)

    def fused(self):
        return {"fusedActivationFunction": ACTIVATIONS[self.of(ACTIVATIONS)]}

    def padding(self):
        return {"padding": PADDINGS[self.of(PADDINGS)]}

    def weights(self, shape, axis, fan_in):
        """Weights with a different magnitude per channel, as trained ones have."""
        spread = [1] * len(shape)
        spread[axis] = shape[axis]
        values = self.normal(shape) * self.rng.uniform(0.2, 2.0, spread) / np.sqrt(fan_in)
        return Weights(values.astype(np.float32), axis if self.chance(0.75) else None)

    def optional_bias(self, channels):
        return (Bias(self.normal(channels)),) if self.chance(0.8) else ()

    def axes(self, rank):
        """One or more distinct axes, some counted from the end."""
        chosen = self.rng.permutation(rank)[: self.int(1, rank)]
        return [int(axis) - (rank if self.chance(0.3) else 0) for axis in chosen]


def int32(values):
    return Plain(np.array(values, np.int32))
