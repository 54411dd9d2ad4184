"""Sessions: dictionaries of arrays in and out."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import models
import xnn_delegate
from xnn_delegate import Session


@pytest.fixture
def whole():
    """A model that XNNPACK runs."""
    return Session(models.dense(dynamic=True))


@pytest.fixture
def partial():
    """A model that reference kernels run."""
    return Session(models.accumulator())


ROW = np.array([[1, 2, 3, 4]], np.float32)


def expected(rows):
    return 2 * (rows @ (np.arange(12).reshape(3, 4) / 10 - 0.5).T + [0.5, -0.5, 1])


def test_the_two_models_differ(whole, partial):
    assert whole.coverage.delegated == whole.coverage.operators == 2
    assert partial.coverage.delegated == 0 and partial.coverage.operators == 1


def test_description(whole):
    [x], [z] = whole.inputs, whole.outputs
    assert x == ("x", (1, 4), np.dtype("float32"), None)
    assert z.name == "z" and z.shape == (1, 3) and z.dtype == np.float32
    assert "2 operators, 2 on XNNPACK" in repr(whole)


def test_quantization():
    [x] = Session(models.quantized()).inputs
    assert x.quantization == (0.5, 3) and x.dtype == np.int8


@pytest.mark.parametrize("key", ["x", 0])
def test_run(whole, key):
    outputs = whole.run({key: ROW})
    assert list(outputs) == ["z"]
    np.testing.assert_allclose(outputs["z"], expected(ROW), rtol=1e-5)


def test_single_input_needs_no_name(whole):
    np.testing.assert_allclose(whole.run(ROW)["z"], expected(ROW), rtol=1e-5)
    np.testing.assert_allclose(whole(ROW)["z"], expected(ROW), rtol=1e-5)


def test_list(whole):
    np.testing.assert_allclose(whole.run({"x": [[1, 2, 3, 4]]})["z"], expected(ROW), rtol=1e-5)


def test_inputs_keep_their_elements(whole):
    first = whole.run(ROW)["z"]
    np.testing.assert_array_equal(whole.run()["z"], first)


def test_results_are_not_overwritten(whole):
    first = whole.run(ROW)["z"]
    copy = first.copy()
    whole.run(2 * ROW)
    np.testing.assert_array_equal(first, copy)


def test_model_in_memory_and_in_a_file(tmp_path):
    path = tmp_path / "dense.tflite"
    path.write_bytes(models.dense())
    for model in [path, str(path), models.dense(), bytearray(models.dense()), memoryview(models.dense())]:
        np.testing.assert_allclose(Session(model).run(ROW)["z"], expected(ROW), rtol=1e-5)


def test_new_shape(whole):
    for rows in [3, 1]:
        batch = np.repeat(ROW, rows, axis=0)
        np.testing.assert_allclose(whole.run(batch)["z"], expected(batch), rtol=1e-5)
        assert whole.inputs[0].shape == (rows, 4) and whole.outputs[0].shape == (rows, 3)


def test_resize(whole):
    whole.resize({"x": (2, 4)})
    assert whole.outputs[0].shape == (2, 3)
    with pytest.raises(ValueError, match="negative"):
        whole.resize({"x": (-1, 4)})


def test_shape_that_the_model_cannot_compute(whole):
    with pytest.raises((RuntimeError, ValueError)):
        whole.run(np.zeros((1, 5), np.float32))
    np.testing.assert_allclose(whole.run(ROW)["z"], expected(ROW), rtol=1e-5)


def test_out(whole):
    array = np.empty((1, 3), np.float32)
    outputs = whole.run(ROW, out={"z": array})
    assert outputs["z"] is array
    np.testing.assert_allclose(array, expected(ROW), rtol=1e-5)


def test_out_of_a_partial_model(partial):
    array = np.empty((1, 2), np.float32)
    outputs = partial.run(np.array([[1, 2]], np.float32), out={0: array})
    assert list(outputs.values())[0] is array and array.tolist() == [[1, 2]]


def test_out_that_is_not_dense_or_not_aligned(whole):
    array = np.zeros((2, 6), np.float32)
    whole.run(ROW, out={"z": array[:1, ::2]})
    np.testing.assert_allclose(array[:1, ::2], expected(ROW), rtol=1e-5)
    assert not array[:, 1::2].any()
    memory = np.zeros(64, np.uint8)
    start = 4 - memory.ctypes.data % 4
    misaligned = memory[start + 4 : start + 16].view(np.float32).reshape(1, 3)
    whole.run(ROW, out={"z": misaligned})
    np.testing.assert_allclose(misaligned, expected(ROW), rtol=1e-5)


@pytest.mark.parametrize(
    "array, error, message",
    [
        (np.zeros((1, 4), np.float32), ValueError, "output 0 'z': expected an array of float32 of shape"),
        (np.zeros((1, 3), np.float64), ValueError, "found float64"),
        ([[0, 0, 0]], TypeError, "expected a numpy array, found list"),
    ],
)
def test_out_that_does_not_fit(whole, array, error, message):
    with pytest.raises(error, match=message):
        whole.run(ROW, out={"z": array})


def test_out_that_is_read_only(whole):
    array = np.zeros((1, 3), np.float32)
    array.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        whole.run(ROW, out={"z": array})


def test_arrays_that_overlap():
    model = models.Model()
    graph = model.graph()
    x = graph.input("x", "float32", [4])
    outputs = [graph.output(name, "float32", [4]) for name in "ab"]
    graph.operator("ABS", [x], [outputs[0]])
    graph.operator("NEG", [x], [outputs[1]])
    session = Session(model.build())
    memory = np.zeros(6, np.float32)
    with pytest.raises(ValueError, match="two arrays of out share memory"):
        session.run(np.ones(4, np.float32), out={"a": memory[:4], "b": memory[2:]})


def test_input_without_copies(whole):
    view = whole.input("x")
    assert view.shape == (1, 4) and not view.flags.owndata
    for scale in [1, 2]:
        view[:] = scale * ROW
        np.testing.assert_allclose(whole.run()["z"], expected(scale * ROW), rtol=1e-5)
    with pytest.raises(RuntimeError, match="an array still views a tensor"):
        whole.resize({"x": (2, 4)})
    del view
    whole.resize({"x": (2, 4)})


def test_output_without_copies(partial):
    partial.run(np.array([[1, 2]], np.float32))
    view = partial.output()
    assert view.tolist() == [[1, 2]] and not view.flags.writeable
    with pytest.raises(RuntimeError, match="an array still views a tensor"):
        partial.run()
    del view
    partial.run()


def test_view_outlives_the_session(whole):
    view = whole.input()
    view[:] = ROW
    del whole
    assert view.tolist() == ROW.tolist()


class Exporter:
    """An array of another library."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_dlpack(whole):
    outputs = whole.run({"x": Exporter(ROW.copy())})
    np.testing.assert_allclose(np.from_dlpack(outputs["z"]), expected(ROW), rtol=1e-5)


