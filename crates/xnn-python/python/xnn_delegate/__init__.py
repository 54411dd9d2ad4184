"""Runs TFLite and Circle models, and ``.xnn`` files, on CPUs with XNNPACK.

=====================  ============================================================================
:class:`Session`       runs a model: dictionaries of numpy arrays in and out
:class:`Interpreter`   has the interface of ``ai_edge_litert.interpreter.Interpreter``
:func:`delegate`       loads the delegate for ``ai_edge_litert`` or ``tflite_runtime``
:func:`convert`        writes an ``.xnn`` file, or a model that holds such files
:func:`explain`        tells which operators run on XNNPACK, and why others do not
:func:`verify`         compares XNNPACK with the reference kernels, operator by operator
:func:`metadata`       reads the documentation of a model: labels, normalization, descriptions
=====================  ============================================================================

The module :mod:`xnn_delegate.interpreter` has the names of ``ai_edge_litert.interpreter``.
"""

from ._native import XNNPACK_REVISION, __version__
from .delegates import delegate, delegate_path
from .interpreter import Interpreter, OpResolverType, SignatureRunner
from .session import Coverage, Session, TensorInfo
from .tools import (
    Deviation,
    Explanation,
    Metadata,
    Operator,
    Partition,
    Reason,
    Skipped,
    Tensor,
    Verification,
    convert,
    explain,
    metadata,
    verify,
)

__all__ = [
    "XNNPACK_REVISION",
    "Coverage",
    "Deviation",
    "Explanation",
    "Interpreter",
    "Metadata",
    "OpResolverType",
    "Operator",
    "Partition",
    "Reason",
    "Session",
    "SignatureRunner",
    "Skipped",
    "Tensor",
    "TensorInfo",
    "Verification",
    "__version__",
    "convert",
    "delegate",
    "delegate_path",
    "explain",
    "metadata",
    "verify",
]
