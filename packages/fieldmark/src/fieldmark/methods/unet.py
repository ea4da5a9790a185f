"""A U-Net: an encoder of timm and a decoder that brings its answer back to the size of the photo."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn import functional

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.backbones import create_network
from fieldmark.features.settings import PACKAGED, FeatureSettings
from fieldmark.masks.parts import WHOLE, Mask, resized
from fieldmark.methods.base import ON_VAL, USUAL, Arrays, Fitted, choices, media_of, targets_of
from fieldmark.methods.mask_drawings import DrawsMasks, mean_overlaps
from fieldmark.methods.photo_networks import on_device, unreadable
from fieldmark.methods.trained_networks import TrainsNetwork, epoch_chosen, leave_to_first, remarks_on_training
from fieldmark.registry import require
from fieldmark.settings import setting
from fieldmark.tables.labels import Labels
from fieldmark.training.boxes import Crops
from fieldmark.training.loop import train
from fieldmark.training.masks import BACKGROUND, FIRST_PART, MaskSource, mask_pack
from fieldmark.training.networks import normalization
from fieldmark.training.objectives import MaskObjective
from fieldmark.training.packs import default_packs, open_pack
from fieldmark.training.photos import PhotoTransform, pack_side
from fieldmark.training.recipe import BestBy, Recipe
from fieldmark.training.strategies import make_fabric
from fieldmark.views.parts import Part, View

# Thresholds that are tried on val.
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
INPUTS = ("input_mean", "input_std")
# Answers are brought to this length before they are compared with the threshold; what is larger is enlarged as a mask.
LONGEST_PX = 1024


@dataclass(frozen=True, kw_only=True)
class UNet(Recipe, TrainsNetwork, DrawsMasks):
    """Trains a U-Net by cross-entropy and Dice; see `training.recipe.Recipe` for the settings of the training.

    Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation" (2015), as
    segmentation-models-pytorch builds it. In Dice every class of a mask has the same weight, so that small parts count.
    The whole is everything that is more likely not background than `threshold`; each of its pixels belongs to the most
    likely part.

    Args:
        dice: The weight of Dice beside cross-entropy.
        threshold: How likely a pixel of the whole must be; 0 takes the one with the highest mean IoU on val.
        mirrored: Whether a photo is answered together with its mirror image.
        tiles: With more than 1, the photo is answered in so many overlapping tiles a side as well, for large photos.
    """

    lr: float = 1e-3
    weight_decay: float = 0.01
    warmup_epochs: float = 1.0
    clip_norm: float = 1.0
    batch: int = 8
    epochs: int = 20
    ema: float = 0.99
    crop_scale: float = 0.4
    flip: bool = True
    size: int = 256
    best_by: BestBy = "miou"
    pack: Literal["raw", "jpeg", "none"] = "raw"
    dice: float = 1.0
    threshold: float = setting(0.0, least=0, below=1)
    mirrored: bool = True
    tiles: int = setting(1, least=1)

    learns_from_val: ClassVar[bool] = False
    trains_network: ClassVar[bool] = False  # it draws; nobody takes features from it

    def check_settings(self) -> None:
        super().check_settings()
        if self.size % 32:
            raise MisuseError(f"size={self.size}: a U-Net takes a multiple of 32 pixels.")
        if self.pack == "none" or self.randaugment_ops:
            raise MisuseError("unet needs pack=raw or jpeg, and randaugment_ops=0, which would move photos off masks.")

    def fit(self, view: View) -> Fitted:
        fabric = make_fabric(self)
        parts = view.labels.names
        network = self._network(len(parts), self.weights)
        known = {"train": view.train.of_known_labels()}
        if view.val is not None:
            known["val"] = view.val.of_known_labels()
        sources: dict[str, MaskSource] = {}
        remarks: list[str] = []
        for name, part in known.items():
            with fabric.rank_zero_first(local=True):  # one process packs, the others find the pack
                sources[name], left_out = self._source(part, parts)
            if left_out:
                remarks.append(f"{left_out} photos of {name} cannot be read and were left out.")
        with tempfile.TemporaryDirectory() as temporary:
            trained = train(
                network,
                sources["train"],
                sources.get("val"),
                self._transform(network),
                self,
                objective=MaskObjective(FIRST_PART + len(parts), self.dice),
                scratch=view.scratch or Path(temporary),
                per_group=self.photos_per_observation,
                fabric=fabric,
            )
        leave_to_first(trained)
        remarks += remarks_on_training(trained, self)
        arrays = {name: tensor.numpy() for name, tensor in trained.weights.items()}
        arrays |= {name: np.array(values) for name, values in zip(INPUTS, _normalization(network), strict=True)}
        val = known.get("val")
        chosen = self if self.threshold else replace(self, threshold=self._best_threshold(arrays, val))
        on = ON_VAL if val is not None and len(val) else USUAL
        return Fitted(chosen, arrays, tuple(remarks), (*epoch_chosen(self), *choices(self, chosen, on)))

    def start(self, arrays: Arrays) -> Any:
        """The trained network, ready to answer."""
        parts = len(arrays["segmentation_head.0.bias"]) - FIRST_PART
        network = self._network(parts, "random")
        weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items() if name not in INPUTS}
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            expected = f"the trained weights of a U-Net on {self.network}"
            raise InputError("weights.safetensors", found="tensors of something else", expected=expected) from error
        network.input_mean, network.input_std = (tuple(arrays[name].tolist()) for name in INPUTS)
        return on_device(network)

    def draw(self, state: Any, arrays: Arrays, photo: Image.Image, labels: Labels) -> dict[str, Mask]:
        shares, shape = self.shares(state, photo), (photo.height, photo.width)
        body = 1 - shares[BACKGROUND] > (self.threshold or 0.5)
        masks = {WHOLE: resized(body, shape)}
        if len(labels):
            likeliest = shares[FIRST_PART:].argmax(axis=0)
            named = body & (shares[FIRST_PART:].max(axis=0) > shares[1])
            for place, name in enumerate(labels.names):
                mask = named & (likeliest == place)
                if mask.any():
                    masks[name] = resized(mask, shape)
        return masks

    def shares(self, network: Any, photo: Image.Image) -> NDArray[np.float32]:
        """How likely each class is at each pixel of a photo, no larger than `LONGEST_PX`."""
        scale = min(1.0, LONGEST_PX / max(photo.size))
        height, width = (max(1, round(side * scale)) for side in (photo.height, photo.width))
        answers = [_enlarged(self._answer(network, photo), height, width)]
        if self.tiles > 1:
            answers.append(_enlarged(self._tiled(network, photo), height, width))
        return np.asarray(torch.stack(answers).mean(dim=0).cpu().numpy(), dtype=np.float32)

    def _answer(self, network: Any, photo: Image.Image) -> Any:
        """The probability of each class on the square that the photo is squashed to."""
        square = photo.resize((self.size, self.size), Image.Resampling.BICUBIC, reducing_gap=2.0)
        pixels = torch.from_numpy(np.array(square)).to(next(network.parameters()).device).permute(2, 0, 1) / 255.0
        mean, std = (pixels.new_tensor(values).view(3, 1, 1) for values in (network.input_mean, network.input_std))
        inputs = ((pixels - mean) / std)[None]
        with torch.inference_mode():
            answer = network(inputs).float().softmax(dim=1)
            if self.mirrored:
                answer = (answer + network(inputs.flip(3)).float().softmax(dim=1).flip(3)) / 2
        return answer[0]

    def _tiled(self, network: Any, photo: Image.Image) -> Any:
        """The same from overlapping tiles, in the middle of which an answer counts most.

        The network sees one tile after the other, so that its memory is that of one, however many there are.
        """
        side = self.size * (self.tiles + 1) // 2  # tiles overlap by half
        large = photo.resize((side, side), Image.Resampling.BICUBIC, reducing_gap=2.0)
        ramp = 1 - (torch.linspace(-1, 1, self.size).abs() * 0.98)
        weight = (ramp[:, None] * ramp[None, :]).to(next(network.parameters()).device)
        total: Any = None
        weights = weight.new_zeros(side, side)
        for top in range(0, side - self.size + 1, self.size // 2):
            for left in range(0, side - self.size + 1, self.size // 2):
                tile = self._answer(network, large.crop((left, top, left + self.size, top + self.size)))
                if total is None:
                    total = tile.new_zeros(len(tile), side, side)
                place = (slice(top, top + self.size), slice(left, left + self.size))
                total[:, *place] += tile * weight
                weights[place] += weight
        return total / weights

    def _best_threshold(self, arrays: Arrays, val: Part | None) -> float:
        if val is None or not len(val):
            return 0.5
        network = self.start(arrays)

        def draw(photo: Image.Image) -> list[Mask]:
            body = 1 - self.shares(network, photo)[BACKGROUND]
            return [body > threshold for threshold in THRESHOLDS]

        return THRESHOLDS[int(mean_overlaps(val, "threshold", draw).argmax())]

    def _source(self, part: Part, parts: tuple[str, ...]) -> tuple[MaskSource, int]:
        """The photos of a part that can be read, with their masks, and how many cannot."""
        media, masks = part.items["media_ids"].explode().to_list(), targets_of(part).masks
        side = pack_side(self.size, self.eval_crop, self.eval_share)
        photos = open_pack(media, media_of(part).read, side, self.pack, default_packs())  # type: ignore[arg-type]
        problems = photos.find_problems()
        if len(problems) == len(media):
            raise unreadable(problems)
        packed = mask_pack(masks, parts, side, default_packs())
        rows = np.flatnonzero([one not in problems for one in media])
        crops = Crops(self.eval_crop, self.crop_scale, self.flip, self.eval_share)
        groups = part.items["observation_id"].rank("dense").cast(int).to_numpy()[rows]
        picked = packed if len(rows) == len(media) else packed[rows]
        return MaskSource(photos, rows, picked, FIRST_PART + len(parts), self.size, groups, crops), len(problems)

    def _transform(self, network: Any) -> PhotoTransform:
        return PhotoTransform(self.size, *_normalization(network))

    def _network(self, parts: int, weights: str) -> Any:
        library: Any = require("segmentation_models_pytorch", "unet")

        name = PACKAGED.get(self.network, ("", self.network))[1]
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            network = library.Unet(f"tu-{name}", encoder_weights=None, classes=FIRST_PART + parts)
        if weights != "random":
            encoder = create_network(FeatureSettings(self.network, 0, weights))
            missing = network.encoder.model.load_state_dict(encoder.state_dict(), strict=False).missing_keys
            if missing:
                raise MisuseError(f"network={self.network}: the weights have no {missing[0]}; take weights=random.")
            network.input_mean, network.input_std = normalization(encoder)
        else:
            network.input_mean, network.input_std = (0.5,) * 3, (0.5,) * 3
        return network


def _normalization(network: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return network.input_mean, network.input_std


def _enlarged(answer: Any, height: int, width: int) -> Any:
    return functional.interpolate(answer[None], size=(height, width), mode="bilinear", align_corners=False)[0]
