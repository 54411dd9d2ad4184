"""Run what `xnn` writes in ExecuTorch's own runtime and compare the outputs with `xnn run`'s.

    executorch_interop.py --xnn target/release/xnn MODEL.tflite CASES/ ../shared/interop/et_0.5.0 [--version 0.5.0]

Takes .tflite and .circle models (through `xnn convert --compat executorch`), ExecuTorch's own programs (.pte, through
`xnn extract`) and .xnn files, and folders of these. Each graph is run by `xnn run` on random inputs, then swapped into
a program of the same signature and run by ExecuTorch on the same inputs. Output is Markdown; the exit code tells
whether all agree within one quantization step or 1e-5: kernels are other ones, 1.5.1 has a newer revision of XNNPACK, and
this project some of its own where the processor has AVX512.

Makes a virtual environment with ExecuTorch from PyPI for each version (under --venvs; 5 to 9 GB each, kept for the
next time, and for `cargo xtask bench`). Needs nothing but Python itself and a Unix shell's `xnn`.
"""

import argparse
import array
import json
import random
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
# How far floats may be apart, relative to those above 1.
TOLERANCES = {"float32": 1e-5, "float16": 2e-3}
VERSIONS = ["0.5.0", "1.5.1"]
DTYPES = {"fp32": "float32", "fp16": "float16", "qint8": "int8", "quint8": "uint8", "int32": "int32"}
SUFFIXES = {".tflite", ".circle", ".pte", ".xnn"}


def main():
    arguments = parse_arguments()
    agree = True
    with tempfile.TemporaryDirectory() as folder:
        cases, refused = prepare(arguments, Path(folder))
        for version in arguments.version:
            agree &= compare(cases, version, environment(arguments.venvs, version))
    if refused:
        print("## Not run\n")
        for name, reason in refused:
            print(f"- `{name}`: {reason}")
    sys.exit(0 if agree and cases else 1)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xnn", type=Path, required=True, help="the program")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="of ExecuTorch; all by default")
    parser.add_argument("--venvs", type=Path, default=Path("target/venvs"), metavar="DIR")
    parser.add_argument("--seed", type=int, default=1, help="of the inputs")
    parser.add_argument("paths", type=Path, nargs="+", metavar="FILE|DIR")
    arguments = parser.parse_args()
    arguments.version = arguments.version or VERSIONS
    return arguments


def environment(venvs, version):
    """Python of an environment with this ExecuTorch, made if it is not there."""
    folder = venvs.resolve() / f"executorch-{version}"
    python = folder / "bin" / "python"
    requirements = HERE / f"requirements-executorch-{version}.txt"
    # `cargo xtask bench` writes and reads the same.
    done = folder / "requirements.installed"
    if not done.exists() or done.read_text() != requirements.read_text():
        venv.create(folder, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--no-cache-dir", "--quiet", "-r", requirements]
        subprocess.run(command, check=True, stdout=sys.stderr)
        done.write_text(requirements.read_text())
    return python


# ---- What xnn makes of a file ------------------------------------------------------------------------------------


class Refused(Exception):
    """A file that gives no case, for a good reason."""


def prepare(arguments, folder):
    """The cases of all files, and the files that give none."""
    cases, refused = [], []
    for path in arguments.paths:
        files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.suffix in SUFFIXES - {".xnn"})
        for file in files:
            name = file.name if path.is_file() else str(file.relative_to(path))
            try:
                for blob in blobs(arguments.xnn, file, folder / str(len(cases) + len(refused))):
                    cases.append(case(arguments, blob, f"{name}: {blob.stem}" if file.suffix == ".pte" else name))
            except Refused as reason:
                refused.append((name, reason))
    return cases, refused


def blobs(xnn, file, folder):
    folder.mkdir()
    if file.suffix == ".xnn":
        return [file]
    if file.suffix == ".pte":
        call(xnn, "extract", file, "-o", folder)
        return sorted(folder.glob("*.xnn"))
    blob = folder / f"{file.stem}.xnn"
    call(xnn, "convert", file, "--compat", "executorch", "-o", blob)
    return [blob]


