"""Run .tflite models in LiteRT and keep inputs and outputs as .npy files, for comparison with ours.

One model:

    golden.py --model M.tflite --mode ref --out DIR [--input 0=image.npy] [--seed 7] [--threads 1] [--dump-all]

Many models in one process, saving the start-up: a JSON list of jobs on standard input.

    golden.py --batch < jobs.json
    [{"model": "M.tflite", "mode": "xnn", "out": "DIR", "threads": 2, "seed": 7,
      "inputs": {"0": "image.npy"}, "dump_all": false}, ...]

Only "model", "mode" and "out" are required. A batch prints one JSON line per job, {"out": ..., "error": null or text},
as soon as the job ends, and carries on after a job that fails. The exit code is 1 if any job failed.

DIR receives in_<i>.npy and out_<i>.npy, numbered as the model lists them, and last meta.json, whose presence says that
the rest is complete. --dump-all adds t_<tensor>.npy for every tensor that an operator wrote; it also makes the XNNPACK
delegate claim each operator by itself.
"""

import argparse
import hashlib
import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

MODES = {
    "ref": OpResolverType.BUILTIN_REF,
    "noxnn": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    "xnn": OpResolverType.AUTO,
}


def main():
    arguments = parse_arguments()
    if not arguments.batch:
        inputs = dict(entry.split("=", 1) for entry in arguments.input)
        run_job(
            arguments.model,
            arguments.mode,
            arguments.out,
            arguments.threads,
            arguments.seed,
            inputs,
            arguments.dump_all,
        )
        return 0

    failed = False
    for job in json.load(sys.stdin):
        error = None
        try:
            run_job(**job)
        except Exception as cause:  # LiteRT raises many kinds; a batch reports each and goes on
            failed = True
            error = f"{type(cause).__name__}: {cause}"
        print(json.dumps({"out": job.get("out"), "error": error}), flush=True)
    return int(failed)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", action="store_true", help="read a JSON list of jobs from standard input")
    parser.add_argument("--model")
    parser.add_argument("--mode", choices=MODES, help="reference kernels, optimized kernels, or the XNNPACK delegate")
    parser.add_argument("--out", metavar="DIR")
    parser.add_argument("--input", action="append", default=[], metavar="INDEX=FILE.npy", help="others are random")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dump-all", action="store_true", help="also keep every intermediate tensor")
    arguments = parser.parse_args()
    if not arguments.batch and not (arguments.model and arguments.mode and arguments.out):
        parser.error("--model, --mode and --out are needed without --batch")
    if any("=" not in entry for entry in arguments.input):
        parser.error("--input takes INDEX=FILE.npy")
    return arguments


def run_job(model, mode, out, threads=1, seed=0, inputs=None, dump_all=False):
    content = Path(model).read_bytes()
    given = {int(index): np.load(path) for index, path in (inputs or {}).items()}
    interpreter, feeds = prepare(content, mode, threads, seed, given, dump_all)
    interpreter.invoke()

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    meta_path = folder / "meta.json"
    meta_path.unlink(missing_ok=True)
    meta = {
        "model": Path(model).name,
        "model_sha256": hashlib.sha256(content).hexdigest(),
        "mode": mode,
        "threads": threads,
        "seed": seed,
        "versions": {
            "ai-edge-litert": version("ai-edge-litert"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "partitions": sum(op["op_name"] == "DELEGATE" for op in operators(interpreter)),
        "inputs": [
            save(folder / f"in_{i}.npy", detail, value)
            for i, (detail, value) in enumerate(zip(interpreter.get_input_details(), feeds))
        ],
        "outputs": [
            save(folder / f"out_{i}.npy", detail, interpreter.get_tensor(detail["index"]))
            for i, detail in enumerate(interpreter.get_output_details())
        ],
    }
    if dump_all:
        meta["tensors"] = save_intermediates(folder, interpreter)
    meta_path.write_text(json.dumps(meta, indent=1) + "\n")


def prepare(content, mode, threads, seed, given, preserve_all=False):
    """An interpreter with its inputs set, and the inputs; those not in `given` (by position) are random."""
    interpreter = Interpreter(
        model_content=content,
        num_threads=threads,
        experimental_op_resolver_type=MODES[mode],
        experimental_preserve_all_tensors=preserve_all,
    )
    details = interpreter.get_input_details()
    if unknown := set(given) - set(range(len(details))):
        raise ValueError(f"no input {min(unknown)}: the model has {len(details)}")
    rng = np.random.default_rng(seed)
    feeds = []
    for i, detail in enumerate(details):
        drawn = random_input(rng, detail)
        feeds.append(given.get(i, drawn))
        if feeds[i].dtype != detail["dtype"]:
            raise ValueError(f"input {i} is {np.dtype(detail['dtype'])} in the model and {feeds[i].dtype} in the file")
        if list(feeds[i].shape) != list(detail["shape"]):
            interpreter.resize_tensor_input(detail["index"], feeds[i].shape, strict=True)
    interpreter.allocate_tensors()
    for detail, value in zip(details, feeds):
        interpreter.set_tensor(detail["index"], value)
    return interpreter, feeds


def random_input(rng, detail):
    """Uniform: [-1, 1) for floats, the whole range for 8 and 16 bits, 0..3 (a safe index) for wider integers."""
    dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
    if dtype.kind == "f":
        return rng.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    if dtype.kind in "iu":
        return rng.integers(0, 4, shape, dtype)
    raise ValueError(f"cannot draw random values for input {detail['name']!r} of type {dtype}")


def operators(interpreter):
    # LiteRT has no public listing of operators.
    return interpreter._get_ops_details()


def save_intermediates(folder, interpreter):
    written = {int(tensor) for op in operators(interpreter) for tensor in op["outputs"] if tensor >= 0}
    saved = []
    for detail in interpreter.get_tensor_details():
        if detail["index"] in written:
            try:
                value = interpreter.get_tensor(detail["index"])
            except ValueError:  # swallowed by a delegate: it has no data
                continue
            saved.append(save(folder / f"t_{detail['index']}.npy", detail, value))
    return saved


def save(path, detail, value):
    """Write the tensor, and return what meta.json says of it."""
    np.save(path, value)
    parameters = detail["quantization_parameters"]
    return {
        "file": path.name,
        "tensor": int(detail["index"]),
        "name": detail["name"],
        "dtype": str(value.dtype),
        "shape": list(value.shape),
        "scale": [float(scale) for scale in parameters["scales"]],
        "zero_point": [int(zero) for zero in parameters["zero_points"]],
    }


if __name__ == "__main__":
    sys.exit(main())
