"""The delegate library, for stock interpreters."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Packages with an interpreter, in the order in which they are tried.
PACKAGES = ("ai_edge_litert", "tflite_runtime", "tensorflow.lite.python")


def delegate_path() -> Path:
    """Path of ``libxnn_delegate.so``, for interpreters of other languages."""
    path = Path(__file__).with_name("libxnn_delegate.so")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: this installation has no delegate library; install the wheel")
    return path


def delegate(num_threads: int = 1, *, package: str | None = None, **options: Any) -> Any:
    """Loads the delegate for the interpreter that is installed.

    ::

        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter("model.tflite", experimental_delegates=[xnn_delegate.delegate(num_threads=2)])

    Args:
        num_threads: Number of threads that compute.
        package: Package of the interpreter, such as ``"tflite_runtime"``. Default: the first that is installed of
            ``ai_edge_litert``, ``tflite_runtime`` and TensorFlow.
        options: Options of the delegate (``docs/delegate.md``), such as ``explain="stderr"`` or ``keep_small=True``.

    Raises:
        ImportError: No interpreter is installed.
        ValueError: The delegate does not accept an option.
    """
    module = _interpreter(package)
    return module.load_delegate(str(delegate_path()), strings({"num_threads": num_threads, **options}))


def strings(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as the delegate reads them. ``None`` leaves an option at its default."""
    return {name: _string(name, value) for name, value in options.items() if value is not None}


def _string(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if hasattr(value, "__fspath__"):
        return str(value.__fspath__())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(_string(name, element) for element in value)
    raise TypeError(f"option {name}: expected a string, number, boolean or list, found {type(value).__name__}")


def _interpreter(package: str | None) -> Any:
    for name in (package,) if package else PACKAGES:
        try:
            return importlib.import_module(f"{name}.interpreter")
        except ModuleNotFoundError as error:
            # A module that the interpreter itself lacks is another problem.
            if error.name is None or not f"{name}.interpreter".startswith(error.name):
                raise
    wanted = package or ", ".join(PACKAGES)
    raise ModuleNotFoundError(
        f"no interpreter is installed ({wanted}); install ai-edge-litert, or use xnn_delegate.Interpreter without a delegate"
    )
