"""The end of runtimes from PyPI in `cargo xtask bench` and `cargo xtask zoo`: one model, timed in turns with others. The
crate xnn-bench has the other end; bench_runtimes.py has the runtimes.

    bench_peer.py --package ai-edge-litert --model M.tflite --inputs DIR --threads 1 --side litert=default
                  --side delegate=libxnn_delegate.so

Each --side is a name and a way to open the model. With TFLite and LiteRT: "default" (the delegate that the package applies by
itself), "off" (the package's optimized kernels), or the path of a delegate library. With ExecuTorch, whose models are .pte:
"default" (from the file), or "memory" (from memory that stays). With ONNX Runtime, whose models are .onnx: "default". DIR has
the inputs, as `judge.py inputs` writes them.

When all sides have run the script prints a JSON line: "version" of the package, and "sides", by name: milliseconds of
loading and of the first run, growth of memory in bytes, and delegated partitions; or "error". Then it answers requests
on standard input, each with a JSON line; in between it sleeps.

    time SIDE MILLISECONDS    runs the side for that long: "us", a list of microseconds, one for each run, and "cpu_us",
                              microseconds of processor time of all threads and all runs
    instances SIDE COUNT      opens the model until there are so many, runs the new ones once: growth of memory
    streams SIDE COUNT MS     opens the model until there are so many, runs them at the same time for that long, each in a
                              thread: the same
    outputs SIDE FOLDER       opens the model again, runs once, and writes the outputs to out_<i>.bin: their number
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns, process_time_ns

import numpy as np

from bench_runtimes import RUNTIMES

# Runs after the first before memory is counted.
SETTLING = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=RUNTIMES, default="ai-edge-litert")
    parser.add_argument("--model", required=True)
    parser.add_argument("--inputs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", action="append", required=True, metavar="NAME=WAY")
    arguments = parser.parse_args()
    open_model = RUNTIMES[arguments.package](arguments.threads)
    inputs = [np.load(path) for path in sorted(arguments.inputs.glob("in_*.npy"))]
    sides, states = {}, {}
    for name, way in (side.split("=", 1) for side in arguments.side):
        side = Side(open_model, arguments.model, way, inputs)
        try:
            states[name] = side.start()
            sides[name] = side
        except Exception as error:  # each package has its own
            states[name] = {"error": " ".join(str(error).split())[:200]}
    answer({"version": version(arguments.package), "sides": states})
    for line in sys.stdin:
        request, side, *rest = line.rstrip("\n").split(" ", 2)
        answer(getattr(sides[side], request)(*rest))


def answer(value):
    print(json.dumps(value), flush=True)


class Side:
    """A model, opened in one way, once or more."""

    def __init__(self, open_model, model, way, inputs):
        self.open_model, self.model, self.way, self.inputs = open_model, model, way, inputs
        self.opened = []

    def start(self):
        self.base = reset_memory()
        begin = perf_counter_ns()
        instance = self.open_model(self.model, self.way)
        load = perf_counter_ns() - begin
        instance.set_inputs(self.inputs)
        begin = perf_counter_ns()
        instance.run()
        first = perf_counter_ns() - begin
        for _ in range(SETTLING):
            instance.run()
        memory = self.memory()
        self.opened.append(instance)
        return {"load_ms": load / 1e6, "first_ms": first / 1e6, "memory": memory, "partitions": instance.partitions()}

    def another(self):
        """One more instance, which has run once."""
        instance = self.open_model(self.model, self.way)
        instance.set_inputs(self.inputs)
        instance.run()
        return instance

    def memory(self):
        grown = {"steady": status("VmRSS") - self.base, "peak": status("VmHWM") - self.base}
        return {name: max(size, 0) for name, size in grown.items()}

    # Requests.

    def time(self, milliseconds):
        return timed(lambda: run_for(self.opened[0].run, int(milliseconds)))

    def instances(self, count):
        while len(self.opened) < int(count):
            self.opened.append(self.another())
        return self.memory()

    def streams(self, counts):
        count, milliseconds = map(int, counts.split())
        self.instances(count)
        # Interpreters release Python's lock while they run.
        with ThreadPoolExecutor(count) as pool:

            def run():
                streams = [pool.submit(run_for, one.run, milliseconds) for one in self.opened[:count]]
                return [time for stream in streams for time in stream.result()]

            return timed(run)

    def outputs(self, folder):
        # Runs may have left state behind, and not all runtimes can reset all of it.
        outputs = self.another().outputs()
        for i, values in enumerate(outputs):
            values.tofile(Path(folder) / f"out_{i}.bin")
        return len(outputs)


def timed(run):
    """The microseconds that it returns, and the processor time of this process meanwhile."""
    before = process_time_ns()
    times = run()
    return {"us": times, "cpu_us": (process_time_ns() - before) / 1000}


def run_for(run, milliseconds):
    """Microseconds of each run; at least one."""
    duration, times = milliseconds * 1_000_000, []
    start = end = perf_counter_ns()
    while end - start < duration or not times:
        begin = perf_counter_ns()
        run()
        end = perf_counter_ns()
        times.append((end - begin) / 1000)
    return times


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
