"""Classifies a folder of images with Ray Data.

    python ray_batch.py MODEL FOLDER --output results --workers 2

The model is converted once to an .xnn file with packed weights. All workers of a machine map that file, so that they share
one copy of the weights. Results are written as CSV files with path, class and score.

Needs `xnn-delegate`, `pillow` and `ray[data]`. On a cluster, start the script on a node (`ray job submit`) and give `--packed`
a path that all nodes can read; `FOLDER` and `--output` may be URLs that Ray Data supports, such as `s3://...`.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import ray

import xnn_delegate


class Classifier:
    """A worker: one session in one process."""

    def __init__(self, model: str, labels: list[str], threads: int) -> None:
        self.session = xnn_delegate.Session(model, num_threads=threads)
        self.input = self.session.inputs[0]
        self.labels = labels

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        best, scores = [], []
        for image in batch["image"]:
            [result] = self.session.run(self.pixels(image)).values()
            best.append(int(np.argmax(result)))
            scores.append(self.probability(result.max()))
        names = [self.labels[index] if self.labels else str(index) for index in best]
        return {"path": batch["path"], "class": np.array(names), "score": np.array(scores)}

    def pixels(self, image: np.ndarray) -> np.ndarray:
        """The image as the model's input: real numbers from -1 to 1, quantized if the input is."""
        real = image.reshape(self.input.shape).astype(np.float32) / 127.5 - 1
        if self.input.quantization is None or self.input.dtype == np.float32:
            return real.astype(self.input.dtype)
        scale, zero_point = self.input.quantization
        limits = np.iinfo(self.input.dtype)
        return np.clip(np.round(real / scale) + zero_point, limits.min, limits.max).astype(self.input.dtype)

    def probability(self, score: np.generic) -> float:
        scale, zero_point = self.session.outputs[0].quantization or (1.0, 0)
        return (float(score) - zero_point) * scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="TFLite or Circle model, or .xnn file")
    parser.add_argument("folder", help="folder of images")
    parser.add_argument("--output", default="results", help="folder for CSV files [default: results]")
    parser.add_argument("--packed", help="path of the .xnn file [default: beside the model]")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="threads of each worker")
    parser.add_argument("--batch", type=int, default=32, help="images that a worker takes at a time")
    args = parser.parse_args()

    model = Path(args.model)
    if model.suffix != ".xnn":
        model = xnn_delegate.convert(model, args.packed, require_full=True, pack=True)
    described = xnn_delegate.metadata(model)
    labels = described.labels() if described else []
    _, height, width, channels = xnn_delegate.Session(model).inputs[0].shape

    # Uses the cluster that RAY_ADDRESS names, or this machine, where one processor reads images and writes results.
    here = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": args.workers * args.threads + 1}
    ray.init(log_to_driver=False, **here)
    start = time.perf_counter()
    mode = "L" if channels == 1 else "RGB"
    images = ray.data.read_images(args.folder, size=(height, width), mode=mode, include_paths=True)
    results = images.map_batches(
        Classifier,
        fn_constructor_args=(str(model.resolve()), labels, args.threads),
        batch_size=args.batch,
        num_cpus=args.threads,
        compute=ray.data.ActorPoolStrategy(size=args.workers),
    )
    results.write_csv(args.output)
    seconds = time.perf_counter() - start
    count = images.count()
    print(f"{count} images in {seconds:.1f} s ({count / seconds:.1f} images/s) with {args.workers} workers: {args.output}")


if __name__ == "__main__":
    main()
