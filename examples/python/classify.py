"""Classifies an image: python classify.py MODEL IMAGE"""

import sys

import numpy as np
from PIL import Image

import xnn_delegate

model, photo = sys.argv[1:]
session = xnn_delegate.Session(model, num_threads=2)
_, height, width, channels = session.inputs[0].shape
image = Image.open(photo).convert("L" if channels == 1 else "RGB").resize((width, height))
pixels = np.asarray(image, np.float32).reshape(session.inputs[0].shape) / 127.5 - 1
scale, zero_point = session.inputs[0].quantization or (1, 0)
if session.inputs[0].dtype != np.float32:
    pixels = np.round(pixels / scale + zero_point)
[scores] = session.run(pixels.astype(session.inputs[0].dtype)).values()
described = xnn_delegate.metadata(model)
labels = described.labels() if described else []
for index in np.argsort(scores[0])[:-4:-1]:
    print(scores[0, index], labels[index] if labels else f"class {index}")
