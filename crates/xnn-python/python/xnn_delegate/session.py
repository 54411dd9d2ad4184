"""Sessions: dictionaries of arrays in and out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Optional, Union

import numpy as np

from . import _native
from ._types import NUMPY_TYPES, Model, as_array, text_strings

#: An input or output, by name or by position.
Key = Union[str, int]


class TensorInfo(NamedTuple):
    """Description of an input or output."""

    #: Name in the model, or in the signature; empty if unknown.
    name: str
    #: Current dimensions.
    shape: tuple[int, ...]
    #: Element type.
    dtype: np.dtype
    #: Scale and zero point: ``real = (q - zero_point) * scale``; None if the tensor is not quantized per tensor.
    quantization: Optional[tuple[float, int]]


class Coverage(NamedTuple):
    """Number of operators that run on XNNPACK."""

    #: Operators that run on XNNPACK.
    delegated: int
    #: All operators; for a blob, its nodes.
    operators: int
    #: XNNPACK graphs that hold the delegated operators.
    partitions: int
    #: Further operators that may be delegated during a run, when their shapes are known.
    deferred: int


class Session:
    """A model (TFLite or Circle) or an ``.xnn`` file that is ready to run.

    ::

        session = Session("mobilenet.tflite", num_threads=2)
        outputs = session.run({"input": image})

    Elements are copied to the session's memory, and XNNPACK writes results to the arrays that ``run`` returns. To avoid the
    first copy, fill the array that :meth:`input` returns and call :meth:`run` without that input.

    Loading and running release the GIL. Methods may be called by several threads, which take turns; use :meth:`fork` to
    run at the same time.

    Args:
        model: A path, or the content of a file.
        num_threads: Number of threads that compute, at most the number of processors.
        signature: Key of the signature that is run. Default: the main subgraph.
        cache_dir: Folder in which packed weights are stored for later processes.
        disable: Names of operators that do not run on XNNPACK, such as ``"SOFTMAX"``.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file or an argument is not valid.
        RuntimeError: An operator is not supported.
        MemoryError: Memory is exhausted.
    """

    def __init__(
        self,
        model: Model,
        num_threads: int = 1,
        *,
        signature: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        disable: Iterable[str] = (),
    ) -> None:
        if num_threads < 1:
            raise ValueError(f"num_threads: expected at least 1, found {num_threads}")
        if isinstance(disable, str):
            raise TypeError("disable: expected several names, found a string")
        options = (num_threads, signature, cache_dir, list(disable), "xnnpack")
        if isinstance(model, (bytes, bytearray, memoryview)):
            runner = _native.Runner.from_bytes(bytes(model), *options)
        else:
            runner = _native.Runner.open(os.fspath(model), *options)
        self._adopt(runner)

    def _adopt(self, runner: _native.Runner) -> None:
        self._runner = runner
        self._refresh()

    def _refresh(self) -> None:
        self._inputs = _infos(self._runner.inputs())
        self._outputs = _infos(self._runner.outputs())
        self._is_whole = self._runner.is_whole

    @property
    def inputs(self) -> list[TensorInfo]:
        """Descriptions of the inputs, in the model's order."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[TensorInfo]:
        """Descriptions of the outputs, in the model's order.

        The shape is ``(0,)`` before the first run if it is known in a run only.
        """
        return list(self._outputs)

    @property
    def coverage(self) -> Coverage:
        """Number of operators that run on XNNPACK."""
        return Coverage(*self._runner.coverage)

    @property
    def num_threads(self) -> int:
        """Largest number of threads that compute."""
        return self._runner.threads

    def run(
        self,
        inputs: Mapping[Key, object] | np.ndarray | None = None,
        out: Mapping[Key, np.ndarray] | None = None,
    ) -> dict[Key, np.ndarray]:
        """Fills inputs, computes, and returns the outputs by name; by position if they have no names.

        Args:
            inputs: Arrays by name or by position, or the array of the only input. Objects with ``__dlpack__`` are read
                without a copy of their own. An input is resized if its array has another shape. Inputs that are not
                given keep their elements.
            out: Arrays that receive outputs, by name or by position. XNNPACK writes to them directly if it runs all
                operators and they are aligned to 16 bytes.

        Raises:
            KeyError: There is no such input or output.
            ValueError: An array has another element type, or a shape that the model does not accept.
            RuntimeError: The run fails, or an array that views a tensor is in the way (see :meth:`input`).
        """
        if inputs is not None:
            self._fill(inputs)
        given = {} if out is None else {self._output(key): array for key, array in out.items()}
        if not self._is_whole:
            self._runner.run()
            self._outputs = _infos(self._runner.outputs())
            results = [self._copied(position, given.get(position)) for position in range(len(self._outputs))]
            return self._named(results)
        results = []
        for position, info in enumerate(self._outputs):
            array = given.get(position)
            if array is None:
                array = np.empty(info.shape, info.dtype)
            else:
                _expect(f"output {_label(position, info)}", array, info)
            results.append(array)
        direct = [(position, array) for position, array in enumerate(results) if _is_dense(array)]
        self._runner.run_into(direct)
        for position, array in enumerate(results):
            if not _is_dense(array):
                self._copied(position, array)
        return self._named(results)

    __call__ = run

    def input(self, key: Key = 0) -> np.ndarray:
        """An array that views the session's memory for an input, to be filled.

        It stays valid from run to run if XNNPACK runs all operators. Otherwise tensors move: a run raises RuntimeError as
        long as the array exists. The same applies to a change of shapes in any model.
        """
        return np.asarray(self._runner.input(self._input(key)))

    def output(self, key: Key = 0) -> np.ndarray:
        """A read-only array that views an output of the last run without ``out``. The rules of :meth:`input` apply."""
        return np.asarray(self._runner.output(self._output(key)))

    def resize(self, shapes: Mapping[Key, Sequence[int]]) -> None:
        """Gives inputs other shapes, all at once. These inputs lose their elements, and the model its state.

        Raises:
            KeyError: There is no such input.
            ValueError: A dimension is negative.
            RuntimeError: The model cannot be computed with these shapes. The session is unchanged then.
        """
        dims = []
        for key, shape in shapes.items():
            if any(dim < 0 for dim in shape):
                raise ValueError(f"input {key!r}: negative dimensions in {tuple(shape)}")
            dims.append((self._input(key), list(shape)))
        self._runner.resize(dims)
        self._refresh()

    def reset_variables(self) -> None:
        """Sets variables and the state of recurrent operators to their initial values."""
        self._runner.reset_variables()

    def fork(self) -> Session:
        """Another session of the same model, for another thread. It shares constants and packed weights."""
        fork = Session.__new__(Session)
        fork._adopt(self._runner.fork())
        return fork

    def __repr__(self) -> str:
        delegated, operators, _, _ = self.coverage
        names = ", ".join(repr(info.name) for info in self._inputs)
        return f"<xnn_delegate.Session of {operators} operators, {delegated} on XNNPACK; inputs: {names}>"

    def _fill(self, inputs: Mapping[Key, object] | np.ndarray) -> None:
        if not isinstance(inputs, Mapping):
            if len(self._inputs) != 1:
                raise ValueError(f"expected a dictionary of {len(self._inputs)} inputs, found a single value")
            inputs = {0: inputs}
        arrays = {}
        for key, value in inputs.items():
            position = self._input(key)
            info = self._inputs[position]
            array = as_array(value, info.dtype.type)
            if info.dtype.kind != "S" and array.dtype != info.dtype:
                what = f"input {_label(position, info)}"
                raise ValueError(f"{what}: expected elements of type {info.dtype}, found {array.dtype}")
            arrays[position] = array
        shapes = {
            position: array.shape for position, array in arrays.items() if array.shape != self._inputs[position].shape
        }
        if shapes:
            self.resize(shapes)
        for position, array in arrays.items():
            if self._inputs[position].dtype.kind == "S":
                self._runner.set_strings(position, text_strings(array))
            else:
                np.copyto(np.asarray(self._runner.input(position)), array)

    def _copied(self, position: int, array: np.ndarray | None) -> np.ndarray:
        info = self._outputs[position]
        if info.dtype.kind == "S":
            found = np.array(self._runner.output_strings(position), dtype=object).reshape(info.shape)
        else:
            found = np.asarray(self._runner.output(position))
        if array is None:
            return found.copy()
        _expect(f"output {_label(position, info)}", array, info)
        np.copyto(array, found)
        return array

    def _named(self, results: list[np.ndarray]) -> dict[Key, np.ndarray]:
        names = [info.name for info in self._outputs]
        unique = len(set(names)) == len(names)
        return {(name if name and unique else position): results[position] for position, name in enumerate(names)}

    def _input(self, key: Key) -> int:
        return _position("input", self._inputs, key)

    def _output(self, key: Key) -> int:
        return _position("output", self._outputs, key)


