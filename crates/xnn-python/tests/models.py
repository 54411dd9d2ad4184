"""Small models, written with the schema of ai_edge_litert."""

from __future__ import annotations

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "string": schema.TensorType.STRING,
}


class Graph:
    """A subgraph that is written operator by operator."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.table = schema.SubGraphT()
        self.table.tensors, self.table.operators = [], []
        self.table.inputs, self.table.outputs = [], []

    def tensor(self, name, dtype, shape, signature=None, scales=None, zero_points=None, axis=0, data=None, variable=False):
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.shape = name, TYPES[dtype], list(shape)
        tensor.hasRank, tensor.isVariable = True, variable
        if signature is not None:
            tensor.shapeSignature = list(signature)
        if scales is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.array(scales, np.float32)
            tensor.quantization.zeroPoint = np.array(zero_points, np.int64)
            tensor.quantization.quantizedDimension = axis
        if data is not None:
            tensor.buffer = self._model.buffer(np.asarray(data, dtype))
        self.table.tensors.append(tensor)
        return len(self.table.tensors) - 1

    def input(self, *arguments, **options):
        index = self.tensor(*arguments, **options)
        self.table.inputs.append(index)
        return index

    def output(self, *arguments, **options):
        index = self.tensor(*arguments, **options)
        self.table.outputs.append(index)
        return index

    def operator(self, name, inputs, outputs, options=None):
        operator = schema.OperatorT()
        operator.opcodeIndex = self._model.code(name)
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = options
        self.table.operators.append(operator)


class Model:
    """A model of one or several subgraphs."""

    def __init__(self) -> None:
        self.table = schema.ModelT()
        self.table.version, self.table.subgraphs = 3, []
        self.table.buffers, self.table.operatorCodes = [schema.BufferT()], []
        self.table.signatureDefs = []

    def graph(self) -> Graph:
        graph = Graph(self)
        self.table.subgraphs.append(graph.table)
        return graph

    def buffer(self, data: np.ndarray) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data.tobytes(), np.uint8)
        self.table.buffers.append(buffer)
        return len(self.table.buffers) - 1

    def code(self, name: str) -> int:
        code = schema.OperatorCodeT()
        if hasattr(schema.BuiltinOperator, name):
            number = getattr(schema.BuiltinOperator, name)
            code.builtinCode, code.deprecatedBuiltinCode, code.version = number, min(number, 127), 1
        else:
            code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
            code.customCode = name
        self.table.operatorCodes.append(code)
        return len(self.table.operatorCodes) - 1

    def signature(self, key, subgraph, inputs, outputs) -> None:
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = key, subgraph
        signature.inputs = [self._named(name, tensor) for name, tensor in inputs.items()]
        signature.outputs = [self._named(name, tensor) for name, tensor in outputs.items()]
        self.table.signatureDefs.append(signature)

    @staticmethod
    def _named(name, tensor):
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = name, tensor
        return entry

    def build(self) -> bytes:
        builder = flatbuffers.Builder(1 << 12)
        builder.Finish(self.table.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def unary(name="RELU", dtype="float32", shape=(2, 3), **options) -> bytes:
    """y = f(x)."""
    model = Model()
    graph = model.graph()
    x = graph.input("x", dtype, shape, **options)
    y = graph.output("y", dtype, shape, **options)
    graph.operator(name, [x], [y])
    return model.build()


def dense(dynamic=False, key="serving_default") -> bytes:
    """y = relu(x W + b) with 4 inputs and 3 outputs; z = y + y, which is an intermediate tensor's sum."""
    model = Model()
    graph = model.graph()
    signature = [-1, 4] if dynamic else None
    x = graph.input("x", "float32", [1, 4], signature=signature)
    w = graph.tensor("w", "float32", [3, 4], data=np.arange(12).reshape(3, 4) / 10 - 0.5)
    b = graph.tensor("b", "float32", [3], data=[0.5, -0.5, 1])
    y = graph.tensor("y", "float32", [1, 3], signature=[-1, 3] if dynamic else None)
    z = graph.output("z", "float32", [1, 3], signature=[-1, 3] if dynamic else None)
    graph.operator("FULLY_CONNECTED", [x, w, b], [y], schema.FullyConnectedOptionsT())
    graph.operator("ADD", [y, y], [z], schema.AddOptionsT())
    if key:
        model.signature(key, 0, {"x": x}, {"out": z})
    return model.build()


