"""Runs models in the interpreter of this Python environment, with and without the delegate.

    python wheels.py LIBRARY XNN [--photo FILE.bmp] MODEL...

Prints one line per model. A model passes if the outputs with the delegate are no further from the
interpreter's reference kernels than those of its built-in XNNPACK delegate on the same input, plus
1 step (8-bit outputs) or 1e-5 of the output's range (float outputs). Models that only the built-in delegate can run
have operators without reference kernels in the interpreter; this project's reference kernels, run by the program XNN,
are used instead. Inputs that look like images get the photo, all others seeded noise. Every run is a separate process,
so that a crash is one failure.
Exits with 1 if a model fails.
"""

import argparse
import ctypes
import glob
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

try:
    import ai_edge_litert.interpreter as tflite
except ImportError:
    import tflite_runtime.interpreter as tflite

Resolver = tflite.OpResolverType
FLOAT_TOLERANCE = 1e-5
STEP_TOLERANCE = 1.0
TIMEOUT_SECONDS = 900

# The interpreter's kernels and delegate in each mode; with the suffix "+ours", this delegate is applied first.
MODES = {
    "reference": Resolver.BUILTIN_REF,
    "optimized": Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "built-in": Resolver.AUTO,
}


class BuiltIn8Bit:
    """The XNNPACK delegate of tflite_runtime with its 8-bit operators, which are off by default."""

    FLAGS = 3  # QS8 and QU8

    class Options(ctypes.Structure):
        _fields_ = [("num_threads", ctypes.c_int32), ("flags", ctypes.c_uint32), ("rest", ctypes.c_uint64 * 14)]

    def __init__(self):
        folder = os.path.dirname(tflite.__file__)
        library = ctypes.CDLL(glob.glob(os.path.join(folder, "_pywrap_tensorflow_interpreter_wrapper*.so"))[0])
        library.TfLiteXNNPackDelegateCreate.restype = ctypes.c_void_p
        self.pointer = library.TfLiteXNNPackDelegateCreate(ctypes.byref(self.Options(1, self.FLAGS)))

    def _get_native_delegate_pointer(self):
        return self.pointer


def delegates(mode, library):
    if mode.endswith("+ours"):
        return [tflite.load_delegate(library)]
    if mode == "built-in" and "tflite_runtime" in tflite.__name__:
        return [BuiltIn8Bit()]
    return None


def read_bmp(path):
    """The pixels of an uncompressed 24-bit BMP, as height x width x RGB."""
    with open(path, "rb") as file:
        data = file.read()
    start, width, height = (int.from_bytes(data[at : at + 4], "little", signed=True) for at in (10, 18, 22))
    row = (width * 3 + 3) // 4 * 4
    pixels = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    pixels = pixels[:, : width * 3].reshape(abs(height), width, 3)[:, :, ::-1]
    return pixels[::-1] if height > 0 else pixels


