"""Checkpoints: a training that was killed goes on where the last one was written.

```
SCRATCH/last.pt          weights, averaged weights, optimizer, schedule, and how far the training has come
        best.safetensors the weights of the best epoch so far
        log.jsonl        see `logs`
```

A place is a folder, or an address that fsspec knows (`s3://bucket/folder`). Whatever is written appears when it is
complete.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage.addresses import file_system, missing, patiently
from fieldmark.storage.files import appearing_file

LAST, BEST = "last.pt", "best.safetensors"
# File systems in which a file appears when all of it was sent; elsewhere it is renamed then.
_WHOLE_FILES = {"s3", "s3a", "gs", "gcs", "abfs", "az"}
# The end of the name of a folder for checkpoints (see `fitting.harness`).
TRAINING = ".training"

Place = Path | str


def place_of(scratch: Path, address: str = "") -> Place:
    """Where the checkpoints of a training lie: in its folder, or in a folder of that name at an address.

    >>> place_of(Path("runs/birds.training/refit"), "s3://bucket/trainings")
    's3://bucket/trainings/birds.training/refit'
    """
    if not address:
        return scratch
    parts = scratch.parts
    first = next((place for place, part in enumerate(parts) if part.endswith(TRAINING)), len(parts) - 1)
    return "/".join([address.rstrip("/"), *parts[first:]])


def save_last(place: Place, state: dict[str, Any]) -> None:
    """Writes the state of a training; the one before stays until this one is complete."""
    with _appearing(place, LAST) as file:
        torch.save(state, file)


def load_last(place: Place, fingerprint: dict[str, Any]) -> dict[str, Any] | None:
    """The state to go on from, or None for a training that starts over.

    Raises:
        MisuseError: When the folder holds a training with other settings or other examples.
        InputError: When its checkpoint cannot be read.
    """
    with _fetched(place, LAST) as file:
        if file is None:
            return None
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
            before = state["fingerprint"]
        except (OSError, RuntimeError, EOFError, KeyError, TypeError, UnpicklingError) as error:
            where, hint = f"{place}/{LAST}", f"Remove {place} to start over."
            raise InputError(where, found="a damaged checkpoint", expected="one of this training", hint=hint) from error
    if before != fingerprint:
        raise MisuseError(
            f"{place} holds an unfinished training: {'; '.join(_changes(before, fingerprint))}. "
            f"Repeat that command to finish it, or remove {place} to start over."
        )
    return state


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What each setting was and is, as a person reads it; labels are kept only as a checksum."""
    changed = []
    for key in dict.fromkeys((*now, *before)):
        if key not in now or key not in before:
            changed.append(f"it {'knew' if key in before else 'did not know'} the setting {key}")
        elif now[key] != before[key]:
            labels = key.endswith(" labels")
            changed.append(f"its {key} were others" if labels else f"{key} was {before[key]} and is now {now[key]}")
    return changed


def save_best(place: Place, weights: dict[str, Any]) -> None:
    """Writes the weights of the best epoch so far."""
    with _appearing(place, BEST) as file:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, file)


def load_best(place: Place) -> dict[str, Any]:
    """The weights of the best epoch."""
    with _fetched(place, BEST) as file:
        if file is None:
            hint = f"Remove {place} to start over."
            raise InputError(f"{place}/{BEST}", found="no such file", expected="the best weights so far", hint=hint)
        return dict(load_file(file))


def check_place(place: Place, name: str) -> None:
    """Writes an empty file to an address, so that one that cannot be written is known before hours of work."""
    if isinstance(place, str):
        with _appearing(place, name) as file:
            file.touch()


def send(place: Place, file: Path) -> None:
    """Copies a file to an address, where the place is one."""
    if isinstance(place, str) and file.exists():
        with _appearing(place, file.name) as copy:
            shutil.copyfile(file, copy)


def fetch(place: Place, file: Path) -> None:
    """Copies a file from an address, where the place is one and has it."""
    if isinstance(place, str):
        with _fetched(place, file.name) as copy:
            if copy is not None:
                shutil.copyfile(copy, file)


@contextmanager
def _appearing(place: Place, name: str) -> Iterator[Path]:
    """A path to write to; what was written lies at the place under its name when it is complete."""
    if isinstance(place, Path):
        with appearing_file(place / name) as partial:
            yield partial
        return
    system, folder = file_system(place)
    with tempfile.TemporaryDirectory(prefix="fieldmark-") as temporary:
        yield Path(temporary, name)
        try:
            patiently(system, place, lambda: _put(system, Path(temporary, name), f"{folder}/{name}"))
        except FileNotFoundError as error:
            raise missing(place, "a place where checkpoints can be written") from error


def _put(system: Any, file: Path, path: str) -> None:
    protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    if protocols & _WHOLE_FILES:
        system.put_file(str(file), path)
    else:
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        system.put_file(str(file), f"{path}.partial")
        system.mv(f"{path}.partial", path)


@contextmanager
def _fetched(place: Place, name: str) -> Iterator[Path | None]:
    """A file of a place as a local path; None where there is no such file."""
    if isinstance(place, Path):
        yield place / name if (place / name).exists() else None
        return
    system, folder = file_system(place)
    with tempfile.TemporaryDirectory(prefix="fieldmark-") as temporary:
        copy: Path | None = Path(temporary, name)
        try:
            patiently(system, place, lambda: system.get_file(f"{folder}/{name}", str(copy)))
        except FileNotFoundError:
            copy = None
        yield copy
