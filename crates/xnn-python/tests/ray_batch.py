"""The example with Ray Data, on two local workers. pytest collects this file by its name alone: `cargo xtask wheel --test --all`."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

COPIES = 4


def test_a_folder_of_images_is_classified(int8: Path, tmp_path: Path) -> None:
    images, output = tmp_path / "images", tmp_path / "results"
    images.mkdir()
    for sample in (ROOT / "models" / "samples").glob("*.png"):
        for copy in range(COPIES):
            shutil.copy(sample, images / f"{copy}_{sample.name}")
    script = ROOT / "examples" / "python" / "ray_batch.py"
    packed = ["--packed", str(tmp_path / "packed.xnn"), "--workers", "2", "--batch", "8"]
    command = [sys.executable, "-P", str(script), str(int8), str(images), "--output", str(output), *packed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    rows = [row for file in output.glob("*.csv") for row in csv.DictReader(file.open())]
    assert sorted(row["path"] for row in rows) == sorted(str(image) for image in images.iterdir())
    # Names are COPY_NUMBER_digit_CLASS.png.
    assert all(row["class"] == Path(row["path"]).stem[-1] for row in rows), rows
    assert f"{len(rows)} images" in done.stdout
