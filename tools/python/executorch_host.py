"""Runs XN01 graphs in ExecuTorch's own runtime.

Part of executorch_interop.py, which calls it with the Python of an environment that has ExecuTorch. Jobs come as
JSON lines on standard input; the versions go out first, then one result line for each job:

    {"blob": FILE, "inputs": [{"dtype": "float32", "shape": [..], "file": FILE}, ..], "outputs": [FILE.npy, ..]}
    {"outputs": [{"dtype": .., "elements": .., "different": .., "worst": .., "relative": ..}, ..]}  or  {"error": TEXT}
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from executorch.runtime import Runtime

from executorch_program import to_program


def difference(got, expected):
    """How far two arrays are apart; NaN equals NaN, and 0 equals -0 only in bits."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(f"{got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}")
    bits = np.dtype(f"u{got.dtype.itemsize}")
    different = int(np.count_nonzero(got.view(bits) != expected.view(bits)))
    a, b = got.astype(np.float64), expected.astype(np.float64)
    apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    size = np.fmax(np.abs(b), 1.0)
    return {
        "dtype": str(got.dtype),
        "elements": got.size,
        "different": different,
        "worst": float(apart.max(initial=0.0)),
        "relative": float((apart / size).max(initial=0.0)),
    }


def run(job):
    arrays = [
        np.fromfile(entry["file"], entry["dtype"]).reshape(entry["shape"])
        for entry in job["inputs"]
    ]
    inputs = tuple(torch.from_numpy(array) for array in arrays)
    expected = [np.ascontiguousarray(np.load(file)) for file in job["outputs"]]
    outputs = [torch.from_numpy(array) for array in expected]
    program = to_program(Path(job["blob"]).read_bytes(), inputs, outputs)
    # From memory that stays: once a graph is compiled, loaders of files give its payload back, and with it constants
    # that XNNPACK did not pack but points at.
    method = Runtime.get().load_program(program).load_method("forward")
    results = [result.numpy().copy() for result in method.execute(inputs)]
    return {"outputs": [difference(got, want) for got, want in zip(results, expected, strict=True)]}


def main():
    print(json.dumps({name: version(name) for name in ("executorch", "torch", "numpy")}), flush=True)
    for line in sys.stdin:
        try:
            answer = run(json.loads(line))
        except Exception as error:  # a case's failure must not end the others
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
