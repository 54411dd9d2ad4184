"""Classifies a photo in a stock TFLite or LiteRT interpreter, without and with the delegate.

    python compare_delegate.py LIBRARY MODEL PHOTO [--labels FILE] [--threads N]

Needs `ai-edge-litert` (or `tflite-runtime`), `numpy` and `pillow`. LIBRARY is `libxnn_delegate.so`.
"""

import argparse
import time

import numpy as np
from PIL import Image

try:
    from ai_edge_litert.interpreter import Interpreter, load_delegate
except ImportError:
    from tflite_runtime.interpreter import Interpreter, load_delegate

RUNS = 30


def pixels(path, detail):
    """The photo in the size and type of the model's input."""
    _, height, width, _ = detail["shape"]
    image = np.asarray(Image.open(path).convert("RGB").resize((width, height)))[None]
    if detail["dtype"] == np.uint8:
        return image
    if detail["dtype"] == np.int8:
        return (image.astype(np.int16) - 128).astype(np.int8)
    return image.astype(np.float32) / 127.5 - 1


def classify(args, delegates):
    """Probabilities, milliseconds until ready, and milliseconds for a run."""
    start = time.perf_counter()
    interpreter = Interpreter(args.model, num_threads=args.threads, experimental_delegates=delegates)
    interpreter.allocate_tensors()
    ready = time.perf_counter() - start
    (source,), (result, *_) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(source["index"], pixels(args.photo, source))
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - start)
    scores = interpreter.get_tensor(result["index"])[0].astype(np.float32)
    scale, zero_point = result["quantization"]
    return (scores - zero_point) * scale if scale else scores, ready * 1e3, np.median(times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("model")
    parser.add_argument("photo")
    parser.add_argument("--labels", help="one line for each class")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    labels = open(args.labels).read().splitlines() if args.labels else None
    for title, delegates in ("built in", None), ("delegate", [load_delegate(args.library)]):
        scores, ready, run = classify(args, delegates)
        print(f"{title}: ready after {ready:.1f} ms, {run:.2f} ms a run")
        for index in np.argsort(scores)[:-4:-1]:
            print(f"    {scores[index]:.3f}  {labels[index] if labels else f'class {index}'}")


if __name__ == "__main__":
    main()
