"""Checks that one pixel that is no number, or infinite, is not lost, in the interpreter of this Python environment.

    python special_values.py LIBRARY MODEL...

The middle pixel of a model's first input becomes NaN, infinity and negative infinity. Outputs must be NaN and infinite
where those of the interpreter's reference kernels are. The largest finite value counts as an infinity, because
reference kernels stop there in places. Models without float inputs, and those with 8-bit or 16-bit tensors, are left out.
Exits with 1 if a model differs, or if no model was compared.
"""

import os
import sys

import numpy as np

from partial import Resolver, infer, interpreter, tflite
from wheels import delegated, noise

PIXELS = {"NaN": np.nan, "infinity": np.inf, "negative infinity": -np.inf}
LARGEST = np.finfo(np.float32).max

# Models that may differ, as in tests/special_values.rs.
DIFFER = {
    "audio_speech_commands": "windows of NaN give the least float, and sums of several of these depend on their order",
    "tiny_llama_fp16_ekv128": "sums stop at the largest float in interpreters, so that an infinite logit is a large one",
}


def kinds(elements):
    """0 for numbers, 1 for NaN, 2 and 3 for infinities."""
    if elements.dtype.kind != "f":
        return np.zeros(elements.shape, int)
    return np.select([np.isnan(elements), elements >= LARGEST, elements <= -LARGEST], [1, 2, 3])


def is_of_floats(runner):
    """Whether a model has float inputs, and neither 8-bit nor 16-bit tensors."""
    inputs = [np.dtype(detail["dtype"]) for detail in runner.get_input_details()]
    types = {np.dtype(detail["dtype"]) for detail in runner.get_tensor_details() if detail["quantization_parameters"]["scales"].size}
    return np.float32 in inputs and not types & {np.dtype(it) for it in (np.int8, np.uint8, np.int16)}


def inputs(runner, value):
    """Random inputs, with the value in the middle pixel of the first float one."""
    rng = np.random.default_rng(1)
    made = []
    is_planted = False
    for detail in runner.get_input_details():
        dtype = np.dtype(detail["dtype"])
        elements = noise(list(detail["shape"]), dtype, rng) if dtype.kind == "f" else np.zeros(detail["shape"], dtype)
        if dtype == np.float32 and not is_planted:
            is_planted = True
            depth = detail["shape"][-1] if len(detail["shape"]) > 0 else 1
            middle = elements.size // 2 // depth * depth
            elements.reshape(-1)[middle : middle + (depth if elements.ndim == 4 else 1)] = value
        made.append(elements)
    return made


def check(library, model):
    """Whether a model passes (`None` if it was left out), and a short description."""
    try:
        reference = interpreter(model, None, Resolver.BUILTIN_REF)
    except (RuntimeError, ValueError) as error:
        return None, str(error).splitlines()[0]
    if not is_of_floats(reference):
        return None, "no float model"
    ours = interpreter(model, [tflite.load_delegate(library)])
    different = []
    shares = []
    for name, value in PIXELS.items():
        elements = inputs(reference, value)
        outputs = []
        for runner in (reference, ours):
            runner.reset_all_variables()
            outputs.append(np.concatenate([kinds(it).reshape(-1) for it in infer(runner, elements)]))
        expected, found = outputs
        shares.append(f"{100 * np.mean(expected != 0):.1f}")
        if expected.shape != found.shape or np.any(expected != found):
            different.append(f"{name}: {np.sum(expected != found)} of {expected.size} outputs differ")
    line = f"{delegated(ours)} partitions, {' '.join(shares)} % of outputs are no numbers"
    return not different, "; ".join(different) or line


def main():
    library, *models = sys.argv[1:]
    outcomes = []
    for model in models:
        name = os.path.basename(model).rsplit(".", 1)[0]
        passes, line = (None, DIFFER[name]) if name in DIFFER else check(library, model)
        outcomes.append(passes)
        print({True: "ok", False: "FAILED", None: "left out"}[passes], name, line, sep="\t", flush=True)
    return 0 if True in outcomes and False not in outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
