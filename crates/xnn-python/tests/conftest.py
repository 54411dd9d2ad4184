"""Fixtures: models of the repository, and those beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Models of the repository.
FP32 = ROOT / "models" / "digits_mobilenet_v2_fp32.tflite"
INT8 = ROOT / "models" / "digits_mobilenet_v2_int8.tflite"

#: Test data that is not part of the repository.
SHARED = Path(os.environ.get("XNN_SHARED", ROOT.parent / "shared"))


def shared(name: str) -> Path:
    """A model beside the repository. Without it the test is skipped, which CI does not accept."""
    path = SHARED / "models" / name
    if not path.is_file():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{path} is missing, and CI skips no test")
        pytest.skip(f"{path} is missing")
    return path


@pytest.fixture
def fp32() -> Path:
    return FP32


@pytest.fixture
def int8() -> Path:
    return INT8
