"""Time LiteRT in turns with somebody else: one end of `cargo xtask bench`.

    bench_litert.py --model M.tflite --threads 1

The model runs with the XNNPACK delegate, LiteRT's default, on random inputs. When it is ready the script prints a JSON
line, {"version": of LiteRT}. For each line on standard input, a number of milliseconds, it runs the model for that
long, and prints how long each run took as a JSON list of microseconds; in between it sleeps.
"""

import argparse
import json
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter_ns

from golden import prepare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    content = arguments.model.read_bytes()
    interpreter, _ = prepare(content, "xnn", arguments.threads, seed=0, given={})
    interpreter.invoke()
    print(json.dumps({"version": version("ai-edge-litert")}), flush=True)
    for line in sys.stdin:
        print(json.dumps(time_runs(interpreter, int(line) * 1_000_000)), flush=True)


def time_runs(interpreter, duration):
    times = []
    start = end = perf_counter_ns()
    while end - start < duration:
        begin = perf_counter_ns()
        interpreter.invoke()
        end = perf_counter_ns()
        times.append((end - begin) / 1000)
    return times


if __name__ == "__main__":
    main()
