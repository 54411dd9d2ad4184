"""Descriptions of tensors and operators in the form of ``ai_edge_litert.interpreter``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._types import NUMPY_TYPES

#: Types as interpreters describe them: packed integers by their elements, handles without elements as objects.
_TYPES = {**NUMPY_TYPES, "i4": np.int8, "i2": np.int8, "u4": np.uint8, "resource": np.object_}

#: Types in error messages.
TYPE_NAMES = {
    np.float16: "FLOAT16",
    np.float32: "FLOAT32",
    np.float64: "FLOAT64",
    np.int8: "INT8",
    np.int16: "INT16",
    np.int32: "INT32",
    np.int64: "INT64",
    np.uint8: "UINT8",
    np.uint16: "UINT16",
    np.uint32: "UINT32",
    np.uint64: "UINT64",
    np.bool_: "BOOL",
    np.complex64: "COMPLEX64",
    np.complex128: "COMPLEX128",
    np.bytes_: "STRING",
    np.str_: "STRING",
    np.object_: "STRING",
}


def static(model: _native.Model, subgraph: int, tensor: int) -> dict[str, Any]:
    """The description of a tensor as the file states it. The shape signature is None without one."""
    name, dtype, shape, signature, quantization, sparsity = model.tensor(subgraph, tensor)
    scales, zero_points, dimension, block_size = quantization
    is_per_tensor = len(scales) == 1 and not block_size
    # Scales of blocks are a tensor of half floats.
    scales = np.array(scales, dtype=np.float16 if block_size else np.float32)
    return {
        "name": name,
        "index": tensor,
        "shape": np.array(shape, dtype=np.int32),
        "shape_signature": np.array(signature, dtype=np.int32) if signature else None,
        "dtype": _TYPES.get(dtype, np.void),
        "quantization": (float(scales[0]), zero_points[0]) if is_per_tensor else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": np.array(zero_points, dtype=np.int32),
            "quantized_dimension": dimension,
            "block_size": block_size,
        },
        "sparsity_parameters": _sparsity(sparsity),
    }


def with_shape(description: dict[str, Any], shape: Sequence[int] | None) -> dict[str, Any]:
    """A copy of the description, which the caller may change, with the present shape."""
    parameters = description["quantization_parameters"]
    signature = description["shape_signature"]
    present = np.array(description["shape"] if shape is None else shape, dtype=np.int32)
    return {
        **description,
        "shape": present,
        "shape_signature": (present if signature is None else signature).copy(),
        "quantization_parameters": {
            **parameters,
            "scales": parameters["scales"].copy(),
            "zero_points": parameters["zero_points"].copy(),
        },
        "sparsity_parameters": _sparsity(description["sparsity_parameters"]),
    }


def operators(described: list[tuple], types: Sequence[type]) -> list[dict[str, Any]]:
    """Descriptions of operators."""
    details = []
    for index, (name, inputs, outputs) in enumerate(described):
        details.append(
            {
                "index": index,
                "op_name": name,
                "inputs": np.array([-1 if tensor is None else tensor for tensor in inputs], dtype=np.int32),
                "outputs": np.array(outputs, dtype=np.int32),
                "operand_types": [types[tensor] for tensor in inputs if tensor is not None],
                "result_types": [types[tensor] for tensor in outputs],
            }
        )
    return details


def _sparsity(sparsity: dict[str, Any]) -> dict[str, Any]:
    if not sparsity:
        return {}
    copy: dict[str, Any] = {"traversal_order": np.array(sparsity["traversal_order"], dtype=np.int32)}
    if len(sparsity.get("block_map", ())):
        copy["block_map"] = np.array(sparsity["block_map"], dtype=np.int32)
    copy["dim_metadata"] = [
        {key: value if isinstance(value, int) else np.array(value, dtype=np.int32) for key, value in dimension.items()}
        for dimension in sparsity["dim_metadata"]
    ]
    return copy
