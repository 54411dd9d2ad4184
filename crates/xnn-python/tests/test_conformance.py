"""The interface of ai_edge_litert's interpreter. Every test runs on both implementations."""

from __future__ import annotations

import importlib
import threading

import numpy as np
import pytest

import models
from conftest import FP32, INT8, shared

IMPLEMENTATIONS = {"litert": "ai_edge_litert.interpreter", "xnn": "xnn_delegate.interpreter"}


@pytest.fixture(params=IMPLEMENTATIONS)
def lite(request):
    """A module with the interface."""
    return importlib.import_module(IMPLEMENTATIONS[request.param])


def allocated(lite, content: bytes, **options):
    interpreter = lite.Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


def ends(interpreter):
    """Indices of the first input and output."""
    return interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]


class TestConstruction:
    def test_path(self, lite):
        lite.Interpreter(model_path=str(FP32)).allocate_tensors()

    def test_path_is_the_first_argument(self, lite):
        lite.Interpreter(str(FP32)).allocate_tensors()

    def test_path_object(self, lite):
        lite.Interpreter(model_path=FP32).allocate_tensors()

    def test_content(self, lite):
        lite.Interpreter(model_content=FP32.read_bytes()).allocate_tensors()

    def test_neither_path_nor_content(self, lite):
        with pytest.raises(ValueError, match="`model_path` or `model_content` must be specified"):
            lite.Interpreter()

    def test_empty_content(self, lite):
        with pytest.raises(ValueError, match="`model_path` or `model_content` must be specified"):
            lite.Interpreter(model_content=b"")

    def test_both_path_and_content(self, lite):
        with pytest.raises(ValueError, match="Can't both provide `model_path` and `model_content`"):
            lite.Interpreter(model_path="a", model_content=b"b")

    @pytest.mark.parametrize("content", [b"garbage", b"garbage" * 20])
    def test_content_that_is_no_model(self, lite, content):
        with pytest.raises(ValueError, match="The model is not a valid Flatbuffer buffer"):
            lite.Interpreter(model_content=content)

    def test_truncated_content(self, lite):
        with pytest.raises(ValueError, match="The model is not a valid Flatbuffer buffer"):
            lite.Interpreter(model_content=FP32.read_bytes()[:1000])

    def test_content_of_another_type(self, lite):
        with pytest.raises(TypeError):
            lite.Interpreter(model_content="text")

    def test_missing_file(self, lite):
        with pytest.raises(ValueError, match="Could not open '/no/such/model.tflite'"):
            lite.Interpreter(model_path="/no/such/model.tflite")

    def test_folder(self, lite, tmp_path):
        with pytest.raises(ValueError):
            lite.Interpreter(model_path=str(tmp_path))

    @pytest.mark.parametrize("threads", [1, 2, 16])
    def test_threads(self, lite, threads):
        interpreter = lite.Interpreter(model_path=str(INT8), num_threads=threads)
        interpreter.allocate_tensors()
        interpreter.invoke()

    @pytest.mark.parametrize("threads", [0, -1])
    def test_too_few_threads(self, lite, threads):
        with pytest.raises(ValueError, match="num_threads should >= 1"):
            lite.Interpreter(model_path=str(FP32), num_threads=threads)

    @pytest.mark.parametrize("threads", ["2", 1.5])
    def test_threads_of_another_type(self, lite, threads):
        with pytest.raises(ValueError, match="type of num_threads should be int"):
            lite.Interpreter(model_path=str(FP32), num_threads=threads)

    def test_unknown_argument(self, lite):
        with pytest.raises(TypeError):
            lite.Interpreter(model_path=str(FP32), no_such_argument=1)

    def test_unknown_resolver(self, lite):
        with pytest.raises(ValueError, match="Unrecognized passed in op resolver type: x"):
            lite.Interpreter(model_path=str(FP32), experimental_op_resolver_type="x")

    @pytest.mark.parametrize("resolver", ["AUTO", "BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"])
    def test_resolvers(self, lite, resolver):
        resolver = lite.OpResolverType[resolver]
        interpreter = allocated(lite, models.dense(), experimental_op_resolver_type=resolver)
        check_dense(interpreter)

    @pytest.mark.parametrize(
        "flag",
        [
            "experimental_disable_delegate_clustering",
            "experimental_default_delegate_latest_features",
            "experimental_compress_quantization_zero_points",
            "experimental_disable_delegate_node_fusion",
            "experimental_force_delegate_node_profiling",
        ],
    )
    def test_flags(self, lite, flag):
        check_dense(allocated(lite, models.dense(), **{flag: True}))

    def test_compression_of_zero_points_is_a_property(self, lite):
        for flag in [False, True]:
            interpreter = lite.Interpreter(
                model_content=models.dense(), experimental_compress_quantization_zero_points=flag
            )
            assert interpreter.experimental_compress_quantization_zero_points is flag

    def test_no_delegates(self, lite):
        for none in [None, []]:
            check_dense(allocated(lite, models.dense(), experimental_delegates=none))

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # LiteRT's half-made object.
    def test_library_that_cannot_be_loaded(self, lite):
        # A missing library is an OSError in LiteRT, and a delegate that fails is a ValueError.
        with pytest.raises((ValueError, OSError)):
            lite.load_delegate("/no/such/library.so")

    def test_custom_operator_is_an_error_of_allocation(self, lite):
        interpreter = lite.Interpreter(model_content=models.custom())
        with pytest.raises(RuntimeError, match="NoSuchOperator"):
            interpreter.allocate_tensors()

    def test_custom_operators_class(self, lite):
        interpreter = lite.InterpreterWithCustomOps(model_content=models.dense())
        interpreter.allocate_tensors()
        check_dense(interpreter)


