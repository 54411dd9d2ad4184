"""Train, convert and check the demo model: MobileNetV2 on scikit-learn's handwritten digits.

Run from anywhere, in an environment made from requirements.txt:

    python models/train.py

It writes the two .tflite files, labels.txt, metrics.json and samples/ beside itself. The digits come with
scikit-learn, the weights start random, so nothing is downloaded. README.md says what the files are.
"""

import hashlib
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED = 20240
SIDE = 48
ALPHA = 0.35
EPOCHS = 100
BATCH = 32
PEAK_LEARNING_RATE = 2e-3
TEST_FRACTION = 0.2
CALIBRATION_IMAGES = 300
SAMPLES = 12
MIN_ACCURACY = 0.97
MAX_BYTES = 2_000_000
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
PACKAGES = ["tensorflow-cpu", "keras", "scikit-learn", "numpy", "ai-edge-litert"]


def main():
    started = time.monotonic()
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()

    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.images.astype(np.float32) / 16.0,
        digits.target,
        test_size=TEST_FRACTION,
        stratify=digits.target,
        random_state=SEED,
    )
    test_pixels = to_pixels(warp(test_x, identity_transforms(len(test_x))))

    network = train(train_x, train_y)

    train_pixels = to_pixels(warp(train_x, identity_transforms(len(train_x))))
    models = {
        "digits_mobilenet_v2_fp32.tflite": convert_fp32(network),
        "digits_mobilenet_v2_int8.tflite": convert_int8(network, train_pixels[:CALIBRATION_IMAGES]),
    }

    metrics = {
        "seed": SEED,
        "train_images": len(train_x),
        "test_images": len(test_x),
        "epochs": EPOCHS,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "models": {},
    }
    for name, data in models.items():
        accuracy = float(np.mean(classify(data, test_pixels) == test_y))
        print(f"{name}: {len(data)} bytes, test accuracy {accuracy:.4f}")
        if accuracy < MIN_ACCURACY or len(data) >= MAX_BYTES:
            raise SystemExit(
                f"{name} misses its target (accuracy {MIN_ACCURACY}, size {MAX_BYTES} bytes); nothing written"
            )
        metrics["models"][name] = {
            "test_accuracy": round(accuracy, 4),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }

    for name, data in models.items():
        (HERE / name).write_bytes(data)
    (HERE / "labels.txt").write_text("\n".join(LABELS) + "\n")
    (HERE / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    write_samples(test_pixels, test_y)
    print(f"done in {time.monotonic() - started:.0f} s")


def train(images, labels):
    """Return the trained network; the schedule ends at learning rate 0, so the last epoch is the one to keep."""
    network = build_network()
    steps = EPOCHS * -(-len(images) // BATCH)
    warmup = steps // 20
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, warmup_target=PEAK_LEARNING_RATE, warmup_steps=warmup
    )
    network.compile(
        optimizer=keras.optimizers.AdamW(schedule, weight_decay=1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    network.fit(AugmentedDigits(images, labels), epochs=EPOCHS, shuffle=False, verbose=2)
    return network


def build_network():
    network = keras.applications.MobileNetV2(
        input_shape=(SIDE, SIDE, 3), alpha=ALPHA, weights=None, classes=len(LABELS)
    )
    for layer in network.layers:
        # The default 0.999 averages over more steps than this short training has.
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = 0.95
    return network


class AugmentedDigits(keras.utils.PyDataset):
    """Shuffled batches, each digit shifted, rotated, scaled, sheared and dimmed at random."""

    def __init__(self, images, labels):
        super().__init__()
        self.images = images
        self.labels = labels
        self.rng = np.random.default_rng(SEED)
        self.order = self.rng.permutation(len(images))

    def __len__(self):
        return -(-len(self.images) // BATCH)

    def __getitem__(self, index):
        chosen = self.order[index * BATCH : (index + 1) * BATCH]
        warped = warp(self.images[chosen], random_transforms(self.rng, len(chosen)))
        gain = self.rng.uniform(0.7, 1.0, (len(chosen), 1, 1)).astype(np.float32)
        return to_real(to_pixels(warped * gain)), self.labels[chosen]

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.images))


def identity_transforms(count):
    """One 2x3 matrix per image; see `warp`."""
    return np.tile(np.eye(2, 3, dtype=np.float32), (count, 1, 1))


def random_transforms(rng, count):
    angle = np.deg2rad(rng.uniform(-12.0, 12.0, count))
    scale = rng.uniform(0.85, 1.15, (2, count))
    shear = rng.uniform(-0.1, 0.1, count)
    shift = rng.uniform(-0.6, 0.6, (2, count))
    cos, sin = np.cos(angle), np.sin(angle)
    rows = [
        [scale[0] * cos, scale[0] * (shear * cos - sin), shift[0]],
        [scale[1] * sin, scale[1] * (shear * sin + cos), shift[1]],
    ]
    return np.array(rows, dtype=np.float32).transpose(2, 0, 1)


def warp(images, transforms):
    """Resample [n, 8, 8] images in [0, 1] to [n, SIDE, SIDE], bilinearly, black outside.

    Each 2x3 transform maps an output position to a source position. Both are measured in source pixels from the
    image's centre, with pixel centres at half-integers, so the identity is a plain half-pixel upscale.
    """
    count, source_side, _ = images.shape
    half = source_side / 2.0
    axis = (np.arange(SIDE, dtype=np.float32) + 0.5) * (source_side / SIDE) - half
    grid = np.stack([*np.meshgrid(axis, axis), np.ones((SIDE, SIDE), np.float32)])
    source = np.einsum("nij,jyx->niyx", transforms, grid) + (half - 0.5)

    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    position = np.clip(source + 1.0, 0.0, source_side + 0.999)
    low = position.astype(np.int32)
    x, y = low[:, 0], low[:, 1]
    fx, fy = np.moveaxis(position - low, 1, 0)
    n = np.arange(count)[:, None, None]
    top = padded[n, y, x] * (1 - fx) + padded[n, y, x + 1] * fx
    bottom = padded[n, y + 1, x] * (1 - fx) + padded[n, y + 1, x + 1] * fx
    return top * (1 - fy) + bottom * fy


def to_pixels(grey):
    """[n, h, w] in [0, 1] to RGB bytes [n, h, w, 3]: what a decoded image file holds."""
    return np.repeat(np.rint(grey * 255.0).astype(np.uint8)[..., None], 3, axis=-1)


def to_real(pixels):
    """Bytes to the network's real input range, [-1, 1]."""
    return pixels.astype(np.float32) / 127.5 - 1.0


def converter_for(network):
    """A converter of the network at batch 1."""
    image = keras.Input(batch_shape=(1, SIDE, SIDE, 3), name="image")
    return tf.lite.TFLiteConverter.from_keras_model(keras.Model(image, network(image)))


def convert_fp32(network):
    return converter_for(network).convert()


def convert_int8(network, calibration_pixels):
    converter = converter_for(network)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[None]] for image in to_real(calibration_pixels))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return converter.convert()


def classify(model, pixels):
    """The class that the LiteRT interpreter gives each image."""
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    (source,) = interpreter.get_input_details()
    (result,) = interpreter.get_output_details()
    classes = []
    for image in to_real(pixels):
        interpreter.set_tensor(source["index"], quantize(image[None], source))
        interpreter.invoke()
        classes.append(int(np.argmax(interpreter.get_tensor(result["index"]))))
    return np.array(classes)


def quantize(real, detail):
    if detail["dtype"] == np.float32:
        return real
    scale, zero_point = detail["quantization"]
    limits = np.iinfo(detail["dtype"])
    return np.clip(np.rint(real / scale) + zero_point, limits.min, limits.max).astype(detail["dtype"])


def write_samples(pixels, labels):
    """Write the first held-out image of each class, then the next held-out ones, chosen before any is classified."""
    folder = HERE / "samples"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    firsts = [int(np.flatnonzero(labels == digit)[0]) for digit in range(len(LABELS))]
    others = [index for index in range(len(labels)) if index not in firsts]
    for number, index in enumerate((firsts + others)[:SAMPLES]):
        Image.fromarray(pixels[index]).save(folder / f"{number:02}_digit_{labels[index]}.png", optimize=True)


if __name__ == "__main__":
    main()
