"""Builds .tflite files from plain descriptions of tensors and operators."""

from dataclasses import dataclass

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TENSOR_TYPES = {
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.float16): schema.TensorType.FLOAT16,
    np.dtype(np.int8): schema.TensorType.INT8,
    np.dtype(np.uint8): schema.TensorType.UINT8,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.int64): schema.TensorType.INT64,
    np.dtype(np.bool_): schema.TensorType.BOOL,
}
CONSTANT_ALIGNMENT = 16
SCHEMA_VERSION = 3
# The oldest version of these that readers register; 1 for all others.
OPERATOR_VERSIONS = {"BROADCAST_TO": 2}


@dataclass(frozen=True)
class Quantization:
    """real = scale * (quantized - zero_point); several scales: one for each index of `axis`."""

    scales: tuple
    zero_points: tuple
    axis: int = 0


@dataclass(frozen=True)
class Tensor:
    """A tensor of the subgraph; a constant if it has `data`."""

    dtype: np.dtype
    shape: tuple
    quantization: Quantization | None = None
    data: np.ndarray | None = None


@dataclass(frozen=True)
class Operator:
    """`code` is a member of BuiltinOperator, `options` a table's name with its fields (or None);
    `inputs` and `outputs` number the tensors, -1 for an absent optional input."""

    code: str
    inputs: tuple
    outputs: tuple
    options: tuple[str, dict] | None = None


def build(tensors, operators, inputs, outputs):
    """The bytes of a model with one subgraph."""
    model = schema.ModelT()
    model.version = SCHEMA_VERSION
    model.buffers = [AlignedBuffer(b"")]
    subgraph = schema.SubGraphT()
    subgraph.name = "main"
    subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
    subgraph.tensors = [pack_tensor(tensor, f"t{i}", model.buffers) for i, tensor in enumerate(tensors)]
    codes = sorted({operator.code for operator in operators})
    model.operatorCodes = [pack_code(code) for code in codes]
    subgraph.operators = [pack_operator(operator, codes.index(operator.code)) for operator in operators]
    model.subgraphs = [subgraph]

    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


class AlignedBuffer(schema.BufferT):
    """A buffer whose data is aligned as the schema's force_align asks, which the Python builder ignores."""

    def __init__(self, data):
        super().__init__()
        self.aligned = data

    def Pack(self, builder):
        vector = None
        if self.aligned:
            size = len(self.aligned)
            builder.StartVector(1, size, CONSTANT_ALIGNMENT)
            builder.head -= size
            builder.Bytes[builder.head : builder.head + size] = self.aligned
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if vector is not None:
            schema.BufferAddData(builder, vector)
        return schema.BufferEnd(builder)


def pack_tensor(tensor, name, buffers):
    packed = schema.TensorT()
    packed.name = name
    packed.type = TENSOR_TYPES[np.dtype(tensor.dtype)]
    packed.shape = [int(size) for size in tensor.shape]
    packed.buffer = 0
    if tensor.data is not None:
        packed.buffer = len(buffers)
        buffers.append(AlignedBuffer(np.ascontiguousarray(tensor.data, tensor.dtype).tobytes()))
    if tensor.quantization is not None:
        packed.quantization = schema.QuantizationParametersT()
        packed.quantization.scale = list(tensor.quantization.scales)
        packed.quantization.zeroPoint = list(tensor.quantization.zero_points)
        packed.quantization.quantizedDimension = tensor.quantization.axis
    return packed


def pack_code(code):
    packed = schema.OperatorCodeT()
    packed.builtinCode = getattr(schema.BuiltinOperator, code)
    # Readers take the larger of the two; the old field is one signed byte.
    packed.deprecatedBuiltinCode = min(packed.builtinCode, schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    packed.version = OPERATOR_VERSIONS.get(code, 1)
    return packed


def pack_operator(operator, opcode_index):
    packed = schema.OperatorT()
    packed.opcodeIndex = opcode_index
    packed.inputs, packed.outputs = list(operator.inputs), list(operator.outputs)
    if operator.options is not None:
        table, fields = operator.options
        packed.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        packed.builtinOptions = getattr(schema, table + "T")()
        for field, value in fields.items():
            if not hasattr(packed.builtinOptions, field):
                raise AttributeError(f"{table} has no field {field}")
            setattr(packed.builtinOptions, field, value)
    return packed
