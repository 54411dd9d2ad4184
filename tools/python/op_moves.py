"""Families of operators that only move data; see op_families.py."""

from op_case import Case, OutputRange, int32


def moves(inputs, options=None, outputs=1):
    """A case that only moves data."""
    return Case(tuple(inputs), options, OutputRange.SAME, outputs)


def reshape(d):
    shape = d.shape(1, 5, 6)
    factors = [int(f) for f in d.rng.permutation([size for size in shape if size > 1])]
    target = [1] * d.int(1, 5)
    for factor in factors:
        target[d.int(0, len(target) - 1)] *= factor
    if d.chance(0.3):
        target[d.int(0, len(target) - 1)] = -1
    return moves([d.activation(shape), int32(target)], ("ReshapeOptions", {"newShape": target}))


def squeeze(d):
    shape = tuple(1 if d.chance(0.5) else d.int(2, 6) for _ in range(d.int(2, 5)))
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    dims = ones[: d.int(0, len(ones))] if len(ones) < len(shape) else ones[:1]
    return moves([d.activation(shape)], ("SqueezeOptions", {"squeezeDims": dims}))


def expand_dims(d):
    shape = d.shape(1, 4, 6)
    return moves([d.activation(shape), int32(d.int(-len(shape) - 1, len(shape)))], ("ExpandDimsOptions", {}))


def transpose(d):
    shape = d.shape(2, 6, 5)
    return moves([d.activation(shape), int32(d.rng.permutation(len(shape)))], ("TransposeOptions", {}))


def paddings(d, shape, most=lambda size: 3):
    return int32([[d.int(0, most(size)), d.int(0, most(size))] for size in shape])


def pad(d):
    shape = d.shape(1, 4, 6)
    return moves([d.activation(shape), paddings(d, shape)], ("PadOptions", {}))


def pad_v2(d):
    shape = d.shape(1, 4, 6)
    span = d.range()
    value = d.activation((1,), span, constant=True)
    return moves([d.activation(shape, span), paddings(d, shape), value], ("PadV2Options", {}))


def mirror_pad(d):
    shape = d.shape(1, 4, 6)
    mode = d.int(0, 1)  # 0 reflects without the edge, 1 with it
    most = (lambda size: size - 1) if mode == 0 else (lambda size: size)
    return moves([d.activation(shape), paddings(d, shape, most)], ("MirrorPadOptions", {"mode": mode}))


def concatenation(d):
    shape = d.shape(1, 4, 6)
    axis = d.int(0, len(shape) - 1)
    span = d.range()
    sizes = [d.int(1, 6) for _ in range(d.int(1, 7))]
    inputs = [d.activation((*shape[:axis], size, *shape[axis + 1 :]), span) for size in sizes]
    signed = axis - (len(shape) if d.chance(0.3) else 0)
    return moves(inputs, ("ConcatenationOptions", {"axis": signed}))


def pack(d):
    shape, span, count = d.shape(1, 4, 5), d.range(), d.int(1, 5)
    options = {"valuesCount": count, "axis": d.int(-len(shape) - 1, len(shape))}
    return moves([d.activation(shape, span) for _ in range(count)], ("PackOptions", options))


def unpack(d):
    shape = d.shape(2, 4, 5)
    axis = d.int(-len(shape), len(shape) - 1)
    return moves([d.activation(shape)], ("UnpackOptions", {"num": shape[axis], "axis": axis}), shape[axis])


def split(d):
    shape, parts = list(d.shape(1, 4, 4)), d.int(1, 6)
    axis = d.int(-len(shape), len(shape) - 1)
    shape[axis] *= parts
    return moves([int32(axis), d.activation(shape)], ("SplitOptions", {"numSplits": parts}), parts)


def split_v(d):
    shape = list(d.shape(1, 4, 4))
    axis = d.int(-len(shape), len(shape) - 1)
    sizes = [d.int(1, 5) for _ in range(d.int(1, 5))]
    shape[axis] = sum(sizes)
    if d.chance(0.3):
        sizes[d.int(0, len(sizes) - 1)] = -1
    inputs = [d.activation(shape), int32(sizes), int32(axis)]
    return moves(inputs, ("SplitVOptions", {"numSplits": len(sizes)}), len(sizes))


def slice_(d):
    shape = d.shape(1, 5, 7)
    begin = [d.int(0, size - 1) for size in shape]
    size = [-1 if d.chance(0.2) else d.int(1, full - first) for full, first in zip(shape, begin)]
    return moves([d.activation(shape), int32(begin), int32(size)], ("SliceOptions", {}))


