"""Checks the life cycle of delegates with valgrind in this Python environment.

    python memcheck.py LIBRARY MODEL

MODEL must accept other first dimensions of all inputs, and should be small, since valgrind takes a hundred
times as long. It is created, resized, run and destroyed in 200 cycles, then in 8 threads with their own
interpreters. Errors and definite leaks count if LIBRARY is on their stack; those only in the interpreter
and Python do not. A delegate that is never destroyed proves that leaks are detected. Valgrind does not
support AVX-512, so XNNPACK uses its AVX2 microkernels. Exits with 1 if there are errors.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree as ElementTree

CYCLES = 200
THREADS = 8
BATCHES = (1, 2, 1)

VALGRIND = [
    "valgrind",
    "--tool=memcheck",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--num-callers=60",
    # Threads take turns even if one of them only waits for another.
    "--fair-sched=yes",
    "--xml=yes",
]


def use(library, model, round_number):
    """Creates, resizes, runs and destroys, with one thread or two."""
    try:
        import ai_edge_litert.interpreter as tflite
    except ImportError:
        import tflite_runtime.interpreter as tflite

    options = {"num_threads": str(1 + round_number % 2)}
    interpreter = tflite.Interpreter(
        model_path=model,
        num_threads=1,
        experimental_op_resolver_type=tflite.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_delegates=[tflite.load_delegate(library, options)],
    )
    for batch in BATCHES:
        for detail in interpreter.get_input_details():
            interpreter.resize_tensor_input(detail["index"], [batch, *detail["shape"][1:]])
        interpreter.allocate_tensors()
        # The interpreter's memory is not initialized.
        for detail in interpreter.get_input_details():
            interpreter.tensor(detail["index"])()[:] = 1
        interpreter.invoke()
    assert any(op["op_name"] == "DELEGATE" for op in interpreter._get_ops_details()), "no operator is delegated"


def life_cycle(library, model):
    for round_number in range(CYCLES):
        use(library, model, round_number)
    failures = []

    def work(number):
        try:
            use(library, model, number)
        except Exception as failure:  # noqa: BLE001: passed on to the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures


def leak(library, _model):
    """Leaks a delegate: its pointer is overwritten with that of a second one."""
    create = ctypes.CDLL(library).tflite_plugin_create_delegate
    create.restype = ctypes.c_void_p
    for _ in range(2):
        create(None, None, ctypes.c_size_t(0), None)


PROGRAMS = {"life_cycle": life_cycle, "leak": leak}


def describe(error):
    """Valgrind's description of an error, with its stack."""
    what = error.findtext("what") or error.findtext("xwhat/text") or "?"
    frames = error.findall("stack/frame")
    return "\n    ".join([what] + [f"{f.findtext('fn') or '?'} ({os.path.basename(f.findtext('obj') or '?')})" for f in frames])


def findings(program, library, model):
    """Returns valgrind's errors with the library on their stack, and the number of all errors."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = [*VALGRIND, f"--xml-file={report}", sys.executable, __file__, library, model, program]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONMALLOC": "malloc"})
        errors = ElementTree.parse(report).getroot().findall("error")
    library = os.path.realpath(library)
    ours = [e for e in errors if library in {frame.findtext("obj") for frame in e.iter("frame")}]
    return ours, len(errors)


def main():
    library, model, *program = sys.argv[1:]
    if program:
        PROGRAMS[program[0]](library, model)
        return 0
    if shutil.which("valgrind") is None:
        assert os.environ.get("CI") != "true", "valgrind is not installed, and CI skips no test"
        print("SKIPPED: valgrind is not installed")
        return 0
    control, _ = findings("leak", library, model)
    assert any(error.findtext("kind") == "Leak_DefinitelyLost" for error in control), "a leak is not detected"
    ours, all_of_them = findings("life_cycle", library, model)
    for error in ours:
        print(describe(error))
    print(
        f"{'FAILED' if ours else 'ok'} valgrind: {CYCLES} cycles and {THREADS} threads, {len(ours)} errors and leaks "
        f"through {os.path.basename(library)}, {all_of_them - len(ours)} elsewhere",
    )
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
