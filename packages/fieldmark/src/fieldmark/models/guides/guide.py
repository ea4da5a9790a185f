"""The guide of a model: what it keeps besides its weights to answer a person in the field.

```
MODEL/
  guide.json         lines and rules that were drawn on val, and which training photos are kept
  guide.safetensors  features of training photos, the probabilities of val
  guide-root.txt     where the release lies on this machine; it is not shared with the model
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from fieldmark.models.guides.conformal import ConformalSets
from fieldmark.models.guides.dangers import DangerLine
from fieldmark.models.guides.novelty import Strangers
from fieldmark.models.guides.rollup import RollUp
from fieldmark.storage.files import write_json

GUIDE_FILE, GUIDE_ARRAYS, ROOT_FILE = "guide.json", "guide.safetensors", "guide-root.txt"
FORMAT = 1


@dataclass(frozen=True)
class KeptPhotos:
    """The training photos whose features are kept: where each lies below the root of the release, and its label."""

    root: str = ""
    paths: tuple[str, ...] = ()
    codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def file(self, row: int) -> Path | None:
        """The photo of a row, None where it is gone."""
        path = Path(self.root, self.paths[row]) if self.root and row < len(self.paths) else None
        return path if path is not None and path.is_file() else None


@dataclass(frozen=True)
class ValRecord:
    """The observations of val: their probabilities and true labels, kept to calibrate once more for fewer labels.

    Args:
        chances: One row per observation, one column per label; without rows where there were too many to keep.
        truth: The code of the true label of each.
    """

    chances: NDArray[np.float16] = field(default_factory=lambda: np.zeros((0, 0), np.float16))
    truth: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True)
class Guide:
    """What a model keeps to answer people.

    Args:
        roll_up: How far up the taxonomy an answer goes.
        strangers: What tells the unknown.
        danger: From which probability on a person is warned.
        conformal: The lines of the conformal sets by what was known about an observation: the names of its contexts,
            sorted and joined by `+`, empty for the photo alone.
        counts: How many observations each label was learned from.
        photos: Which training photos are kept.
        record: The observations of val.
        checked: What a person's own checked answers added (`fieldmark calibrate`), None before.
    """

    roll_up: RollUp
    strangers: Strangers
    danger: DangerLine
    conformal: Mapping[str, ConformalSets]
    counts: NDArray[np.int64]
    photos: KeptPhotos = KeptPhotos()
    record: ValRecord = ValRecord()
    checked: Mapping[str, Any] | None = None

    def sets_for(self, contexts: Sequence[str]) -> ConformalSets | None:
        """The lines for what is known about a specimen; None where val cannot vouch for any."""
        return self.conformal.get(context_key(contexts))

    def save(self, folder: Path) -> None:
        """Writes the guide into the folder of a model."""
        arrays = {
            **{f"strangers.{name}": array for name, array in self.strangers.arrays.items()},
            "counts": self.counts,
            "photos.codes": self.photos.codes,
            "record.chances": self.record.chances,
            "record.truth": self.record.truth,
        }
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / GUIDE_ARRAYS)
        write_json(
            folder / GUIDE_FILE,
            {
                "fieldmark_guide": FORMAT,
                "roll_up": self.roll_up.to_data(),
                "unknown_line": self.strangers.line,
                "danger": self.danger.to_data(),
                "conformal": {name: sets.to_data() for name, sets in self.conformal.items()},
                "checked": self.checked,
                "photos": list(self.photos.paths),
            },
        )
        if self.photos.root:
            (folder / ROOT_FILE).write_text(self.photos.root, encoding="utf-8")


def load_guide(folder: Path) -> Guide | None:
    """The guide of a model, None for models that were made without one."""
    if not (folder / GUIDE_FILE).is_file():
        return None
    data = json.loads((folder / GUIDE_FILE).read_text(encoding="utf-8"))
    if data["fieldmark_guide"] != FORMAT:
        raise ValueError(f"guide format {data['fieldmark_guide']}")
    arrays = load_file(folder / GUIDE_ARRAYS)
    prefix = "strangers."
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return Guide(
        RollUp.from_data(data["roll_up"]),
        Strangers.from_data(data["unknown_line"], own),
        DangerLine.from_data(data["danger"]),
        {name: ConformalSets.from_data(sets) for name, sets in data["conformal"].items()},
        arrays["counts"],
        KeptPhotos(_root(folder), tuple(data["photos"]), arrays["photos.codes"]),
        ValRecord(arrays["record.chances"], arrays["record.truth"]),
        data["checked"],
    )


def _root(folder: Path) -> str:
    """Where the release lay when the model was fitted; empty for a model from elsewhere."""
    file = folder / ROOT_FILE
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def context_key(contexts: Sequence[str]) -> str:
    """Contexts as the key of a table: sorted and joined.

    >>> context_key(["habitat", "date"])
    'date+habitat'
    """
    return "+".join(sorted(set(contexts)))
