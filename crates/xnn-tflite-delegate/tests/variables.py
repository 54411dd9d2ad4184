"""Checks state between invocations with the delegate, in the interpreter of this Python environment.

    python variables.py LIBRARY MODEL...

Each model keeps a state in variables and processes a stream of inputs. It passes if

- its outputs along the stream are no further from those of the reference kernels than the built-in delegate's, plus
  1 step (8-bit) or 1e-5 of the range (float), before and after `reset_all_variables`;
- a second interpreter of the same delegate, which runs in turns with the first, has its own state and gives the
  same bits as the first one;
- it has a state: equal inputs have different outputs along the stream.
"""

import os
import sys

import numpy as np

from partial import infer, interpreter
from wheels import FLOAT_TOLERANCE, MODES, STEP_TOLERANCE, delegated, delegates, distance, noise

STEPS = 120
# Sounds last for several steps and are wider than a channel: a model treats white noise as silence.
STEPS_ALIKE = 8
CHANNELS_ALIKE = 8
DIFFERENT_OUTPUTS = 4


def sound(detail, rng):
    """An input with several frequency bands."""
    shape = list(detail["shape"])
    bands = noise([-(-shape[-1] // CHANNELS_ALIKE)], np.dtype(detail["dtype"]), rng)
    return np.ascontiguousarray(np.broadcast_to(np.repeat(bands, CHANNELS_ALIKE)[: shape[-1]], shape))


def stream(runner, seed):
    """Inputs of each step."""
    rng = np.random.default_rng(seed)
    details = runner.get_input_details()
    sounds = ([sound(detail, rng) for detail in details] for _ in range(STEPS // STEPS_ALIKE))
    return [inputs for inputs in sounds for _ in range(STEPS_ALIKE)]


def start(model, mode, library):
    """An interpreter in one of the modes of wheels.py."""
    return interpreter(model, delegates(mode, library), MODES[mode.removesuffix("+ours")])


def worst(actual, expected):
    """The largest distance of outputs along a stream."""
    return max(distance(a, b) for step, other in zip(actual, expected) for a, b in zip(step, other))


def same(actual, expected):
    return all(np.array_equal(a, b) for a, b in zip(actual, expected))


def judge(ours, built_in, expected):
    mine, theirs = worst(ours, expected), worst(built_in, expected)
    tolerance = FLOAT_TOLERANCE if expected[0][0].dtype.kind == "f" else STEP_TOLERANCE
    assert mine <= theirs + tolerance, f"{mine} from the reference, the built-in delegate {theirs}"
    return mine, theirs


def check(library, model):
    runners = {mode: start(model, mode, library) for mode in ("reference+ours", "built-in", "reference")}
    first = runners["reference+ours"]
    second = interpreter(model, first._delegates, MODES["reference"])
    assert delegated(first) > 0, "nothing is delegated"
    steps = stream(first, 2)
    outputs = [[infer(runner, inputs) for inputs in steps] for runner in runners.values()]
    expected = outputs[-1]
    assert not same(expected[0], expected[1]), "there is no state"
    different = len({b"".join(values.tobytes() for values in step) for step in expected})
    assert different >= DIFFERENT_OUTPUTS, f"only {different} different outputs"
    before = judge(*outputs)
    for runner in runners.values():
        runner.reset_all_variables()
    again = [[] for _ in runners]
    for at, inputs in enumerate(steps):
        for runner, result in zip(runners.values(), again):
            result.append(infer(runner, inputs))
        assert same(infer(second, inputs), outputs[0][at]), f"interpreters share state at step {at}"
    return before, judge(*again)


def main():
    library, *models = sys.argv[1:]
    for model in models:
        distances = check(library, model)
        print("ok", "variables of", os.path.basename(model), "ours and built-in:", *distances, flush=True)


if __name__ == "__main__":
    main()
