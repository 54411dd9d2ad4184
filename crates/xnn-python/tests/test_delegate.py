"""The delegate in the interpreter that is installed."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import xnn_delegate
from xnn_delegate.delegates import PACKAGES, strings


@pytest.fixture
def stock():
    """The module of the interpreter."""
    for package in PACKAGES:
        try:
            return importlib.import_module(f"{package}.interpreter")
        except ModuleNotFoundError:
            continue
    pytest.fail("no interpreter is installed")


def test_run(stock, int8):
    results = []
    for delegates in [[], [xnn_delegate.delegate(num_threads=2)]]:
        interpreter = stock.Interpreter(model_path=str(int8), experimental_delegates=delegates)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        image = np.random.default_rng(0).integers(-128, 128, details["shape"]).astype(details["dtype"])
        interpreter.set_tensor(details["index"], image)
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_allclose(results[0].astype(int), results[1].astype(int), atol=1)


def test_options(capfd, stock, int8):
    delegate = xnn_delegate.delegate(2, explain="stderr", keep_small=True, disable=["SOFTMAX"], min_partition_macs=0)
    interpreter = stock.Interpreter(model_path=str(int8), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    assert "SOFTMAX" in capfd.readouterr().err


def test_unknown_option(stock):
    with pytest.raises(ValueError, match="no_such_option"):
        xnn_delegate.delegate(no_such_option=1)


def test_options_are_strings(tmp_path):
    given = {"a": True, "b": False, "c": 2, "d": 0.5, "e": "text", "f": ["x", "y"], "g": tmp_path, "h": None}
    wanted = {"a": "true", "b": "false", "c": "2", "d": "0.5", "e": "text", "f": "x,y", "g": str(tmp_path)}
    assert strings(given) == wanted
    with pytest.raises(TypeError, match="option i: expected a string, number, boolean or list, found object"):
        strings({"i": object()})


def test_no_interpreter():
    with pytest.raises(ModuleNotFoundError, match="no interpreter is installed"):
        xnn_delegate.delegate(package="no_such_package")


def test_path():
    assert xnn_delegate.delegate_path().name == "libxnn_delegate.so"
