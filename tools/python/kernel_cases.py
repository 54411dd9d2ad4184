"""Write models of operators that stay with the reference kernels, with inputs and the outputs of LiteRT's kernels.

    kernel_cases.py --seed 1 --out DIR

Each case gets a folder of DIR with model.tflite, and for each of its runs, one behind the other in one interpreter,
in_<run>_<i>.npy and out_<run>_<i>.npy. DIR/index.json, written last, lists them. The same seed gives the same files.
"""

import argparse
import json
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from flatbuffers import flexbuffers

from op_schemes import FLOAT32, INT8
from tflite_build import RESOURCE, STRING, Operator, Quantization, Sparse, Tensor, build

INT32 = np.dtype(np.int32)
FLOAT16 = np.dtype(np.float16)


class Case:
    """Tensors and operators of a model, the inputs among them, and what each run is fed."""

    def __init__(self):
        self.tensors, self.operators, self.inputs, self.outputs, self.runs = [], [], [], [], []

    def tensor(self, dtype, shape, **fields):
        self.tensors.append(Tensor(np.dtype(dtype), tuple(shape), **fields))
        return len(self.tensors) - 1

    def input(self, dtype, shape, **fields):
        self.inputs.append(self.tensor(dtype, shape, **fields))
        return self.inputs[-1]

    def constant(self, values, **fields):
        return self.tensor(values.dtype, values.shape, data=values, **fields)

    def op(self, code, inputs, outputs, options=None):
        self.operators.append(Operator(code, tuple(inputs), tuple(outputs), options))

    def output(self, dtype, shape=(), **fields):
        self.outputs.append(self.tensor(dtype, shape, **fields))
        return self.outputs[-1]


def encoded(options):
    """The options of a custom operator."""
    return bytes(flexbuffers.Dumps(options))


def audio(rng):
    """Spectrograms, and the coefficients that speech models make of them."""
    speech = {"window_size": 480, "stride": 160, "magnitude_squared": True}
    bank = {
        "upper_frequency_limit": 4000,
        "lower_frequency_limit": 20,
        "filterbank_channel_count": 40,
        "dct_coefficient_count": 13,
    }
    signal = np.sin(np.arange(2000) ** 1.5 / 50) + rng.normal(size=2000) * 0.1
    spectrograms = {
        "speech": (speech, signal[:, None]),
        "magnitudes": (speech | {"magnitude_squared": False}, signal[:, None]),
        "two_channels": ({"window_size": 64, "stride": 48, "magnitude_squared": True}, signal.reshape(1000, 2)),
        "gaps": ({"window_size": 100, "stride": 333, "magnitude_squared": True}, signal[:, None]),
        "one_frame": ({"window_size": 2, "stride": 1, "magnitude_squared": False}, signal[:2, None]),
    }
    for name, (options, samples) in spectrograms.items():
        case = Case()
        wave = case.input(FLOAT32, samples.shape)
        case.op("AudioSpectrogram", [wave], [case.output(FLOAT32)], encoded(options))
        case.runs = [[samples.astype(np.float32)], [np.zeros(samples.shape, np.float32)]]
        yield f"audio_spectrogram_{name}", case
    banks = {
        "speech": (bank, 257, 16000),
        "narrow": (bank | {"filterbank_channel_count": 200, "dct_coefficient_count": 200}, 33, 16000),
        "high": (bank | {"lower_frequency_limit": 3000, "upper_frequency_limit": 7999}, 65, 16000),
        "beyond_the_spectrum": (bank | {"upper_frequency_limit": 9000}, 65, 16000),
    }
    for name, (options, bins, rate) in banks.items():
        case = Case()
        squares = case.input(FLOAT32, (2, 5, bins))
        rate = case.constant(np.array([rate], np.int32))
        case.op("Mfcc", [squares, rate], [case.output(FLOAT32)], encoded(options))
        power = np.exp(rng.normal(size=(2, 5, bins)) * 3).astype(np.float32)
        case.runs = [[power], [np.zeros_like(power)]]
        yield f"mfcc_{name}", case
    case = Case()
    wave = case.input(FLOAT32, (2000, 1))
    rate = case.input(INT32, ())
    squares, coefficients = case.tensor(FLOAT32, ()), case.tensor(FLOAT32, ())
    case.op("AudioSpectrogram", [wave], [squares], encoded(speech))
    case.op("Mfcc", [squares, rate], [coefficients], encoded(bank))
    shape = case.constant(np.array([-1, 130], np.int32))
    case.op("RESHAPE", [coefficients, shape], [case.output(FLOAT32, (1, 130))], ("ReshapeOptions", {}))
    case.runs = [[signal[:, None].astype(np.float32), np.array(rate, np.int32)] for rate in (16000, 22050)]
    yield "speech_features", case


