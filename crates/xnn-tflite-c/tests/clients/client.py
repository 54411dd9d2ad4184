"""Runs models through a `libtensorflowlite_c.so` with ctypes, and compares every result with LiteRT's interpreter.

    python client.py LIBRARY [--only-functions-it-has] [--calls] MODEL...

For each model: names, types, shapes, shape signatures, quantization, indices, signatures and outputs must be those of
`ai_edge_litert`, value by value. Outputs are compared like in `wheels.py` of the delegate: no further from the
interpreter's reference kernels than its built-in XNNPACK delegate, plus 1 step (8-bit) or 1e-5 of the range (float).
Inputs with open dimensions are resized as well. With `--calls`, the rest of the API is called: errors and their texts,
null pointers, memory of the caller, delegates, strings, cancellation.

With `--only-functions-it-has`, functions that the library lacks are skipped, so that older libraries of TFLite run, too.
Prints one line per model, and exits with 1 if one fails.
"""

import argparse
import ctypes
import os
import sys
import threading
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../xnn-tflite-delegate/tests"))
from wheels import FLOAT_TOLERANCE, STEP_TOLERANCE, distance, noise  # noqa: E402

OK, ERROR, UNRESOLVED, CANCELLED = 0, 1, 7, 8
TYPES = [None, "f4", "i4", "u1", "i8", "O", "?", "i2", "c8", "i1", "f2", "f8", "c16", "u8", None, None, "u4", "u2"]
REPORTER = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_void_p)


class Quantization(ctypes.Structure):
    _fields_ = [("scale", c_float), ("zero_point", c_int32)]


