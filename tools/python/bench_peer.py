"""TFLite's and LiteRT's interpreters' end of `cargo xtask bench` and `cargo xtask zoo`: one model, timed in turns with
others. The crate xnn-bench has the other end.

    bench_peer.py --package ai-edge-litert --model M.tflite --inputs DIR --threads 1 --side litert=default
                  --side delegate=libxnn_delegate.so

Each --side is a name and what it stands for: "default" (the delegate that the package applies by itself), "off" (the
package's optimized kernels), or the path of a delegate library. DIR has the inputs, as `judge.py inputs` writes them.

When all sides have run the script prints a JSON line: "version" of the package, and "sides", by name: milliseconds of
loading and of the first run, growth of memory in bytes, and delegated partitions; or "error". Then it answers requests
on standard input, each with a JSON line; in between it sleeps.

    time SIDE MILLISECONDS    runs the side for that long: a list of microseconds, one for each run
    instances SIDE COUNT      opens the model until there are so many, runs the new ones once: growth of memory
    outputs SIDE FOLDER       opens the model again, runs once, and writes the outputs to out_<i>.bin: their number
"""

import argparse
import importlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns

import numpy as np

MODULES = {"ai-edge-litert": "ai_edge_litert.interpreter", "tflite-runtime": "tflite_runtime.interpreter"}
# Runs after the first before memory is counted.
SETTLING = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=MODULES, default="ai-edge-litert")
    parser.add_argument("--model", required=True)
    parser.add_argument("--inputs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", action="append", required=True, metavar="NAME=KIND")
    arguments = parser.parse_args()
    module = importlib.import_module(MODULES[arguments.package])
    inputs = [np.load(path) for path in sorted(arguments.inputs.glob("in_*.npy"))]
    sides, states = {}, {}
    for name, kind in (side.split("=", 1) for side in arguments.side):
        side = Side(module, arguments.model, kind, arguments.threads, inputs)
        try:
            states[name] = side.start()
            sides[name] = side
        except (OSError, RuntimeError, ValueError) as error:
            states[name] = {"error": " ".join(str(error).split())[:200]}
    answer({"version": version(arguments.package), "sides": states})
    for line in sys.stdin:
        request, side, *rest = line.rstrip("\n").split(" ", 2)
        answer(getattr(sides[side], request)(*rest))


def answer(value):
    print(json.dumps(value), flush=True)


class Side:
    """A model, opened in one way, once or more."""

    def __init__(self, module, model, kind, threads, inputs):
        self.module, self.model, self.kind, self.threads, self.inputs = module, model, kind, threads, inputs
        self.opened = []

    def start(self):
        self.base = reset_memory()
        begin = perf_counter_ns()
        interpreter = self.open()
        load = perf_counter_ns() - begin
        set_inputs(interpreter, self.inputs)
        begin = perf_counter_ns()
        interpreter.invoke()
        first = perf_counter_ns() - begin
        for _ in range(SETTLING):
            interpreter.invoke()
        memory = self.memory()
        self.opened.append(interpreter)
        # The package has no public listing of operators.
        partitions = [op["op_name"] for op in interpreter._get_ops_details()].count("DELEGATE")
        return {"load_ms": load / 1e6, "first_ms": first / 1e6, "memory": memory, "partitions": partitions}

    def open(self):
        resolvers = self.module.OpResolverType
        if self.kind == "default":
            options = {"experimental_op_resolver_type": resolvers.AUTO}
        else:
            options = {"experimental_op_resolver_type": resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
        if self.kind not in ("default", "off"):
            threads = {"num_threads": str(self.threads)}
            options["experimental_delegates"] = [self.module.load_delegate(self.kind, threads)]
        interpreter = self.module.Interpreter(model_path=self.model, num_threads=self.threads, **options)
        interpreter.allocate_tensors()
        return interpreter

    def memory(self):
        return {"steady": status("VmRSS") - self.base, "peak": status("VmHWM") - self.base}

    # Requests.

    def time(self, milliseconds):
        duration, invoke = int(milliseconds) * 1_000_000, self.opened[0].invoke
        times = []
        start = end = perf_counter_ns()
        while end - start < duration or not times:
            begin = perf_counter_ns()
            invoke()
            end = perf_counter_ns()
            times.append((end - begin) / 1000)
        return times

    def instances(self, count):
        while len(self.opened) < int(count):
            interpreter = self.open()
            set_inputs(interpreter, self.inputs)
            interpreter.invoke()
            self.opened.append(interpreter)
        memory = self.memory()
        return {name: max(size, 0) for name, size in memory.items()}

    def outputs(self, folder):
        # Runs may have left state behind, and interpreters cannot reset all of it.
        interpreter = self.open()
        set_inputs(interpreter, self.inputs)
        interpreter.invoke()
        details = interpreter.get_output_details()
        for i, detail in enumerate(details):
            interpreter.get_tensor(detail["index"]).tofile(Path(folder) / f"out_{i}.bin")
        return len(details)


def set_inputs(interpreter, inputs):
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)


def reset_memory():
    """Resident memory now; the peak is counted from now on, too."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(field):
    """Bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


if __name__ == "__main__":
    main()
