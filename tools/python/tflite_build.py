"""Builds .tflite files from plain descriptions of tensors and operators."""

from dataclasses import dataclass

import flatbuffers
import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TENSOR_TYPES = {
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.float16): schema.TensorType.FLOAT16,
    np.dtype(np.float64): schema.TensorType.FLOAT64,
    np.dtype(np.complex64): schema.TensorType.COMPLEX64,
    np.dtype(np.complex128): schema.TensorType.COMPLEX128,
    np.dtype(np.int8): schema.TensorType.INT8,
    np.dtype(np.uint8): schema.TensorType.UINT8,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.int64): schema.TensorType.INT64,
    np.dtype(np.bool_): schema.TensorType.BOOL,
    np.dtype(ml_dtypes.int4): schema.TensorType.INT4,
}
INT4 = np.dtype(ml_dtypes.int4)
# Types of strings, which have any length, and of handles of hash tables, which have no elements.
STRING, RESOURCE = np.dtype(np.bytes_), np.dtype(np.void)
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
class Sparse:
    """How a constant is stored: its dimensions, and behind them the blocks that split those of `block_map`, in the order of
    `traversal`; of each, in that order, whether only those indices are stored that have elements."""

    traversal: tuple
    compressed: tuple
    block_map: tuple = ()
    block_sizes: tuple = ()


@dataclass(frozen=True)
class Tensor:
    """A tensor of the subgraph; a constant if it has `data`. Without `has_rank` the number of dimensions is open."""

    dtype: np.dtype
    shape: tuple
    quantization: Quantization | None = None
    data: np.ndarray | None = None
    sparse: Sparse | None = None
    has_rank: bool = False


@dataclass(frozen=True)
class Operator:
    """`code` is a member of BuiltinOperator, `options` a table's name with its fields (or None);
    or a custom operator's name with its options' bytes; `inputs` and `outputs` number the tensors, -1 for an absent
    optional input."""

    code: str
    inputs: tuple
    outputs: tuple
    options: tuple[str, dict] | bytes | None = None

    def is_custom(self):
        return isinstance(self.options, bytes)


def build(tensors, operators, inputs, outputs):
    """The bytes of a model with one subgraph."""
    model = schema.ModelT()
    model.version = SCHEMA_VERSION
    model.buffers = [AlignedBuffer(b"")]
    subgraph = schema.SubGraphT()
    subgraph.name = "main"
    subgraph.inputs, subgraph.outputs = list(inputs), list(outputs)
    subgraph.tensors = [pack_tensor(tensor, f"t{i}", model.buffers) for i, tensor in enumerate(tensors)]
    codes = sorted({(operator.code, operator.is_custom()) for operator in operators})
    model.operatorCodes = [pack_code(*code) for code in codes]
    subgraph.operators = [
        pack_operator(operator, codes.index((operator.code, operator.is_custom()))) for operator in operators
    ]
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
    packed.type = tensor_type(np.dtype(tensor.dtype))
    packed.shape = [int(size) for size in tensor.shape]
    packed.buffer = 0
    if tensor.data is not None:
        packed.buffer = len(buffers)
        values = np.ascontiguousarray(tensor.data, tensor.dtype)
        if values.dtype.kind == STRING.kind:
            values = pack_strings(values)
        if tensor.sparse is not None:
            packed.sparsity, values = pack_sparse(values, tensor.sparse)
        if values.dtype == INT4:
            values = pack_nibbles(values)
        buffers.append(AlignedBuffer(values.tobytes()))
    packed.hasRank = tensor.has_rank
    if tensor.quantization is not None:
        packed.quantization = schema.QuantizationParametersT()
        packed.quantization.scale = list(tensor.quantization.scales)
        packed.quantization.zeroPoint = list(tensor.quantization.zero_points)
        packed.quantization.quantizedDimension = tensor.quantization.axis
    return packed


