"""Runs models with the package `edgefirst_tflite` on a `libtensorflowlite_c.so`, with and without its XNNPACK delegate.

    python edgefirst.py LIBRARY FOLDER

The folder has inputs, outputs and allowed distances, which `tflitec.py` wrote with LiteRT. Exits with 1 if an output differs
by more.
"""

import glob
import os
import sys

import edgefirst_tflite
import numpy as np


def distance(actual, expected):
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    difference = np.abs(a - b).max()
    return difference if expected.dtype.kind != "f" else difference / max(b.max() - b.min(), 1e-30)


def run(library, path, values, delegates):
    interpreter = edgefirst_tflite.Interpreter(
        model_path=path, num_threads=1, library_path=library, experimental_delegates=delegates
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, values)
    interpreter.invoke()
    return interpreter.get_output_tensor(0)


def main():
    library, folder = sys.argv[1:]
    failures = 0
    for case in sorted(glob.glob(os.path.join(folder, "*.npz"))):
        with np.load(case) as arrays:
            path, values, expected = str(arrays["model"]), arrays["input"], arrays["output"]
            allowed = float(arrays["allowed"])
        for name, delegates in (
            ("no delegate", None),
            ("XNNPACK delegate", [edgefirst_tflite.xnnpack_delegate(num_threads=2, library_path=library)]),
        ):
            actual = run(library, path, values, delegates)
            far = distance(actual.reshape(expected.shape), expected)
            passes = far <= allowed
            failures += not passes
            print("ok    " if passes else "FAILED", os.path.basename(path), name, f"distance {far:.2g}", sep="\t")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