def test_strings():
    session = Session(models.gather_strings())
    outputs = session.run({"strings": np.array(["a", "b", "c", "d"]), "indices": np.array([3, 0], np.int64)})
    assert outputs["chosen"].tolist() == [b"d", b"a"]


def test_outputs_of_unknown_shape():
    session = Session(models.where())
    for mask, positions in [([1, 0, 0, 0], [[0, 0]]), ([0, 1, 1, 0], [[0, 1], [0, 2]])]:
        assert session.run(np.array([mask], np.bool_))["y"].tolist() == positions


def test_state(partial):
    x = np.array([[1, 2]], np.float32)
    assert partial.run(x)["y"].tolist() == [[1, 2]]
    assert partial.run(x)["y"].tolist() == [[2, 4]]
    partial.reset_variables()
    assert partial.run(x)["y"].tolist() == [[1, 2]]


def test_signature():
    session = Session(models.two_signatures(), signature="sub")
    assert [info.name for info in session.inputs] == ["x", "y"]
    result = session.run({"x": np.array([5], np.float32), "y": np.array([2], np.float32)})
    assert result["output_0"].tolist() == [3]
    with pytest.raises(ValueError, match='no signature "nope"; the model has "add", "sub"'):
        Session(models.two_signatures(), signature="nope")


def test_options(tmp_path, fp32):
    session = Session(fp32, 2, cache_dir=tmp_path, disable=["softmax"])
    assert session.coverage.delegated == session.coverage.operators - 1
    assert 1 <= session.num_threads <= 2
    with pytest.raises(ValueError, match="disable"):
        Session(fp32, disable=["NO_SUCH_OPERATOR"])
    with pytest.raises(TypeError, match="disable"):
        Session(fp32, disable="SOFTMAX")
    with pytest.raises(ValueError, match="num_threads: expected at least 1, found 0"):
        Session(fp32, num_threads=0)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        ({"y": ROW}, KeyError, r"no input 'y'; the inputs are: 0 'x'"),
        ({1: ROW}, KeyError, r"no input 1; the inputs are: 0 'x'"),
        ({"x": ROW.astype(np.float64)}, ValueError, "input 0 'x': expected elements of type float32, found float64"),
    ],
)
def test_wrong_inputs(whole, inputs, error, message):
    with pytest.raises(error, match=message):
        whole.run(inputs)


def test_wrong_output(whole):
    with pytest.raises(KeyError, match="no output 'y'; the outputs are: 0 'z'"):
        whole.run(ROW, out={"y": np.zeros((1, 3), np.float32)})


def test_missing_file():
    with pytest.raises(FileNotFoundError) as error:
        Session("/no/such/model.tflite")
    assert error.value.filename == "/no/such/model.tflite"


def test_damaged_file(tmp_path, fp32):
    path = tmp_path / "damaged.tflite"
    path.write_bytes(fp32.read_bytes()[:5000])
    with pytest.raises(ValueError, match="damaged.tflite"):
        Session(path)


def test_forks_run_at_the_same_time(fp32):
    session = Session(fp32)
    shape = session.inputs[0].shape
    image = np.random.default_rng(0).uniform(0, 1, shape).astype(np.float32)
    reference = next(iter(session.run(image).values()))
    results = []

    def work(fork):
        for _ in range(5):
            results.append(next(iter(fork.run(image).values())))

    threads = [threading.Thread(target=work, args=(session.fork(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for result in results:
        np.testing.assert_array_equal(result, reference)


def test_a_session_is_shared_by_threads(whole):
    errors = []

    def work():
        try:
            for _ in range(50):
                np.testing.assert_allclose(whole.run(ROW)["z"], expected(ROW), rtol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_runs_release_the_gil(fp32):
    """A thread of Python makes progress while another runs a model for as long."""
    session = Session(fp32)
    image = np.zeros(session.inputs[0].shape, np.float32)
    stop = threading.Event()
    count = 0

    def tick():
        nonlocal count
        while not stop.is_set():
            count += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(20):
            session.run(image)
    finally:
        stop.set()
        thread.join()
    assert count > 20


def test_version():
    assert xnn_delegate.__version__ and xnn_delegate.XNNPACK_REVISION
