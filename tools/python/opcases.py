"""Write random single-operator models with inputs and the outputs of LiteRT's reference kernels.

    opcases.py --seed 1 --out DIR [--count 1500] [--only CONV_2D,ADD] [--special]

Cases go round the operators and schemes of op_families.py. Each gets a folder of DIR with model.tflite, in_<i>.npy,
out_<i>.npy and, except in fp32, real_<i>.npy: what the operator gives in fp32 on the dequantized operands.
DIR/index.json, written last, lists them. A case that the interpreter refuses, or in which it is plainly wrong by that
measure, is left out and drawn again; the index counts those. The same seed, count and versions give the same files.

With --special, inputs in fp32 hold NaN, infinities, the largest floats, denormals or negative zeros, one kind in each case,
and cases are of the schemes with such inputs and outputs.
"""

import argparse
import json
import platform
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from op_case import Draw, OutputRange, Weights
from op_families import FAMILIES
from op_schemes import FLOAT32, SCHEMES, output_parameters, store
from tflite_build import Operator, Tensor, build

# The first three have no reference kernel; that of SUM is right only in the last row of an int8 result, and that of
# LOCAL_RESPONSE_NORMALIZATION leaves a neighbour out, which neither TensorFlow nor the kernel that users get does.
USE_OPTIMIZED_KERNEL = {"CEIL", "ROUND", "ELU", "SUM", "LOCAL_RESPONSE_NORMALIZATION"}
# How far a result may be from real arithmetic: in quantization steps, or, where the output is fp32, as a part of the
# largest result. Right ones are seen within 1.4 steps and 0.1.
TRUSTED_STEPS = 2.0
TRUSTED_PART = 0.25
ATTEMPTS = 50
# Which special values are left out: LiteRT's two sets of kernels differ from each other, or from one shape to the next.
UNSETTLED = {
    ("ADD_N", "infinities"),
    ("REDUCE_MAX", "nan"),
    ("REDUCE_MIN", "nan"),
} | {("LOCAL_RESPONSE_NORMALIZATION", kind) for kind in ("nan", "infinity", "negative infinity", "infinities", "largest")}
SPECIAL = {
    "nan": [np.nan],
    "infinity": [np.inf],
    "negative infinity": [-np.inf],
    "infinities": [np.inf, -np.inf],
    "largest": [np.finfo(np.float32).max],
    "denormal": [1e-40, -3e-42],
    "negative zero": [-0.0],
}


class Refused(Exception):
    """The reference interpreter does not run the case, or its result is of no use."""


