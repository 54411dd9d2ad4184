"""Compares a program that uses the crate `tflitec` with LiteRT's interpreter: outputs, best class, time.

    python tflitec.py PROGRAM PHOTO.bmp FOLDER MODEL...

Both run in turns with one thread. The folder gets inputs, outputs of the
reference kernels, and the distances that are allowed. Prints one line per model, with the
time of the program relative to LiteRT's. Exits with 1 if the best class differs, or an output is further from LiteRT's
reference kernels than that of its XNNPACK delegate, plus 1 step (8-bit) or 1e-5 of the range (float).
"""

import os
import subprocess
import sys
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../xnn-tflite-delegate/tests"))
from wheels import FLOAT_TOLERANCE, STEP_TOLERANCE, distance, noise, photo_input, read_bmp  # noqa: E402

ROUNDS, RUNS = 5, 30


def reference(path, values):
    """The output of LiteRT's reference kernels."""
    interpreter = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], values)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def litert(interpreter):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    return 1e6 * sorted(times)[RUNS // 2]


def main():
    program, photo, folder, *models = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    photo, failures = read_bmp(photo), 0
    for path in models:
        name = os.path.splitext(os.path.basename(path))[0]
        interpreter = Interpreter(path, num_threads=1)
        interpreter.allocate_tensors()
        detail = interpreter.get_input_details()[0]
        shape, dtype = [int(dim) for dim in detail["shape"]], np.dtype(detail["dtype"])
        values = photo_input(shape, dtype, photo)
        values = noise(shape, dtype, np.random.default_rng(0)) if values is None else values
        interpreter.set_tensor(detail["index"], values)
        raw, result = (os.path.join(folder, f"{name}.{kind}") for kind in ("input", "output"))
        np.ascontiguousarray(values).tofile(raw)
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(litert(interpreter))
            done = subprocess.run([program, path, raw, result, str(RUNS)], capture_output=True, text=True)
            if done.returncode:
                print("FAILED", name, done.stderr.strip(), sep="\t")
                return 1
            ours.append(float(done.stdout))
        peer = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        expected = reference(path, values)
        actual = np.fromfile(result, expected.dtype).reshape(expected.shape)
        far, best = distance(actual, expected), int(peer.argmax())
        allowed = distance(peer, expected) + (FLOAT_TOLERANCE if peer.dtype.kind == "f" else STEP_TOLERANCE)
        np.savez(os.path.join(folder, name), model=path, input=values, output=expected, allowed=allowed)
        passes = far <= allowed and int(actual.argmax()) == best
        failures += not passes
        ratio = np.median(ours) / np.median(theirs)
        line = f"class {best}, distance {far:.2g}, {np.median(ours):.0f} us, {ratio:.2f} of LiteRT's time"
        print("ok    " if passes else "FAILED", name, line, sep="\t", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
