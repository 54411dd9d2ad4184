"""LiteRT's end of `cargo xtask bench` and `cargo xtask zoo`: one model, timed in turns with somebody else.

    bench_litert.py --model M.tflite --threads 1 [--library libxnn_delegate.so]

The model runs with the XNNPACK delegate, LiteRT's default, on random inputs, and with the library in its place if one
is given. When both are ready the script prints a JSON line: "version" of LiteRT, and of each side, "litert" and
"delegate", the nodes and delegated partitions, or "error". Then it answers requests on standard input, each with a JSON
line; in between it sleeps.

    time SIDE MILLISECONDS    runs the side for that long: a list of microseconds, one for each run
    inputs FOLDER             writes the inputs to in_<i>.bin: a list of shapes
    distance FOLDER           reads another's outputs for these inputs from out_<i>.bin; how far they and both sides
                              are from LiteRT's reference kernels: {"judge": kernels, SIDE or "ours": [steps, range]}

Distances are the largest of all outputs': quantization steps for integers, parts of the reference's range for floats;
null where there is no such output or nothing to compare. Reference kernels run in a process of their own: those of
some operators end it, and LiteRT's optimized kernels are the judge then.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
from golden import operators, prepare

# Of a number from what is none; JSON has no infinity.
FAR = 1e300

JUDGES = {"ref": "reference", "noxnn": "optimized"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--judge", nargs=2, metavar=("KERNELS", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    content = arguments.model.read_bytes()
    if arguments.judge:
        kernels, folder = arguments.judge
        interpreter, _ = prepare(content, kernels, 1, seed=0, given={})
        interpreter.invoke()
        return save(Path(folder), outputs(interpreter))

    peer = Peer(arguments.model, content, arguments.threads, arguments.library)
    print(json.dumps({"version": version("ai-edge-litert")} | peer.state()), flush=True)
    for line in sys.stdin:
        request, *rest = line.rstrip("\n").split(" ", 1)
        print(json.dumps(getattr(peer, request)(*rest)), flush=True)


class Peer:
    def __init__(self, model, content, threads, library):
        self.model = model
        self.sides, self.errors, self.feeds = {}, {}, []
        makers = {"litert": lambda: prepare(content, "xnn", threads, seed=0, given={})}
        if library:
            makers["delegate"] = lambda: with_library(content, threads, library)
        for side, make in makers.items():
            try:
                interpreter, feeds = make()
                interpreter.invoke()
                self.sides[side], self.feeds = interpreter, feeds
            except (RuntimeError, ValueError) as error:
                self.errors[side] = str(error).strip().splitlines()[0]

    def state(self):
        delegates = {side: [op["op_name"] for op in operators(one)].count("DELEGATE") for side, one in self.sides.items()}
        return {side: {"partitions": count} for side, count in delegates.items()} | {
            side: {"error": error} for side, error in self.errors.items()
        }

    def time(self, request):
        side, milliseconds = request.split()
        duration, invoke = int(milliseconds) * 1_000_000, self.sides[side].invoke
        times = []
        start = end = perf_counter_ns()
        while end - start < duration:
            begin = perf_counter_ns()
            invoke()
            end = perf_counter_ns()
            times.append((end - begin) / 1000)
        return times

    def inputs(self, folder):
        for i, feed in enumerate(self.feeds):
            feed.tofile(Path(folder) / f"in_{i}.bin")
        return [list(feed.shape) for feed in self.feeds]

    def distance(self, folder):
        judge, reference = self.reference()
        answer = {"judge": judge}
        if reference is None:
            return answer
        for side, interpreter in self.sides.items():
            # Timing may have left state behind.
            interpreter.reset_all_variables()
            for detail, feed in zip(interpreter.get_input_details(), self.feeds):
                interpreter.set_tensor(detail["index"], feed)
            interpreter.invoke()
            answer[side] = distances(outputs(interpreter), reference)
        paths = [Path(folder) / f"out_{i}.bin" for i in range(len(reference))]
        answer["ours"] = distances(
            [np.fromfile(path, one.dtype) if path.exists() else None for path, one in zip(paths, reference)], reference
        )
        return answer

    def reference(self):
        for kernels, name in JUDGES.items():
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "--model", str(self.model), "--judge", kernels, folder]
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    return name, [np.load(path) for path in sorted(Path(folder).glob("*.npy"))]
        return None, None


def with_library(content, threads, library):
    """As `prepare`, with another delegate instead of LiteRT's own."""
    options = {"num_threads": str(threads)}
    interpreter = Interpreter(
        model_content=content,
        num_threads=threads,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_delegates=[load_delegate(str(library), options)],
    )
    interpreter.allocate_tensors()
    # The inputs of the other side.
    _, feeds = prepare(content, "noxnn", 1, seed=0, given={})
    for detail, feed in zip(interpreter.get_input_details(), feeds):
        interpreter.set_tensor(detail["index"], feed)
    return interpreter, feeds


def outputs(interpreter):
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def save(folder, tensors):
    for i, tensor in enumerate(tensors):
        np.save(folder / f"{i:04}.npy", tensor)


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
