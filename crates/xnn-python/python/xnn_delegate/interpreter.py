"""The interface of ``ai_edge_litert.interpreter`` on this project's interpreter.

::

    from xnn_delegate.interpreter import Interpreter

replaces ``from ai_edge_litert.interpreter import Interpreter``. ``docs/python.md`` lists the differences.
"""

from __future__ import annotations

import enum
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _details, _native
from ._subgraph import Subgraph

_HELD = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""

_NO_DELEGATES = (
    "xnn_delegate.Interpreter runs on XNNPACK by itself and loads no delegates; leave out experimental_delegates, or pass "
    "xnn_delegate.delegate() to the interpreter of ai_edge_litert"
)


@enum.unique
class OpResolverType(enum.Enum):
    """Kernels that run operators."""

    #: XNNPACK, and reference kernels for operators that are not delegated.
    AUTO = 0
    #: The same as :attr:`AUTO`.
    BUILTIN = 1
    #: Reference kernels.
    BUILTIN_REF = 2
    #: Reference kernels: this project has no others.
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


_KERNELS = {
    OpResolverType.AUTO: "xnnpack",
    OpResolverType.BUILTIN: "xnnpack",
    OpResolverType.BUILTIN_REF: "reference",
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES: "reference",
}


class Interpreter:
    """A TFLite or Circle model with the interface of ``ai_edge_litert.interpreter.Interpreter``.

    Args:
        model_path: Path of the model.
        model_content: Content of the model.
        experimental_delegates: Must be empty.
        num_threads: Number of threads that compute. Default: 1.
        experimental_op_resolver_type: Kernels that run operators.
        experimental_preserve_all_tensors: Keep the values of intermediate tensors. All operators then run on reference
            kernels.
        experimental_disable_delegate_clustering: No effect.
        experimental_default_delegate_latest_features: No effect.
        experimental_compress_quantization_zero_points: No effect.
        experimental_disable_delegate_node_fusion: No effect.
        experimental_force_delegate_node_profiling: No effect.

    Raises:
        ValueError: The model cannot be read, or an argument is not valid.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
    ) -> None:
        kernels = _KERNELS.get(_resolver(experimental_op_resolver_type))
        if kernels is None:
            raise ValueError(f"Unrecognized passed in op resolver type: {experimental_op_resolver_type}")
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        if experimental_delegates:
            raise ValueError(_NO_DELEGATES)
        if model_path and model_content:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        if not model_path and not model_content:
            raise ValueError("`model_path` or `model_content` must be specified.")
        self._model = _from_path(os.fspath(model_path)) if model_path else _from_content(model_content)
        kernels = "preserve" if experimental_preserve_all_tensors else kernels
        threads = int(num_threads or 1)
        self._compress_zero_points = experimental_compress_quantization_zero_points
        self._subgraphs = [
            Subgraph(self._model, index, threads, kernels) for index in range(self._model.subgraphs)
        ]
        self._main = self._subgraphs[0]
        self._signatures = {
            key: (subgraph, dict(inputs), dict(outputs)) for key, subgraph, inputs, outputs in self._model.signatures
        }

    def allocate_tensors(self) -> None:
        """Makes the main subgraph ready to run, with the shapes of its inputs.

        Raises:
            RuntimeError: An operator is not supported, the model cannot be computed with these shapes, or an array that
                :meth:`tensor` gave still exists.
        """
        self._ensure_safe()
        self._main.allocate()

    def invoke(self) -> None:
        """Computes the outputs. Releases the GIL.

        Raises:
            RuntimeError: :meth:`allocate_tensors` was not called, an array that :meth:`tensor` gave still exists, or the run
                fails.
        """
        self._ensure_safe()
        self._main.invoke()

    def get_input_details(self) -> list[dict[str, Any]]:
        """Descriptions of the inputs."""
        return self._main.details(self._main.inputs)

    def get_output_details(self) -> list[dict[str, Any]]:
        """Descriptions of the outputs."""
        return self._main.details(self._main.outputs)

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Descriptions of all tensors of a subgraph.

        Raises:
            ValueError: There is no such subgraph.
        """
        count = len(self._subgraphs)
        if not 0 <= subgraph_index < count:
            raise ValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model, which has {count} subgraphs."
            )
        subgraph = self._subgraphs[subgraph_index]
        return subgraph.details(range(subgraph.count))

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies elements to an input.

        Raises:
            ValueError: The tensor is not an input, is not allocated, or has another element type or shape.
        """
        self._main.set(tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Any:
        """A copy of a tensor's value.

        Raises:
            ValueError: There is no such tensor, or it has no value.
        """
        return self._find(subgraph_index).get(tensor_index)

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that returns an array which views a tensor.

        Do not hold the array: :meth:`invoke`, :meth:`allocate_tensors` and :meth:`resize_tensor_input` raise RuntimeError as
        long as it exists. Arrays of tensors other than inputs are read-only.
        """
        return lambda: self._main.view(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Gives an input another shape, which :meth:`allocate_tensors` applies.

        Args:
            input_index: Index of the input's tensor.
            tensor_size: The shape.
            strict: Whether only dimensions that are -1 in the shape signature may change.

        Raises:
            RuntimeError: There is no such input, the shape is not possible, or an array that :meth:`tensor` gave still exists.
        """
        self._ensure_safe()
        shape = np.array(tensor_size, dtype=np.int32)
        if shape.ndim != 1:
            raise ValueError(f"Shape should be 1D instead of {shape.ndim}.")
        self._main.resize(input_index, shape.tolist(), strict)

    def reset_all_variables(self) -> None:
        """Sets variables and the state of recurrent operators to their initial values."""
        for subgraph in self._subgraphs:
            subgraph.reset()

    def num_subgraphs(self) -> int:
        """Number of subgraphs in the model."""
        return len(self._subgraphs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Names of the inputs and outputs of each signature."""
        return {
            key: {"inputs": list(inputs), "outputs": list(outputs)}
            for key, (_, inputs, outputs) in self._signatures.items()
        }

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature with keyword arguments.

        Raises:
            ValueError: There is no such signature, or there are several and none was named.
        """
        if signature_key is None:
            if len(self._signatures) != 1:
                raise ValueError(
                    f"SignatureDef signature_key is None and model has {len(self._signatures)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(self._signatures))
        return SignatureRunner(interpreter=self, signature_key=signature_key)

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The argument of that name."""
        return self._compress_zero_points

    def _find(self, subgraph_index: int) -> Subgraph:
        subgraph_index = operator.index(subgraph_index)
        if not 0 <= subgraph_index < len(self._subgraphs):
            count = len(self._subgraphs)
            raise ValueError(f"Invalid subgraph index {subgraph_index} exceeds max subgraph index {count}")
        return self._subgraphs[subgraph_index]

    def _safe_to_run(self) -> bool:
        """Whether no arrays view tensors."""
        return not any(subgraph.runner.views for subgraph in self._subgraphs if subgraph.runner is not None)

    def _ensure_safe(self) -> None:
        if not self._safe_to_run():
            raise RuntimeError(_HELD)

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return {
            key: {"inputs": dict(inputs), "outputs": dict(outputs)}
            for key, (_, inputs, outputs) in self._signatures.items()
        }

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        subgraph = self._find(int(subgraph_index))
        return subgraph.details([subgraph.check(int(tensor_index))])[0]

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        operators = self._get_ops_details()
        if not 0 <= op_index < len(operators):
            raise ValueError("Invalid node index")
        return operators[op_index]

    def _get_ops_details(self) -> list[dict[str, Any]]:
        types = [_details.static(self._model, 0, tensor)["dtype"] for tensor in range(self._main.count)]
        return _details.operators(self._model.operators(0), types)


class InterpreterWithCustomOps(Interpreter):
    """:class:`Interpreter` for callers that register custom operators, which is not possible."""

    def __init__(self, custom_op_registerers: Sequence[Any] | None = None, **kwargs: Any) -> None:
        if custom_op_registerers:
            raise ValueError("custom_op_registerers: custom operators cannot be registered with xnn_delegate.Interpreter")
        super().__init__(**kwargs)


class SignatureRunner:
    """Runs a signature: a function of its inputs, as keyword arguments, that returns its outputs by name.

    :meth:`Interpreter.get_signature_runner` creates it.
    """

    def __init__(self, interpreter: Interpreter | None = None, signature_key: str | None = None) -> None:
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        if signature_key not in interpreter._signatures:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')
        self._interpreter = interpreter
        subgraph, self._inputs, self._outputs = interpreter._signatures[signature_key]
        self._subgraph = interpreter._find(subgraph)

    def __call__(self, **kwargs: Any) -> dict[str, Any]:
        """Runs the signature. Inputs take the shapes of the arrays.

        Raises:
            ValueError: Inputs are missing, unknown, or of another element type.
            RuntimeError: The signature cannot be computed with these shapes, or the run fails.
        """
        if len(kwargs) != len(self._inputs):
            raise ValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(kwargs)}"
            )
        self._interpreter._ensure_safe()
        for name, value in kwargs.items():
            if name not in self._inputs:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            self._subgraph.resize(self._inputs[name], list(value.shape), strict=False)
        self._subgraph.allocate()
        for name, value in kwargs.items():
            self._subgraph.set(self._inputs[name], value)
        self._subgraph.invoke()
        return {name: self._subgraph.get(tensor) for name, tensor in self._outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the inputs by name."""
        return self._details(self._inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Descriptions of the outputs by name."""
        return self._details(self._outputs)

    def _details(self, tensors: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        return {name: self._subgraph.details([tensor])[0] for name, tensor in tensors.items()}


class Delegate:
    """Has no instances: this interpreter runs on XNNPACK by itself and loads no delegates."""

    def __init__(self, library: str, options: Mapping[str, Any] | None = None) -> None:
        del library, options
        raise ValueError(_NO_DELEGATES)


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Raises ValueError, as for a library that cannot be loaded: see :class:`Delegate`."""
    try:
        return Delegate(library, options)
    except ValueError as error:
        raise ValueError(f"Failed to load delegate from {library}\n{error}") from None


def _resolver(value: Any) -> OpResolverType | None:
    if isinstance(value, OpResolverType):
        return value
    # The enumeration of the package whose import was replaced.
    if isinstance(value, enum.Enum) and type(value).__name__ == "OpResolverType":
        return OpResolverType.__members__.get(value.name)
    return None


def _from_path(path: str) -> _native.Model:
    try:
        if _native.is_blob(path):
            raise ValueError(f"{path} is an .xnn file, which has no tensors of a model; open it with xnn_delegate.Session")
        return _read(_native.Model.open, path)
    except OSError as error:
        raise ValueError(f"Could not open '{path}'. {error}") from error


def _from_content(content: Any) -> _native.Model:
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"model_content: expected bytes, found {type(content).__name__}")
    return _read(_native.Model.from_bytes, bytes(content))


def _read(read: Callable[[Any], _native.Model], source: Any) -> _native.Model:
    try:
        return read(source)
    except ValueError as error:
        # Programs look for the beginning.
        raise ValueError(f"The model is not a valid Flatbuffer buffer, or is not supported: {error}") from error
