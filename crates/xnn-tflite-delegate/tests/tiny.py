"""Writes models of one operator with the schema of the package ai_edge_litert.

An operator is a tuple of name, input shapes, constants, output shapes and options. Constants are arrays: int32 for
shapes, axes and the like, float64 for real values (weights).
"""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

FLOAT, INT8, UINT8 = "float32", "int8", "uint8"
TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int32": schema.TensorType.INT32,
}

# Quantization of activations and of weights, by type: scale and zero point.
ACTIVATIONS = {FLOAT: None, INT8: (0.5, 3), UINT8: (0.5, 131)}
WEIGHTS = {FLOAT: None, INT8: (0.02, 0), UINT8: (0.02, 128)}
# Output quantization that operators require.
RESULTS = {("SOFTMAX", INT8): (1 / 256, -128), ("SOFTMAX", UINT8): (1 / 256, 0)}

# Number of constants before an operator's input.
FIRST_INPUT = {"SPLIT": 1, "TRANSPOSE_CONV": 2}


def ints(*values):
    """An int32 constant: a vector, or a matrix if the values are rows."""
    return np.array(values, np.int32)


def scalar(value):
    """An int32 constant without dimensions."""
    return np.array(value, np.int32)


def weights(*shape):
    """Real values from -1 to 1."""
    return np.random.default_rng(0).uniform(-1, 1, shape)


class Builder:
    """A model with one subgraph."""

    def __init__(self):
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model = schema.ModelT()
        self.model.version, self.model.subgraphs = 3, [self.graph]
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []

    def tensor(self, dtype, shape, quantization=None, data=None):
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.shape = f"t{len(self.graph.tensors)}", TYPES[dtype], list(shape)
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.asarray(data, dtype).tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        if quantization is not None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.array([quantization[0]], np.float32)
            tensor.quantization.zeroPoint = np.array([quantization[1]], np.int64)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def constant(self, value, dtype, activations, quantization):
        if value.dtype == np.int32:
            return self.tensor("int32", value.shape, None, value)
        if dtype == FLOAT:
            return self.tensor(FLOAT, value.shape, None, value)
        scale, zero_point = quantization
        if value.ndim == 1:  # A bias.
            scale *= activations[0]
            return self.tensor("int32", value.shape, (scale, 0), np.round(value / scale))
        limits = np.iinfo(dtype)
        data = np.clip(np.round(value / scale) + zero_point, limits.min + 1, limits.max)
        return self.tensor(dtype, value.shape, quantization, data)

    def operator(self, name, inputs, outputs, options):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), options.pop("version", 1)
        operator = schema.OperatorT()
        operator.opcodeIndex, operator.inputs, operator.outputs = len(self.model.operatorCodes), inputs, outputs
        kind = options.pop("options", None)
        if kind:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(schema, kind + "T")()
            for field, value in options.items():
                setattr(operator.builtinOptions, field, value)
        self.model.operatorCodes.append(code)
        self.graph.operators.append(operator)

    def bytes(self):
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def model(operator, dtype, results=None, filters=None):
    """A model of this operator. Outputs and weights have the quantization of `dtype` unless given."""
    return chain([operator], dtype, [results], filters)


def chain(operators, dtype, quantizations, filters=None):
    """A chain of operators, each of which reads the first output of the previous one. `quantizations` has one entry for
    the outputs of each operator; None stands for the quantization of its input."""
    builder = Builder()
    graph, quantization = builder.graph, ACTIVATIONS[dtype]
    graph.inputs = [builder.tensor(dtype, shape, quantization) for shape in operators[0][1]]
    graph.outputs = graph.inputs
    for (name, inputs, constants, outputs, options), results in zip(operators, quantizations, strict=True):
        read = graph.outputs[: len(inputs)]
        constants = [builder.constant(it, dtype, quantization, filters or WEIGHTS[dtype]) for it in constants]
        place = FIRST_INPUT.get(name, 0)
        quantization = results or RESULTS.get((name, dtype), quantization)
        graph.outputs = [builder.tensor(dtype, shape, quantization) for shape in outputs]
        builder.operator(name, constants[:place] + read + constants[place:], graph.outputs, dict(options))
    return builder.bytes()