def check_dense(interpreter):
    x, z = ends(interpreter)
    value = np.array([[1, 2, 3, 4]], np.float32)
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    expected = 2 * (value @ (np.arange(12).reshape(3, 4) / 10 - 0.5).T + [0.5, -0.5, 1])
    np.testing.assert_allclose(interpreter.get_tensor(z), expected, rtol=1e-5)


class TestDetails:
    def check(self, details, **expected):
        keys = ["name", "index", "shape", "shape_signature", "dtype", "quantization", "quantization_parameters"]
        assert list(details) == keys + ["sparsity_parameters"]
        parameters = details["quantization_parameters"]
        assert list(parameters) == ["scales", "zero_points", "quantized_dimension", "block_size"]
        for key, value in expected.items():
            actual = details.get(key, parameters.get(key))
            if isinstance(actual, np.ndarray):
                np.testing.assert_array_equal(actual, np.asarray(value, actual.dtype), key)
            else:
                assert actual == value, key

    def test_float(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        [x], [z] = interpreter.get_input_details(), interpreter.get_output_details()
        nothing = {"quantization": (0.0, 0), "scales": [], "zero_points": [], "quantized_dimension": 0}
        self.check(x, name="x", index=0, shape=[1, 4], shape_signature=[1, 4], dtype=np.float32, **nothing)
        self.check(z, name="z", index=4, shape=[1, 3], shape_signature=[1, 3], dtype=np.float32, **nothing)

    def test_types_of_values(self, lite):
        [x] = lite.Interpreter(model_content=models.quantized()).get_input_details()
        assert type(x["name"]) is str and type(x["index"]) is int
        assert type(x["shape"]) is np.ndarray and x["shape"].dtype == np.int32
        assert type(x["shape_signature"]) is np.ndarray and x["shape_signature"].dtype == np.int32
        assert x["dtype"] is np.int8
        scale, zero_point = x["quantization"]
        assert type(scale) is float and type(zero_point) is int
        parameters = x["quantization_parameters"]
        assert parameters["scales"].dtype == np.float32 and parameters["zero_points"].dtype == np.int32
        assert type(parameters["quantized_dimension"]) is int and type(parameters["block_size"]) is int
        assert x["sparsity_parameters"] == {}

    @pytest.mark.parametrize("dtype, zero", [("int8", 3), ("uint8", 131)])
    def test_quantized_per_tensor(self, lite, dtype, zero):
        interpreter = lite.Interpreter(model_content=models.quantized(dtype))
        [x], [y] = interpreter.get_input_details(), interpreter.get_output_details()
        dtype = np.dtype(dtype).type
        self.check(x, dtype=dtype, quantization=(0.5, zero), scales=[0.5], zero_points=[zero])
        self.check(y, dtype=dtype, quantization=(1.5, zero), scales=[1.5], zero_points=[zero])

    def test_quantized_per_channel(self, lite):
        interpreter = lite.Interpreter(model_content=models.quantized())
        weights = interpreter.get_tensor_details()[1]
        scales = {"scales": [0.1, 0.2, 0.3], "zero_points": [0, 0, 0], "quantized_dimension": 0}
        self.check(weights, name="w", dtype=np.int8, quantization=(0.0, 0), **scales)

    def test_scalar(self, lite):
        [x] = lite.Interpreter(model_content=models.unary(shape=())).get_input_details()
        self.check(x, shape=[], shape_signature=[])

    def test_dynamic(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense(dynamic=True))
        [x], [z] = interpreter.get_input_details(), interpreter.get_output_details()
        self.check(x, shape=[1, 4], shape_signature=[-1, 4])
        self.check(z, shape=[1, 3], shape_signature=[-1, 3])

    def test_strings(self, lite):
        interpreter = lite.Interpreter(model_content=models.gather_strings())
        strings, at = interpreter.get_input_details()
        assert strings["dtype"] is np.bytes_ and at["dtype"] is np.int64

    @pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int16", "int32", "int64", "bool"])
    def test_types(self, lite, dtype):
        [x] = lite.Interpreter(model_content=models.unary("RESHAPE", dtype)).get_input_details()
        assert x["dtype"] is np.dtype(dtype).type

    def test_all_tensors(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        details = interpreter.get_tensor_details()
        assert [it["name"] for it in details] == ["x", "w", "b", "y", "z"]
        assert [it["index"] for it in details] == list(range(5))
        assert [it["name"] for it in interpreter.get_tensor_details(0)] == ["x", "w", "b", "y", "z"]

    def test_other_subgraph(self, lite):
        interpreter = lite.Interpreter(model_content=models.two_signatures())
        assert interpreter.num_subgraphs() == 2
        assert [it["name"] for it in interpreter.get_tensor_details(1)] == ["sub_x", "sub_y", "sub_z"]

    @pytest.mark.parametrize("index", [-1, 1, 5])
    def test_no_such_subgraph(self, lite, index):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(ValueError, match="subgraph_index is out of range: "):
            interpreter.get_tensor_details(index)

    def test_details_are_copies(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.get_input_details()[0]["shape"][0] = 9
        assert interpreter.get_input_details()[0]["shape"][0] == 1

    def test_details_of_one_tensor(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        assert interpreter._get_tensor_details(1, 0)["name"] == "w"
        with pytest.raises(ValueError, match="Invalid tensor index 99 exceeds max tensor index"):
            interpreter._get_tensor_details(99, 0)

    def test_operators(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        dense, add = interpreter._get_ops_details()
        assert (dense["index"], dense["op_name"]) == (0, "FULLY_CONNECTED")
        np.testing.assert_array_equal(dense["inputs"], [0, 1, 2])
        np.testing.assert_array_equal(dense["outputs"], [3])
        assert dense["operand_types"] == [np.float32] * 3 and dense["result_types"] == [np.float32]
        assert add["op_name"] == "ADD"
        with pytest.raises(ValueError, match="Invalid node index"):
            interpreter._get_op_details(99)


class TestTensors:
    def test_run(self, lite):
        check_dense(allocated(lite, models.dense()))

    def test_run_again(self, lite):
        interpreter = allocated(lite, models.dense())
        for _ in range(3):
            check_dense(interpreter)

    def test_outputs_follow_inputs(self, lite):
        interpreter = allocated(lite, models.unary())
        x, y = ends(interpreter)
        for value in [-1, 2]:
            interpreter.set_tensor(x, np.full((2, 3), value, np.float32))
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(y), np.full((2, 3), max(value, 0)))

    def test_get_returns_what_was_set(self, lite):
        interpreter = allocated(lite, models.dense())
        x, _ = ends(interpreter)
        value = np.array([[1, 2, 3, 4]], np.float32)
        interpreter.set_tensor(x, value)
        np.testing.assert_array_equal(interpreter.get_tensor(x), value)

    def test_get_returns_a_copy(self, lite):
        interpreter = allocated(lite, models.dense())
        x, _ = ends(interpreter)
        interpreter.set_tensor(x, np.zeros((1, 4), np.float32))
        copy = interpreter.get_tensor(x)
        copy.fill(7)
        assert not interpreter.get_tensor(x).any()
        interpreter.invoke()

    def test_set_copies(self, lite):
        interpreter = allocated(lite, models.dense())
        x, _ = ends(interpreter)
        value = np.ones((1, 4), np.float32)
        interpreter.set_tensor(x, value)
        value.fill(9)
        assert (interpreter.get_tensor(x) == 1).all()

    @pytest.mark.parametrize("dtype", ["int8", "uint8"])
    def test_quantized(self, lite, dtype):
        interpreter = allocated(lite, models.quantized(dtype))
        x, y = ends(interpreter)
        zero = 3 if dtype == "int8" else 131
        interpreter.set_tensor(x, np.array([[1, 2, 3, 4]], dtype) + np.array(zero, dtype))
        interpreter.invoke()
        scales = [0.1, 0.2, 0.3] if dtype == "int8" else [0.1] * 3
        sums = np.array([10 + 1 - 4 + 9 - 16, 20 + 5 + 12 - 21 + 32, 30 - 9 + 20 + 33 + 48])
        expected = np.round(sums * scales * np.array(0.5) / 1.5) + zero
        result = interpreter.get_tensor(y)
        assert result.dtype == dtype
        np.testing.assert_allclose(result[0].astype(int), expected, atol=1)

    @pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool", "float32"])
    def test_types(self, lite, dtype):
        model = models.Model()
        graph = model.graph()
        x = graph.input("x", dtype, [2, 3])
        shape = graph.tensor("shape", "int32", [2], data=[3, 2])
        y = graph.output("y", dtype, [3, 2])
        graph.operator("RESHAPE", [x, shape], [y])
        interpreter = allocated(lite, model.build())
        value = np.array([[0, 1, 1], [1, 0, 1]], dtype)
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        result = interpreter.get_tensor(y)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, value.reshape(3, 2))

    def test_scalar(self, lite):
        interpreter = allocated(lite, models.unary(shape=()))
        x, y = ends(interpreter)
        interpreter.set_tensor(x, np.array(3, np.float32))
        interpreter.invoke()
        result = interpreter.get_tensor(y)
        assert type(result) is np.float32 and result == 3

    def test_scalar_of_python(self, lite):
        interpreter = allocated(lite, models.unary("NEG", "int64", shape=()))
        x, y = ends(interpreter)
        interpreter.set_tensor(x, 3)
        interpreter.invoke()
        assert interpreter.get_tensor(y) == -3

    def test_list(self, lite):
        interpreter = allocated(lite, models.unary("NEG", "int64", shape=(3,)))
        x, _ = ends(interpreter)
        interpreter.set_tensor(x, [1, 2, 3])
        np.testing.assert_array_equal(interpreter.get_tensor(x), [1, 2, 3])

    def test_array_that_is_not_dense(self, lite):
        interpreter = allocated(lite, models.unary())
        x, _ = ends(interpreter)
        whole = np.arange(12, dtype=np.float32).reshape(3, 4)
        for value in [np.asfortranarray(whole[:2, :3]), whole[:2, ::-1][:, :3], whole.T[:2, :3]]:
            interpreter.set_tensor(x, value)
            np.testing.assert_array_equal(interpreter.get_tensor(x), value)

    def test_constant(self, lite):
        interpreter = allocated(lite, models.dense())
        np.testing.assert_array_equal(interpreter.get_tensor(2), np.array([0.5, -0.5, 1], np.float32))
        assert interpreter.get_tensor(1).shape == (3, 4)

    def test_constant_without_allocation(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        np.testing.assert_array_equal(interpreter.get_tensor(2), np.array([0.5, -0.5, 1], np.float32))

    def test_index_of_numpy(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.set_tensor(np.int64(0), np.zeros((1, 4), np.float32))
        assert interpreter.get_tensor(np.int32(0)).shape == (1, 4)

    def test_index_that_is_not_an_integer(self, lite):
        interpreter = allocated(lite, models.dense())
        with pytest.raises(TypeError):
            interpreter.get_tensor(1.5)
        with pytest.raises(TypeError):
            interpreter.set_tensor("x", np.zeros((1, 4), np.float32))

    @pytest.mark.parametrize("index", [-1, 1000])
    def test_no_such_tensor(self, lite, index):
        interpreter = allocated(lite, models.dense())
        expected = f"Invalid tensor index {index} exceeds max tensor index"
        with pytest.raises(ValueError, match=expected):
            interpreter.get_tensor(index)
        with pytest.raises(ValueError, match=expected):
            interpreter.set_tensor(index, np.zeros(1, np.float32))
        with pytest.raises(ValueError, match=expected):
            interpreter.tensor(index)()

    def test_no_such_subgraph(self, lite):
        interpreter = allocated(lite, models.dense())
        with pytest.raises(ValueError, match="Invalid subgraph index 7 exceeds max subgraph index"):
            interpreter.get_tensor(0, 7)

    @pytest.mark.parametrize("dtype, name", [("float64", "FLOAT64"), ("int8", "INT8"), ("uint8", "UINT8"), ("int64", "INT64")])
    def test_other_type(self, lite, dtype, name):
        interpreter = allocated(lite, models.dense())
        expected = f"Cannot set tensor: Got value of type {name} but expected type FLOAT32 for input 0, name: x"
        with pytest.raises(ValueError, match=expected):
            interpreter.set_tensor(0, np.zeros((1, 4), dtype))

    def test_other_rank(self, lite):
        interpreter = allocated(lite, models.dense())
        with pytest.raises(ValueError, match=r"Cannot set tensor: Dimension mismatch. Got 1 but expected 2 for input 0\."):
            interpreter.set_tensor(0, np.zeros(4, np.float32))

    def test_other_dimension(self, lite):
        interpreter = allocated(lite, models.dense())
        expected = r"Cannot set tensor: Dimension mismatch. Got 5 but expected 4 for dimension 1 of input 0\."
        with pytest.raises(ValueError, match=expected):
            interpreter.set_tensor(0, np.zeros((1, 5), np.float32))

    def test_failed_set_changes_nothing(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.set_tensor(0, np.ones((1, 4), np.float32))
        with pytest.raises(ValueError):
            interpreter.set_tensor(0, np.zeros((1, 5), np.float32))
        assert (interpreter.get_tensor(0) == 1).all()
        interpreter.invoke()


class TestOrderOfCalls:
    def test_invoke_before_allocation(self, lite):
        with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
            lite.Interpreter(model_content=models.dense()).invoke()

    def test_set_before_allocation(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(ValueError, match="Cannot set tensor: Tensor is unallocated"):
            interpreter.set_tensor(0, np.zeros((1, 4), np.float32))

    @pytest.mark.parametrize("index", [0, 4])
    def test_get_before_allocation(self, lite, index):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(ValueError, match="Tensor data is null. Run allocate_tensors"):
            interpreter.get_tensor(index)
        with pytest.raises(ValueError, match="Tensor data is null. Run allocate_tensors"):
            interpreter.tensor(index)()

    def test_output_before_the_first_run_has_its_shape(self, lite):
        for content in [models.dense(), models.accumulator()]:
            interpreter = allocated(lite, content)
            _, y = ends(interpreter)
            assert interpreter.get_tensor(y).shape == tuple(interpreter.get_output_details()[0]["shape"])

    def test_allocation_twice(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.set_tensor(0, np.ones((1, 4), np.float32))
        interpreter.allocate_tensors()
        check_dense(interpreter)

    def test_reset_before_allocation(self, lite):
        lite.Interpreter(model_content=models.dense()).reset_all_variables()

    def test_variables_continue_and_are_reset(self, lite):
        interpreter = allocated(lite, models.accumulator())
        x, y = ends(interpreter)
        interpreter.set_tensor(x, np.array([[1, 2]], np.float32))
        results = []
        for _ in range(3):
            interpreter.invoke()
            results.append(interpreter.get_tensor(y)[0].tolist())
        assert results == [[1, 2], [2, 4], [3, 6]]
        interpreter.reset_all_variables()
        interpreter.invoke()
        assert interpreter.get_tensor(y)[0].tolist() == [1, 2]


class TestViews:
    @pytest.fixture
    def interpreter(self, lite):
        return allocated(lite, models.dense())

    def test_input(self, interpreter):
        x = interpreter.tensor(0)
        x()[:] = [[1, 2, 3, 4]]
        np.testing.assert_array_equal(interpreter.get_tensor(0), [[1, 2, 3, 4]])
        np.testing.assert_array_equal(x(), [[1, 2, 3, 4]])

    def test_output(self, interpreter):
        x, z = interpreter.tensor(0), interpreter.tensor(4)
        x().fill(2)
        interpreter.invoke()
        np.testing.assert_array_equal(z(), interpreter.get_tensor(4))
        assert z().any()

    def test_view_is_not_a_copy(self, interpreter):
        view = interpreter.tensor(0)()
        assert not view.flags.owndata and view.dtype == np.float32 and view.shape == (1, 4)
        view[0, 1] = 5
        assert interpreter.get_tensor(0)[0, 1] == 5

    def test_functions_are_safe(self, interpreter):
        assert interpreter._safe_to_run()
        x = interpreter.tensor(0)
        assert interpreter._safe_to_run()
        view = x()
        assert not interpreter._safe_to_run()
        del view
        assert interpreter._safe_to_run()

    @pytest.mark.parametrize("index", [0, 4])
    def test_views_are_protected(self, interpreter, index):
        view = interpreter.tensor(index)()
        for call in [
            interpreter.invoke,
            interpreter.allocate_tensors,
            lambda: interpreter.resize_tensor_input(0, [2, 4]),
        ]:
            with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
                call()
        assert view.shape[0] == 1
        del view
        interpreter.allocate_tensors()
        interpreter.invoke()

    def test_parts_of_views_are_protected(self, interpreter):
        part = interpreter.tensor(0)()[0, 1:]
        with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
            interpreter.invoke()
        del part
        interpreter.invoke()

    def test_tensors_may_be_set_and_read_while_they_are_viewed(self, interpreter):
        view = interpreter.tensor(0)()
        interpreter.set_tensor(0, np.full((1, 4), 3, np.float32))
        assert (view == 3).all() and (interpreter.get_tensor(0) == 3).all()

    def test_views_outlive_the_interpreter(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.set_tensor(0, np.full((1, 4), 3, np.float32))
        view = interpreter.tensor(0)()
        del interpreter
        if lite.__name__ == "xnn_delegate.interpreter":  # LiteRT frees the memory.
            assert (view == 3).all()

    def test_function_follows_a_resized_tensor(self, interpreter):
        x = interpreter.tensor(0)
        interpreter.resize_tensor_input(0, [3, 4])
        interpreter.allocate_tensors()
        assert x().shape == (3, 4)


class TestResize:
    def resized(self, lite, dynamic=True, rows=3, strict=False):
        interpreter = lite.Interpreter(model_content=models.dense(dynamic))
        interpreter.resize_tensor_input(0, [rows, 4], strict=strict)
        return interpreter

    @pytest.mark.parametrize("strict", [False, True])
    def test_before_allocation(self, lite, strict):
        interpreter = self.resized(lite, strict=strict)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.ones((3, 4), np.float32))
        interpreter.invoke()
        result = interpreter.get_tensor(4)
        assert result.shape == (3, 3) and (result == result[0]).all()

    def test_after_a_run(self, lite):
        interpreter = allocated(lite, models.dense(dynamic=True))
        check_dense(interpreter)
        for rows in [3, 1, 2]:
            interpreter.resize_tensor_input(0, [rows, 4])
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, np.ones((rows, 4), np.float32))
            interpreter.invoke()
            assert interpreter.get_tensor(4).shape == (rows, 3)

    def test_shapes_in_details(self, lite):
        interpreter = self.resized(lite)
        [x] = interpreter.get_input_details()
        np.testing.assert_array_equal(x["shape"], [3, 4])
        np.testing.assert_array_equal(x["shape_signature"], [-1, 4])
        interpreter.allocate_tensors()
        [z] = interpreter.get_output_details()
        np.testing.assert_array_equal(z["shape"], [3, 3])
        np.testing.assert_array_equal(z["shape_signature"], [-1, 3])

    def test_fixed_shape_may_change_unless_strict(self, lite):
        interpreter = self.resized(lite, dynamic=False)
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(interpreter.get_output_details()[0]["shape"], [3, 3])

    def test_strict(self, lite):
        interpreter = allocated(lite, models.dense(dynamic=False))
        expected = "ResizeInputTensorStrict only allows mutating unknown dimensions identified by -1"
        with pytest.raises(RuntimeError, match=expected):
            interpreter.resize_tensor_input(0, [3, 4], strict=True)
        check_dense(interpreter)

    def test_strict_fixed_dimension_beside_a_dynamic_one(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense(dynamic=True))
        with pytest.raises(RuntimeError, match="ResizeInputTensorStrict only allows"):
            interpreter.resize_tensor_input(0, [3, 5], strict=True)

    def test_strict_other_rank(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense(dynamic=True))
        with pytest.raises(RuntimeError):
            interpreter.resize_tensor_input(0, [3, 4, 1], strict=True)

    @pytest.mark.parametrize("strict", [False, True])
    def test_same_shape_needs_no_allocation(self, lite, strict):
        interpreter = allocated(lite, models.dense())
        interpreter.resize_tensor_input(0, [1, 4], strict=strict)
        check_dense(interpreter)

    def test_invoke_needs_allocation(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.resize_tensor_input(0, [2, 4])
        with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
            interpreter.invoke()
        with pytest.raises(ValueError, match="Tensor is unallocated"):
            interpreter.set_tensor(0, np.zeros((2, 4), np.float32))
        with pytest.raises(ValueError, match="Tensor data is null"):
            interpreter.get_tensor(0)
        interpreter.allocate_tensors()
        interpreter.invoke()

    @pytest.mark.parametrize("shape", [(3, 4), [3, 4], np.array([3, 4]), np.array([3, 4], np.int64), [3.0, 4.7]])
    def test_forms_of_shapes(self, lite, shape):
        interpreter = lite.Interpreter(model_content=models.dense(dynamic=True))
        interpreter.resize_tensor_input(0, shape)
        np.testing.assert_array_equal(interpreter.get_input_details()[0]["shape"], [3, 4])

    def test_shape_of_two_dimensions(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(ValueError, match="Shape should be 1D instead of 2"):
            interpreter.resize_tensor_input(0, [[1, 4]])

    def test_shape_that_is_text(self, lite):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(ValueError):
            interpreter.resize_tensor_input(0, "ab")

    @pytest.mark.parametrize("index", [-1, 1000])
    def test_no_such_tensor(self, lite, index):
        interpreter = lite.Interpreter(model_content=models.dense())
        with pytest.raises(RuntimeError):
            interpreter.resize_tensor_input(index, [1, 4])

    def test_negative_dimension(self, lite):
        interpreter = allocated(lite, models.dense(dynamic=True))
        with pytest.raises(RuntimeError):
            interpreter.resize_tensor_input(0, [-1, 4])

    def test_shape_that_the_model_cannot_compute(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.resize_tensor_input(0, [1, 5])
        with pytest.raises(RuntimeError):
            interpreter.allocate_tensors()
        with pytest.raises(RuntimeError):
            interpreter.invoke()
        interpreter.resize_tensor_input(0, [1, 4])
        interpreter.allocate_tensors()
        check_dense(interpreter)

    def test_shape_that_is_too_large(self, lite):
        interpreter = lite.Interpreter(model_content=models.unary())
        with pytest.raises(RuntimeError):
            interpreter.resize_tensor_input(0, [2**30, 2**30, 2**30])
            interpreter.allocate_tensors()

    def test_dimension_of_zero(self, lite):
        interpreter = allocated(lite, models.dense(dynamic=True))
        interpreter.resize_tensor_input(0, [0, 4])
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert interpreter.get_tensor(4).shape == (0, 3)

    def test_outputs_of_unknown_shape(self, lite):
        interpreter = allocated(lite, models.where())
        x, y = ends(interpreter)
        for mask, expected in [([1, 0, 0, 1], [[0, 0], [0, 3]]), ([0, 1, 1, 1], [[0, 1], [0, 2], [0, 3]])]:
            interpreter.set_tensor(x, np.array([mask], np.bool_))
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(y), expected)
            np.testing.assert_array_equal(interpreter.get_output_details()[0]["shape"], np.shape(expected))


class TestStrings:
    def chosen(self, interpreter, strings):
        interpreter.set_tensor(0, strings)
        interpreter.set_tensor(1, np.array([2, 0], np.int64))
        interpreter.invoke()
        return interpreter.get_tensor(2)

    @pytest.mark.parametrize(
        "strings, expected",
        [
            (np.array([b"one", b"two", b"three", b""]), [b"three", b"one"]),
            (np.array(["one", "two", "dré", "four"]), ["dré".encode(), b"one"]),
            (np.array([b"one\0", b"two", b"thr\0ee", b""], dtype=object), [b"thr\0ee", b"one\0"]),
            (np.array(["one", b"two", "three", ""], dtype=object), [b"three", b"one"]),
        ],
    )
    def test_run(self, lite, strings, expected):
        result = self.chosen(allocated(lite, models.gather_strings()), strings)
        assert result.dtype == object and result.shape == (2,)
        assert result.tolist() == expected

    def test_get_returns_what_was_set(self, lite):
        interpreter = allocated(lite, models.gather_strings())
        strings = np.array([b"one", b"two", b"three", b""])
        interpreter.set_tensor(0, strings)
        assert interpreter.get_tensor(0).tolist() == strings.tolist()

    def test_resized(self, lite):
        interpreter = lite.Interpreter(model_content=models.gather_strings())
        interpreter.resize_tensor_input(0, [3])
        interpreter.allocate_tensors()
        assert self.chosen(interpreter, np.array([b"a", b"b", b"c"])).tolist() == [b"c", b"a"]

    def test_zeros_at_the_end_of_a_scalar(self, lite):
        interpreter = allocated(lite, models.string_scalar())
        data = b"abcd" + bytes(16)
        interpreter.set_tensor(0, np.array(data))
        assert interpreter.get_tensor(0).item(0) == data
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == [data]

    def test_list(self, lite):
        interpreter = allocated(lite, models.gather_strings())
        with pytest.raises(ValueError, match="not a numpy array, got type list"):
            interpreter.set_tensor(0, ["a", "b", "c", "d"])

    def test_other_elements(self, lite):
        interpreter = allocated(lite, models.gather_strings())
        with pytest.raises(ValueError):
            interpreter.set_tensor(0, np.array([1, 2, 3, 4], dtype=object))
        with pytest.raises(ValueError, match="Got value of type INT64 but expected type STRING"):
            interpreter.set_tensor(0, np.array([1, 2, 3, 4]))

    def test_other_shape(self, lite):
        interpreter = allocated(lite, models.gather_strings())
        with pytest.raises(ValueError, match="Dimension mismatch. Got 2 but expected 4 for dimension 0"):
            interpreter.set_tensor(0, np.array([b"a", b"b"]))
        with pytest.raises(ValueError, match="Dimension mismatch. Got 2 but expected 1 for input 0"):
            interpreter.set_tensor(0, np.array([[b"a", b"b", b"c", b"d"]]))


class TestSignatures:
    @pytest.fixture
    def interpreter(self, lite):
        return lite.Interpreter(model_content=models.two_signatures())

    def test_list(self, interpreter):
        assert interpreter.get_signature_list() == {
            "add": {"inputs": ["x"], "outputs": ["output_0"]},
            "sub": {"inputs": ["x", "y"], "outputs": ["output_0"]},
        }

    def test_no_signatures(self, lite):
        interpreter = lite.Interpreter(model_content=models.unary())
        assert interpreter.get_signature_list() == {}
        with pytest.raises(ValueError, match="SignatureDef signature_key is None and model has 0 Signatures"):
            interpreter.get_signature_runner()

    def test_run(self, interpreter):
        add = interpreter.get_signature_runner("add")
        result = add(x=np.array([1, 2], np.float32))
        assert list(result) == ["output_0"]
        np.testing.assert_array_equal(result["output_0"], [3, 4])
        sub = interpreter.get_signature_runner("sub")
        result = sub(y=np.array([1, 1, 1], np.float32), x=np.array([1, 2, 3], np.float32))
        np.testing.assert_array_equal(result["output_0"], [0, 1, 2])
        np.testing.assert_array_equal(add(x=np.array([5], np.float32))["output_0"], [7])

    def test_results_are_copies(self, interpreter):
        add = interpreter.get_signature_runner("add")
        first = add(x=np.array([1, 2], np.float32))["output_0"]
        add(x=np.array([3, 4], np.float32))
        np.testing.assert_array_equal(first, [3, 4])

    def test_only_signature_needs_no_key(self, lite):
        run = lite.Interpreter(model_content=models.dense()).get_signature_runner()
        assert run(x=np.ones((1, 4), np.float32))["out"].shape == (1, 3)

    def test_several_signatures_need_a_key(self, interpreter):
        with pytest.raises(ValueError, match="SignatureDef signature_key is None and model has 2 Signatures"):
            interpreter.get_signature_runner()

    def test_unknown_key(self, interpreter):
        with pytest.raises(ValueError, match='Invalid signature_key provided: "nope"'):
            interpreter.get_signature_runner("nope")

    def test_scalar(self, interpreter):
        result = interpreter.get_signature_runner("add")(x=np.float32(3))
        assert type(result["output_0"]) is np.float32 and result["output_0"] == 5

    def test_number_of_inputs(self, interpreter):
        sub = interpreter.get_signature_runner("sub")
        expected = "Invalid number of inputs provided for running a SignatureDef, expected 2 vs provided 1"
        with pytest.raises(ValueError, match=expected):
            sub(x=np.zeros(1, np.float32))

    def test_unknown_input(self, interpreter):
        add = interpreter.get_signature_runner("add")
        with pytest.raises(ValueError, match=r"Invalid Input name \(z\) for SignatureDef"):
            add(z=np.zeros(1, np.float32))

    def test_positional_input(self, interpreter):
        with pytest.raises(TypeError):
            interpreter.get_signature_runner("add")(np.zeros(1, np.float32))

    def test_other_type(self, interpreter):
        add = interpreter.get_signature_runner("add")
        with pytest.raises(ValueError, match="Got value of type INT64 but expected type FLOAT32"):
            add(x=np.array([1, 2]))

    def test_details(self, interpreter):
        sub = interpreter.get_signature_runner("sub")
        inputs, outputs = sub.get_input_details(), sub.get_output_details()
        assert list(inputs) == ["x", "y"] and list(outputs) == ["output_0"]
        assert [it["name"] for it in inputs.values()] == ["sub_x", "sub_y"]
        assert outputs["output_0"]["index"] == 2
        np.testing.assert_array_equal(inputs["x"]["shape_signature"], [-1])

    def test_constructor(self, lite, interpreter):
        for arguments in [(), (interpreter,), (interpreter, "nope")]:
            with pytest.raises(ValueError):
                lite.SignatureRunner(*arguments)
        assert lite.SignatureRunner(interpreter, "add")(x=np.ones(1, np.float32))["output_0"] == [3]

    def test_signature_of_the_main_subgraph_shares_its_tensors(self, lite):
        interpreter = allocated(lite, models.dense())
        interpreter.get_signature_runner()(x=np.ones((1, 4), np.float32))
        assert (interpreter.get_tensor(0) == 1).all()


class TestPreservedTensors:
    @pytest.mark.filterwarnings("ignore:Warning. Enabling")
    def test_intermediate_values(self, lite):
        interpreter = allocated(lite, models.dense(), experimental_preserve_all_tensors=True)
        check_dense(interpreter)
        y, z = interpreter.get_tensor(3), interpreter.get_tensor(4)
        np.testing.assert_allclose(2 * y, z, rtol=1e-6)

    def test_intermediate_values_without_it(self, lite):
        interpreter = lite.Interpreter(model_path=str(FP32))
        interpreter.allocate_tensors()
        interpreter.invoke()
        # A value in the middle of a partition does not exist.
        middle = interpreter._get_op_details(5)["outputs"][0]
        with pytest.raises(ValueError, match="Tensor data is null"):
            interpreter.get_tensor(int(middle))


class TestThreads:
    def test_interpreters_run_at_the_same_time(self, lite):
        results = {}

        def work(number):
            interpreter = allocated(lite, models.dense())
            for _ in range(20):
                interpreter.set_tensor(0, np.full((1, 4), number, np.float32))
                interpreter.invoke()
            results[number] = interpreter.get_tensor(4)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        offset = results[0]
        slope = results[1] - offset
        for number in range(4):
            np.testing.assert_allclose(results[number], offset + number * slope, rtol=1e-5)


#: Real models with the largest deviation of their outputs, in steps of quantized integers or as a fraction of the range.
REAL = {
    "digits_mobilenet_v2_fp32": 1e-5,
    "digits_mobilenet_v2_int8": 1,
}

#: The same of models beside the repository.
OTHERS = {
    "anomaly_toycar_int8": 2,
    "face_full_range_sparse_fp16": 1e-4,
    "kws_dscnn_int8": 2,
    "micro_speech_int8": 2,
    "microwakeword_okay_nabu": 2,
    "mobilenet_v1_0.25_224_fp32": 1e-4,
    "mobilenet_v1_0.25_224_quant": 2,
    "resnet8_cifar_int8": 2,
}


class TestBoth:
    """Both implementations on the same model: details of all tensors, and results."""

    @pytest.fixture(params=[*REAL, *OTHERS])
    def pair(self, request):
        name = request.param
        path = FP32.with_name(f"{name}.tflite") if name in REAL else shared(f"{name}.tflite")
        both = [importlib.import_module(module).Interpreter(model_path=str(path)) for module in IMPLEMENTATIONS.values()]
        return (*both, REAL.get(name) or OTHERS[name])

    def compare(self, ours, theirs):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            assert list(mine) == list(other)
            for key in mine:
                assert same(mine[key], other[key]), (mine["name"], key, mine[key], other[key])

    def test_details(self, pair):
        litert, xnn, _ = pair
        self.compare(xnn.get_input_details(), litert.get_input_details())
        self.compare(xnn.get_output_details(), litert.get_output_details())
        self.compare(xnn.get_tensor_details(), litert.get_tensor_details())
        assert xnn.get_signature_list() == litert.get_signature_list()
        assert xnn.num_subgraphs() == litert.num_subgraphs()
        assert same(xnn._get_ops_details(), litert._get_ops_details())

    def test_results(self, pair):
        litert, xnn, tolerance = pair
        random = np.random.default_rng(1)
        values = {}
        for details in litert.get_input_details():
            dtype, shape = np.dtype(details["dtype"]), details["shape"]
            if dtype.kind == "f":
                values[details["index"]] = random.uniform(-1, 1, shape).astype(dtype)
            else:
                values[details["index"]] = random.integers(0, 100, shape).astype(dtype)
        outputs = []
        for interpreter in [litert, xnn]:
            interpreter.allocate_tensors()
            for index, value in values.items():
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            outputs.append([interpreter.get_tensor(it["index"]) for it in interpreter.get_output_details()])
        for expected, actual in zip(*outputs):
            assert expected.shape == actual.shape and expected.dtype == actual.dtype
            wide = expected.astype(np.float64)
            bound = tolerance if expected.dtype.kind in "iu" else tolerance * max(np.ptp(wide), 1e-6)
            assert np.abs(actual.astype(np.float64) - wide).max() <= bound


def same(mine, other) -> bool:
    """Whether values and their types are equal, arrays included."""
    if isinstance(other, np.ndarray):
        return isinstance(mine, np.ndarray) and mine.dtype == other.dtype and np.array_equal(mine, other)
    if isinstance(other, dict):
        return list(mine) == list(other) and all(same(mine[key], other[key]) for key in other)
    if isinstance(other, (list, tuple)):
        return type(mine) is type(other) and len(mine) == len(other) and all(map(same, mine, other))
    return mine == other and (isinstance(other, type) or type(mine) is type(other))
