"""Conversion, explanation, verification, metadata, and the program xnn."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import models
import xnn_delegate
from conftest import FP32


@pytest.fixture
def partial(tmp_path):
    """A model with an operator that is not delegated."""
    path = tmp_path / "partial.tflite"
    path.write_bytes(models.accumulator())
    return path


def test_convert(tmp_path, fp32):
    path = xnn_delegate.convert(fp32, tmp_path / "digits.xnn")
    assert path == tmp_path / "digits.xnn"
    assert [it.name for it in tmp_path.iterdir()] == ["digits.xnn"]
    image = np.random.default_rng(0).uniform(0, 1, (1, 48, 48, 1))
    sessions = [xnn_delegate.Session(it) for it in [fp32, path]]
    image = np.resize(image, sessions[0].inputs[0].shape).astype(np.float32)
    first, second = (next(iter(session.run(image).values())) for session in sessions)
    np.testing.assert_array_equal(first, second)


def test_name_of_a_converted_file(tmp_path, fp32):
    copy = tmp_path / "copy.tflite"
    copy.write_bytes(fp32.read_bytes())
    assert xnn_delegate.convert(copy, pack=True) == tmp_path / "copy.xnn"
    assert xnn_delegate.convert(copy, disable=["SOFTMAX"]) == tmp_path / "copy.xnn.tflite"
    assert xnn_delegate.Session(tmp_path / "copy.xnn.tflite").coverage.operators == 2


def test_convert_reports_operators_that_are_not_delegated(partial):
    with pytest.raises(ValueError, match="operator 0 .SVDF."):
        xnn_delegate.convert(partial, require_full=True)
    assert [it.name for it in partial.parent.iterdir()] == ["partial.tflite"]


def test_convert_does_not_overwrite_its_input(tmp_path):
    path = tmp_path / "dense.tflite"
    path.write_bytes(models.dense())
    with pytest.raises(ValueError, match="the output would overwrite its input"):
        xnn_delegate.convert(path, path)
    assert path.read_bytes() == models.dense()


def test_convert_options(fp32):
    with pytest.raises(ValueError, match="compat"):
        xnn_delegate.convert(fp32, compat="other")
    with pytest.raises(FileNotFoundError):
        xnn_delegate.convert("/no/such/model.tflite")


def test_explain(fp32, partial):
    whole = xnn_delegate.explain(fp32)
    assert whole.fully_delegated and not whole.not_delegated
    assert whole.summary.startswith("delegated ") and whole.summary in str(whole)
    assert whole.operators[0].op and whole.operators[0].outputs[0].shape[0] == 1
    assert sum(len(it.operators) for it in whole.partitions) == len(whole.operators)
    assert sum(it.macs for it in whole.partitions) > 100_000

    [operator] = xnn_delegate.explain(partial).operators
    assert operator.op == "SVDF" and not operator.delegated
    assert operator.reason.code and "SVDF" in str(xnn_delegate.explain(partial))
    with pytest.raises(ValueError, match="no subgraph 3: the model has 1, from 0"):
        xnn_delegate.explain(fp32, subgraph=3)


def test_verify(int8):
    verification = xnn_delegate.verify(int8)
    assert verification.ok and len(verification.operators) > 20 and not verification.skipped
    assert all(it.scale == "steps" for it in verification.operators if it.op == "CONV_2D")
    assert len(verification.outputs) == 1


def test_verify_with_inputs(fp32):
    [info] = xnn_delegate.Session(fp32).inputs
    first, second = (
        xnn_delegate.verify(fp32, {0: np.full(info.shape, value, np.float32)}).outputs[0].expected for value in [0, 1]
    )
    assert first != second
    with pytest.raises(KeyError, match="no input 'nope'"):
        xnn_delegate.verify(fp32, {"nope": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match="found float64"):
        xnn_delegate.verify(fp32, {0: np.zeros(info.shape)})


def program(*arguments) -> str:
    """Runs the program xnn that the wheel has installed."""
    path = Path(sysconfig.get_path("scripts")) / "xnn"
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def described(tmp_path, fp32):
    """A model with labels."""
    labels = fp32.with_name("labels.txt")
    program("metadata", "add", fp32, "--labels", labels, "-o", tmp_path / "described.tflite")
    return tmp_path / "described.tflite"


def test_metadata(described, partial):
    found = xnn_delegate.metadata(described)
    assert found.labels() == FP32.with_name("labels.txt").read_text().splitlines()
    assert list(found.files) == ["labels.txt"] and found.fields["subgraph_metadata"]
    assert xnn_delegate.metadata(partial) is None


def test_metadata_of_a_blob(described):
    path = xnn_delegate.convert(described)
    assert xnn_delegate.metadata(path).labels() == xnn_delegate.metadata(described).labels()


def test_program(fp32):
    assert xnn_delegate.explain(fp32).summary in program("explain", fp32)


def test_interpreter_does_not_open_blobs(tmp_path, fp32):
    path = xnn_delegate.convert(fp32, tmp_path / "digits.xnn")
    with pytest.raises(ValueError, match="open it with xnn_delegate.Session"):
        xnn_delegate.Interpreter(str(path))


def test_interpreter_loads_no_delegates(fp32):
    with pytest.raises(ValueError, match="leave out experimental_delegates"):
        xnn_delegate.Interpreter(str(fp32), experimental_delegates=[object()])
    with pytest.raises(ValueError, match="Failed to load delegate from libother.so"):
        xnn_delegate.interpreter.load_delegate("libother.so")


def test_stubs_have_every_name():
    """The stubs of the extension module list what it has."""
    import ast

    from xnn_delegate import _native

    stub = ast.parse(Path(_native.__file__).with_name("_native.pyi").read_text())
    for node in stub.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            assert hasattr(_native, node.name), node.name
        if isinstance(node, ast.ClassDef):
            declared = {it.name for it in node.body if isinstance(it, ast.FunctionDef)}
            public = {name for name in vars(getattr(_native, node.name)) if not name.startswith("__")}
            assert declared - {"__array_interface__"} == public, node.name