def case(arguments, blob, name):
    """A job for executorch_host.py, with name, nodes and quantization steps of the outputs."""
    report = json.loads(call(arguments.xnn, "inspect", blob, "--json"))
    numbers = random.Random(f"{arguments.seed} {name}")
    inputs, given = [], []
    for index, entry in enumerate(report["inputs"]):
        value = report["values"][entry["value"]]
        if value["datatype"] not in DTYPES:
            raise Refused(f"NumPy has no {value['datatype']}")
        dtype = DTYPES[value["datatype"]]
        file = blob.with_suffix(f".in_{index}")
        file.write_bytes(elements(numbers, dtype, value["shape"]))
        inputs.append({"dtype": dtype, "shape": value["shape"], "file": str(file)})
        given += ["--input", f"{index}={file}"]
    out = blob.with_suffix(".out")
    call(arguments.xnn, "run", blob, *given, "--output-dir", out)
    return {
        "name": name,
        "kinds": [node["kind"] for node in report["nodes"]],
        "steps": [step(report, entry["value"]) for entry in report["outputs"]],
        "job": {
            "blob": str(blob),
            "inputs": inputs,
            "outputs": [str(out / f"out_{index}.npy") for index in range(len(report["outputs"]))],
        },
    }


def call(xnn, *arguments):
    done = subprocess.run([xnn.resolve(), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr.strip().splitlines()[-1])
    return done.stdout


def elements(numbers, dtype, shape):
    count = 1
    for dim in shape:
        count *= dim
    match dtype:
        case "float32":
            return array.array("f", (numbers.uniform(-1, 1) for _ in range(count))).tobytes()
        case "float16":
            # Bits of halves from 2^-4 up to 1, of both signs.
            bits = (numbers.randrange(0x2C00, 0x3C00) | numbers.choice((0, 0x8000)) for _ in range(count))
            return array.array("H", bits).tobytes()
        case "int32":
            return array.array("i", (numbers.randrange(-1000, 1000) for _ in range(count))).tobytes()
        case _:
            return numbers.randbytes(count)


def step(report, output):
    """What one quantization step is worth in an output; `None` where it is not made of integers."""
    if report["values"][output]["datatype"].startswith("q"):
        return 1.0
    for node in report["nodes"]:
        if node["kind"] == "Convert" and node["outputs"] == [output]:
            return report["values"][node["inputs"][0]]["quantization"].get("scale")
    return None


# ---- What ExecuTorch makes of it ---------------------------------------------------------------------------------


def ask(python, jobs):
    """ExecuTorch's versions, and its answers; a job that ends its process is answered by how it ended."""
    answers = []
    while True:
        rest = "".join(json.dumps(job) + "\n" for job in jobs[len(answers) :])
        done = subprocess.run([python, HERE / "executorch_host.py"], input=rest, capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            sys.exit(f"executorch_host.py does not start: {done.stderr}")
        versions, *more = lines
        answers += more
        if len(answers) >= len(jobs):
            return versions, answers
        answers.append({"error": f"ExecuTorch ended with code {done.returncode}: {done.stderr[-200:]!r}"})


def compare(cases, version, python):
    """Prints a table; whether all cases agree."""
    versions, answers = ask(python, [case["job"] for case in cases])
    verdicts = []
    print(f"## ExecuTorch {version}\n")
    print(", ".join(f"{name} {number}" for name, number in versions.items()) + "\n")
    print("| graph | nodes | outputs | elements that differ | verdict |")
    print("|---|---|---|---|---|")
    for answer, case in zip(answers, cases, strict=True):
        agrees, verdict = judge(answer, case["steps"])
        verdicts.append(agrees)
        outputs = answer.get("outputs", [])
        types = ", ".join(output["dtype"] for output in outputs)
        differ = ", ".join(f"{output['different']} of {output['elements']}" for output in outputs)
        print(f"| {case['name']} | {kinds(case['kinds'])} | {types} | {differ} | {verdict} |")
    print(f"\n{sum(verdicts)} of {len(cases)} agree.\n")
    return all(verdicts)


def kinds(names):
    different = sorted(set(names))
    if len(different) > 4:
        return f"{len(names)} of {len(different)} kinds"
    return ", ".join(f"{names.count(name)} {name}" for name in different)


def judge(answer, steps):
    """Whether outputs agree, and in which sense."""
    if "error" in answer:
        return False, f"**failed**: {answer['error']}"
    if all(output["different"] == 0 for output in answer["outputs"]):
        return True, "equal"
    within = all(
        output["worst"] <= step * 1.0001 if step else output["relative"] <= TOLERANCES.get(output["dtype"], 0.0)
        for output, step in zip(answer["outputs"], steps)
    )
    worst = max(output["worst"] for output in answer["outputs"])
    return within, f"within a step or 1e-5 ({worst:.3g})" if within else f"**differs** by up to {worst:.3g}"


if __name__ == "__main__":
    main()
