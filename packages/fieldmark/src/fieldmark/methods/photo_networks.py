"""What methods have in common that answer photos with a network: packs, sources and batches of a part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.crops import USUAL_MARGIN
from fieldmark.methods.base import media_of, truth_of
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.training.boxes import Crops
from fieldmark.training.packs import Pack, UnpackedPhotos, default_packs, open_pack
from fieldmark.training.photos import PhotoSource, PhotoTransform, pack_side
from fieldmark.training.sources import evaluation_batches, prepared
from fieldmark.views.parts import Part
from fieldmark.work.progress import progress

# Fewer photos than this are decoded at once rather than packed first.
FEW_PHOTOS = 64


@dataclass(frozen=True)
class PhotoReading:
    """How the photos of a part are read.

    Args:
        size: The side of the photo in pixels, as the network takes it.
        pack: See `training.recipe.Recipe`.
        crops: Which part of a photo is shown.
        batch: How many photos are answered at once.
        workers: Threads that read ahead; 0 for one per core.
        crop, crop_margin: See `training.recipe.Recipe`.
    """

    size: int
    pack: Literal["raw", "jpeg", "none"]
    crops: Crops
    batch: int
    workers: int
    crop: str = ""
    crop_margin: float = USUAL_MARGIN

    def photos(self, part: Part) -> Pack | UnpackedPhotos:
        """The photos of all items of a part, in order."""
        read, boxes = media_of(part).read, boxes_of(part, self.crop, self.crop_margin)
        media = part.items["media_ids"].explode().to_list()
        if self.pack == "none" or (part.truth is None and len(media) < FEW_PHOTOS):
            return UnpackedPhotos(media, read, self._side_px, boxes)
        return open_pack(media, read, self._side_px, self.pack, default_packs(), boxes)

    @property
    def _side_px(self) -> int:
        return pack_side(self.size, self.crops.eval_crop, self.crops.eval_share)

    def source(self, photos: Pack | UnpackedPhotos, part: Part, problems: Mapping[str, str]) -> PhotoSource:
        """One example per photo that can be read, with the label and the observation of its item."""
        labels = np.zeros(len(part), dtype=np.int32) if part.truth is None else truth_of(part)
        media = pl.DataFrame(
            {"media_ids": part.items["media_ids"], "label": labels, "group": part.items["observation_id"]}
        ).explode("media_ids")
        readable = (~media["media_ids"].is_in(list(problems))).to_numpy()
        groups = media["group"].rank("dense").cast(pl.Int64).to_numpy()
        rows = np.flatnonzero(readable)
        return PhotoSource(photos, rows, media["label"].to_numpy()[readable], groups[readable], self.crops)

    def answer(self, network: Any, transform: PhotoTransform, part: Part) -> NDArray[np.float32]:
        """The logits of every item; an item of several photos has the mean of theirs.

        Raises:
            InputError: When photos cannot be read; all of them have been tried.
        """
        photos = self.photos(part)
        if problems := photos.find_problems():
            raise unreadable(problems)
        source, device = self.source(photos, part, {}), next(network.parameters()).device
        logits = []
        with torch.inference_mode(), progress("answering", len(source)) as tick:
            batches = evaluation_batches(
                source, np.arange(len(source)), batch=self.batch, workers=self.workers, device=device
            )
            for batch in prepared(batches, transform, device):
                logits.append(network(batch.inputs).float().cpu().numpy())
                tick(len(batch.inputs))
        each = part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        sums = np.add.reduceat(np.concatenate(logits), np.cumsum(each) - each, axis=0)
        return np.asarray(sums / each[:, None], dtype=np.float32)


def on_device(network: Any) -> Any:
    """A network in inference mode, on a GPU where there is one."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)


def unreadable(problems: Mapping[str, str]) -> InputError:
    """The sentence about photos that cannot be read."""
    medium, problem = next(iter(problems.items()))
    more = f" {len(problems) - 1} more photos cannot be read either." if len(problems) > 1 else ""
    hint = f"Replace the file or remove it (and its line in any table).{more}"
    return InputError(medium, found=problem, expected="a photo that can be read to its end", hint=hint)