def tensor_type(dtype):
    kinds = {STRING.kind: schema.TensorType.STRING, RESOURCE.kind: schema.TensorType.RESOURCE}
    return TENSOR_TYPES[dtype] if dtype in TENSOR_TYPES else kinds[dtype.kind]


def pack_strings(values):
    """Their number, where each begins and the last ends, and their bytes."""
    strings = [bytes(value) for value in values.flat]
    places = np.cumsum([4 * (len(strings) + 2), *map(len, strings)])
    return np.frombuffer(np.array([len(strings), *places], np.int32).tobytes() + b"".join(strings), np.uint8)


def pack_nibbles(values):
    """Two integers in a byte, the first in its lower half."""
    nibbles = values.astype(np.int8).reshape(-1).view(np.uint8) & 15
    pairs = np.pad(nibbles, (0, nibbles.size % 2)).reshape(-1, 2)
    return pairs[:, 0] | pairs[:, 1] << 4


def pack_sparse(values, sparse):
    """The description of a sparse constant, and the elements that are stored."""
    rank = values.ndim
    blocks = dict(zip(sparse.block_map, sparse.block_sizes))
    # Each dimension that is split becomes two; blocks go behind all others.
    sizes, outer, inner = [], [], []
    for axis, size in enumerate(values.shape):
        block = blocks.get(axis)
        outer.append(len(sizes))
        sizes.append(size // (block or 1))
        if block:
            inner.append(len(sizes))
            sizes.append(block)
    inner = [inner[sorted(blocks).index(axis)] for axis in sparse.block_map]
    levels = values.reshape(sizes).transpose([*outer, *inner]).transpose(sparse.traversal)

    packed = schema.SparsityParametersT()
    packed.traversalOrder, packed.blockMap = list(sparse.traversal), list(sparse.block_map)
    packed.dimMetadata = []
    parts = [levels]
    for is_compressed in sparse.compressed:
        dimension = schema.DimensionMetadataT()
        if is_compressed:
            kept = [[i for i, part in enumerate(parent) if np.any(part)] for parent in parts]
            segments = np.cumsum([0, *map(len, kept)])
            dimension.format = schema.DimensionType.SPARSE_CSR
            dimension.arraySegmentsType = dimension.arrayIndicesType = schema.SparseIndexVector.Int32Vector
            dimension.arraySegments, dimension.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
            dimension.arraySegments.values = segments.tolist()
            dimension.arrayIndices.values = [i for indices in kept for i in indices]
        else:
            dimension.format = schema.DimensionType.DENSE
            dimension.denseSize = len(parts[0])
            kept = [range(len(parent)) for parent in parts]
        packed.dimMetadata.append(dimension)
        parts = [parent[i] for parent, indices in zip(parts, kept) for i in indices]
    assert len(sparse.compressed) == rank + len(sparse.block_map)
    return packed, np.array(parts, values.dtype)


def pack_code(code, is_custom=False):
    packed = schema.OperatorCodeT()
    packed.builtinCode = getattr(schema.BuiltinOperator, "CUSTOM" if is_custom else code)
    if is_custom:
        packed.customCode = code
    # Readers take the larger of the two; the old field is one signed byte.
    packed.deprecatedBuiltinCode = min(packed.builtinCode, schema.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    packed.version = OPERATOR_VERSIONS.get(code, 1)
    return packed


def pack_operator(operator, opcode_index):
    packed = schema.OperatorT()
    packed.opcodeIndex = opcode_index
    packed.inputs, packed.outputs = list(operator.inputs), list(operator.outputs)
    if operator.is_custom():
        packed.customOptions = list(operator.options)
    elif operator.options is not None:
        table, fields = operator.options
        packed.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        packed.builtinOptions = getattr(schema, table + "T")()
        for field, value in fields.items():
            if not hasattr(packed.builtinOptions, field):
                raise AttributeError(f"{table} has no field {field}")
            setattr(packed.builtinOptions, field, value)
    return packed
