"""Gives models with dynamic-range quantization float weights: what their authors mean.

Kernels for such models quantize activations while they run, each library in its own way, so that
the interpreter's reference kernels are no judge of another library. The same model with float
weights is.
"""

import numpy as np

try:
    from ai_edge_litert import schema_py_generated as schema
    import flatbuffers
except ImportError:
    schema = None

HYBRID_OPERATORS = (3, 4, 9)  # CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED
FLOAT32, INT8 = 0, 9


def dequantized(tensor, data):
    """The real values of an 8-bit constant, per tensor or per axis."""
    values = np.asarray(data).view(np.int8).astype(np.float32).reshape(tensor.shape)
    parameters = tensor.quantization
    shape = [1] * values.ndim
    if len(parameters.scale) > 1:
        shape[parameters.quantizedDimension] = len(parameters.scale)
    scale = np.asarray(parameters.scale, np.float32).reshape(shape)
    zero_point = np.asarray(parameters.zeroPoint, np.float32)
    return (values - zero_point.reshape(shape if zero_point.size > 1 else [1] * values.ndim)) * scale


def with_float_weights(path):
    """The bytes of the model with float weights; `None` if it has no dynamic-range quantization, or
    this environment cannot write models."""
    if schema is None:
        return None
    with open(path, "rb") as file:
        model = schema.ModelT.InitFromPackedBuf(bytearray(file.read()), 0)
    changed = set()
    for graph_index, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            opcode = model.operatorCodes[operator.opcodeIndex]
            if max(opcode.builtinCode, opcode.deprecatedBuiltinCode) not in HYBRID_OPERATORS:
                continue
            activations, weights = (graph.tensors[index] for index in operator.inputs[:2])
            key = (graph_index, operator.inputs[1])
            if key in changed or (activations.type, weights.type) != (FLOAT32, INT8):
                continue
            data = model.buffers[weights.buffer].data
            if data is None or not len(data):
                continue
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(dequantized(weights, data).tobytes(), np.uint8)
            weights.buffer, weights.type, weights.quantization = len(model.buffers), FLOAT32, None
            model.buffers.append(buffer)
            changed.add(key)
    if not changed:
        return None
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
