"""SAM 2, SAM 3 and EdgeTAM from a folder of Hugging Face on this machine; nothing is downloaded from here.

The folder is one that `huggingface-cli download facebook/sam2.1-hiera-tiny --local-dir FOLDER` leaves: `config.json`,
`preprocessor_config.json` and weights in safetensors (pickled weights are not opened).

Ravi et al., "SAM 2: segment anything in images and videos" (2024); Carion et al., "SAM 3: segment anything with
concepts" (2025), of which the part is used that takes points and boxes.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import InputError
from fieldmark.features.crops import Box
from fieldmark.features.segment_anything import DrawnMask, looked_at_size
from fieldmark.registry import require

# The network and what prepares photos for it, by the model_type of config.json. Checkpoints for video hold the network
# for photos.
KINDS = {
    "sam2": ("Sam2Model", "Sam2Processor"),
    "sam2_video": ("Sam2Model", "Sam2Processor"),
    "sam3_tracker": ("Sam3TrackerModel", "Sam3TrackerProcessor"),
    "sam3_video": ("Sam3TrackerModel", "Sam3TrackerProcessor"),
    "edgetam": ("EdgeTamModel", "Sam2Processor"),
    "edgetam_video": ("EdgeTamModel", "Sam2Processor"),
}
CONFIGS = ("config.json", "preprocessor_config.json", "processor_config.json")
PIECE_BYTES = 1 << 22
WHAT_IT_NEEDS = "sam with weights of SAM 2 or 3"


def external_data(folder: str) -> str:
    """What the network in a folder brings in from outside the release; the folder need not be there any more."""
    return f"whatever the network in {Path(folder).name} was trained on (SA-1B and SA-V for SAM 2), by its weights"


@dataclass(frozen=True)
class TransformerSam:
    """A network of the SAM family in a folder, loaded at the first use.

    Args:
        folder: Where it lies.
        kind: The `model_type` of its `config.json`.
    """

    folder: str
    kind: str

    @classmethod
    def open(cls, folder: str) -> TransformerSam:
        """The network in a folder; nothing but its configuration is read yet.

        Raises:
            InputError: When there is none, or it is of another kind.
        """
        config = Path(folder, "config.json")
        hint = "Download such a network first, for instance facebook/sam2.1-hiera-tiny, and give its folder."
        if not config.is_file() or not list(Path(folder).glob("*.safetensors")):
            missing = "*.safetensors" if config.is_file() else "config.json"
            raise InputError(folder, found=f"no {missing}", expected="a folder with SAM 2 or SAM 3", hint=hint)
        try:
            kind = json.loads(config.read_text(encoding="utf-8")).get("model_type")
        except (ValueError, AttributeError) as error:
            raise InputError(config, found="no JSON object", expected="the configuration of a network") from error
        if kind not in KINDS:
            raise InputError(config, found=f"model_type {kind!r}", expected=" or ".join(KINDS), hint=hint)
        return cls(folder, kind)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of its files."""
        digest = hashlib.blake2b(digest_size=16)
        for path in sorted(Path(self.folder).iterdir()):
            if path.name in CONFIGS or path.suffix == ".safetensors":
                digest.update(path.name.encode())
                with path.open("rb") as file:
                    while piece := file.read(PIECE_BYTES):
                        digest.update(piece)
        return digest.hexdigest()

    def look(self, photo: Image.Image) -> SeenByTransformer:
        """Looks at a photo once; any number of questions can follow."""
        processor, network = self._loaded
        size = looked_at_size(photo)
        shown = photo.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0)
        pixels = processor(images=shown, return_tensors="pt")["pixel_values"].to(network.device)
        with torch.inference_mode():
            return SeenByTransformer(network, network.get_image_embeddings(pixels), pixels.shape[-2:], size)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers: Any = require("transformers", WHAT_IT_NEEDS)
        model, processor = (getattr(transformers, name) for name in KINDS[self.kind])
        try:
            prepare = processor.from_pretrained(self.folder, local_files_only=True)
            network = model.from_pretrained(self.folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            why = str(error).strip().splitlines()[0]
            raise InputError(self.folder, found=f"something else ({why})", expected="SAM 2 or SAM 3") from error
        network = network.eval().requires_grad_(False)
        return prepare, network.to("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class SeenByTransformer:
    """A photo that the network has looked at.

    Args:
        network: The network.
        embeddings: What it saw.
        input_px: Height and width of the picture that it was given.
        size: Width and height of the masks that it draws.
    """

    network: Any
    embeddings: Any
    input_px: tuple[int, int]
    size: tuple[int, int]

    def draw(self, box: Box | None = None, points: NDArray[np.float64] | None = None) -> list[DrawnMask]:
        """Three masks of what is meant, the most believed first; see `segment_anything.SeenPhoto.draw`."""
        height, width = self.input_px
        prompts: dict[str, Any] = {}
        if box is not None:
            corners = np.array(box) * np.array([width, height, width, height])
            prompts["input_boxes"] = self._tensor(corners[None, None])
        if points is not None and len(points):
            prompts["input_points"] = self._tensor((points * np.array([width, height]))[None, None])
            prompts["input_labels"] = torch.ones(1, 1, len(points), dtype=torch.int32, device=self.network.device)
        with torch.inference_mode():
            answer = self.network(image_embeddings=self.embeddings, **prompts, multimask_output=True)
            logits = torch.nn.functional.interpolate(
                answer.pred_masks[0].float(), size=self.size[::-1], mode="bilinear", align_corners=False
            )
        offered = zip(logits[0].cpu().numpy(), answer.iou_scores[0, 0].tolist(), strict=True)
        drawn = [DrawnMask(one > 0, estimate, one) for one, estimate in offered]
        return sorted(drawn, key=lambda one: -one.estimate)

    def _tensor(self, values: NDArray[np.float64]) -> Any:
        return torch.from_numpy(values.astype(np.float32)).to(self.network.device)