def photo_input(shape, dtype, photo):
    """The photo in the size and type of an input; `None` if the input is not an image."""
    if photo is None or len(shape) != 4 or shape[3] != 3 or min(shape[1:3]) < 16:
        return None
    rows, columns = ((np.arange(to) * of) // to for to, of in zip(shape[1:3], photo.shape))
    image = np.broadcast_to(photo[rows][:, columns], shape)
    if dtype == np.uint8:
        return image.copy()
    if dtype == np.int8:
        return (image.astype(np.int16) - 128).astype(np.int8)
    return (image.astype(np.float32) / 127.5 - 1).astype(dtype) if dtype.kind == "f" else None


def noise(shape, dtype, rng):
    """Random elements for a type."""
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype.kind == "b":
        return np.ones(shape, dtype)
    if dtype.itemsize == 1:
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if dtype == np.int16:
        return rng.integers(-3000, 3000, shape).astype(dtype)
    # Sample rates, lengths and token numbers.
    return np.full(shape, 16000, dtype) if shape == [1] else rng.integers(0, 100, shape).astype(dtype)


def delegated(interpreter):
    """Number of nodes that are kernels of delegates."""
    return sum(op["op_name"] == "DELEGATE" for op in interpreter._get_ops_details())


def run(model, mode, library, photo, result):
    """Runs a model once and writes its inputs and outputs to the file `result`."""
    interpreter = tflite.Interpreter(
        model_path=model,
        num_threads=1,
        experimental_op_resolver_type=MODES[mode.removesuffix("+ours")],
        experimental_delegates=delegates(mode, library),
    )
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    photo = read_bmp(photo) if photo else None
    inputs = []
    for detail in interpreter.get_input_details():
        shape, dtype = [max(int(dim), 1) for dim in detail["shape"]], np.dtype(detail["dtype"])
        image = photo_input(shape, dtype, photo)
        inputs.append(noise(shape, dtype, rng) if image is None else image)
        interpreter.set_tensor(detail["index"], inputs[-1])
    interpreter.invoke()
    outputs = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    arrays = {"input": inputs, "output": outputs}
    named = {f"{kind}{i}": values for kind, all in arrays.items() for i, values in enumerate(all)}
    np.savez(result, partitions=delegated(interpreter), **named)


def run_apart(model, mode, library, photo):
    """Calls `run` in another process. Returns the outputs and None, or None and the error."""
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.npz")
        command = [sys.executable, __file__, library, "", model, "--mode", mode, "--result", result]
        command += ["--photo", photo] if photo else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            return None, f"not done after {TIMEOUT_SECONDS} s"
        if done.returncode == 0:
            with np.load(result, allow_pickle=True) as arrays:
                return dict(arrays), None
        last_words = done.stderr.strip().splitlines()[-1:]
        return None, f"exit code {done.returncode}: {''.join(last_words)}"


def distance(actual, expected):
    """Largest difference, in steps or relative to the range; infinite if not comparable."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return np.inf
    if actual.size == 0 or actual.dtype.kind not in "fiu":
        return 0.0 if np.array_equal(actual, expected) else np.inf
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    difference = np.abs(a - b)[~same].max()
    if np.isnan(difference):
        return np.inf
    if actual.dtype.kind != "f":
        return float(difference)
    finite = b[np.isfinite(b)]
    span = finite.max() - finite.min() if finite.size else 0.0
    return float(difference / span if span > 0 else difference)


def numbered(arrays, kind):
    """The arrays of one kind that `run` wrote, in order."""
    return [arrays[f"{kind}{i}"] for i in range(sum(name.startswith(kind) for name in arrays))]


def run_with_xnn(xnn, model, inputs, folder, *options):
    """The outputs of `xnn run`."""
    command = [xnn, "run", model, "--output-dir", folder, *options]
    for index, values in enumerate(inputs):
        path = os.path.join(folder, f"in_{index}.npy")
        np.save(path, values)
        command += ["--input", f"{index}={path}"]
    subprocess.run(command, check=True, capture_output=True)
    count = sum(name.startswith("out_") for name in os.listdir(folder))
    return [np.load(os.path.join(folder, f"out_{index}.npy")) for index in range(count)]


def judge(model, args, runs):
    """Returns the source of the expected outputs and the outputs: reference kernels; if they fail, the optimized ones;
    and for models with operators that only the built-in delegate supports, this project's reference kernels."""
    for mode in ("reference", "optimized"):
        if runs[mode] is not None:
            return mode, numbered(runs[mode], "output")
    with tempfile.TemporaryDirectory() as folder:
        inputs = numbered(runs["built-in"], "input")
        return "xnn", run_with_xnn(args.xnn, model, inputs, folder, "--max-partitions", "0")


def check(model, args):
    """Compares the modes of running a model. Returns whether it passes, and a line of text."""
    results = {mode: run_apart(model, mode, args.library, args.photo) for mode in MODES}
    runs = {mode: outputs for mode, (outputs, _) in results.items()}
    mode = next((mode for mode in MODES if runs[mode] is not None), None)
    if mode is None:
        return True, f"refused by the interpreter: {results['reference'][1]}"
    ours, failure = run_apart(model, f"{mode}+ours", args.library, args.photo)
    if ours is None:
        return False, failure
    # The built-in delegate may claim nodes that it then cannot build.
    peer = next(runs[mode] for mode in reversed(MODES) if runs[mode] is not None)
    try:
        who, expected = judge(model, args, runs)
    except subprocess.CalledProcessError as error:
        return False, error.stderr.decode().strip()
    passes, worst = True, {"ours": 0.0, "built-in": 0.0}
    for values, our, their in zip(expected, numbered(ours, "output"), numbered(peer, "output"), strict=True):
        mine, theirs = distance(our, values), distance(their, values)
        worst["ours"], worst["built-in"] = max(worst["ours"], mine), max(worst["built-in"], theirs)
        passes &= mine <= theirs + (FLOAT_TOLERANCE if values.dtype.kind == "f" else STEP_TOLERANCE)
    return passes, json.dumps({"judge": who, "kernels": int(ours["partitions"]), **worst})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("xnn")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--photo", help="a 24-bit BMP")
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode:
        run(args.models[0], args.mode, args.library, args.photo, args.result)
        return 0
    passed = 0
    for model in args.models:
        passes, line = check(model, args)
        passed += passes
        print("ok    " if passes else "FAILED", os.path.basename(model), line, sep="\t", flush=True)
    print(f"{passed} of {len(args.models)} models pass")
    return 0 if passed == len(args.models) else 1


if __name__ == "__main__":
    sys.exit(main())
