"""Checks the lifetimes of delegates and interpreters in this Python environment.

    python lifecycle.py LIBRARY MODEL

MODEL is a float model with one image as input and a batch that may be resized. Prints one line per
check, and stops at the first failure.
"""

import gc
import json
import os
import sys
import tempfile
import threading

import numpy as np

try:
    import ai_edge_litert.interpreter as tflite
except ImportError:
    import tflite_runtime.interpreter as tflite

WITHOUT_BUILTIN = tflite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
RELATIVE_TOLERANCE = 1e-4


def interpreter(model, delegate=None):
    return tflite.Interpreter(
        model_path=model,
        num_threads=1,
        experimental_op_resolver_type=WITHOUT_BUILTIN,
        experimental_delegates=[delegate] if delegate else None,
    )


def infer(runner, batch, seed=0):
    """Resizes the input to a batch of this size, and runs."""
    detail = runner.get_input_details()[0]
    shape = [batch, *detail["shape"][1:]]
    runner.resize_tensor_input(detail["index"], shape)
    runner.allocate_tensors()
    values = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    runner.set_tensor(detail["index"], values)
    runner.invoke()
    return runner.get_tensor(runner.get_output_details()[0]["index"])


def same(actual, expected):
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    difference = np.abs(actual - expected).max() / np.abs(expected).max()
    assert difference <= RELATIVE_TOLERANCE, difference


def check_batches(library, model):
    ours, plain = interpreter(model, tflite.load_delegate(library)), interpreter(model)
    for batch in (1, 3, 2, 1):
        same(infer(ours, batch, batch), infer(plain, batch, batch))


def check_destruction_orders(library, model):
    expected = infer(interpreter(model), 1)
    delegate = tflite.load_delegate(library)
    first, second = interpreter(model, delegate), interpreter(model, delegate)
    same(infer(first, 1), expected)
    del first
    gc.collect()
    same(infer(second, 1), expected)
    # The interpreter keeps working without the delegate that created its kernels.
    second._delegates = []
    del delegate
    gc.collect()
    second.invoke()
    same(second.get_tensor(second.get_output_details()[0]["index"]), expected)


def check_threads(library, model):
    expected = infer(interpreter(model), 1)
    failures = []

    def work():
        try:
            for _ in range(5):
                same(infer(interpreter(model, tflite.load_delegate(library, {"num_threads": "2"})), 1), expected)
        except Exception as failure:  # noqa: BLE001: passed on to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_cycles(library, model):
    sizes = []
    for round_number in range(200):
        infer(interpreter(model, tflite.load_delegate(library)), 1 + round_number % 2)
        if round_number % 50 == 49:
            gc.collect()
            sizes.append(resident_bytes())
    growth = sizes[-1] - sizes[1]
    assert growth < 8 << 20, f"100 cycles grow the process by {growth} bytes"


def check_options(library, model):
    for options in ({"colour": "blue"}, {"num_threads": "none"}, {"disable": "SOFTMAXX"}):
        try:
            tflite.load_delegate(library, options)
        except ValueError as error:
            assert next(iter(options)) in str(error), error
        else:
            raise AssertionError(f"{options} are accepted")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        interpreter(model, tflite.load_delegate(library, {"explain": path, "disable": "SOFTMAX"}))
        with open(path) as file:
            report = json.load(file)
    left = [node["reason"]["code"] for node in report["nodes"] if node["partition"] is None]
    assert left == ["disabled"], left


def main():
    library, model = sys.argv[1:]
    for check in (check_options, check_batches, check_destruction_orders, check_threads, check_cycles):
        check(library, model)
        print("ok", check.__name__.removeprefix("check_").replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
