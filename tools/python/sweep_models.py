"""Write the models of `cargo xtask sweep`: one operator each, of every kind, type and size that sweep_cases.py lists.

    sweep_models.py --out DIR [--operators CONV_2D,ADD] [--types fp32,int8] [--quick]

DIR receives <name>.tflite for each, and last index.json: a list of {"name", "operator", "type", "case"}. The same versions
give the same files. Scales of outputs are those of the real results, by LiteRT's optimized kernels.

Two kinds of models have a second operator. fp16 weights are constants behind DEQUANTIZE, as converters write them. Functions
that are defined for positive numbers alone follow ABS, because benchmarks draw inputs from -1 to 1.
"""

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from op_case import OutputRange
from op_schemes import FLOAT32, INT8, SCHEMES, output_parameters, store
from opcases import described, run
from sweep_cases import SWEPT, Usual
from tflite_build import INT4, Operator, Tensor, build

SEED = 1
# Types whose weights are those of another one in fewer bits.
STORED = {"fp16": "fp32", "int4": "dynamic"}
POSITIVE_ALONE = {"LOG", "POW", "SQRT", "RSQRT"}
TYPES = list(dict.fromkeys(kind for swept in SWEPT.values() for kind in swept.types))


def main():
    arguments = parse_arguments()
    arguments.out.mkdir(parents=True, exist_ok=True)
    index = []
    for operator, kind, case in listed(arguments.operators, arguments.types, arguments.quick):
        name = re.sub("[^a-z0-9]+", "_", f"{operator} {kind} {case}".lower())
        (arguments.out / f"{name}.tflite").write_bytes(model(operator, kind, case))
        index.append({"name": name, "operator": operator, "type": kind, "case": case})
    (arguments.out / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def parse_arguments():
    def choice(known):
        def parse(text):
            if unknown := set(text.split(",")) - set(known):
                raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))} is none of {', '.join(known)}")
            return text.split(",")

        return parse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--operators", type=choice(SWEPT), default=list(SWEPT), metavar="OPERATOR,OPERATOR...")
    parser.add_argument("--types", type=choice(TYPES), default=TYPES, metavar="TYPE,TYPE...")
    parser.add_argument("--quick", action="store_true", help="the first case of each operator and type alone")
    return parser.parse_args()


def listed(operators, types, quick):
    """The models as (operator, type, case)."""
    for operator in operators:
        swept = SWEPT[operator]
        cases = list(swept.cases)[: 1 if quick else None]
        yield from ((operator, kind, case) for kind in swept.types if kind in types for case in cases)


def model(operator, kind, case):
    """The bytes of a model."""
    d = Usual(np.random.default_rng(SEED))
    scheme = SCHEMES[STORED.get(kind, kind)]
    drawn = SWEPT[operator].cases[case](d)
    operands = store(drawn, scheme, d.rng)
    results = [Tensor(FLOAT32, ())] * drawn.outputs
    if not scheme.is_float():
        exact = [operand.dequantized() for operand in operands]
        if drawn.output is OutputRange.IDENTITY:
            real = [exact[0].value]
        else:
            _, real = run(operator, drawn, exact, results, optimized=True)
        parameters = output_parameters(operator, drawn, scheme, operands, real, d)
        results = [Tensor(scheme.outputs, (), quantization) for quantization in parameters]
    tensors, operators, inputs, outputs = described(operator, drawn, operands, results)
    if kind == "fp16":
        tensors, operators = with_half_weights(tensors, operators)
    if kind == "int4":
        tensors = with_four_bits(tensors)
    if operator in POSITIVE_ALONE and scheme.is_float():
        tensors, operators, inputs = behind_abs(tensors, operators, inputs)
    return build(tensors, operators, inputs, outputs)


def with_half_weights(tensors, operators):
    """Constants in fp32 become constants in fp16 behind DEQUANTIZE."""
    halves, conversions = [], []
    for i, tensor in enumerate(tensors):
        if tensor.data is not None and tensor.dtype == FLOAT32:
            source = len(tensors) + len(halves)
            halves.append(Tensor(np.dtype(np.float16), tensor.shape, data=tensor.data.astype(np.float16)))
            conversions.append(Operator("DEQUANTIZE", (source,), (i,), ("DequantizeOptions", {})))
    plain = [replace(tensor, data=None) if tensor.dtype == FLOAT32 else tensor for tensor in tensors]
    return plain + halves, conversions + operators


def with_four_bits(tensors):
    """Constants in int8 become constants in int4 of the same range."""

    def narrow(tensor):
        if tensor.data is None or tensor.dtype != INT8:
            return tensor
        scales = tuple(scale * 127 / 7 for scale in tensor.quantization.scales)
        values = np.rint(tensor.data.astype(np.float32) * 7 / 127)
        return Tensor(INT4, tensor.shape, replace(tensor.quantization, scales=scales), values.astype(INT4))

    return [narrow(tensor) for tensor in tensors]


def behind_abs(tensors, operators, inputs):
    """The first input is the absolute value of a new one."""
    first, *others = inputs
    absolute = Operator("ABS", (len(tensors),), (first,), ("AbsOptions", {}))
    return [*tensors, tensors[first]], [absolute, *operators], [len(tensors), *others]


if __name__ == "__main__":
    main()
