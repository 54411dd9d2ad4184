"""LiteRT's part in `cargo xtask bench` and `cargo xtask zoo` that takes no time: inputs for all, and how good outputs are.

    judge.py inputs --model M.tflite --folder DIR

writes random inputs to in_<i>.npy and, for those who do not read these, in_<i>.bin; their shapes to shapes.json.

    judge.py distances --model M.tflite --folder DIR --kernels ref --outputs DIR...

prints how far the outputs in each of the folders (out_<i>.bin) are from those of LiteRT's kernels for these inputs: a
list of [steps, range], the largest distances of all outputs: quantization steps for integers, parts of the reference's
range for floats; null where there is no such output or nothing to compare, "shape" where an output has another size.
Reference kernels ("ref") of some operators end the process; optimized ones ("noxnn") are the judge then.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from golden import prepare, random_input

# Distance between a finite element and NaN or infinity; JSON has no infinity.
FAR = 1e300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("inputs", "distances"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kernels", choices=("ref", "noxnn"), default="ref")
    parser.add_argument("--outputs", type=Path, nargs="+", default=[], metavar="DIR")
    arguments = parser.parse_args()
    if arguments.what == "inputs":
        return write_inputs(arguments.model, arguments.folder)
    given = {i: np.load(path) for i, path in enumerate(sorted(arguments.folder.glob("in_*.npy")))}
    interpreter, _ = prepare(arguments.model.read_bytes(), arguments.kernels, 1, seed=0, given=given)
    interpreter.invoke()
    reference = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    print(json.dumps([distances(read_outputs(folder, reference), reference) for folder in arguments.outputs]))


def write_inputs(model, folder, seed=0):
    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_path=str(model), experimental_op_resolver_type=kernels)
    numbers = np.random.default_rng(seed)
    inputs = [random_input(numbers, detail) for detail in interpreter.get_input_details()]
    for i, values in enumerate(inputs):
        # Names that sort.
        np.save(folder / f"in_{i:04}.npy", values)
        values.tofile(folder / f"in_{i}.bin")
    (folder / "shapes.json").write_text(json.dumps([list(values.shape) for values in inputs]))


def read_outputs(folder, reference):
    paths = [folder / f"out_{i}.bin" for i in range(len(reference))]
    return [np.fromfile(path, one.dtype) if path.exists() else None for path, one in zip(paths, reference)]


def distances(tensors, reference):
    """The largest distances [steps, parts of the range] of integers and floats; "shape" for another size."""
    worst = [None, None]
    for tensor, wanted in zip(tensors, reference):
        if tensor is None or tensor.size != wanted.size:
            return "shape"
        if wanted.size == 0:
            continue
        kind = int(wanted.dtype.kind == "f")
        tensor, wanted = tensor.ravel().astype(np.float64), wanted.ravel().astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.where((tensor == wanted) | (np.isnan(tensor) & np.isnan(wanted)), 0, np.abs(tensor - wanted))
        apart = np.nan_to_num(apart, nan=FAR, posinf=FAR)
        finite = wanted[np.isfinite(wanted)]
        span = np.ptp(finite) if kind and finite.size else 0
        apart = float(apart.max() / (span or 1))
        worst[kind] = apart if worst[kind] is None else max(worst[kind], apart)
    return worst


if __name__ == "__main__":
    main()
