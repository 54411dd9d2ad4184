"""Tests of the scripts beside this file: python -m unittest discover tools/python"""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from op_families import FAMILIES
from op_schemes import FLOAT32, INT8, asymmetric
from partitions import Count, count
from sweep_cases import SWEPT
from sweep_models import model as sweep_model
from tflite_build import CONSTANT_ALIGNMENT, INT4, Operator, Tensor, build, pack_nibbles

HERE = Path(__file__).resolve().parent


def add_constant(values):
    """A model that adds `values` to its input."""
    values = np.array(values, np.float32)
    tensors = [Tensor(FLOAT32, values.shape), Tensor(FLOAT32, values.shape, data=values), Tensor(FLOAT32, values.shape)]
    return build(tensors, [Operator("ADD", (0, 1), (2,), ("AddOptions", {}))], (0,), (2,))


def script(name, *arguments, **options):
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class Build(unittest.TestCase):
    def test_constants_are_aligned(self):
        model = add_constant([1.0, 2.0, 3.0])
        at = model.find(np.array([1.0, 2.0, 3.0], np.float32).tobytes())
        self.assertGreater(at, 0)
        self.assertEqual(at % CONSTANT_ALIGNMENT, 0)
        self.assertEqual(model[4:8], b"TFL3")

    def test_both_opcode_fields_are_written(self):
        model = schema.ModelT.InitFromPackedBuf(add_constant([1.0]), 0)
        self.assertEqual(model.operatorCodes[0].builtinCode, model.operatorCodes[0].deprecatedBuiltinCode)

    def test_unknown_option_is_an_error(self):
        with self.assertRaises(AttributeError):
            build([Tensor(FLOAT32, (1,))], [Operator("ADD", (0, 0), (0,), ("AddOptions", {"nonsense": 1}))], (0,), (0,))

    def test_nibbles_begin_with_the_lower_half(self):
        packed = pack_nibbles(np.array([1, -1, -8], INT4))
        self.assertEqual(packed.tolist(), [0xF1, 0x08])

    def test_asymmetric_parameters_hold_zero_exactly(self):
        for low, high, zero_point in ((0.0, 1.0, -128), (-1.0, 0.0, 127), (2.0, 4.0, -128), (-4.0, -2.0, 127)):
            self.assertEqual(asymmetric(low, high, INT8).zero_points, (zero_point,))


class BenchPeer(unittest.TestCase):
    """The protocol of the crate xnn-bench."""

    def test_sides_start_and_answer(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "add.tflite").write_bytes(add_constant([1.0, 2.0, 3.0]))
            np.save(folder / "in_0000.npy", np.array([10.0, 20.0, 30.0], np.float32))
            sides = ("--side", "a=default", "--side", "b=off", "--side", "c=no/such/library.so")
            model = ("--model", folder / "add.tflite", "--inputs", folder)
            requests = f"time a 1\ntime b 1\ninstances b 3\noutputs a {folder}\n"
            ran = script("bench_peer.py", *model, *sides, input=requests)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            opened, *times, memory, outputs = map(json.loads, ran.stdout.splitlines())
            started = opened["sides"]
            self.assertEqual((started["a"]["partitions"], started["b"]["partitions"]), (1, 0))
            self.assertGreater(started["a"]["load_ms"], 0)
            self.assertIn("error", started["c"])
            self.assertTrue(all(len(one["us"]) > 0 and min(one["us"]) > 0 and one["cpu_us"] > 0 for one in times))
            self.assertEqual(set(memory), {"steady", "peak"})
            self.assertEqual(outputs, 1)
            np.testing.assert_array_equal(np.fromfile(folder / "out_0.bin", np.float32), [11.0, 22.0, 33.0])

    def test_packages_are_imported_only_where_they_are_used(self):
        listed = "import sys, bench_runtimes; print(*sorted(sys.modules.keys() & {'torch', 'onnxruntime', 'ai_edge_litert'}))"
        ran = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True, cwd=HERE)
        self.assertEqual(ran.stdout.strip(), "")


class Golden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "add.tflite").write_bytes(add_constant([1.0, 2.0, 3.0]))

    def test_given_input_in_each_mode(self):
        np.save(self.folder / "given.npy", np.array([10.0, 20.0, 30.0], np.float32))
        for mode, partitions in (("ref", 0), ("noxnn", 0), ("xnn", 1)):
            out = self.folder / mode
            given = f"0={self.folder / 'given.npy'}"
            ran = script(
                "golden.py", "--model", self.folder / "add.tflite", "--mode", mode, "--input", given, "--out", out
            )
            self.assertEqual(ran.returncode, 0, ran.stderr)
            np.testing.assert_array_equal(np.load(out / "out_0.npy"), [11.0, 22.0, 33.0])
            self.assertEqual(json.loads((out / "meta.json").read_text())["partitions"], partitions)

    def test_batch_reports_each_job_and_goes_on(self):
        jobs = [
            {"model": str(self.folder / "absent.tflite"), "mode": "ref", "out": str(self.folder / "a")},
            {"model": str(self.folder / "add.tflite"), "mode": "ref", "out": str(self.folder / "b"), "seed": 5},
        ]
        ran = script("golden.py", "--batch", input=json.dumps(jobs))
        first, second = map(json.loads, ran.stdout.splitlines())
        self.assertEqual(ran.returncode, 1)
        self.assertIn("absent.tflite", first["error"])
        self.assertIsNone(second["error"])
        fed, result = (np.load(self.folder / "b" / name) for name in ("in_0.npy", "out_0.npy"))
        np.testing.assert_array_equal(result, fed + np.array([1.0, 2.0, 3.0], np.float32))


