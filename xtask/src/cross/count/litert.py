"""Runs a model in LiteRT and reads the clock before and after each run. Usage: litert.py MODEL RUNS"""

import os
import sys
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter


def fill(shape, dtype, random):
    if np.issubdtype(dtype, np.floating):
        return random.uniform(-1, 1, shape).astype(dtype)
    if dtype == np.bool_:
        return np.zeros(shape, dtype)
    # Indices of embeddings have to be small, other integers need not be large.
    limits = np.iinfo(dtype)
    if limits.bits > 8:
        return np.zeros(shape, dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def main(model, runs):
    interpreter = Interpreter(model_path=model, num_threads=1)
    interpreter.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], fill(detail["shape"], detail["dtype"], random))
    interpreter.invoke()
    for _ in range(runs):
        time.perf_counter_ns()
        interpreter.invoke()
        time.perf_counter_ns()
    # Without the work of ending the interpreter, which may read the clock.
    os._exit(0)


main(sys.argv[1], int(sys.argv[2]))