def strided_slice(d):
    """Starts and ends on either side of zero, all masks; an empty result is left out by the caller."""
    shape = d.shape(1, 4, 8)
    specs = d.int(1, len(shape))
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("beginMask", "endMask", "ellipsisMask", "newAxisMask", "shrinkAxisMask"), 0)
    ellipsis_at = d.int(0, specs - 1) if specs < len(shape) and d.chance(0.3) else None
    for i in range(specs):
        full = shape[i]
        stride = -1 if d.chance(0.1) else d.of([1, 1, 1, 2, 3])
        first, last = sorted(d.rng.integers(0, full + 1, 2).tolist())
        first, last = (min(first, full - 1), max(last, first + 1)) if stride > 0 else (last - 1, first - 1)
        begin.append(first - full if d.chance(0.2) else first)
        end.append(last - full if d.chance(0.2) and last < full else last)
        strides.append(stride)
        bit = 1 << i
        if i == ellipsis_at:
            masks["ellipsisMask"] |= bit
        elif d.chance(0.1):
            masks["newAxisMask"] |= bit
        elif d.chance(0.2):
            masks["shrinkAxisMask"] |= bit
            strides[-1] = 1
            begin[-1] = d.int(-full, full - 1)
            end[-1] = begin[-1] + 1
        else:
            masks["beginMask"] |= bit * d.chance(0.2)
            masks["endMask"] |= bit * d.chance(0.2)
    return moves([d.activation(shape), int32(begin), int32(end), int32(strides)], ("StridedSliceOptions", masks))


def tile(d):
    shape = d.shape(1, 4, 4)
    return moves([d.activation(shape), int32([d.int(1, 3) for _ in shape])], ("TileOptions", {}))


def broadcast_to(d):
    target = d.shape(1, 4, 5)
    shape = tuple(size if d.chance(0.5) else 1 for size in target)[d.int(0, len(target) - 1) :]
    return moves([d.activation(shape), int32(target)], ("BroadcastToOptions", {}))


def depth_to_space(d):
    block = d.int(1, 3)
    shape = (d.int(1, 2), d.int(1, 5), d.int(1, 5), block * block * d.int(1, 4))
    return moves([d.activation(shape)], ("DepthToSpaceOptions", {"blockSize": block}))


def space_to_depth(d):
    block = d.int(1, 3)
    shape = (d.int(1, 2), block * d.int(1, 4), block * d.int(1, 4), d.int(1, 8))
    return moves([d.activation(shape)], ("SpaceToDepthOptions", {"blockSize": block}))


def resize(options):
    def family(d):
        mode = d.of([{}, {"alignCorners": True}, {"halfPixelCenters": True}])
        size = int32([d.int(1, 14), d.int(1, 14)])
        return moves([d.activation(d.image(most=8)), size], (options, mode))

    return family


def gather(d):
    shape = d.shape(1, 4, 8)
    axis = d.int(0, len(shape) - 1)
    if d.chance(0.3):  # frames of a signal
        step, length, count = d.int(1, 3), d.int(1, 5), d.int(1, 20)
        indices = [list(range(first, first + length)) for first in range(0, count * step, step)]
        shape = (*shape[:axis], (count - 1) * step + length, *shape[axis + 1 :])
    else:
        indices = d.rng.integers(0, shape[axis], d.shape(0, 2, 5))
    signed = axis - (len(shape) if d.chance(0.3) else 0)
    return moves([d.activation(shape), int32(indices)], ("GatherOptions", {"axis": signed, "batchDims": 0}))


def reverse_v2(d):
    shape = d.shape(1, 4, 6)
    return moves([d.activation(shape), int32([d.int(0, len(shape) - 1)])], ("ReverseV2Options", {}))


def dynamic_update_slice(d):
    shape, span = d.shape(1, 4, 6), d.range()
    part = [d.int(1, size) for size in shape]
    start = [d.int(-1, size) for size in shape]  # boxes that stick out are moved
    return moves([d.activation(shape, span), d.activation(part, span), int32(start)], ("DynamicUpdateSliceOptions", {}))


def fill(d):
    return moves([int32(d.shape(1, 4, 6)), d.activation(())], ("FillOptions", {}))


def space_to_batch(d):
    block = [d.int(1, 3), d.int(1, 3)]
    size = [b * d.int(1, 4) for b in block]
    before = [d.int(0, min(2, s - 1)) for s in size]
    shape = (d.int(1, 2), size[0] - before[0], size[1] - before[1], d.int(1, 6))
    inputs = [d.activation(shape), int32(block), int32([[before[0], 0], [before[1], 0]])]
    return moves(inputs, ("SpaceToBatchNDOptions", {}))


def batch_to_space(d):
    block = [d.int(1, 3), d.int(1, 3)]
    shape = (d.int(1, 2) * block[0] * block[1], d.int(1, 4), d.int(1, 4), d.int(1, 6))
    crops = [[d.int(0, b - 1), 0] for b in block]
    return moves([d.activation(shape), int32(block), int32(crops)], ("BatchToSpaceNDOptions", {}))