def random_numbers(rng):
    """The same numbers for the same seeds, from run to run."""
    for (code, name), (seed, seed2), shape in product(
        [("RANDOM_UNIFORM", "uniform"), ("RANDOM_STANDARD_NORMAL", "normal")],
        [(1, 0), (0, 7), (-5, 1 << 40)],
        [(3, 7), (64,)],
    ):
        case = Case()
        size = case.constant(np.array(shape, np.int32))
        case.op(code, [size], [case.output(FLOAT32, shape)], ("RandomOptions", {"seed": seed, "seed2": seed2}))
        case.runs = [[]] * 3
        yield f"random_{name}_{seed}_{seed2}_{'x'.join(map(str, shape))}", case
    for dtype, (batch, classes), samples in product([np.int32, np.int64], [(1, 4), (3, 10)], [5, 16]):
        case = Case()
        logits = case.input(FLOAT32, (batch, classes))
        count = case.input(INT32, ())
        result = case.output(dtype, (batch, samples))
        case.op("MULTINOMIAL", [logits, count], [result], ("RandomOptions", {"seed": 3, "seed2": 4}))
        values = rng.normal(size=(batch, classes)).astype(np.float32) * 2
        values[0, 1] = -np.inf
        case.runs = [[values, np.array(samples, np.int32)]] * 3
        yield f"multinomial_{np.dtype(dtype).name}_{batch}x{classes}_{samples}", case


def complex_numbers(rng):
    for code, (dtype, part) in product(
        ["REAL", "IMAG", "COMPLEX_ABS"], [(np.complex64, np.float32), (np.complex128, np.float64)]
    ):
        case = Case()
        numbers = case.input(dtype, (2, 3, 4))
        case.op(code, [numbers], [case.output(part, (2, 3, 4))])
        case.runs = [[(rng.normal(size=(2, 3, 4)) + 1j * rng.normal(size=(2, 3, 4))).astype(dtype)]]
        yield f"{code.lower()}_{np.dtype(dtype).name}", case


def open_ranks(rng):
    """An input without a rank, which is fed what each run likes."""
    case = Case()
    x = case.input(FLOAT32, ())
    case.op("ABS", [x], [case.output(FLOAT32)])
    case.runs = [[rng.normal(size=shape).astype(np.float32)] for shape in [(), (5, 5), (2, 3, 4)]]
    yield "open_rank_abs", case
    case = Case()
    x = case.input(FLOAT32, (0,))
    bounds = [case.constant(np.array(values, np.int32)) for values in ([1, 0], [2, 3], [1, 2])]
    options = {"shrinkAxisMask": 1}
    case.op("STRIDED_SLICE", [x, *bounds], [case.output(FLOAT32)], ("StridedSliceOptions", options))
    case.runs = [[rng.normal(size=shape).astype(np.float32)] for shape in [(2, 3), (4, 5)]]
    yield "strided_slice_of_an_open_shape", case


WORDS = np.array([b"one", b"", b"three", b"one more", b"the last of them", b"two"])


