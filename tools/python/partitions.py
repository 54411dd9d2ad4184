"""Compare how models are partitioned with LiteRT's XNNPACK delegate: one end of `cargo xtask partitions`.

    partitions.py --xnn target/release/xnn --models ../shared/models --report docs/partitions.md

For every model below the folder: into how many partitions each side cuts it, and how many operators each leaves to the
interpreter. LiteRT opens each model in a process of its own, because some make it crash. The exit code is 1 where we
have more partitions in a model that LiteRT delegates at all, or more than half as many in all models together.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ai_edge_litert.interpreter import Interpreter

from golden import operators

EXTENSIONS = (".tflite", ".circle")
# Folders of one-operator models and of models that LiteRT refuses: summed apart from the real ones.
APART = ("small", "accept_then_fail")
PATIENCE = 120  # seconds


@dataclass(frozen=True)
class Count:
    """What one side does with a model."""

    partitions: int
    left: int  # operators that stay with the interpreter


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xnn", type=Path, required=True, help="our program")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR")
    parser.add_argument("--report", type=Path, required=True, metavar="FILE.md")
    arguments = parser.parse_args()
    groups = {"": [], **{folder: [] for folder in APART}}
    for model in sorted(path for path in arguments.models.rglob("*") if path.suffix in EXTENSIONS):
        name = model.relative_to(arguments.models)
        group = groups[name.parts[0] if name.parts[0] in APART else ""]
        group.append((str(name), ours(arguments.xnn, model), isolated(litert, model)))
    arguments.report.write_text(report(groups))
    failures = [
        f"{name}: {mine.partitions} partitions, LiteRT has {their.partitions}"
        for rows in groups.values()
        for name, mine, their in both(rows)
        if mine.partitions > their.partitions > 0
    ]
    mine, their = totals(groups[""])
    if mine.partitions * 2 > their.partitions:
        failures.append(f"in all {mine.partitions} partitions, more than half of LiteRT's {their.partitions}")
    print("\n".join(failures) or f"{mine.partitions} partitions where LiteRT has {their.partitions}")
    return int(bool(failures))


def ours(xnn, model):
    run = subprocess.run([xnn, "explain", "--json", model], capture_output=True, text=True, check=False)
    if run.returncode:
        return None
    explanation = json.loads(run.stdout)
    return Count(len(explanation["partitions"]), sum(node["partition"] is None for node in explanation["nodes"]))


def litert(model):
    interpreter = Interpreter(model_path=str(model))
    interpreter.allocate_tensors()
    return count(operators(interpreter))


def count(listed):
    """The operators are listed with the delegates' partitions behind them; what a partition has taken is found from
    its outputs back to its inputs."""
    partitions = [op for op in listed if op["op_name"] == "DELEGATE"]
    nodes = [op for op in listed if op["op_name"] != "DELEGATE"]
    producer = {int(tensor): i for i, op in enumerate(nodes) for tensor in op["outputs"] if tensor >= 0}
    taken = set()
    for partition in partitions:
        outside = {int(tensor) for tensor in partition["inputs"]}
        pending = [int(tensor) for tensor in partition["outputs"]]
        while pending:
            node = producer.get(pending.pop())
            if node is not None and node not in taken:
                taken.add(node)
                pending += [int(tensor) for tensor in nodes[node]["inputs"] if int(tensor) not in outside]
    return Count(len(partitions), len(nodes) - len(taken))


def isolated(function, argument):
    """The result of the function in a process of its own; None where it fails or the process dies."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        sender.send(function(argument))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        result = receiver.recv() if receiver.poll(PATIENCE) else None
    except EOFError:
        result = None
    process.kill()
    process.join()
    return result


def both(rows):
    return [row for row in rows if row[1] and row[2]]


def totals(rows):
    def add(counts):
        counts = list(counts)
        return Count(sum(c.partitions for c in counts), sum(c.left for c in counts))

    compared = both(rows)
    return add(mine for _, mine, _ in compared), add(their for _, _, their in compared)


def report(groups):
    lines = [
        "# Partitions",
        "",
        f"Made by `cargo xtask partitions`: how models are cut up here and by the XNNPACK delegate of LiteRT "
        f"{version('ai-edge-litert')}, its default.",
        "*Left* counts the operators that stay with the interpreter, folded constants not among them. A dash stands for "
        "a model that a side does not open; totals are over those that both open.",
    ]
    for folder, rows in groups.items():
        mine, their = totals(rows)
        lines += [
            "",
            f"## {f'`{folder}/`' if folder else 'Models'}",
            "",
            "| model | partitions | LiteRT's | left | LiteRT's |",
            "|---|---:|---:|---:|---:|",
            *(f"| {name.removeprefix(folder + '/')} | {cells(mine, their)} |" for name, mine, their in rows),
            f"| **{len(both(rows))} models** | {cells(mine, their)} |",
        ]
    return "\n".join(lines) + "\n"


def cells(mine, their):
    def cell(count, field):
        return str(getattr(count, field)) if count else "–"

    return " | ".join(cell(count, field) for field in ("partitions", "left") for count in (mine, their))


if __name__ == "__main__":
    sys.exit(main())
