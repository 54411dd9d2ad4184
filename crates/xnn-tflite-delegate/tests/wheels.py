"""Runs models in the interpreter of this Python environment, with and without the delegate.

    python wheels.py LIBRARY MODEL...

One line for each model. A model passes if the outputs with the delegate are no further from the
interpreter's reference kernels than those of its built-in XNNPACK delegate on the same input, plus
1 step (8-bit outputs) or 1e-5 of the output's range (float outputs). Every model runs in a process
of its own, so that a crash is one failure. Exits with 1 if a model fails.
"""

import argparse
import json
import os
import subprocess
import sys

import numpy as np

try:
    import ai_edge_litert.interpreter as tflite
except ImportError:
    import tflite_runtime.interpreter as tflite

Resolver = tflite.OpResolverType
SEEDS = (0, 1)
FLOAT_TOLERANCE = 1e-5
TIMEOUT_SECONDS = 900


def random_input(detail, rng):
    """Elements that suit the type of an input."""
    shape = [max(int(dim), 1) for dim in detail["shape"]]
    dtype = np.dtype(detail["dtype"])
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


def load(model, resolver, library=None, options=None):
    """An interpreter that is ready to run."""
    delegates = [tflite.load_delegate(library, options or {})] if library else None
    interpreter = tflite.Interpreter(
        model_path=model,
        num_threads=1,
        experimental_op_resolver_type=resolver,
        experimental_delegates=delegates,
    )
    interpreter.allocate_tensors()
    return interpreter


def outputs(interpreter, seed):
    """What a model makes of random inputs."""
    rng = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], random_input(detail, rng))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def distance(actual, expected):
    """The largest difference, in steps or as a fraction of the range; infinite if not comparable."""
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
        return difference
    span = b[np.isfinite(b)]
    span = span.max() - span.min() if span.size else 0.0
    return difference / span if span > 0 else difference


def tolerance(array):
    return FLOAT_TOLERANCE if array.dtype.kind == "f" else 1.0


def delegated_nodes(interpreter):
    """How many nodes of the graph are kernels of delegates."""
    return sum(op["op_name"] in ("DELEGATE", "XnnDelegate") for op in interpreter._get_ops_details())


def attempt(*args):
    try:
        return load(*args), None
    except (RuntimeError, ValueError) as error:
        return None, str(error)


def run_one(library, model):
    """Compares the three ways of running one model."""
    resolver = Resolver.BUILTIN_REF
    reference, refusal = attempt(model, resolver)
    builtin, _ = attempt(model, Resolver.AUTO)
    if reference is None and builtin is None:
        return {"status": "refused by the interpreter", "why": refusal}
    if reference is None:
        # Custom operators that only the built-in delegate knows.
        reference, resolver = builtin, Resolver.AUTO
    if builtin is None:
        # The built-in delegate takes nodes that it then cannot build.
        builtin = load(model, Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    ours = load(model, resolver, library)
    result = {"status": "ok", "partitions": delegated_nodes(ours), "ours": 0.0, "builtin": 0.0}
    for seed in SEEDS:
        expected = outputs(reference, seed)
        theirs = outputs(builtin, seed)
        for index, (a, b, c) in enumerate(zip(outputs(ours, seed), theirs, expected)):
            mine, other = distance(a, c), distance(b, c)
            result["ours"], result["builtin"] = max(result["ours"], mine), max(result["builtin"], other)
            if not mine <= other + tolerance(c):
                result["status"] = f"FAILED: output {index}, seed {seed}: {mine:g} against {other:g}"
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--one", action="store_true", help="in this process, as JSON")
    args = parser.parse_args()
    if args.one:
        print("RESULT " + json.dumps(run_one(args.library, args.models[0])))
        return 0
    failures = 0
    for model in args.models:
        command = [sys.executable, __file__, args.library, model, "--one"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
            lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            last_words = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            result = json.loads(lines[0][7:]) if lines else {"status": "FAILED: " + last_words[0]}
        except subprocess.TimeoutExpired:
            result = {"status": f"FAILED: not done after {TIMEOUT_SECONDS} s"}
        failures += result["status"].startswith("FAILED")
        details = {key: value for key, value in result.items() if key != "status"}
        print(os.path.basename(model), result["status"], json.dumps(details), sep="\t", flush=True)
    print(f"{len(args.models) - failures} of {len(args.models)} models pass")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
