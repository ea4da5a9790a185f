"""Fingerprints of objects that people hand over: networks, preprocessing, encoders.

Features are stored under the fingerprint of what made them, so that it must change whenever they would. That can be
told of objects whose code all belongs to published libraries: their classes, their settings and the content of every
tensor are in the fingerprint, and the versions of the libraries. Code of one's own may change without a trace, so that
an object with any of it has no fingerprint.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

LIBRARIES = frozenset(
    {"builtins", "collections", "copyreg", "functools", "math", "numpy", "open_clip", "operator", "PIL", "sklearn"}
    | {"scipy", "timm", "torch", "torchvision", "transformers"}
)
DIGEST_BYTES = 16


def fingerprint(*objects: Any) -> str | None:
    """A fingerprint of the content of objects; None where some of their code is not that of `LIBRARIES`."""
    content = _Content()
    try:
        for one in objects:
            _ContentPickler(content).dump(one)
    except Exception:  # objects refuse to be pickled in as many ways as there are objects
        return None
    roots = {module.partition(".")[0] for module in content.modules}
    if not roots <= LIBRARIES:
        return None
    versions = sorted((root, str(getattr(sys.modules.get(root), "__version__", ""))) for root in roots)
    content.write(repr(versions).encode())
    return content.hasher.hexdigest()


def code_of(*objects: Any) -> set[str] | None:
    """The packages whose code objects consist of; None where that cannot be told."""
    content = _Content()
    try:
        for one in objects:
            _ContentPickler(content).dump(one)
    except Exception:
        return None
    return {module.partition(".")[0] for module in content.modules}


class _Content:
    """What is pickled, as far as a fingerprint goes: a digest of its bytes, and the modules that it names."""

    def __init__(self) -> None:
        self.hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self.modules: set[str] = set()

    def write(self, data: Any) -> int:
        self.hasher.update(data)
        return len(data)


class _ContentPickler(pickle.Pickler):
    """Pickles objects so that equal ones give equal bytes: tensors by their values, sets in order."""

    def __init__(self, content: _Content) -> None:
        super().__init__(content, protocol=4)
        self._content = content

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.dtype != object:
            return _array("array", obj)
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(obj, torch.Tensor):
            plain = obj.detach().cpu().contiguous()
            return _array(f"tensor {plain.dtype}", plain.reshape(-1).view(torch.uint8).numpy(), tuple(plain.shape))
        if type(obj) in (set, frozenset) and len(obj) > 1:
            return (type(obj).__name__, sorted(map(repr, obj)))
        return None

    def reducer_override(self, obj: Any) -> Any:
        code = (type, FunctionType, BuiltinFunctionType)
        self._content.modules.add(str((obj if isinstance(obj, code) else type(obj)).__module__))
        return NotImplemented


def _array(kind: str, array: np.ndarray[Any, Any], shape: tuple[int, ...] | None = None) -> tuple[Any, ...]:
    values = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=DIGEST_BYTES).hexdigest()
    return (kind, str(array.dtype), shape or array.shape, values)