def _infos(specs: list[tuple]) -> tuple[TensorInfo, ...]:
    return tuple(
        TensorInfo(name, tuple(dims), np.dtype(NUMPY_TYPES.get(dtype, np.void)), quantization)
        for name, dtype, dims, quantization in specs
    )


def _label(position: int, info: TensorInfo) -> str:
    return f"{position} {info.name!r}" if info.name else str(position)


def _position(side: str, infos: Sequence[TensorInfo], key: Key) -> int:
    if isinstance(key, str):
        for position, info in enumerate(infos):
            if info.name == key and key:
                return position
    elif 0 <= key < len(infos):
        return int(key)
    known = ", ".join(_label(position, info) for position, info in enumerate(infos)) or "none"
    raise KeyError(f"no {side} {key!r}; the {side}s are: {known}")


def _is_dense(array: np.ndarray) -> bool:
    return array.flags.c_contiguous and array.flags.writeable


def _expect(what: str, array: np.ndarray, info: TensorInfo) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{what}: expected a numpy array, found {type(array).__name__}")
    if array.shape != info.shape or (info.dtype.kind != "S" and array.dtype != info.dtype):
        expected = f"{info.dtype} of shape {info.shape}"
        raise ValueError(f"{what}: expected an array of {expected}, found {array.dtype} of shape {array.shape}")
    if not array.flags.writeable:
        raise ValueError(f"{what}: the array is read-only")
