"""Checks models that `xnn convert` converts partially, in the interpreter of this Python environment.

    python partial.py LIBRARY XNN MODEL...

XNN is the program `xnn`. Prints one line per model. A converted model passes if the interpreter rejects
it without the delegate, naming the operator XNNGraph; if its outputs with the delegate are the same bits
as those of the original with the delegate; and if `xnn run` gives the same from the file, within 1 step
(8-bit outputs) or 1e-5 of the output's range (float outputs) for operators that the interpreter's own
kernels compute. Exits with 1 if a model fails, or if none was converted partially.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np

from wheels import FLOAT_TOLERANCE, STEP_TOLERANCE, Resolver, distance, noise, run_with_xnn, tflite


def interpreter(model, delegates=None, resolver=Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
    """An interpreter, by default without its built-in delegate."""
    result = tflite.Interpreter(
        model_path=model,
        num_threads=1,
        experimental_op_resolver_type=resolver,
        experimental_delegates=delegates,
    )
    result.allocate_tensors()
    return result


def infer(runner, inputs):
    for detail, values in zip(runner.get_input_details(), inputs):
        runner.set_tensor(detail["index"], values)
    runner.invoke()
    return [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]


def refusal(model):
    """The interpreter's message about a model that it does not load."""
    try:
        interpreter(model)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return "loaded without the delegate"


def check(library, xnn, model, folder):
    """Whether a model passes (`None` if it is fully delegated), and a short description."""
    converted = os.path.join(folder, "converted.tflite")
    done = subprocess.run([xnn, "convert", model, "-o", converted], capture_output=True, text=True)
    if done.returncode != 0:
        return False, done.stderr.strip()
    with open(converted, "rb") as file:
        if file.read(8)[4:] != b"TFL3":
            return None, "fully delegated"
    reason = refusal(converted)
    if "XNNGraph" not in reason:
        return False, reason
    ours, original = (interpreter(path, [tflite.load_delegate(library)]) for path in (converted, model))
    rng = np.random.default_rng(0)
    details = original.get_input_details()
    inputs = [noise([int(dim) for dim in detail["shape"]], np.dtype(detail["dtype"]), rng) for detail in details]
    expected, actual = infer(original, inputs), infer(ours, inputs)
    for index, (a, b) in enumerate(zip(actual, expected)):
        if a.tobytes() != b.tobytes():
            return False, f"output {index} is {distance(a, b)} from that of the original"
    worst = 0.0
    for index, (a, b) in enumerate(zip(run_with_xnn(xnn, converted, inputs, folder), actual)):
        apart = distance(a, b)
        if apart > (FLOAT_TOLERANCE if b.dtype.kind == "f" else STEP_TOLERANCE):
            return False, f"output {index} of xnn run is {apart} from the interpreter's"
        worst = max(worst, apart)
    return True, f"xnn run is {worst} away"


def main():
    library, xnn, *models = sys.argv[1:]
    outcomes = []
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            passes, line = check(library, xnn, model, folder)
        outcomes.append(passes)
        word = {True: "ok", False: "FAILED", None: "whole"}[passes]
        print(word, os.path.basename(model), line, sep="\t", flush=True)
    return 0 if True in outcomes and False not in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
