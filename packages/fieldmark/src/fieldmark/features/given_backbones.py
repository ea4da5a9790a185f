"""Backbones that are given as objects: a network of torch with its preprocessing, or anything with `encode(images)`.

Nothing is asked of their classes: libraries are known by what their objects offer, and none is imported for it.

```
network        what makes features                             preprocessing, where none is given
timm           forward_features and forward_head               that of its pretrained_cfg
open_clip      encode_image                                    that of its image tower
transformers   get_image_features, or pooler_output            required: its image processor
any other      what it returns, one row per photo              required: a data_config of timm, or a function of a photo
encode         encode(photos), a list of photos of Pillow      none: it gets the photos themselves
```
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.features.crops import Box
from fieldmark.features.fingerprints import fingerprint
from fieldmark.features.photo_blocks import look_of
from fieldmark.features.photos import Preprocessing, decode_photo, decode_square
from fieldmark.features.settings import OWN, FeatureSettings

# Larger JPEGs are decoded at a fraction of their size; no encoder in use looks at more.
SHORT_SIDE_PX = 1024
# Raised whenever the same object would give other numbers.
VERSION = 1
NEEDS_PREPROCESSING = (
    "A network needs its preprocessing: pass preprocessing= with timm's data_config, the transform of torchvision or "
    "open_clip, or the image processor of transformers."
)


class PreparedPhoto(NamedTuple):
    """A photo as a network takes it, and its look, by which copies are found."""

    pixels: Any
    look: NDArray[np.uint8] | None


@dataclass(frozen=True)
class GivenBackbone:
    """An object that makes features; takes what `backbones.Backbone` takes.

    Args:
        name: What runs and models call it.
        made_by: The class of the object, in words.
        encode: Makes features of prepared photos, one row each.
        prepare: Makes of a photo what `encode` takes; None where that is the photo itself.
        squares: How photos become squares, where that is all that is done with them.
        fingerprint: Of all that the features depend on; None where nobody can tell.
    """

    name: str
    made_by: str
    encode: Callable[[list[Any]], Any] = field(compare=False, repr=False)
    prepare: Callable[[Image.Image], Any] | None = field(default=None, compare=False, repr=False)
    squares: Preprocessing | None = None
    fingerprint: str | None = None
    _once: str = field(default_factory=lambda: f"own-{uuid.uuid4().hex}", compare=False, repr=False)

    # The views of a photo are made by changing these settings (`photos.views_of`), and here there are none.
    preprocessing = None

    @property
    def kept(self) -> bool:
        """Whether features are stored for other processes."""
        return self.fingerprint is not None

    @property
    def digest(self) -> str:
        """The fingerprint, or a name that nothing else ever has."""
        return self.fingerprint or self._once

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        about = {"backbone": self.name, "made_by": self.made_by, "digest": self.fingerprint}
        return about | ({"size": self.squares.size_px} if self.squares else {})

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of its features."""
        if self.kept:
            return []
        return [
            f"The features of {self.name} were not stored: part of its code is no published library, so that nothing "
            "tells when it changes."
        ]

    def decode(self, data: bytes, box: Box | None = None) -> Any:
        """One photo, or a box of it, as `__call__` takes it."""
        if self.squares is not None:
            return decode_square(data, self.squares, box)
        photo = decode_photo(data, at_least_px=SHORT_SIDE_PX, box=box)
        return PreparedPhoto(photo if self.prepare is None else self.prepare(photo), look_of(np.asarray(photo)))

    def __call__(self, decoded: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Features (float32) of photos."""
        made = self.encode([one.pixels if isinstance(one, PreparedPhoto) else one for one in decoded])
        features = _rows(made)
        if features.ndim != 2 or len(features) != len(decoded) or not features.shape[1]:
            raise MisuseError(
                f"{self.name} made {features.shape} numbers of {len(decoded)} photos; expected one row of features for "
                f"each, ({len(decoded)}, number of features)."
            )
        if not np.isfinite(features).all():
            raise MisuseError(f"The features of {self.name} contain values that are no numbers.")
        return {"features": features}

    def refuse_settings(self, settings: FeatureSettings) -> None:
        """Refuses settings that would change what the object decides itself."""
        usual = FeatureSettings()
        for one in ("size", "weights", "resize", "views", "output", "precision", "decoder"):
            if getattr(settings, one) != getattr(usual, one):
                raise MisuseError(
                    f"{one}={getattr(settings, one)}: a backbone that is given as an object decides this itself."
                )


def given_backbone(backbone: Any, preprocessing: Any = None, name: str = "") -> GivenBackbone:
    """A backbone from whatever object can be one.

    Args:
        backbone: A network of torch, or an object with `encode(images)`, which gets a list of photos of Pillow; one
            that this function has made stays as it is, so that several fits share its features.
        preprocessing: What makes of a photo the input of a network; may be left out for networks of timm and open_clip.
        name: What to call it, if not after its class.

    Raises:
        MisuseError: For an object that is neither, and a network without preprocessing.
    """
    if isinstance(backbone, GivenBackbone):
        return backbone
    kind = type(backbone)
    called = name or f"{OWN}{kind.__name__}"
    made_by = f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(backbone, "encode") and preprocessing is None:
        return GivenBackbone(called, made_by, backbone.encode, fingerprint=_digest(backbone))
    if not _is_network(backbone):
        raise MisuseError(
            f"A backbone is a name, a torch.nn.Module with its preprocessing, or an object with encode(images), not "
            f"{made_by}."
        )
    how = _preparation(backbone, preprocessing)
    squares = how if isinstance(how, Preprocessing) else None
    with answering(backbone):
        digest = _digest(backbone, None if squares is None else asdict(squares), preprocessing)
    encode = _encoder(backbone, squares)
    return GivenBackbone(called, made_by, encode, None if isinstance(how, Preprocessing) else how, squares, digest)


def _digest(*objects: Any) -> str | None:
    made = fingerprint(VERSION, SHORT_SIDE_PX, *objects)
    return None if made is None else f"given-{made}"


def _is_network(backbone: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(backbone, torch.nn.Module)


def _preparation(network: Any, given: Any) -> Preprocessing | Callable[[Image.Image], Any]:
    """How photos become the input of a network."""
    if given is None and getattr(network, "pretrained_cfg", None):
        from timm.data import resolve_model_data_config

        given = resolve_model_data_config(network)
    if given is None and hasattr(getattr(network, "visual", None), "preprocess_cfg"):
        from fieldmark.features.clip import preprocessing_of_clip

        return preprocessing_of_clip(network, type(network).__name__)
    if isinstance(given, Mapping):
        return preprocessing_of_config(given)
    processor = getattr(given, "image_processor", given)
    if callable(processor) and hasattr(processor, "preprocess"):
        return lambda photo: processor(images=photo, return_tensors="pt")["pixel_values"][0]
    if callable(given):
        prepare: Callable[[Image.Image], Any] = given
        return prepare
    raise MisuseError(NEEDS_PREPROCESSING)


def preprocessing_of_config(config: Mapping[str, Any]) -> Preprocessing:
    """How photos become squares by a `data_config` of timm.

    Raises:
        MisuseError: When something is missing in it.
    """
    try:
        return Preprocessing(
            size_px=int(config["input_size"][-1]),
            crop=float(config.get("crop_pct") or 1.0),
            mean=tuple(config["mean"]),
            std=tuple(config["std"]),
            resize="squash" if config.get("crop_mode") == "squash" else "cut",
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise MisuseError(
            f"The preprocessing is no data_config of timm ({error}): expected input_size, mean and std, and perhaps "
            "crop_pct and crop_mode."
        ) from error


@contextmanager
def answering(network: Any) -> Iterator[None]:
    """A network in inference mode, and afterwards in the mode that it was in."""
    import torch

    trained = {module: module.training for module in network.modules()}
    network.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in trained.items():
            module.training = training


def _encoder(network: Any, squares: Preprocessing | None) -> Callable[[list[Any]], Any]:
    """What makes features of prepared photos with a network, where it lies."""

    def encode(photos: list[Any]) -> Any:
        import torch

        with answering(network):
            held = next((one for one in (*network.parameters(), *network.buffers())), None)
            device = "cpu" if held is None else held.device
            if squares is None:
                batch = torch.stack([torch.as_tensor(one) for one in photos]).to(device)
            else:
                mean, std = (torch.tensor(one, device=device).view(1, 3, 1, 1) for one in (squares.mean, squares.std))
                pixels = torch.from_numpy(np.stack(photos)).to(device).permute(0, 3, 1, 2).float().div(255)
                batch = ((pixels - mean) / std).contiguous()
            if held is not None and held.is_floating_point():
                batch = batch.to(held.dtype)
            return _features_of(network, batch)

    return encode


def _features_of(network: Any, batch: Any) -> Any:
    """What a network makes of a batch, by what it offers."""
    if hasattr(network, "encode_image"):
        return network.encode_image(batch)
    if hasattr(network, "get_image_features"):
        return _rows_in(network.get_image_features(pixel_values=batch), network)
    if hasattr(network, "forward_features") and hasattr(network, "forward_head"):
        return network.forward_head(network.forward_features(batch), pre_logits=True)
    return _rows_in(network(batch), network)


def _rows_in(made: Any, network: Any) -> Any:
    """The features in what a network returned."""
    for name in ("image_embeds", "pooler_output"):
        if getattr(made, name, None) is not None:
            made = getattr(made, name)
            break
    if not hasattr(made, "shape"):
        raise MisuseError(
            f"{type(network).__name__} returned {type(made).__name__}; expected one row of features for each photo, or "
            "pooler_output. Wrap it in a module that returns them."
        )
    if len(made.shape) == 4:  # maps of features: their mean over the photo
        made = made.mean(dim=(2, 3))
    return made


def _rows(made: Any) -> NDArray[np.float32]:
    if hasattr(made, "detach"):
        made = made.detach().float().cpu().numpy()
    try:
        return np.asarray(made, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise MisuseError(f"The backbone did not return an array of numbers ({error}).") from error


@cache
def process_store() -> Path:
    """A store of features that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="fieldmark-features-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
