"""The side of a method behind walls (`fitting.sandboxed`): answers one question after the other until nobody asks.

Started as `python -m fieldmark.fitting.sandboxed_job FOLDER`. Requests come by standard input, each pickled behind its
length; each is replied to by a line of JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fieldmark.errors import FieldmarkError, MisuseError
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.sandboxed import ANSWERS, ARRAYS, LENGTH_BYTES, described
from fieldmark.methods import METHODS
from fieldmark.methods.base import Arrays, Fitted, Method
from fieldmark.models.array_file import save_arrays
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part, View


def describe(folder: Path, *, name: str, settings: Mapping[str, Any], seed: int, root: str) -> dict[str, Any]:
    """What a method declares with some settings, before it is shown anything."""
    if root and Path(root).exists():
        raise MisuseError(f"--walled: the walls show {root}, as it lies where Python is: move it elsewhere.")
    configured = configured_method(name, settings, seed)
    return {
        "options": configured.method.options,
        "about": described(configured.method),
        "features": configured.features,
        "of_inputs": configured.of_inputs,
        "given": configured.given,
    }


def fit(folder: Path, *, name: str, settings: Mapping[str, Any], view: View) -> dict[str, Any]:
    """What a method learns."""
    method = _method(name, settings)
    method.check(view)
    return _learned(folder, method.fit(view))


def fit_again(folder: Path, *, name: str, settings: Mapping[str, Any], arrays: Arrays, view: View) -> dict[str, Any]:
    """What it learns once more."""
    return _learned(folder, _method(name, settings).fit_again(arrays, view))


def answer(
    folder: Path, *, name: str, settings: Mapping[str, Any], arrays: Arrays, part: Part, labels: Labels
) -> dict[str, Any]:
    """What it answers."""
    _method(name, settings).answer(arrays, part, labels).write(folder / ANSWERS)
    return {}


ASKED: dict[str, Callable[..., dict[str, Any]]] = {
    "describe": describe,
    "fit": fit,
    "fit_again": fit_again,
    "answer": answer,
}


def _method(name: str, settings: Mapping[str, Any]) -> Method:
    method: Method = METHODS[name](**settings)
    return method


def _learned(folder: Path, fitted: Fitted) -> dict[str, Any]:
    save_arrays(fitted.arrays, folder / ARRAYS)
    about = described(fitted.method)
    return {"options": fitted.method.options, "about": about, "remarks": list(fitted.remarks)}


def _reply(folder: Path, request: bytes) -> dict[str, Any]:
    what, given = pickle.loads(request)
    try:
        return ASKED[what](folder, **given)
    except FieldmarkError as error:
        return {"refused": str(error), "misuse": isinstance(error, MisuseError)}
    except Exception:  # whatever a method may do wrong
        return {"failed": traceback.format_exc()}


def main(folder: Path) -> None:
    """Answers until the other side closes."""
    # What a method prints goes to its log, and not into the channel of replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while length := sys.stdin.buffer.read(LENGTH_BYTES):
        reply = _reply(folder, sys.stdin.buffer.read(int.from_bytes(length, "big")))
        replies.write(json.dumps(reply).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
