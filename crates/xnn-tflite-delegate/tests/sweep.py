"""Checks small models of the kinds that interpreters and delegates fail on, in this Python environment.

    python sweep.py LIBRARY

First, models that the interpreter's built-in XNNPACK delegate fails on: with this delegate the results must be those of
the interpreter's kernels. Then one interpreter per operator, whose input is resized to other batches, including 0, and
back: outputs must be those of a new interpreter without delegates. If that one refuses a shape, this delegate may
compute or refuse it, and must keep working; transposed convolutions follow the built-in delegate. Results of both
reference and optimized kernels are accepted: the former are wrong for sums of int8, and the latter do not write some
outputs of empty inputs. Exits with 1 if anything differs.
"""

import itertools
import sys

import ai_edge_litert.interpreter as litert
import numpy as np
from tiny import ACTIVATIONS, FLOAT, INT8, TYPES, UINT8, WEIGHTS, chain, ints, model, scalar, weights

Resolver = litert.OpResolverType
KERNELS = (Resolver.BUILTIN_REF, Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
OWN = Resolver.AUTO
# Tolerances: relative to the largest magnitude for floats, and in steps for integers.
FLOAT_TOLERANCE, STEPS = 1e-5, 1
BATCHES = (1, 2, 0, 3, 0, 1)

POOL = {"options": "Pool2DOptions", "padding": 1, "strideW": 2, "strideH": 2, "filterWidth": 2, "filterHeight": 2}
CONV = {"options": "Conv2DOptions", "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1}
DEPTHWISE = CONV | {"options": "DepthwiseConv2DOptions", "depthMultiplier": 1, "padding": 1}
TRANSPOSED = {"options": "TransposeConvOptions", "padding": 0, "strideW": 2, "strideH": 2}
DENSE = {"options": "FullyConnectedOptions", "keepNumDims": True, "version": 5}
IMAGE = [1, 4, 4, 4]


def of_rank(rank):
    """Operators with an input of this rank."""
    shape = [1] * (rank - 4) + IMAGE
    rest, axis = shape[:-1], ints(rank - 1)
    yield "CONCATENATION", [shape, shape], [], [[*rest, 8]], {"options": "ConcatenationOptions", "axis": rank - 1}
    yield "FULLY_CONNECTED", [shape], [weights(3, 4), weights(3)], [[*rest, 3]], DENSE
    for name in ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM"):
        yield name, [shape], [axis], [rest], {"options": "ReducerOptions"}
    yield "SOFTMAX", [shape], [], [shape], {"options": "SoftmaxOptions", "beta": 1.0}
    yield "SPLIT", [shape], [scalar(rank - 1)], [[*rest, 2]] * 2, {"options": "SplitOptions", "numSplits": 2}
    yield "SLICE", [shape], [ints(*[0] * rank), ints(*rest, 2)], [[*rest, 2]], {}
    yield "ABS", [shape], [], [shape], {}
    yield "TRANSPOSE", [shape], [ints(*reversed(range(rank)))], [shape[::-1]], {}


# Operators that move or gather data.
MOVES = [
    ("DEPTH_TO_SPACE", [IMAGE], [], [[1, 8, 8, 1]], {"options": "DepthToSpaceOptions", "blockSize": 2}),
    ("MAX_POOL_2D", [IMAGE], [], [[1, 2, 2, 4]], POOL),
    ("PAD", [IMAGE], [ints([0, 0], [1, 0], [0, 1], [0, 0])], [[1, 5, 5, 4]], {"options": "PadOptions"}),
    ("RESHAPE", [IMAGE], [ints(-1, 16, 4)], [[1, 16, 4]], {"options": "ReshapeOptions"}),
    ("RESIZE_BILINEAR", [IMAGE], [ints(8, 8)], [[1, 8, 8, 4]], {"options": "ResizeBilinearOptions"}),
    ("SLICE", [IMAGE], [ints(0, 1, 0, 0), ints(1, 2, 4, 4)], [[1, 2, 4, 4]], {}),
    ("SPACE_TO_DEPTH", [IMAGE], [], [[1, 2, 2, 16]], {"options": "SpaceToDepthOptions", "blockSize": 2}),
    ("SPLIT", [IMAGE], [scalar(3)], [[1, 4, 4, 2]] * 2, {"options": "SplitOptions", "numSplits": 2}),
    (
        "STRIDED_SLICE",
        [IMAGE],
        [ints(0, 1, 0, 0), ints(1, 4, 4, 4), ints(1, 1, 1, 1)],
        [[1, 3, 4, 4]],
        {"options": "StridedSliceOptions", "beginMask": 1, "endMask": 1},
    ),
    ("TRANSPOSE", [IMAGE], [ints(0, 3, 1, 2)], [[1, 4, 4, 4]], {}),
]

LAYERS = [
    ("CONV_2D", [IMAGE], [weights(3, 1, 1, 4), weights(3)], [[1, 4, 4, 3]], CONV),
    ("DEPTHWISE_CONV_2D", [IMAGE], [weights(1, 2, 2, 4), weights(4)], [[1, 3, 3, 4]], DEPTHWISE),
    ("FULLY_CONNECTED", [[1, 4]], [weights(3, 4), weights(3)], [[1, 3]], DENSE | {"keepNumDims": False}),
    ("TRANSPOSE_CONV", [IMAGE], [ints(1, 8, 8, 3), weights(3, 2, 2, 4)], [[1, 8, 8, 3]], TRANSPOSED),
]

# Operators with constant sizes, positions or axes, and layers, which keep their weights.
SIZED = [
    *MOVES,
    *LAYERS,
    ("ARG_MAX", [[1, 4]], [ints(1)], [[1]], {"options": "ArgMaxOptions", "outputType": TYPES["int32"]}),
    ("BATCH_TO_SPACE_ND", [[4, 2, 2, 3]], [ints(2, 2), ints([0, 0], [0, 0])], [[1, 4, 4, 3]], {}),
    ("BROADCAST_TO", [[1, 4]], [ints(3, 2, 4)], [[3, 2, 4]], {"options": "BroadcastToOptions", "version": 2}),
    ("CUMSUM", [[1, 4]], [ints(1)], [[1, 4]], {"options": "CumsumOptions"}),
    ("EXPAND_DIMS", [[1, 4]], [ints(1)], [[1, 1, 4]], {"options": "ExpandDimsOptions"}),
    ("GATHER", [[1, 4]], [ints(2, 0)], [[1, 2]], {"options": "GatherOptions", "axis": 1}),
    ("GATHER", [[1, 4]], [ints(0, 0)], [[2, 4]], {"options": "GatherOptions", "axis": 0}),
    ("REDUCE_MAX", [[1, 4]], [ints(0)], [[4]], {"options": "ReducerOptions"}),
    ("MEAN", [IMAGE], [ints(1, 2)], [[1, 4]], {"options": "ReducerOptions"}),
    ("MEAN", [IMAGE], [ints(0)], [[4, 4, 4]], {"options": "ReducerOptions"}),
    ("MIRROR_PAD", [IMAGE], [ints([0, 0], [1, 1], [1, 1], [0, 0])], [[1, 6, 6, 4]], {"options": "MirrorPadOptions"}),
    ("PAD", [[1, 4]], [ints([1, 1], [0, 2])], [[3, 6]], {"options": "PadOptions"}),
    ("RESHAPE", [[1, 4]], [ints(1, 2, 2)], [[1, 2, 2]], {"options": "ReshapeOptions"}),
    ("RESHAPE", [[1, 4]], [ints(1, -1)], [[1, 4]], {"options": "ReshapeOptions"}),
    ("RESHAPE", [[1, 4]], [ints(4, -1)], [[4, 1]], {"options": "ReshapeOptions"}),
    ("RESIZE_NEAREST_NEIGHBOR", [IMAGE], [ints(8, 8)], [[1, 8, 8, 4]], {"options": "ResizeNearestNeighborOptions"}),
    ("REVERSE_V2", [[1, 4]], [ints(1)], [[1, 4]], {"options": "ReverseV2Options"}),
    ("SLICE", [[1, 4]], [ints(0, 1), ints(-1, 2)], [[1, 2]], {}),
    ("SLICE", [[1, 4]], [ints(0, 1), ints(2, 2)], [[2, 2]], {}),
    ("SPACE_TO_BATCH_ND", [IMAGE], [ints(2, 2), ints([0, 0], [0, 0])], [[4, 2, 2, 4]], {}),
    ("SPLIT", [[2, 4]], [scalar(0)], [[1, 4]] * 2, {"options": "SplitOptions", "numSplits": 2}),
    ("SPLIT_V", [[1, 4]], [ints(1, 3), scalar(1)], [[1, 1], [1, 3]], {"options": "SplitVOptions", "numSplits": 2}),
    ("SPLIT_V", [[1, 4]], [ints(1, -1), scalar(0)], [[1, 4], [0, 4]], {"options": "SplitVOptions", "numSplits": 2}),
    (
        "STRIDED_SLICE",
        [[1, 4]],
        [ints(0, 3), ints(2, 0), ints(1, -1)],
        [[1, 3]],
        {"options": "StridedSliceOptions", "beginMask": 1},
    ),
    ("SUM", [[1, 4]], [ints(0)], [[4]], {"options": "ReducerOptions"}),
    ("TILE", [[1, 4]], [ints(2, 1)], [[2, 4]], {"options": "TileOptions"}),
    ("TRANSPOSE_CONV", [IMAGE], [ints(1, 7, 7, 3), weights(3, 3, 3, 4)], [[1, 7, 7, 3]], TRANSPOSED),
    ("TRANSPOSE", [[1, 4]], [ints(1, 0)], [[4, 1]], {}),
    # Operators without constants.
    ("ADD", [[1, 4], [4]], [], [[1, 4]], {"options": "AddOptions"}),
    ("AVERAGE_POOL_2D", [IMAGE], [], [[1, 2, 2, 4]], POOL),
    ("BATCH_MATMUL", [[1, 3, 4], [4, 2]], [], [[1, 3, 2]], {"options": "BatchMatMulOptions"}),
    ("CONCATENATION", [[1, 4], [2, 4]], [], [[3, 4]], {"options": "ConcatenationOptions", "axis": 0}),
    ("SOFTMAX", [[1, 4]], [], [[1, 4]], {"options": "SoftmaxOptions", "beta": 1.0}),
]

# Transposed convolutions use the batch of their input, like the built-in delegate; other sizes must match.
RESIZED = {"TRANSPOSE_CONV": ([2, 4, 4, 4], [1, 5, 5, 4], [1, 3, 4, 4], [3, 4, 4, 4])}


def breaking():
    """Models that the built-in delegate mostly fails on, with a name for each."""
    for dtype in (FLOAT, INT8, UINT8):
        for rank in (7, 8):
            for operator in of_rank(rank):
                yield f"{operator[0]} of rank {rank}, {dtype}", model(operator, dtype)
        for name, (first, *others), *rest in SIZED:
            yield f"{name} of nothing, {dtype}", model((name, [[0, *first[1:]], *others], *rest), dtype)
    for dtype in (INT8, UINT8):
        scale, zero_point = ACTIVATIONS[dtype]
        for operator in MOVES:
            for results in ((scale * 2, zero_point), (scale, zero_point + 1), (scale / 512, zero_point)):
                yield f"{operator[0]} to {results}, {dtype}", model(operator, dtype, results)
        # Between operators that XNNPACK supports.
        moves = {operator[0]: operator for operator in MOVES}
        operators = [moves["TRANSPOSE"], moves["TRANSPOSE"], moves["MAX_POOL_2D"]]
        yield f"a chain, {dtype}", chain(operators, dtype, [None, (scale * 2, zero_point), None])
        for operator in LAYERS:
            for ratio in (255, 256, 1000, 2.0**20):
                # The product of the scales of inputs and weights, over that of outputs.
                results = (scale * WEIGHTS[dtype][0] / ratio, zero_point)
                yield f"{operator[0]} with a ratio of {ratio:g}, {dtype}", model(operator, dtype, results)
    for operator in LAYERS[1:3]:
        yield f"{operator[0]} with a zero point of weights", model(operator, INT8, filters=(0.02, 5))


def interpreter(content, resolver, library=None):
    delegates = [litert.load_delegate(library)] if library else None
    return litert.Interpreter(
        model_content=content, num_threads=1, experimental_op_resolver_type=resolver, experimental_delegates=delegates
    )


def outputs(runner, shape=None):
    """Outputs for this shape of the first input, or the interpreter's error message."""
    rng = np.random.default_rng(0)
    try:
        if shape is not None:
            runner.resize_tensor_input(runner.get_input_details()[0]["index"], shape)
        runner.allocate_tensors()
        for detail in runner.get_input_details():
            values = rng.uniform(-60, 60, detail["shape"])
            if detail["dtype"] == np.uint8:
                values += 128
            runner.set_tensor(detail["index"], values.astype(detail["dtype"]))
        runner.invoke()
        return [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())


def problem_of(ours, content, shape=None, follows=False):
    """A description of what is wrong with `ours`, or None. With `follows`, the built-in delegate's results are expected
    if the interpreter's kernels refuse the shape; a shape that it also refuses must be refused unless it is empty."""
    judges = [outputs(interpreter(content, resolver), shape) for resolver in KERNELS]
    judges = [judge for judge in judges if not isinstance(judge, str)]
    if follows and not judges:
        own = outputs(interpreter(content, OWN), shape)
        if isinstance(own, str):
            may_differ = isinstance(ours, str) or 0 in shape
            return None if may_differ else f"computed, which others refuse: {own}"
        judges = [own]
    problems = [difference(ours, judge) for judge in judges]
    return problems[0] if problems and all(problems) else None


def difference(ours, expected):
    """A description of the difference, or None."""
    if isinstance(ours, str):
        return f"refused: {ours}"
    for mine, theirs in zip(ours, expected, strict=True):
        if mine.shape != theirs.shape:
            return f"{mine.shape}, not {theirs.shape}"
        if not np.array_equal(np.isnan(mine), np.isnan(theirs)):
            return "NaN in other places"
        far = np.nanmax(np.abs(mine.astype(np.float64) - theirs.astype(np.float64)), initial=0)
        bound = FLOAT_TOLERANCE * np.nanmax(np.abs(theirs), initial=0) if theirs.dtype.kind == "f" else STEPS
        if not far <= bound:
            return f"differs by {far}"
    return None


def check_breaking(library):
    """Returns the number of models, how many fail without this delegate, and a list of errors."""
    count = broken = 0
    wrong = []
    for name, content in breaking():
        refused = [isinstance(outputs(interpreter(content, resolver)), str) for resolver in (*KERNELS, OWN)]
        if all(refused[:-1]):
            continue
        count += 1
        broken += refused[-1]
        problem = problem_of(outputs(interpreter(content, OWN, library)), content)
        wrong += [f"{name}: {problem}"] if problem else []
    return f"{count} models, {broken} of which break without us", wrong


def check_shapes(library):
    """Returns the number of runs, and a list of errors."""
    count = 0
    wrong = []
    for operator, dtype in itertools.product(SIZED, (FLOAT, INT8)):
        name, (first, *_) = operator[:2]
        content, follows = model(operator, dtype), name in RESIZED
        ours = interpreter(content, OWN, library)
        batches = [[first[0] * batch, *first[1:]] for batch in BATCHES]
        for shape in [*batches, *RESIZED.get(name, ()), first]:
            count += 1
            problem = problem_of(outputs(ours, shape), content, shape, follows)
            wrong += [f"{name} of {first}, {dtype}, {shape}: {problem}"] if problem else []
    return f"{count} runs with other shapes", wrong


def main():
    (library,) = sys.argv[1:]
    failed = False
    for check in (check_breaking, check_shapes):
        summary, wrong = check(library)
        print("FAILED" if wrong else "ok", summary, *wrong, sep="\n       ", flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
