"""Element types of tensors as types of numpy."""

from __future__ import annotations

import os
from typing import Union

import numpy as np

#: A path, or the content of a file.
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]

#: Types by the names that the extension module gives them. Numpy has no bfloat16 and no packed integers: arrays of these
#: hold the raw bits.
NUMPY_TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "i4": np.uint8,
    "i2": np.uint8,
    "u4": np.uint8,
    "bool": np.bool_,
    "string": np.bytes_,
    "c64": np.complex64,
    "c128": np.complex128,
}


def as_array(value: object, dtype: type | None = None) -> np.ndarray:
    """An array of the value, without a copy if it is an array or has ``__dlpack__``.

    ``dtype`` applies to values without a type of their own, such as lists.
    """
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    return np.asarray(value, dtype=dtype)


def text_strings(array: np.ndarray) -> list[bytes]:
    """The elements of an array of strings as bytes, in row-major order.

    Numpy's arrays of bytes drop zeros at the end of an element. This function keeps them, as interpreters do: elements
    shorter than the longest one end at their last other byte, unless the array has only one element.
    """
    if array.dtype.kind == "S" and array.size == 1:
        return [np.ascontiguousarray(array).tobytes()]
    return [_bytes(element) for element in array.ravel().tolist()]


def _bytes(element: object) -> bytes:
    if isinstance(element, str):
        return element.encode()
    if isinstance(element, bytes):
        return element
    raise TypeError(f"expected strings, found an element of type {type(element).__name__}")
