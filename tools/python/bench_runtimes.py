"""The runtimes that bench_peer.py times: how each opens a model, and runs it.

`RUNTIMES` has, by package, a function that imports the package and takes the number of threads. It gives a function that
opens a model in one of the ways that bench_peer.py lists, as an `Instance`.
"""

import importlib
from functools import partial
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import numpy as np


class Instance(NamedTuple):
    """An opened model."""

    set_inputs: Callable[[list[np.ndarray]], None]
    # Runs once, on the inputs that were set last. Its calls are timed: the runtime's own function, if possible.
    run: Callable[[], Any]
    outputs: Callable[[], list[np.ndarray]]
    # How many partitions a delegate took, where there is such a thing.
    partitions: Callable[[], Optional[int]]


def interpreter(module, threads):
    """TFLite's and LiteRT's interpreters, and this project's with the same interface."""
    module = importlib.import_module(module)

    def open_model(model, way):
        resolvers = module.OpResolverType
        if way == "default":
            options = {"experimental_op_resolver_type": resolvers.AUTO}
        else:
            options = {"experimental_op_resolver_type": resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
        if way not in ("default", "off"):
            options["experimental_delegates"] = [module.load_delegate(way, {"num_threads": str(threads)})]
        opened = module.Interpreter(model_path=model, num_threads=threads, **options)
        opened.allocate_tensors()

        def set_inputs(inputs):
            for detail, value in zip(opened.get_input_details(), inputs):
                opened.set_tensor(detail["index"], value)

        def outputs():
            return [opened.get_tensor(detail["index"]) for detail in opened.get_output_details()]

        def partitions():
            # The package has no public listing of operators.
            return [op["op_name"] for op in opened._get_ops_details()].count("DELEGATE")

        return Instance(set_inputs, opened.invoke, outputs, partitions)

    return open_model


def executorch(threads):
    """ExecuTorch, with its programs (.pte)."""
    import torch
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime

    # The threads are the process's. Models that are open keep pointing at those that there were.
    portable_lib._unsafe_reset_threadpool(threads)
    # Methods read programs until their end, and do not keep them.
    programs = []

    def open_model(model, way):
        program = Runtime.get().load_program(Path(model).read_bytes() if way == "memory" else model)
        programs.append(program)
        # The public Method.execute also sets the inputs and copies the outputs each time.
        method = program.load_method("forward")._method

        def set_inputs(inputs):
            method.set_inputs(tuple(map(torch.from_numpy, inputs)))

        def outputs():
            return [tensor.numpy() for tensor in method.get_outputs()]

        return Instance(set_inputs, method.execute, outputs, lambda: None)

    return open_model


def onnxruntime(threads):
    """ONNX Runtime on the processor, with ONNX models."""
    import onnxruntime

    def open_model(model, _way):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        # Tensors that stay: run() would take new ones each time.
        binding = session.io_binding()

        def set_inputs(inputs):
            for value, array in zip(session.get_inputs(), inputs, strict=True):
                binding.bind_cpu_input(value.name, array)
            for value in session.get_outputs():
                binding.bind_output(value.name)

        run = partial(session.run_with_iobinding, binding)
        return Instance(set_inputs, run, binding.copy_outputs_to_cpu, lambda: None)

    return open_model


RUNTIMES = {
    "ai-edge-litert": partial(interpreter, "ai_edge_litert.interpreter"),
    "tflite-runtime": partial(interpreter, "tflite_runtime.interpreter"),
    "executorch": executorch,
    "onnxruntime": onnxruntime,
    "xnn-delegate": partial(interpreter, "xnn_delegate.interpreter"),
}
