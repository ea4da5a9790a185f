"""Checkpoints: a training that was killed goes on where the last one was written.

```
SCRATCH/last.pt          weights, averaged weights, optimizer, schedule, and how far the training has come
        best.safetensors the weights of the best epoch so far
        log.jsonl        see `logs`
```
"""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from fieldmark.errors import InputError, MisuseError
from fieldmark.foundation.files import appearing_file

LAST, BEST = "last.pt", "best.safetensors"


def save_last(scratch: Path, state: dict[str, Any]) -> None:
    """Writes the state of a training; the one before stays until this one is complete."""
    with appearing_file(scratch / LAST) as partial:
        torch.save(state, partial)


def load_last(scratch: Path, fingerprint: dict[str, Any]) -> dict[str, Any] | None:
    """The state to go on from, or None for a training that starts over.

    Raises:
        MisuseError: When the folder holds a training with other settings or other examples.
        InputError: When its checkpoint cannot be read.
    """
    file = scratch / LAST
    if not file.exists():
        return None
    try:
        state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        before = state["fingerprint"]
    except (OSError, RuntimeError, EOFError, KeyError, TypeError, UnpicklingError) as error:
        hint = f"Remove {scratch} to start over."
        raise InputError(file, found="a damaged checkpoint", expected="one of this training", hint=hint) from error
    if before != fingerprint:
        raise MisuseError(
            f"{scratch} holds an unfinished training: {'; '.join(_changes(before, fingerprint))}. "
            f"Repeat that command to finish it, or remove {scratch} to start over."
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


def save_best(scratch: Path, weights: dict[str, Any]) -> None:
    """Writes the weights of the best epoch so far."""
    with appearing_file(scratch / BEST) as partial:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, partial)


def load_best(scratch: Path) -> dict[str, Any]:
    """The weights of the best epoch."""
    return dict(load_file(scratch / BEST))
