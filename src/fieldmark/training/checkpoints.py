"""Checkpoints: a training that was killed goes on where the last one was written.

```
SCRATCH/last.pt          weights, averaged weights, optimizer, schedule, and how far the training has come
        best.safetensors the weights of the best epoch so far
        log.jsonl        see `logs`
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from fieldmark.errors import MisuseError
from fieldmark.files import appearing_file

LAST, BEST = "last.pt", "best.safetensors"


def save_last(scratch: Path, state: dict[str, Any]) -> None:
    """Writes the state of a training; the one before stays until this one is complete."""
    with appearing_file(scratch / LAST) as partial:
        torch.save(state, partial)


def load_last(scratch: Path, fingerprint: dict[str, Any]) -> dict[str, Any] | None:
    """The state to go on from, or None for a training that starts anew.

    Raises:
        MisuseError: When the folder holds a training with other settings or other examples.
    """
    if not (scratch / LAST).exists():
        return None
    state: dict[str, Any] = torch.load(scratch / LAST, map_location="cpu", weights_only=True)
    if state["fingerprint"] != fingerprint:
        changed = [key for key, value in fingerprint.items() if state["fingerprint"].get(key) != value]
        raise MisuseError(
            f"{scratch} holds an unfinished training with another {', '.join(changed)}. "
            "Repeat that command to finish it, or remove the folder to start anew."
        )
    return state


def save_best(scratch: Path, weights: dict[str, Any]) -> None:
    """Writes the weights of the best epoch so far."""
    with appearing_file(scratch / BEST) as partial:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, partial)


def load_best(scratch: Path) -> dict[str, Any]:
    """The weights of the best epoch."""
    return dict(load_file(scratch / BEST))