def quantized(dtype="int8") -> bytes:
    """Fully connected layer of quantized integers, with a scale per channel for int8."""
    zero = 3 if dtype == "int8" else 131
    model = Model()
    graph = model.graph()
    x = graph.input("x", dtype, [1, 4], scales=[0.5], zero_points=[zero])
    weights = np.array([[1, -2, 3, -4], [5, 6, -7, 8], [-9, 10, 11, 12]])
    if dtype == "int8":
        scales = np.array([0.1, 0.2, 0.3])
        w = graph.tensor("w", dtype, [3, 4], scales=scales, zero_points=[0, 0, 0], data=weights)
    else:
        scales = np.array([0.1])
        w = graph.tensor("w", dtype, [3, 4], scales=scales, zero_points=[128], data=weights + 128)
    b = graph.tensor("b", "int32", [3], scales=scales * 0.5, zero_points=[0] * len(scales), data=[10, 20, 30])
    y = graph.output("y", dtype, [1, 3], scales=[1.5], zero_points=[zero])
    graph.operator("FULLY_CONNECTED", [x, w, b], [y], schema.FullyConnectedOptionsT())
    return model.build()


def two_signatures() -> bytes:
    """`add` computes x + 2, `sub` computes x - y; both in subgraphs of their own."""
    model = Model()
    graph = model.graph()
    x = graph.input("add_x", "float32", [1], signature=[-1])
    two = graph.tensor("two", "float32", [], data=2.0)
    y = graph.output("add_y", "float32", [1], signature=[-1])
    graph.operator("ADD", [x, two], [y], schema.AddOptionsT())
    other = model.graph()
    a = other.input("sub_x", "float32", [1], signature=[-1])
    b = other.input("sub_y", "float32", [1], signature=[-1])
    c = other.output("sub_z", "float32", [1], signature=[-1])
    other.operator("SUB", [a, b], [c], schema.SubOptionsT())
    model.signature("add", 0, {"x": x}, {"output_0": y})
    model.signature("sub", 1, {"x": a, "y": b}, {"output_0": c})
    return model.build()


def gather_strings() -> bytes:
    """Two of four strings, chosen by their indices."""
    model = Model()
    graph = model.graph()
    strings = graph.input("strings", "string", [4])
    at = graph.input("indices", "int64", [2])
    chosen = graph.output("chosen", "string", [2])
    graph.operator("GATHER", [strings, at], [chosen], schema.GatherOptionsT())
    return model.build()


def string_scalar() -> bytes:
    """A string without dimensions, as a vector."""
    model = Model()
    graph = model.graph()
    x = graph.input("x", "string", [])
    shape = graph.tensor("shape", "int32", [1], data=[1])
    y = graph.output("y", "string", [1])
    graph.operator("RESHAPE", [x, shape], [y])
    return model.build()


def where() -> bytes:
    """Positions of true elements: the shape of the output depends on values."""
    model = Model()
    graph = model.graph()
    x = graph.input("x", "bool", [1, 4], signature=[-1, 4])
    y = graph.output("y", "int64", [1, 2], signature=[-1, 2])
    graph.operator("WHERE", [x], [y])
    return model.build()


def accumulator() -> bytes:
    """An SVDF layer, whose state is a variable."""
    model = Model()
    graph = model.graph()
    x = graph.input("x", "float32", [1, 2])
    feature = graph.tensor("feature", "float32", [2, 2], data=[[1, 0], [0, 1]])
    time = graph.tensor("time", "float32", [2, 3], data=np.ones((2, 3)))
    state = graph.tensor("state", "float32", [1, 6], variable=True)
    y = graph.output("y", "float32", [1, 2])
    options = schema.SVDFOptionsT()
    options.rank = 1
    graph.operator("SVDF", [x, feature, time, -1, state], [y], options)
    return model.build()


def custom(code="NoSuchOperator") -> bytes:
    """A custom operator that no interpreter has."""
    return unary(code)