def main():
    arguments = parse_arguments()
    schemes = ["fp32"] if arguments.special else list(SCHEMES)
    pairs = [(op, scheme) for op in arguments.only for scheme in FAMILIES[op][1] if scheme in schemes]
    cases, refused = [], Counter()
    for number in range(arguments.count or len(pairs)):
        op, scheme = pairs[number % len(pairs)]
        special = list(SPECIAL)[number // len(pairs) % len(SPECIAL)] if arguments.special else None
        if (op, special) in UNSETTLED:
            special = "negative zero"
        model, arrays = draw_case(op, scheme, special, [arguments.seed, number], refused)
        name = f"{number:05}_{op.lower()}_{scheme}"
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.tflite").write_bytes(model)
        for prefix, values in arrays.items():
            for i, value in enumerate(values):
                np.save(folder / f"{prefix}_{i}.npy", value)
        counts = {"inputs": len(arrays["in"]), "outputs": len(arrays["out"])}
        kind = {"special": special} if special else {}
        cases.append({"id": name, "op": op, "scheme": scheme} | kind | counts)
    index = {
        "seed": arguments.seed,
        "versions": {
            "ai-edge-litert": version("ai-edge-litert"),
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "refused": dict(sorted(refused.items())),
        "cases": cases,
    }
    (arguments.out / "index.json").write_text(json.dumps(index, indent=1) + "\n")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="default: one for each operator and scheme")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--special", action="store_true", help="inputs with NaN, infinities and other special values")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(FAMILIES), metavar="OP,OP...")
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(FAMILIES):
        parser.error(f"no such operator: {', '.join(sorted(unknown))}")
    return arguments


def draw_case(op, scheme, special, seed, refused):
    """A model and its arrays by file prefix; `refused` counts the draws that were of no use."""
    reason = None
    for attempt in range(ATTEMPTS):
        d = Draw(np.random.default_rng([*seed, attempt]))
        try:
            return realize(op, FAMILIES[op][0](d), SCHEMES[scheme], special, d)
        except Refused as cause:
            refused[f"{op} {scheme}"] += 1
            reason = cause
    raise SystemExit(f"{op} in {scheme}: none of {ATTEMPTS} draws ran; the last: {reason}")


def realize(op, case, scheme, special, d):
    if op == "DEPTHWISE_CONV_2D" and scheme == SCHEMES["dynamic"]:
        case = with_per_channel_weights(case)
    operands = store(case, scheme, d.rng)
    if special:
        plant(operands, SPECIAL[special], d)
    feeds = [operand.value for operand in operands if operand.fed]
    floats = [Tensor(FLOAT32, ())] * case.outputs
    if scheme.is_float():
        model, out = run(op, case, operands, floats, finite=special is None)
        return model, {"in": feeds, "out": out}

    in_real = [operand.dequantized() for operand in operands]
    if case.output is OutputRange.IDENTITY:
        real = [in_real[0].value]
    else:
        _, real = run(op, case, in_real, floats)
    parameters = output_parameters(op, case, scheme, operands, real, d)
    model, out = run(op, case, operands, [Tensor(scheme.outputs, (), p) for p in parameters])
    for result, exact, quantization in zip(out, real, parameters):
        check_trust(result, exact, quantization)
    return model, {"in": feeds, "out": out, "real": real}


def with_per_channel_weights(case):
    """LiteRT's hybrid depthwise kernel reads one scale per channel, also where there is only one."""
    inputs = tuple(replace(part, axis=3) if isinstance(part, Weights) else part for part in case.inputs)
    return replace(case, inputs=inputs)


def plant(operands, values, d):
    """Puts the values in a few places of the fp32 inputs; one of the largest floats only, since sums of more depend on
    their order."""
    fed = [operand.value for operand in operands if operand.fed and operand.value.dtype == FLOAT32 and operand.value.size]
    if not fed:
        raise Refused("there is no input in fp32")
    count = 1 if np.abs(values[0]) == np.finfo(np.float32).max else d.int(len(values), len(values) + 2)
    for i in range(count):
        target = d.of(fed)
        target.reshape(-1)[d.int(0, target.size - 1)] = values[i % len(values)]


def described(op, case, operands, results):
    """Arguments of `build` for the model of these operands and results, whose shapes the interpreter infers."""
    constants = [operand.tensor if operand.fed else replace(operand.tensor, data=operand.value) for operand in operands]
    fed = [i for i, operand in enumerate(operands) if operand.fed]
    outputs = range(len(operands), len(operands) + len(results))
    operators = [Operator(op, tuple(range(len(operands))), tuple(outputs), case.options)]
    draft = prepared(op, build([*constants, *results], operators, fed, outputs))
    shaped = [
        replace(result, shape=tuple(detail["shape"])) for result, detail in zip(results, draft.get_output_details())
    ]
    return [*constants, *shaped], operators, fed, outputs


def run(op, case, operands, results, finite=True, optimized=False):
    """The model of these operands and results, and its outputs by the reference kernels, or by the optimized ones."""
    try:
        model = build(*described(op, case, operands, results))
        interpreter = prepared(op, model, optimized)
        fed = [operand.value for operand in operands if operand.fed]
        for value, detail in zip(fed, interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    except (RuntimeError, ValueError) as cause:
        raise Refused(str(cause)) from cause
    values = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    if not all(value.size and (not finite or np.isfinite(value).all()) for value in values):
        raise Refused("an output is empty or not finite")
    return model, values


def prepared(op, model, optimized=False):
    kernels = OpResolverType.BUILTIN_REF
    if optimized or op in USE_OPTIMIZED_KERNEL:
        kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    return interpreter


def check_trust(result, exact, quantization):
    if quantization is None:
        largest = np.abs(exact).max()
        error, trusted = np.abs(result - exact).max(), TRUSTED_PART * largest
    else:
        limits = np.iinfo(result.dtype)
        steps = exact / quantization.scales[0] + quantization.zero_points[0]
        error, trusted = np.abs(result - np.clip(steps, limits.min, limits.max)).max(), TRUSTED_STEPS
    if error > trusted:
        raise Refused(f"the reference is {error:.3g} from real arithmetic, where {trusted:.3g} is the most")


if __name__ == "__main__":
    main()
