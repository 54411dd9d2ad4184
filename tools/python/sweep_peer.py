"""LiteRT's end of `cargo xtask sweep`: many small models, of which one is open at a time.

    sweep_peer.py THREADS MODEL.tflite...

Speaks the protocol of bench_peer.py. The sides are the models, by their files' names without .tflite. Inputs are random.
Each model is opened once for the first line of output, where the time to load includes that to draw inputs, and again when
it is to be timed and another one was timed before.
"""

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench_peer import Side, answer
from bench_runtimes import Instance
from golden import operators, prepare


def main():
    threads, *paths = sys.argv[1:]
    opener = partial(open_model, threads=int(threads))
    sides = {Path(path).stem: Side(opener, path, "xnn", inputs=None) for path in paths}
    answer({"version": version("ai-edge-litert"), "sides": {name: state(side) for name, side in sides.items()}})
    current = None
    for line in sys.stdin:
        request, name, *rest = line.split()
        side = sides[name]
        if side is not current:
            if current:
                current.opened.clear()
            side.opened.append(side.another())
            current = side
        answer(getattr(side, request)(*rest))


def open_model(path, mode, threads):
    interpreter, _ = prepare(Path(path).read_bytes(), mode, threads=threads, seed=0, given={})

    def partitions():
        return [op["op_name"] for op in operators(interpreter)].count("DELEGATE")

    return Instance(lambda _: None, interpreter.invoke, lambda: None, partitions)


def state(side):
    """The cost of opening a model, or why it fails."""
    try:
        return side.start()
    except Exception as error:  # LiteRT raises many kinds
        return {"error": " ".join(str(error).split())[:200]}
    finally:
        side.opened.clear()


if __name__ == "__main__":
    main()
