"""Conversion, explanation, verification and metadata of models."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from . import _native
from ._types import NUMPY_TYPES, as_array

Path_ = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Tensor:
    """A tensor of an operator or partition."""

    #: Index in the subgraph.
    index: int
    #: Name in the file.
    name: str
    #: Element type, such as ``"f32"``.
    dtype: str
    #: Dimensions; None if unknown.
    shape: Optional[tuple[int, ...]]


@dataclass(frozen=True)
class Reason:
    """Why an operator is not delegated."""

    #: Identifier of the reason.
    code: str
    #: The reason in one sentence.
    message: str


@dataclass(frozen=True)
class Operator:
    """The decision about an operator."""

    #: Index in the subgraph.
    index: int
    #: Name, such as ``"CONV_2D"``.
    op: str
    #: Inputs without absent ones.
    inputs: tuple[Tensor, ...]
    #: Outputs.
    outputs: tuple[Tensor, ...]
    #: The partition that runs it; None if it is not delegated.
    partition: Optional[int]
    #: The group with which it is delegated during a run, when its shapes are known.
    deferred: Optional[int]
    #: Why it is not delegated.
    reason: Optional[Reason]

    @property
    def delegated(self) -> bool:
        """Whether XNNPACK runs the operator."""
        return self.partition is not None


@dataclass(frozen=True)
class Partition:
    """Operators that XNNPACK runs together."""

    #: Indices of the operators.
    operators: tuple[int, ...]
    #: Multiply-accumulates of one run.
    macs: int
    #: Boundary tensors that it reads.
    inputs: tuple[Tensor, ...]
    #: Boundary tensors that it writes.
    outputs: tuple[Tensor, ...]
    #: Bytes of inputs and outputs together.
    boundary_bytes: int


@dataclass(frozen=True)
class Explanation:
    """Decisions about all operators of a subgraph. ``str`` gives the text of ``xnn explain``."""

    operators: tuple[Operator, ...]
    partitions: tuple[Partition, ...]
    #: The result in one line.
    summary: str
    _text: str

    @property
    def fully_delegated(self) -> bool:
        """Whether XNNPACK runs all operators."""
        return all(operator.delegated for operator in self.operators)

    @property
    def not_delegated(self) -> tuple[Operator, ...]:
        """Operators that XNNPACK does not run."""
        return tuple(operator for operator in self.operators if not operator.delegated)

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Deviation:
    """Deviation of a tensor from the reference kernels, at the element with the largest distance."""

    #: Index of the subgraph.
    subgraph: int
    #: Index of the operator that computes the tensor; None if no operator does.
    operator: Optional[int]
    #: Name of the operator.
    op: str
    #: Index of the tensor.
    tensor: int
    #: Name of the tensor.
    name: str
    #: ``"steps"`` of quantized integers, fractions of the ``"range"`` of floats, or ``"exact"``.
    scale: str
    #: Distance in that unit.
    distance: float
    #: Distance that rounding explains.
    rounding: Optional[float]
    #: Position of the element.
    element: int
    #: Element of the reference.
    expected: float
    #: Element that XNNPACK computed.
    actual: float


@dataclass(frozen=True)
class Skipped:
    """A delegated operator that could not be compared."""

    subgraph: int
    operator: int
    op: str
    reason: str


@dataclass(frozen=True)
class Verification:
    """Comparison of delegated operators with the reference kernels."""

    #: Deviation of each output of each delegated operator.
    operators: tuple[Deviation, ...]
    #: Deviation of each output of the model, with all operators delegated together.
    outputs: tuple[Deviation, ...]
    #: Delegated operators that could not be compared.
    skipped: tuple[Skipped, ...]
    #: Deviations of operators above the tolerance of ``xnn verify``: one step of quantized integers, and 1e-5 of the range
    #: of floats or what rounding explains.
    beyond: tuple[Deviation, ...]

    @property
    def ok(self) -> bool:
        """Whether no operator deviates by more than the tolerance."""
        return not self.beyond


@dataclass(frozen=True)
class Metadata:
    """Documentation that a model or ``.xnn`` file carries."""

    #: Fields of the TFLite metadata schema, without those that are empty.
    fields: Mapping[str, Any]
    #: Content of associated files by name.
    files: Mapping[str, bytes]

    @property
    def name(self) -> str:
        """Name of the model; empty if unknown."""
        return self.fields.get("name", "")

    @property
    def description(self) -> str:
        """Description of the model; empty if unknown."""
        return self.fields.get("description", "")

    def labels(self) -> list[str]:
        """Lines of the first file of labels that an output names; empty without one."""
        for graph in self.fields.get("subgraph_metadata", []):
            for output in graph.get("output_tensor_metadata", []):
                for file in output.get("associated_files", []):
                    if file.get("type") in ("TENSOR_AXIS_LABELS", "TENSOR_VALUE_LABELS"):
                        text = self.files.get(file.get("name", ""), b"").decode("utf-8")
                        return text.splitlines()
        return []


def convert(
    model: Path_,
    output: Path_ | None = None,
    *,
    require_full: bool = False,
    pack: bool = False,
    disable: Iterable[str] = (),
    compat: str | None = None,
) -> Path:
    """Converts a fully delegated model to an ``.xnn`` file, and another model to a model that holds such files.

    Args:
        model: Path of a TFLite or Circle model.
        output: Path of the file to write. Default: that of the model with the extension ``.xnn``, or ``.xnn.tflite`` or
            ``.xnn.circle`` if the model is not fully delegated.
        require_full: Fail if the model is not fully delegated.
        pack: Also store weights as XNNPACK packs them for this processor, so that it loads the file without packing.
        disable: Names of operators that are not delegated.
        compat: ``"executorch"`` writes only nodes that ExecuTorch 0.4 and later supports.

    Returns:
        The path of the file.

    Raises:
        ValueError: The model is not valid, or is not fully delegated although that is required. The error lists the operators.
    """
    if compat not in (None, "executorch"):
        raise ValueError(f'compat: expected "executorch", found {compat!r}')
    model = Path(model)
    content, is_whole = _native.convert(model, list(disable), require_full, pack, compat is not None)
    if output is None:
        extension = ".xnn" if is_whole else ".xnn" + (model.suffix or ".tflite")
        output = model.with_suffix(extension)
    output = Path(output)
    if output.exists() and output.samefile(model):
        raise ValueError(f"{output}: the output would overwrite its input")
    # Readers see the old file or the new one.
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return output


def explain(model: Path_, *, subgraph: int = 0, disable: Iterable[str] = ()) -> Explanation:
    """Tells for each operator whether XNNPACK runs it, and the reason if not.

    ::

        for operator in xnn_delegate.explain("ssd.tflite").not_delegated:
            print(operator.op, operator.reason.message)
    """
    text, report = _native.explain(model, subgraph, list(disable))
    report = json.loads(report)
    return Explanation(
        operators=tuple(
            Operator(
                index=node["index"],
                op=node["op"],
                inputs=_tensors(node["inputs"]),
                outputs=_tensors(node["outputs"]),
                partition=node["partition"],
                deferred=node.get("deferred"),
                reason=None if node["reason"] is None else Reason(**node["reason"]),
            )
            for node in report["nodes"]
        ),
        partitions=tuple(
            Partition(
                operators=tuple(partition["nodes"]),
                macs=partition["macs"],
                inputs=_tensors(partition["inputs"]),
                outputs=_tensors(partition["outputs"]),
                boundary_bytes=partition["boundary_bytes"],
            )
            for partition in report["partitions"]
        ),
        summary=report["summary"],
        _text=text,
    )


def verify(
    model: Path_,
    inputs: Mapping[Union[str, int], object] | None = None,
    *,
    num_threads: int = 1,
    signature: str | None = None,
    disable: Iterable[str] = (),
    seed: int = 0,
) -> Verification:
    """Compares each operator that XNNPACK runs with its reference kernel, on the reference's inputs.

    Args:
        model: Path of a TFLite or Circle model that is not converted.
        inputs: Arrays by name or by position. Other inputs are random.
        num_threads: Number of threads that compute.
        signature: Key of the signature to verify. Default: the main subgraph.
        disable: Names of operators that are not delegated.
        seed: Seed of random inputs.
    """
    given = dict(inputs or {})
    random = np.random.default_rng(seed)

    def fill(described: list[tuple]) -> list[tuple]:
        filled = []
        for position, (name, dtype, dims, limit) in enumerate(described):
            if dtype == "string":
                continue
            wanted = np.dtype(NUMPY_TYPES[dtype])
            key = name if name in given else position
            if key in given:
                array = as_array(given.pop(key), wanted.type)
                if array.dtype != wanted:
                    raise ValueError(f"input {name!r}: expected elements of type {wanted}, found {array.dtype}")
            else:
                array = _random(random, wanted, dims, limit)
            filled.append((position, list(array.shape), np.ascontiguousarray(array).tobytes()))
        if given:
            known = ", ".join(repr(name) for name, *_ in described)
            raise KeyError(f"no input {next(iter(given))!r}; the inputs are: {known}")
        return filled

    result = json.loads(_native.verify(model, num_threads, signature, list(disable), fill))
    report = result["report"]
    operators = _deviations(report["operators"])
    within = zip(operators, result["within"])
    return Verification(
        operators=operators,
        outputs=_deviations(report["outputs"]),
        skipped=tuple(Skipped(**skipped) for skipped in report["skipped"]),
        beyond=tuple(deviation for deviation, is_within in within if not is_within),
    )


def metadata(model: Path_) -> Metadata | None:
    """Reads the metadata of a model or ``.xnn`` file; None if it has none.

    ::

        labels = xnn_delegate.metadata("mobilenet.tflite").labels()
    """
    described = _native.metadata(model)
    if described is None:
        return None
    fields, files = described
    return Metadata(fields=json.loads(fields), files=dict(files))


def _tensors(entries: list[dict]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(entry["id"], entry["name"], entry["dtype"], None if entry["shape"] is None else tuple(entry["shape"]))
        for entry in entries
    )


def _deviations(entries: list[dict]) -> tuple[Deviation, ...]:
    # JSON has null for NaN and infinity. A distance is never NaN.
    def number(value: float | None, other: float = float("nan")) -> float:
        return other if value is None else value

    return tuple(
        Deviation(
            subgraph=entry["subgraph"],
            operator=entry["operator"],
            op=entry["op"],
            tensor=entry["tensor"],
            name=entry["name"],
            scale=entry["scale"],
            distance=number(entry["distance"], float("inf")),
            rounding=entry["rounding"],
            element=entry["element"],
            expected=number(entry["expected"]),
            actual=number(entry["actual"]),
        )
        for entry in entries
    )


def _random(random: np.random.Generator, dtype: np.dtype, dims: list[int], limit: int | None) -> np.ndarray:
    if dtype.kind == "f":
        return random.uniform(-1, 1, dims).astype(dtype)
    if dtype.kind == "c":
        return (random.uniform(-1, 1, dims) + 1j * random.uniform(-1, 1, dims)).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, dims).astype(dtype)
    if dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, dims, dtype=dtype, endpoint=True)
    # Wider integers are often indices or sizes.
    return random.integers(0, limit or 8, dims).astype(dtype)
