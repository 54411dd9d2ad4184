"""The tensors of a subgraph, for :mod:`xnn_delegate.interpreter`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _details, _native
from ._details import TYPE_NAMES
from ._types import text_strings

_NULL = "Tensor data is null. Run allocate_tensors() first"


class Subgraph:
    """A subgraph of an interpreter: its tensors, and its runner once it is allocated."""

    def __init__(self, model: _native.Model, index: int, threads: int, kernels: str) -> None:
        self._model, self._index = model, index
        self._threads, self._kernels = threads, kernels
        self.count = model.tensors(index)
        self.inputs = model.inputs(index)
        self.outputs = model.outputs(index)
        self._input_of = {tensor: position for position, tensor in enumerate(self.inputs)}
        self._output_of = {tensor: position for position, tensor in enumerate(self.outputs)}
        self._static: dict[int, dict[str, Any]] = {}
        #: Shapes of inputs, by position, that the next allocation applies.
        self._wanted: dict[int, list[int]] = {}
        self._ready = False
        self._has_run = False
        self.runner: _native.Runner | None = None

    def check(self, tensor: int) -> int:
        tensor = operator.index(tensor)
        if not 0 <= tensor < self.count:
            raise ValueError(f"Invalid tensor index {tensor} exceeds max tensor index {self.count}")
        return tensor

    def details(self, tensors: Sequence[int]) -> list[dict[str, Any]]:
        shapes = self._shapes()
        return [_details.with_shape(self._static_of(tensor), shapes.get(tensor)) for tensor in tensors]

    def allocate(self) -> None:
        shapes = list(self._wanted.items())
        try:
            if self.runner is None:
                self.runner = self._model.runner(self._index, self._threads, self._kernels, shapes)
            elif shapes:
                self.runner.resize(shapes)
                self._has_run = False
        except ValueError as error:
            # The interface has this type for everything that fails while tensors are allocated.
            raise RuntimeError(str(error)) from error
        self._wanted.clear()
        self._ready = True

    def invoke(self) -> None:
        if not self._ready or self.runner is None:
            raise RuntimeError("Invoke called on model that is not ready.")
        self.runner.run()
        self._has_run = True

    def reset(self) -> None:
        if self.runner is not None:
            self.runner.reset_variables()

    def resize(self, tensor: int, shape: list[int], strict: bool) -> None:
        tensor = operator.index(tensor)
        if not 0 <= tensor < self.count:
            raise RuntimeError(f"cannot resize tensor {tensor}: the subgraph has {self.count} tensors, from 0")
        static = self._static_of(tensor)
        current = self._shape(tensor)
        if current == shape:
            return
        if strict:
            signature = static["shape_signature"]
            _check_strict(tensor, current, [] if signature is None else signature.tolist(), shape)
        if any(dim < 0 for dim in shape):
            raise RuntimeError(f"cannot resize tensor {tensor} to {shape}: a dimension is negative")
        position = self._input_of.get(tensor)
        if position is None:
            raise RuntimeError(f"cannot resize tensor {tensor} ({static['name']}): it is not an input")
        self._wanted[position] = shape
        self._ready = False

    def set(self, tensor: int, value: Any) -> None:
        tensor = self.check(tensor)
        static = self._static_of(tensor)
        is_text = static["dtype"] is np.bytes_
        if is_text and not isinstance(value, np.ndarray):
            found = type(value).__name__
            raise ValueError(f"Passed in value type is not a numpy array, got type {found}.")
        array = np.asarray(value)
        if not (array.dtype.kind in "SUO" if is_text else array.dtype == static["dtype"]):
            raise ValueError(
                f"Cannot set tensor: Got value of type {TYPE_NAMES.get(array.dtype.type, array.dtype)} but expected type "
                f"{TYPE_NAMES.get(static['dtype'], static['dtype'])} for input {tensor}, name: {static['name']} "
            )
        position = self._input_of.get(tensor)
        if position is None:
            raise ValueError(f"Cannot set tensor: tensor {tensor} ({static['name']}) is not an input")
        _check_shape(tensor, self._shape(tensor), array.shape)
        if not self._ready or self.runner is None:
            raise ValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
        if is_text:
            try:
                self.runner.set_strings(position, text_strings(array))
            except TypeError as error:
                raise ValueError(f"Cannot set tensor: {error}") from error
        else:
            np.copyto(np.asarray(self.runner.input(position)), array)

    def get(self, tensor: int) -> Any:
        tensor = self.check(tensor)
        if self._static_of(tensor)["dtype"] is np.bytes_:
            return self._strings(tensor)
        array = self.view(tensor).copy()
        return array if array.ndim else array[()]

    def view(self, tensor: int) -> np.ndarray:
        tensor = self.check(tensor)
        if self._ready and self.runner is not None:
            found = self._view(self.runner, tensor)
            if found is not None:
                return found
        constant = self._model.constant(self._index, tensor)
        if constant is None:
            raise ValueError(_NULL)
        return np.asarray(constant)

    def _view(self, runner: _native.Runner, tensor: int) -> np.ndarray | None:
        if tensor in self._input_of:
            return np.asarray(runner.input(self._input_of[tensor]))
        if tensor in self._output_of and (self._has_run or runner.is_whole):
            return np.asarray(runner.output(self._output_of[tensor]))
        found = runner.tensor(tensor)
        if found is None and tensor in self._output_of:
            # An output that reference kernels have not computed yet is zero, if its shape is known.
            shape = _known(runner, tensor)
            return None if shape is None else np.zeros(shape, self._static_of(tensor)["dtype"])
        return None if found is None else np.asarray(found)

    def _strings(self, tensor: int) -> np.ndarray:
        found = self.runner.strings(tensor) if self._ready and self.runner is not None else None
        if found is None:
            raise ValueError(_NULL)
        shape, strings = found
        array = np.empty(len(strings), dtype=object)
        array[:] = strings
        return array.reshape(shape)

    def _static_of(self, tensor: int) -> dict[str, Any]:
        static = self._static.get(tensor)
        if static is None:
            static = self._static[tensor] = _details.static(self._model, self._index, tensor)
        return static

    def _shape(self, tensor: int) -> list[int]:
        position = self._input_of.get(tensor)
        if position in self._wanted:
            return self._wanted[position]
        if position is not None and self.runner is not None:
            return self.runner.inputs()[position][2]
        return self._static_of(tensor)["shape"].tolist()

    def _shapes(self) -> dict[int, list[int]]:
        """Shapes of tensors that are known better than from the file."""
        shapes: dict[int, list[int]] = {}
        if self.runner is not None:
            inferred = self.runner.shapes() or []
            shapes.update((tensor, shape) for tensor, shape in enumerate(inferred) if shape is not None)
            shapes.update((tensor, spec[2]) for tensor, spec in zip(self.inputs, self.runner.inputs()))
            if self._has_run or self.runner.is_whole:
                shapes.update((tensor, spec[2]) for tensor, spec in zip(self.outputs, self.runner.outputs()))
        shapes.update((self.inputs[position], shape) for position, shape in self._wanted.items())
        return shapes


def _known(runner: _native.Runner, tensor: int) -> list[int] | None:
    shapes = runner.shapes()
    return shapes[tensor] if shapes else None


def _check_strict(tensor: int, current: list[int], signature: list[int], shape: list[int]) -> None:
    if len(current) != len(shape):
        raise RuntimeError(
            f"Attempting to resize tensor {tensor} of {len(current)} dimensions to {len(shape)} dimensions. "
            "ResizeInputTensorStrict does not allow another rank."
        )
    for axis, (old, new) in enumerate(zip(current, shape)):
        if old != new and (axis >= len(signature) or signature[axis] != -1):
            raise RuntimeError(
                f"Attempting to resize dimension {axis} of tensor {tensor} with value {old} to {new}. "
                "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1."
            )


def _check_shape(tensor: int, expected: list[int], found: tuple[int, ...]) -> None:
    if len(expected) != len(found):
        raise ValueError(
            "Cannot set tensor: Dimension mismatch. "
            f"Got {len(found)} but expected {len(expected)} for input {tensor}."
        )
    for axis, (wanted, given) in enumerate(zip(expected, found)):
        if wanted != given:
            raise ValueError(
                "Cannot set tensor: Dimension mismatch. "
                f"Got {given} but expected {wanted} for dimension {axis} of input {tensor}."
            )