class CustomAllocation(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class XnnpackOptions(ctypes.Structure):
    _fields_ = [("num_threads", c_int32), ("flags", ctypes.c_uint32), ("rest", c_void_p * 3)]


INTS = POINTER(c_int)
# Result and arguments of the functions that are called.
FUNCTIONS = {
    "Version": (c_char_p, []),
    "SchemaVersion": (c_int, []),
    "ExtensionApisVersion": (c_char_p, []),
    "TypeGetName": (c_char_p, [c_int]),
    "ModelCreate": (c_void_p, [c_void_p, c_size_t]),
    "ModelCreateFromFile": (c_void_p, [c_char_p]),
    "ModelCreateWithErrorReporter": (c_void_p, [c_void_p, c_size_t, REPORTER, c_void_p]),
    "ModelCreateFromFileWithErrorReporter": (c_void_p, [c_char_p, REPORTER, c_void_p]),
    "ModelDelete": (None, [c_void_p]),
    "InterpreterOptionsCreate": (c_void_p, []),
    "InterpreterOptionsCopy": (c_void_p, [c_void_p]),
    "InterpreterOptionsDelete": (None, [c_void_p]),
    "InterpreterOptionsSetNumThreads": (None, [c_void_p, c_int32]),
    "InterpreterOptionsSetErrorReporter": (None, [c_void_p, REPORTER, c_void_p]),
    "InterpreterOptionsAddDelegate": (None, [c_void_p, c_void_p]),
    "InterpreterOptionsEnableCancellation": (c_int, [c_void_p, c_bool]),
    "InterpreterCreate": (c_void_p, [c_void_p, c_void_p]),
    "InterpreterDelete": (None, [c_void_p]),
    "InterpreterGetInputTensorCount": (c_int32, [c_void_p]),
    "InterpreterGetOutputTensorCount": (c_int32, [c_void_p]),
    "InterpreterInputTensorIndices": (INTS, [c_void_p]),
    "InterpreterOutputTensorIndices": (INTS, [c_void_p]),
    "InterpreterGetInputTensorIndex": (c_int32, [c_void_p, c_int32]),
    "InterpreterGetOutputTensorIndex": (c_int32, [c_void_p, c_int32]),
    "InterpreterGetInputTensor": (c_void_p, [c_void_p, c_int32]),
    "InterpreterGetOutputTensor": (c_void_p, [c_void_p, c_int32]),
    "InterpreterGetTensor": (c_void_p, [c_void_p, c_int]),
    "InterpreterResizeInputTensor": (c_int, [c_void_p, c_int32, INTS, c_int32]),
    "InterpreterAllocateTensors": (c_int, [c_void_p]),
    "InterpreterInvoke": (c_int, [c_void_p]),
    "InterpreterCancel": (c_int, [c_void_p]),
    "InterpreterResetVariableTensors": (c_int, [c_void_p]),
    "InterpreterGetVariableTensorCount": (c_int32, [c_void_p]),
    "InterpreterSetCustomAllocationForTensor": (c_int, [c_void_p, c_int, POINTER(CustomAllocation), c_int64]),
    "InterpreterGetSignatureCount": (c_int32, [c_void_p]),
    "InterpreterGetSignatureKey": (c_char_p, [c_void_p, c_int32]),
    "InterpreterGetSignatureRunner": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerDelete": (None, [c_void_p]),
    "SignatureRunnerGetInputCount": (c_size_t, [c_void_p]),
    "SignatureRunnerGetOutputCount": (c_size_t, [c_void_p]),
    "SignatureRunnerGetInputName": (c_char_p, [c_void_p, c_int32]),
    "SignatureRunnerGetOutputName": (c_char_p, [c_void_p, c_int32]),
    "SignatureRunnerGetInputTensor": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerGetOutputTensor": (c_void_p, [c_void_p, c_char_p]),
    "SignatureRunnerResizeInputTensor": (c_int, [c_void_p, c_char_p, INTS, c_int32]),
    "SignatureRunnerAllocateTensors": (c_int, [c_void_p]),
    "SignatureRunnerInvoke": (c_int, [c_void_p]),
    "SignatureRunnerCancel": (c_int, [c_void_p]),
    "TensorType": (c_int, [c_void_p]),
    "TensorNumDims": (c_int32, [c_void_p]),
    "TensorDim": (c_int32, [c_void_p, c_int32]),
    "TensorByteSize": (c_size_t, [c_void_p]),
    "TensorData": (c_void_p, [c_void_p]),
    "TensorName": (c_char_p, [c_void_p]),
    "TensorQuantizationParams": (Quantization, [c_void_p]),
    "TensorCopyFromBuffer": (c_int, [c_void_p, c_void_p, c_size_t]),
    "TensorCopyToBuffer": (c_int, [c_void_p, c_void_p, c_size_t]),
    "OpaqueTensorGetNumDimsSignature": (c_int, [c_void_p, POINTER(c_int32)]),
    "OpaqueTensorGetDimSignature": (c_int, [c_void_p, c_int32, POINTER(c_int32)]),
    "OpaqueTensorGetStringCount": (c_int, [c_void_p]),
    "OpaqueTensorGetString": (c_int, [c_void_p, c_int, POINTER(c_void_p), POINTER(c_int)]),
    "OpaqueTensorWriteStrings": (c_int, [c_void_p, POINTER(c_char_p), c_int, INTS]),
    "XNNPackDelegateOptionsDefault": (XnnpackOptions, []),
    "XNNPackDelegateCreate": (c_void_p, [POINTER(XnnpackOptions)]),
    "XNNPackDelegateDelete": (None, [c_void_p]),
}

libc = ctypes.CDLL(None)
libc.vsnprintf.argtypes = [c_char_p, c_size_t, c_char_p, c_void_p]


class Api:
    """The functions of a library, without their prefix. `has` tells which exist."""

    def __init__(self, path, may_lack):
        library = ctypes.CDLL(path)
        self.lacks = []
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(library, "TfLite" + name)
            except AttributeError:
                if not may_lack:
                    raise
                self.lacks.append(name)
                continue
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.messages = []
        # The reporter must live as long as the library's objects.
        self.reporter = REPORTER(self.report)

    def has(self, name):
        return name not in self.lacks

    def report(self, _, text, arguments):
        buffer = ctypes.create_string_buffer(4096)
        libc.vsnprintf(buffer, len(buffer), text, arguments)
        self.messages.append(buffer.value.decode())

    def said(self):
        messages, self.messages = self.messages, []
        return messages


def check(actual, expected, what):
    if isinstance(expected, np.ndarray) or isinstance(actual, np.ndarray):
        equal = np.array_equal(actual, expected)
    else:
        equal = actual == expected
    if not equal:
        raise AssertionError(f"{what}: expected {expected!r}, found {actual!r}")


def ints(values):
    return (c_int * max(len(values), 1))(*[int(value) for value in values])


class Tensor:
    """A `TfLiteTensor`."""

    def __init__(self, api, pointer):
        assert pointer, "the tensor is null"
        self.api, self.pointer = api, pointer

    def shape(self):
        return [self.api.TensorDim(self.pointer, axis) for axis in range(self.api.TensorNumDims(self.pointer))]

    def dtype(self):
        return np.dtype(TYPES[self.api.TensorType(self.pointer)])

    def name(self):
        return self.api.TensorName(self.pointer).decode()

    def signature(self):
        number, signature = c_int32(), []
        check(self.api.OpaqueTensorGetNumDimsSignature(self.pointer, byref(number)), OK, "number of open dimensions")
        for axis in range(number.value):
            dim = c_int32()
            check(self.api.OpaqueTensorGetDimSignature(self.pointer, axis, byref(dim)), OK, "open dimension")
            signature.append(dim.value)
        return signature if number.value >= 0 else self.shape()

    def set(self, values):
        if self.dtype() == object:
            strings = [bytes(value) for value in values.ravel()]
            array = (c_char_p * len(strings))(*strings)
            lengths = ints([len(string) for string in strings])
            return self.api.OpaqueTensorWriteStrings(self.pointer, array, len(strings), lengths)
        values = np.ascontiguousarray(values)
        return self.api.TensorCopyFromBuffer(self.pointer, values.ctypes.data, values.nbytes)

    def get(self):
        if self.dtype() == object:
            strings = []
            for index in range(self.api.OpaqueTensorGetStringCount(self.pointer)):
                address, size = c_void_p(), c_int()
                status = self.api.OpaqueTensorGetString(self.pointer, index, byref(address), byref(size))
                check(status, OK, "string")
                strings.append(ctypes.string_at(address.value, size.value))
            return np.array(strings, object).reshape(self.shape())
        values = np.empty(self.shape(), self.dtype())
        check(self.api.TensorCopyToBuffer(self.pointer, values.ctypes.data, values.nbytes), OK, "copy of an output")
        if values.nbytes:
            memory = ctypes.string_at(self.api.TensorData(self.pointer), values.nbytes)
            check(memory, values.tobytes(), "data of the tensor")
        return values


class Client:
    """An interpreter."""

    def __init__(self, api, path, from_file=True, threads=1, cancellation=False, delegate=None):
        self.api = api
        if from_file:
            model = api.ModelCreateFromFile(path.encode())
        else:
            with open(path, "rb") as file:
                self.bytes = np.frombuffer(file.read(), np.uint8).copy()
            model = api.ModelCreate(self.bytes.ctypes.data, self.bytes.nbytes)
        assert model, "the model is null"
        options = api.InterpreterOptionsCreate()
        api.InterpreterOptionsSetNumThreads(options, threads)
        api.InterpreterOptionsSetErrorReporter(options, api.reporter, None)
        if cancellation:
            check(api.InterpreterOptionsEnableCancellation(options, True), OK, "enabling cancellation")
        if delegate:
            api.InterpreterOptionsAddDelegate(options, delegate)
        self.pointer = api.InterpreterCreate(model, options)
        api.InterpreterOptionsDelete(options)
        api.ModelDelete(model)

    def __enter__(self):
        assert self.pointer, f"the interpreter is null: {self.api.said()}"
        return self

    def __exit__(self, *_):
        self.api.InterpreterDelete(self.pointer)

    def inputs(self):
        count = self.api.InterpreterGetInputTensorCount(self.pointer)
        return [Tensor(self.api, self.api.InterpreterGetInputTensor(self.pointer, index)) for index in range(count)]

    def outputs(self):
        count = self.api.InterpreterGetOutputTensorCount(self.pointer)
        return [Tensor(self.api, self.api.InterpreterGetOutputTensor(self.pointer, index)) for index in range(count)]

    def resize(self, index, shape):
        return self.api.InterpreterResizeInputTensor(self.pointer, index, ints(shape), len(shape))

    def allocate(self):
        return self.api.InterpreterAllocateTensors(self.pointer)

    def invoke(self):
        return self.api.InterpreterInvoke(self.pointer)


def random(detail, shape, rng):
    if detail["dtype"] in (bytes, np.bytes_, np.object_):
        return np.array([b"string %d" % index for index in range(int(np.prod(shape)))], object).reshape(shape)
    shape, dtype = [int(dim) for dim in shape], np.dtype(detail["dtype"])
    # Indices must be valid.
    is_index = dtype.kind == "i" and dtype.itemsize >= 4 and shape != [1]
    return rng.integers(0, 2, shape).astype(dtype) if is_index else noise(shape, dtype, rng)


def compare_details(api, tensors, details, indices):
    check(len(tensors), len(details), "number of tensors")
    for tensor, detail, index in zip(tensors, details, indices):
        name = detail["name"]
        check(tensor.name(), name, "name")
        check(index, detail["index"], f"index of {name}")
        check(tensor.shape(), list(detail["shape"]), f"shape of {name}")
        expected = np.dtype(object) if detail["dtype"] in (bytes, np.bytes_, np.object_) else np.dtype(detail["dtype"])
        check(tensor.dtype(), expected, f"type of {name}")
        params = api.TensorQuantizationParams(tensor.pointer)
        check((params.scale, params.zero_point), detail["quantization"], f"quantization of {name}")
        if api.has("OpaqueTensorGetDimSignature"):
            check(tensor.signature(), list(detail["shape_signature"]), f"shape signature of {name}")


def compare_outputs(outputs, reference, built_in, what):
    worst = 0.0
    for tensor, exact, peer in zip(outputs, reference, built_in, strict=True):
        actual = tensor.get()
        if exact.dtype.kind in "OS":
            check([bytes(it) for it in actual.ravel()], [bytes(it) for it in exact.ravel()], f"{what}: strings")
            continue
        mine, theirs = distance(actual, exact), distance(peer, exact)
        tolerance = FLOAT_TOLERANCE if exact.dtype.kind == "f" else STEP_TOLERANCE
        if not mine <= theirs + tolerance:
            raise AssertionError(f"{what}: {tensor.name()} differs by {mine}, LiteRT's XNNPACK delegate by {theirs}")
        worst = max(worst, mine)
    return worst


class Peers:
    """LiteRT's interpreter with reference kernels and with its XNNPACK delegate."""

    def __init__(self, path):
        kinds = [OpResolverType.BUILTIN_REF, OpResolverType.AUTO]
        self.all = [Interpreter(path, num_threads=1, experimental_op_resolver_type=kind) for kind in kinds]

    def prepare(self, shapes):
        for peer in self.all:
            for detail, shape in zip(peer.get_input_details(), shapes):
                if list(detail["shape"]) != list(shape):
                    peer.resize_tensor_input(detail["index"], shape)
            peer.allocate_tensors()

    def run(self, values):
        for peer in self.all:
            for detail, value in zip(peer.get_input_details(), values):
                peer.set_tensor(detail["index"], value)
            peer.invoke()
        return [[peer.get_tensor(it["index"]) for it in peer.get_output_details()] for peer in self.all]


def run_once(client, peers, shapes, rng, what):
    """Runs twice, to see that addresses and results do not depend on earlier runs."""
    api = client.api
    worst = 0.0
    peers.prepare(shapes)
    check(client.allocate(), OK, f"allocating tensors: {api.said()}")
    for _ in range(2):
        details = peers.all[0].get_input_details()
        values = [random(detail, shape, rng) for detail, shape in zip(details, shapes)]
        for tensor, value in zip(client.inputs(), values):
            check(tensor.set(value), OK, f"{what}: setting {tensor.name()}")
        check(client.invoke(), OK, f"{what}: invoking: {api.said()}")
        reference, built_in = peers.run(values)
        worst = max(worst, compare_outputs(client.outputs(), reference, built_in, what))
    return worst


def compare_signatures(client, path, rng):
    """All signatures, with names, tensors and values. Returns their number."""
    api = client.api
    if not api.has("InterpreterGetSignatureRunner"):
        return 0
    kinds = [OpResolverType.BUILTIN_REF, OpResolverType.AUTO]
    peers = [Interpreter(path, num_threads=1, experimental_op_resolver_type=kind) for kind in kinds]
    expected = {key: names for key, names in peers[0].get_signature_list().items() if not key.startswith("<")}
    count = api.InterpreterGetSignatureCount(client.pointer)
    keys = [api.InterpreterGetSignatureKey(client.pointer, index).decode() for index in range(count)]
    check(sorted(keys), sorted(expected), "keys of signatures")
    check(api.InterpreterGetSignatureKey(client.pointer, count), None, "key beyond the last signature")
    check(api.InterpreterGetSignatureRunner(client.pointer, b"no such key"), None, "unknown signature")
    for key in keys:
        runner = api.InterpreterGetSignatureRunner(client.pointer, key.encode())
        sides = []
        for side in ("Input", "Output"):
            size = getattr(api, f"SignatureRunnerGet{side}Count")(runner)
            name = getattr(api, f"SignatureRunnerGet{side}Name")
            sides.append([name(runner, index).decode() for index in range(size)])
            check(name(runner, size), None, f"{side} name beyond the last one")
            api.said()
            check(getattr(api, f"SignatureRunnerGet{side}Tensor")(runner, b"no such name"), None, "unknown name")
            check(api.said(), [f"{side} name no such name was not found"], "message")
        check(sides, [expected[key]["inputs"], expected[key]["outputs"]], f"names of {key}")
        theirs = [peer.get_signature_runner(key) for peer in peers]
        details = theirs[0].get_input_details()
        values = {}
        for name in sides[0]:
            shape = [max(int(dim), 1) for dim in details[name]["shape_signature"]]
            if shape != list(details[name]["shape"]):
                status = api.SignatureRunnerResizeInputTensor(runner, name.encode(), ints(shape), len(shape))
                check(status, OK, f"resizing {name}: {api.said()}")
            values[name] = random(details[name], shape, rng)
        check(api.SignatureRunnerAllocateTensors(runner), OK, f"allocating tensors of {key}: {api.said()}")
        for name, value in values.items():
            tensor = Tensor(api, api.SignatureRunnerGetInputTensor(runner, name.encode()))
            check(tensor.set(value), OK, f"setting {name}")
        check(api.SignatureRunnerInvoke(runner), OK, f"invoking {key}: {api.said()}")
        reference, built_in = [its(**values) for its in theirs]
        tensors = [Tensor(api, api.SignatureRunnerGetOutputTensor(runner, name.encode())) for name in sides[1]]
        order = [[outputs[name] for name in sides[1]] for outputs in (reference, built_in)]
        compare_outputs(tensors, *order, f"signature {key}")
        api.SignatureRunnerDelete(runner)
    return count


def compare(api, path):
    """Everything about one model. Returns a summary."""
    rng = np.random.default_rng(0)
    peers = Peers(path)
    inputs, outputs = peers.all[0].get_input_details(), peers.all[0].get_output_details()
    # Later, LiteRT's kernels have tensors of their own besides those of the file.
    tensors = peers.all[0].get_tensor_details()
    shapes = [list(detail["shape"]) for detail in inputs]
    has_open = any((detail["shape_signature"] == -1).any() for detail in inputs)
    with Client(api, path, from_file=False) as client:
        compare_details(api, client.inputs(), inputs, [it["index"] for it in inputs])
        if api.has("InterpreterInputTensorIndices"):
            indices = [api.InterpreterInputTensorIndices(client.pointer)[i] for i in range(len(inputs))]
            check(indices, [it["index"] for it in inputs], "indices of inputs")
            indices = [api.InterpreterOutputTensorIndices(client.pointer)[i] for i in range(len(outputs))]
            check(indices, [it["index"] for it in outputs], "indices of outputs")
        for tensor in client.inputs():
            check(api.TensorData(tensor.pointer), None, "data before allocation")
    with Client(api, path) as client:
        worst = run_once(client, peers, shapes, rng, "first shapes")
        # Setting strings removes the shape signature of a tensor in LiteRT.
        after = zip(peers.all[0].get_output_details(), outputs, strict=True)
        compare_details(
            api,
            client.outputs(),
            [{**now, "shape_signature": first["shape_signature"]} for now, first in after],
            [api.InterpreterGetOutputTensorIndex(client.pointer, i) for i in range(len(outputs))],
        )
        if api.has("InterpreterGetTensor"):
            for detail in tensors:
                tensor = Tensor(api, api.InterpreterGetTensor(client.pointer, detail["index"]))
                check(tensor.name(), detail["name"], "name of a tensor")
        if has_open:
            for size in (3, 1, 2):
                open_ones = [np.where(it["shape_signature"] == -1, size, it["shape"]) for it in inputs]
                for index, shape in enumerate(open_ones):
                    check(client.resize(index, shape), OK, "resizing")
                worst = max(worst, run_once(client, peers, open_ones, rng, f"{size} for open dimensions"))
        check(api.InterpreterResetVariableTensors(client.pointer), OK, "resetting variables")
    with Client(api, path, threads=2) as client:
        signatures = compare_signatures(client, path, rng)
    return f"distance {worst:.2g}, {signatures} signatures" + (", resized" if has_open else "")


def call_the_rest(api, path, custom, endless):
    """Errors and their texts, null pointers, memory of the caller, delegates, cancellation."""
    major, minor, _ = (int(part) for part in api.Version().split(b"."))
    assert (major, minor) >= (2, 0)
    if api.has("SchemaVersion"):
        check(api.SchemaVersion(), 3, "schema version")
    names = {1: b"FLOAT32", 5: b"STRING", 9: b"INT8"}
    for code, name in names.items():
        check(api.TypeGetName(code), name, "name of a type")
    for pointer in (None,):
        api.ModelDelete(pointer)
        api.InterpreterOptionsDelete(pointer)
        api.InterpreterDelete(pointer)
    damaged = np.arange(64, dtype=np.uint8)
    check(api.ModelCreate(damaged.ctypes.data, damaged.nbytes), None, "a damaged model")
    check(api.ModelCreateFromFile(b"no such file"), None, "a missing file")
    if api.has("ModelCreateFromFileWithErrorReporter"):
        api.said()
        check(api.ModelCreateFromFileWithErrorReporter(b"no such file", api.reporter, None), None, "a missing file")
        assert "no such file" in "".join(api.said()), "the message does not name the file"
    with Client(api, path) as client:
        tensor = client.inputs()[0]
        peer = Interpreter(path)
        api.said()
        check(client.invoke(), ERROR, "invoking before allocation")
        try:
            peer.invoke()
        except RuntimeError as error:
            text = str(error)
        else:
            # LiteRT's Python API allocates first.
            text = "Invoke called on model that is not ready."
        message = "".join(api.said())
        assert message and message.strip() in text or "not ready" in message, (message, text)
        check(client.allocate(), OK, "allocating")
        size = api.TensorByteSize(tensor.pointer)
        data = np.zeros(size + 1, np.uint8)
        for wrong in (size - 1, size + 1):
            check(api.TensorCopyFromBuffer(tensor.pointer, data.ctypes.data, wrong), ERROR, "a wrong size")
            check(api.TensorCopyToBuffer(tensor.pointer, data.ctypes.data, wrong), ERROR, "a wrong size")
        check(client.resize(0, [-1] * 4), ERROR, "negative dimensions")
        check(client.resize(0, tensor.shape()), OK, "the same dimensions")
        check(client.allocate(), OK, "allocating again")
        check(client.invoke(), OK, "invoking")
    if api.has("InterpreterCancel"):
        with Client(api, path) as client:
            check(api.InterpreterCancel(client.pointer), ERROR, "cancelling without having enabled it")
    if api.has("InterpreterSetCustomAllocationForTensor"):
        own_memory(api, path)
    if api.has("XNNPackDelegateCreate"):
        options = XnnpackOptions(num_threads=2, flags=3)
        delegate = api.XNNPackDelegateCreate(byref(options))
        with Client(api, path, delegate=delegate) as client:
            check(client.allocate(), OK, "allocating with the XNNPACK delegate")
            check(client.invoke(), OK, "invoking with the XNNPACK delegate")
        api.XNNPackDelegateDelete(delegate)
    if custom:
        with Client(api, custom) as client:
            api.said()
            check(client.allocate(), UNRESOLVED, "an operator without a kernel")
            assert "Sinh" in "".join(api.said()), "the message does not name the operator"
    if endless and api.has("InterpreterCancel"):
        cancel(api, endless)


def own_memory(api, path):
    with Client(api, path) as client:
        index = api.InterpreterGetInputTensorIndex(client.pointer, 0)
        size = api.TensorByteSize(client.inputs()[0].pointer)
        memory = np.zeros(size + 128, np.uint8)
        start = (-memory.ctypes.data) % 64
        for offset, flags, expected in ((1, 0, ERROR), (0, 0, OK)):
            allocation = CustomAllocation(memory.ctypes.data + start + offset, size)
            status = api.InterpreterSetCustomAllocationForTensor(client.pointer, index, byref(allocation), flags)
            check(status, expected, "memory of the caller")
        check(client.allocate(), OK, "allocating with memory of the caller")
        check(api.TensorData(client.inputs()[0].pointer), memory.ctypes.data + start, "address of the caller's memory")
        results = []
        for seed in (0, 1):
            memory[start : start + size] = np.random.default_rng(seed).integers(0, 127, size)
            check(client.invoke(), OK, "invoking with memory of the caller")
            results.append(client.outputs()[0].get())
        assert not np.array_equal(*results), "the memory of the caller has no effect"


def cancel(api, path):
    with Client(api, path, cancellation=True) as client:
        check(client.allocate(), OK, "allocating")
        for tensor in client.inputs():
            tensor.set(np.zeros(tensor.shape(), tensor.dtype()))
        api.said()
        result = []
        thread = threading.Thread(target=lambda: result.append(client.invoke()))
        thread.start()
        while thread.is_alive():
            time.sleep(0.005)
            check(api.InterpreterCancel(client.pointer), OK, "cancelling")
        thread.join()
        check(result, [CANCELLED], "status of a cancelled run")
        check(api.said(), ["Client requested cancel during Invoke()"], "message")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--only-functions-it-has", action="store_true")
    parser.add_argument("--calls", action="store_true", help="call the rest of the API with the first model")
    parser.add_argument("--custom", help="a model with the custom operator Sinh")
    parser.add_argument("--endless", help="a model that runs until it is cancelled")
    args = parser.parse_args()
    api = Api(args.library, args.only_functions_it_has)
    print(f"TfLiteVersion {api.Version().decode()}, {len(FUNCTIONS) - len(api.lacks)} functions called")
    passed, checks = 0, [(os.path.basename(path), compare, (api, path)) for path in args.models]
    if args.calls:
        checks.append(("the rest of the API", call_the_rest, (api, args.models[0], args.custom, args.endless)))
    for name, function, arguments in checks:
        try:
            line = function(*arguments) or ""
            passed += 1
            print("ok    ", name, line, sep="\t", flush=True)
        except AssertionError as error:
            print("FAILED", name, error, sep="\t", flush=True)
    print(f"{passed} of {len(checks)} pass")
    return 0 if passed == len(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