def strings(_):
    """Tables that know strings, and operators that move and compare them."""
    numbers = np.array([11, 12, 13, 14, 15, 16], np.int64)
    for name, keys, values, default, wanted in [
        ("string_keys", WORDS, numbers, np.array([-1], np.int64), np.array([b"three", b"none", b"", b"two"])),
        ("string_values", numbers, WORDS, np.array([b"nothing"]), np.array([12, 99, 16, 11], np.int64)),
    ]:
        case = Case()
        code = lambda values: schema.TensorType.STRING if values.dtype.kind == STRING.kind else schema.TensorType.INT64
        options = {"tableId": 7, "keyDtype": code(keys), "valueDtype": code(values)}
        fed = case.input(STRING if keys.dtype.kind == STRING.kind else keys.dtype, wanted.shape)
        table = case.tensor(RESOURCE, (1,))
        case.op("HASHTABLE", [], [table], ("HashtableOptions", options))
        case.op("HASHTABLE_IMPORT", [table, case.constant(keys), case.constant(values)], [])
        kind = STRING if values.dtype.kind == STRING.kind else values.dtype
        case.op("HASHTABLE_FIND", [table, fed, case.constant(default)], [case.output(kind, wanted.shape)])
        case.op("HASHTABLE_SIZE", [table], [case.output(np.int64, (1,))])
        case.runs = [[wanted], [wanted[::-1]]]
        yield f"hashtable_{name}", case
    case = Case()
    wanted, keys = case.input(INT32, (4,)), case.constant(np.array([-3, 1, 5], np.int32))
    found, hits = case.output(STRING, (4,)), case.output(np.uint8, (4,))
    case.op("HASHTABLE_LOOKUP", [wanted, keys, case.constant(WORDS[:3])], [found, hits])
    case.runs = [[np.array([5, 0, -3, 7], np.int32)]]
    yield "hashtable_lookup_strings", case
    case = Case()
    wanted, keys = case.input(INT32, (4,)), case.constant(np.array([-3, 1, 5], np.int32))
    found, hits = case.output(FLOAT32, (4, 2)), case.output(np.uint8, (4,))
    values = case.constant(np.arange(1, 7, dtype=np.float32).reshape(3, 2))
    case.op("HASHTABLE_LOOKUP", [wanted, keys, values], [found, hits])
    case.runs = [[np.array([5, 0, -3, 7], np.int32)]]
    yield "hashtable_lookup_float32", case
    for code in ["EQUAL", "NOT_EQUAL"]:
        case = Case()
        a, b = case.input(STRING, (2, 3)), case.input(STRING, (3,))
        case.op(code, [a, b], [case.output(np.bool_, (2, 3))])
        case.runs = [[WORDS.reshape(2, 3), np.array([b"one", b"the", b"two"])]]
        yield f"{code.lower()}_strings", case
    bounds = lambda *values: np.array(values, np.int32)
    for name, code, operands, options, shape in [
        ("reshape", "RESHAPE", [bounds(3, -1)], ("ReshapeOptions", {}), (3, 2)),
        ("gather", "GATHER", [bounds(5, 0, 0)], ("GatherOptions", {"axis": 0}), (3,)),
        ("slice", "SLICE", [bounds(1), bounds(4)], None, (4,)),
        ("strided_slice", "STRIDED_SLICE", [bounds(5), bounds(0), bounds(-2)], ("StridedSliceOptions", {}), (3,)),
        ("tile", "TILE", [bounds(2)], None, (12,)),
        ("expand_dims", "EXPAND_DIMS", [bounds(1)], None, (6, 1)),
    ]:
        case = Case()
        fed = case.input(STRING, (6,))
        case.op(code, [fed, *map(case.constant, operands)], [case.output(STRING, shape)], options)
        case.runs = [[WORDS], [WORDS[::-1]]]
        yield f"{name}_strings", case


ROWS = Sparse((0, 1), (False, True))
COLUMNS = Sparse((1, 0), (False, True))
BLOCKS_OF_4 = Sparse((0, 1, 2), (False, True, False), (1,), (4,))
BLOCKS_OF_16 = Sparse((0, 1, 2), (False, True, False), (1,), (16,))
SQUARES = Sparse((0, 1, 2, 3), (False, True, False, False), (0, 1), (2, 4))
SQUARES_BY_COLUMNS = Sparse((1, 0, 3, 2), (False, True, False, False), (0, 1), (2, 4))
ALL_COMPRESSED = Sparse((0, 1), (True, True))


