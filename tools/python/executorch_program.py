"""Puts an XN01 graph into an ExecuTorch program.

    executorch_program.py --xnn target/release/xnn --model M.tflite --out M.pte

converts the model with `xnn convert --compat executorch`, and writes a program of the same signature. Its one method does
nothing but call the XNNPACK backend with the graph as payload. Needs an environment with ExecuTorch.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.lowered_backend_module import LoweredBackendModule

from executorch_interop import DTYPES, Refused, blobs, call

# Programs are written by the package's flatc.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xnn", type=Path, required=True, help="the program")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            [blob] = blobs(arguments.xnn, arguments.model, Path(folder) / "graph")
            report = json.loads(call(arguments.xnn, "inspect", blob, "--json"))
            inputs, outputs = zeros(report, "inputs"), zeros(report, "outputs")
        except Refused as reason:
            sys.exit(str(reason))
        arguments.out.write_bytes(to_program(blob.read_bytes(), inputs, outputs))


def zeros(report, which):
    """Tensors like the graph's inputs or outputs."""
    values = [report["values"][entry["value"]] for entry in report[which]]
    for value in values:
        if value["datatype"] not in DTYPES:
            raise Refused(f"no tensors of {value['datatype']} are made here")
    return tuple(torch.zeros(value["shape"], dtype=getattr(torch, DTYPES[value["datatype"]])) for value in values)


class Placeholder(torch.nn.Module):
    """Takes anything and gives zeros: stands for the graph while the program is put together."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs

    def forward(self, *inputs):
        return tuple(torch.zeros(output.shape, dtype=output.dtype) for output in self.outputs)


class Host(torch.nn.Module):
    """The method around the delegate."""

    def __init__(self, lowered):
        super().__init__()
        self.lowered = lowered

    def forward(self, *inputs):
        return self.lowered(*inputs)


def to_program(blob, inputs, outputs):
    """The bytes of a .pte file that hands `inputs` to the graph in `blob`."""
    config = EdgeCompileConfig(_check_ir_validity=False)
    signature = to_edge(torch.export.export(Placeholder(outputs), inputs), compile_config=config)
    lowered = LoweredBackendModule(
        edge_program=signature.exported_program(),
        backend_id="XnnpackBackend",
        processed_bytes=blob,
        compile_specs=[],
    )
    edge = to_edge(torch.export.export(Host(lowered), inputs), compile_config=config)
    return edge.to_executorch().buffer


if __name__ == "__main__":
    main()