class Partitions(unittest.TestCase):
    def test_operators_are_counted_from_outputs_to_inputs(self):
        def op(name, inputs, outputs):
            return {"op_name": name, "inputs": inputs, "outputs": outputs}

        listed = [
            op("ADD", [0, 1], [2]),
            op("CUSTOM", [2], [3]),
            op("MUL", [3, 2], [4]),
            op("RELU", [4, -1], [5]),
            op("DELEGATE", [0, 1], [2]),
            op("DELEGATE", [3, 2], [5]),
        ]
        self.assertEqual(count(listed), Count(partitions=2, left=1))
        self.assertEqual(count(listed[:4]), Count(partitions=0, left=4))


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "add.tflite"
        self.model.write_bytes(add_constant([1.0, 2.0, 3.0]))
        ran = script("judge.py", "inputs", "--model", self.model, "--folder", self.folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_inputs_are_the_same_in_both_forms(self):
        self.assertEqual(json.loads((self.folder / "shapes.json").read_text()), [[3]])
        np.testing.assert_array_equal(
            np.fromfile(self.folder / "in_0.bin", np.float32), np.load(self.folder / "in_0000.npy")
        )

    def test_a_peer_answers_requests_and_a_judge_judges(self):
        good, bad = self.folder / "good", self.folder / "bad"
        good.mkdir()
        bad.mkdir()
        ran = script(
            "bench_peer.py", "--model", self.model, "--inputs", self.folder,
            "--side", "litert=default", "--side", "off=off", "--side", "library=/absent.so",
            input=f"time litert 1\ninstances off 3\noutputs off {good}\n",
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        opened, times, memory, outputs = map(json.loads, ran.stdout.splitlines())
        self.assertEqual(opened["sides"]["litert"]["partitions"], 1)
        self.assertEqual(opened["sides"]["off"]["partitions"], 0)
        self.assertIn("absent.so", opened["sides"]["library"]["error"])
        self.assertTrue(times["us"] and all(time > 0 for time in times["us"]) and times["cpu_us"] > 0)
        self.assertEqual(set(memory), {"steady", "peak"})
        self.assertEqual(outputs, 1)

        np.array([1.0, 2.0, 3.5], np.float32).tofile(bad / "out_0.bin")
        arguments = ("--folder", self.folder, "--outputs", good, bad, self.folder / "absent")
        ran = script("judge.py", "distances", "--model", self.model, *arguments)
        none, far, absent = json.loads(ran.stdout)
        self.assertEqual(none, [None, 0.0])
        self.assertGreater(far[1], 0.0)
        self.assertEqual(absent, "shape")


class OpCases(unittest.TestCase):
    def test_same_seed_gives_the_same_files(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for folder in (one, two):
                ran = script("opcases.py", "--count", 8, "--seed", 3, "--only", "ADD,FULLY_CONNECTED", "--out", folder)
                self.assertEqual(ran.returncode, 0, ran.stderr)
            first, second = (
                {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*.*")}
                for folder in (one, two)
            )
            self.assertEqual(first, second)
            index = json.loads(first[Path("index.json")])
            self.assertEqual(len(index["cases"]), 8)
            self.assertEqual({case["scheme"] for case in index["cases"]}, {"fp32", "int8", "uint8", "dynamic"})


class Sweep(unittest.TestCase):
    def test_every_delegated_operator_is_swept(self):
        self.assertEqual(set(SWEPT), set(FAMILIES))

    def test_every_operator_and_type_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = script("sweep_models.py", "--quick", "--out", folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            index = json.loads((Path(folder) / "index.json").read_text())
            self.assertEqual({model["operator"] for model in index}, set(SWEPT))
            self.assertEqual(len(index), sum(len(swept.types) for swept in SWEPT.values()))
            names = [model["name"] for model in index]
            first, last = names[0], names[-1]
            paths = [Path(folder) / f"{name}.tflite" for name in names]
            ran = script("sweep_peer.py", 1, *paths, input=f"time {first} 1\ntime {last} 1\ntime {first} 1\n")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            opened, *times = map(json.loads, ran.stdout.splitlines())
            self.assertEqual({name for name, state in opened["sides"].items() if "error" in state}, set())
            self.assertEqual(set(opened["sides"]), set(names))
            self.assertTrue(len(times) == 3 and all(len(one["us"]) > 0 and min(one["us"]) > 0 for one in times))

    def test_models_have_their_types(self):
        def types(operator, kind):
            case = next(iter(SWEPT[operator].cases))
            graph = schema.ModelT.InitFromPackedBuf(sweep_model(operator, kind, case), 0).subgraphs[0]
            return len(graph.operators), [graph.tensors[i].type for i in (*graph.inputs, *graph.outputs)]

        kinds = schema.TensorType
        self.assertEqual(types("CONV_2D", "fp16"), (3, [kinds.FLOAT32, kinds.FLOAT32]))
        self.assertEqual(types("CONV_2D", "dynamic"), (1, [kinds.FLOAT32, kinds.FLOAT32]))
        self.assertEqual(types("FULLY_CONNECTED", "int4"), (1, [kinds.FLOAT32, kinds.FLOAT32]))
        self.assertEqual(types("CONV_2D", "uint8"), (1, [kinds.UINT8, kinds.UINT8]))
        self.assertEqual(types("LOG", "fp32"), (2, [kinds.FLOAT32, kinds.FLOAT32]))
        self.assertEqual(types("LOG", "int8"), (1, [kinds.INT8, kinds.INT8]))
        self.assertEqual(types("QUANTIZE", "fp32_to_uint8"), (1, [kinds.FLOAT32, kinds.UINT8]))

    def test_unknown_operators_are_refused(self):
        ran = script("sweep_models.py", "--operators", "ADD,ADDITION", "--out", "/nowhere")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("ADDITION is none of", ran.stderr)


if __name__ == "__main__":
    unittest.main()
