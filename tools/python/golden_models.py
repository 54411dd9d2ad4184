"""Keep what LiteRT computes for whole models on given inputs.

    golden_models.py --inputs DIR --out DIR

Each folder of --inputs holds model.tflite; <name>.npy, its only input under several names; and job.json,
{"model_sha256": text to keep, "reference": mode of golden.py, "inputs": [name, ...]}. --out receives for each folder two
files named like it: an .npy with the model's first outputs in that mode, stacked in the order of the names, and a .json
that says how far the model with LiteRT's own XNNPACK delegate is from them (in units of the output: quantization steps where that is quantized) and which class it puts
first.
"""

import argparse
import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

from golden import prepare


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for job in sorted(arguments.inputs.glob("*/job.json")):
        print(job.parent.name, flush=True)
        keep(job, arguments.out / job.parent.name)


def keep(job, out):
    description = json.loads(job.read_text())
    model = job.with_name("model.tflite").read_bytes()
    references, inputs = [], []
    for name in description["inputs"]:
        value = np.load(job.with_name(f"{name}.npy"))
        reference = first_output(model, description["reference"], value)
        delegated = first_output(model, "xnn", value)
        references.append(reference)
        inputs.append(
            {
                "name": name,
                "sha256": hashlib.sha256(value.tobytes()).hexdigest(),
                "xnn_distance": float(np.abs(delegated.astype(np.float64) - reference.astype(np.float64)).max()),
                "xnn_top1": int(delegated.argmax()),
            }
        )
    golden = {
        "model_sha256": description["model_sha256"],
        "reference": description["reference"],
        "versions": {"ai-edge-litert": version("ai-edge-litert"), "numpy": np.__version__},
        "inputs": inputs,
    }
    np.save(out.with_name(f"{out.name}.npy"), np.stack(references))
    out.with_name(f"{out.name}.json").write_text(json.dumps(golden, indent=1) + "\n")


def first_output(content, mode, value):
    interpreter, _ = prepare(content, mode, threads=1, seed=0, given={0: value})
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


if __name__ == "__main__":
    main()