def sparse_values(rng, shape, block=(1, 1)):
    """Numbers of which about a third of the blocks is there."""
    blocks = [size // per for size, per in zip(shape[-2:], block)]
    mask = np.kron(rng.random((*shape[:-2], *blocks)) < 0.35, np.ones(block))
    return (rng.normal(size=shape) * mask).astype(np.float32)


def sparse_weights(rng):
    """Weights that the kernel reads as they are stored, and DENSIFY in front of those that do not."""
    symmetric = Quantization((0.02,), (0,))
    x = lambda *shape: rng.normal(size=shape).astype(np.float32)
    for name, sparse, block in [("rows", ROWS, (1, 1)), ("blocks_of_4", BLOCKS_OF_4, (1, 4))]:
        case = Case()
        data = case.input(FLOAT32, (3, 32))
        weights = case.constant(sparse_values(rng, (6, 32), block), sparse=sparse)
        bias = case.constant(x(6))
        options = ("FullyConnectedOptions", {"fusedActivationFunction": 1})
        case.op("FULLY_CONNECTED", [data, weights, bias], [case.output(FLOAT32, (3, 6))], options)
        case.runs = [[x(3, 32)]]
        yield f"sparse_fully_connected_{name}", case
    integers = lambda shape, block: np.clip(np.round(sparse_values(rng, shape, block) / 0.02), -127, 127).astype(np.int8)
    case = Case()
    data = case.input(INT8, (3, 32), quantization=Quantization((0.05,), (3,)))
    weights = case.constant(integers((6, 32), (1, 16)), sparse=BLOCKS_OF_16, quantization=symmetric)
    bias = case.constant(rng.integers(-500, 500, 6).astype(np.int32), quantization=Quantization((0.001,), (0,)))
    result = case.output(INT8, (3, 6), quantization=Quantization((0.1,), (-5,)))
    case.op("FULLY_CONNECTED", [data, weights, bias], [result], ("FullyConnectedOptions", {}))
    case.runs = [[rng.integers(-128, 128, (3, 32)).astype(np.int8)]]
    yield "sparse_fully_connected_int8", case
    case = Case()
    data = case.input(FLOAT32, (3, 32))
    weights = case.constant(integers((6, 32), (1, 16)), sparse=BLOCKS_OF_16, quantization=symmetric)
    case.op("FULLY_CONNECTED", [data, weights, -1], [case.output(FLOAT32, (3, 6))], ("FullyConnectedOptions", {}))
    case.runs = [[x(3, 32)]]
    yield "sparse_fully_connected_dynamic", case
    layouts = {
        "rows": (ROWS, (1, 1)),
        "columns": (COLUMNS, (1, 1)),
        "squares": (SQUARES, (2, 4)),
        "squares_by_columns": (SQUARES_BY_COLUMNS, (2, 4)),
        "all_compressed": (ALL_COMPRESSED, (1, 1)),
    }
    for (name, (sparse, block)), dtype in product(layouts.items(), [FLOAT32, FLOAT16, INT8]):
        case = Case()
        data = case.input(FLOAT32, (3, 16))
        values = sparse_values(rng, (8, 16), block)
        values = np.round(values * 50).astype(np.int8) if dtype == INT8 else values.astype(dtype)
        quantization = symmetric if dtype == INT8 else None
        packed = case.constant(values, sparse=sparse, quantization=quantization)
        dense = case.tensor(dtype, (8, 16), quantization=quantization)
        case.op("DENSIFY", [packed], [dense], ("DensifyOptions", {}))
        if dtype != FLOAT32:
            real = case.tensor(FLOAT32, (8, 16))
            case.op("DEQUANTIZE", [dense], [real], ("DequantizeOptions", {}))
            dense = real
        case.op("FULLY_CONNECTED", [data, dense, -1], [case.output(FLOAT32, (3, 8))], ("FullyConnectedOptions", {}))
        case.runs = [[x(3, 16)]]
        yield f"densify_{name}_{np.dtype(dtype).name}", case
    for code, shape, options in [
        ("CONV_2D", (6, 3, 2, 4), ("Conv2DOptions", {"padding": 0, "strideW": 1, "strideH": 1})),
        ("DEPTHWISE_CONV_2D", (1, 3, 2, 4), ("DepthwiseConv2DOptions", {"padding": 1, "strideW": 1, "strideH": 1, "depthMultiplier": 1})),
    ]:
        case = Case()
        data = case.input(FLOAT32, (1, 5, 6, 4))
        sparse = Sparse((0, 1, 2, 3, 4), (False, True, False, True, False), (3,), (2,))
        packed = case.constant(sparse_values(rng, shape, (1, 2)), sparse=sparse)
        dense = case.tensor(FLOAT32, shape)
        case.op("DENSIFY", [packed], [dense], ("DensifyOptions", {}))
        bias = case.constant(x(shape[0] if code == "CONV_2D" else shape[3]))
        case.op(code, [data, dense, bias], [case.output(FLOAT32)], options)
        case.runs = [[x(1, 5, 6, 4)]]
        yield f"densify_{code.lower()}", case


FAMILIES = [audio, random_numbers, complex_numbers, open_ranks, sparse_weights, strings]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    cases = []
    for number, family in enumerate(FAMILIES):
        for name, case in family(np.random.default_rng([arguments.seed, number])):
            write(arguments.out / name, case)
            counts = {"runs": len(case.runs), "inputs": len(case.inputs), "outputs": len(case.outputs)}
            cases.append({"id": name} | counts)
    index = {"seed": arguments.seed, "ai-edge-litert": version("ai-edge-litert"), "cases": cases}
    (arguments.out / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def write(folder, case):
    folder.mkdir(parents=True, exist_ok=True)
    model = build(case.tensors, case.operators, case.inputs, case.outputs)
    (folder / "model.tflite").write_bytes(model)
    has_table = any(operator.code == "HASHTABLE" for operator in case.operators)
    # The reference kernels do not include hash tables.
    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if has_table else OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    for run, feeds in enumerate(case.runs):
        indices = [detail["index"] for detail in interpreter.get_input_details()]
        for index, values in zip(indices, feeds):
            interpreter.resize_tensor_input(index, values.shape)
        if run == 0 or any(case.tensors[i].shape != values.shape for i, values in zip(case.inputs, feeds)):
            interpreter.allocate_tensors()
        for i, (index, values) in enumerate(zip(indices, feeds)):
            interpreter.set_tensor(index, values)
            np.save(folder / f"in_{run}_{i}.npy", values)
        interpreter.invoke()
        for i, detail in enumerate(interpreter.get_output_details()):
            result = interpreter.get_tensor(detail["index"])
            # Strings come as objects.
            np.save(folder / f"out_{run}_{i}.npy", result.astype(STRING) if result.dtype == object else result)


if __name__ == "__main__":
    main()
