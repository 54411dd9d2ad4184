"""Gives models with dynamic-range quantization float weights: what their authors mean.

    python float_weights.py FOLDER MODEL...

Kernels for such models quantize activations while they run, each library in its own way, so that
the interpreter's reference kernels are no judge of another library. The same model with float
weights is: it is written to FOLDER, under the same name. Other models, and damaged ones, are passed over.
"""

import os
import struct
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

HYBRID_OPERATORS = (3, 4, 9)  # CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED
FLOAT32, INT8, INT4 = 0, 9, 17


def elements(tensor, data):
    """The stored integers as floats."""
    if tensor.type == INT8:
        return data.view(np.int8).astype(np.float32)
    nibbles = np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[: np.prod(tensor.shape)]
    return ((nibbles.astype(np.int8) ^ 8) - 8).astype(np.float32)


def dequantized(tensor, data, scales_of):
    """The real values of a constant, per tensor, per axis or in blocks along the last axis."""
    values = elements(tensor, data).reshape(tensor.shape)
    parameters = tensor.quantization
    if getattr(parameters.details, "blockSize", None):
        scales = scales_of(parameters.details.scales).view(np.float16).astype(np.float32)
        return values * np.repeat(scales.reshape(values.shape[0], -1), parameters.details.blockSize, 1)
    shape = [1] * values.ndim
    if len(parameters.scale) > 1:
        shape[parameters.quantizedDimension] = len(parameters.scale)
    scale = np.asarray(parameters.scale, np.float32).reshape(shape)
    zero_point = np.asarray(parameters.zeroPoint, np.float32)
    return (values - zero_point.reshape(shape if zero_point.size > 1 else [1] * values.ndim)) * scale


def with_float_weights(path):
    """The bytes of the model with float weights; `None` if it has no dynamic-range quantization."""
    with open(path, "rb") as file:
        content = file.read()
    model = schema.ModelT.InitFromPackedBuf(bytearray(content), 0)
    for buffer in model.buffers:
        # Large buffers lie behind the flatbuffer.
        if buffer.offset > 1:
            buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    changed = False
    for graph in model.subgraphs:
        for operator in graph.operators:
            opcode = model.operatorCodes[operator.opcodeIndex]
            if max(opcode.builtinCode, opcode.deprecatedBuiltinCode) not in HYBRID_OPERATORS:
                continue
            activations, weights = (graph.tensors[index] for index in operator.inputs[:2])
            data = model.buffers[weights.buffer].data
            if activations.type != FLOAT32 or weights.type not in (INT8, INT4) or data is None:
                continue
            scales_of = lambda index: model.buffers[graph.tensors[index].buffer].data
            buffer = schema.BufferT()
            floats = dequantized(weights, np.asarray(data), scales_of)
            buffer.data = np.frombuffer(floats.tobytes(), np.uint8)
            weights.buffer, weights.type, weights.quantization = len(model.buffers), FLOAT32, None
            model.buffers.append(buffer)
            changed = True
    if not changed:
        return None
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def main():
    folder, *models = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for model in models:
        try:
            content = with_float_weights(model)
        except struct.error as error:
            print(f"{model} is damaged: {error}", file=sys.stderr)
            continue
        if content is not None:
            with open(os.path.join(folder, os.path.basename(model)), "wb") as file:
                file.write(content)


if __name__ == "__main__":
    main()
