"""Features of photos, recordings and other pictures, made by backbones and kept in the store."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from ctypes.util import find_library
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from fieldmark.errors import MisuseError
from fieldmark.features.crops import PhotoBoxes, remark_on_whole
from fieldmark.features.embeddings import quantized
from fieldmark.features.engines import installed
from fieldmark.features.given_backbones import GivenBackbone, process_store
from fieldmark.features.local_modules import local_module
from fieldmark.features.packaged import PackagedBackbone, load_packaged, runs_without_torch
from fieldmark.features.photos import views_of
from fieldmark.features.second_order import PHOTOS, SECOND_ORDER, Axes
from fieldmark.features.settings import OWN, PACKAGED, FeatureSettings
from fieldmark.features.store import FeatureStore, default_store
from fieldmark.methods.base import NOT_STATED, media_of
from fieldmark.methods.photo_crops import boxes_of
from fieldmark.models.supply.channel_axes import KeptMaps, WithMaps, axes_of_train
from fieldmark.registry import imported, require
from fieldmark.tables.inputs import Layer
from fieldmark.tables.media import PHOTO, Medium
from fieldmark.views.parts import Part
from fieldmark.work.large_arrays import row_by_row

if TYPE_CHECKING:
    from fieldmark.features.backbones import Backbone

if TYPE_CHECKING:
    from fieldmark.models import Model


# How close features of both precisions and decoders are, as docs/performance.md shows it on real photos.
HALF_AGREES = "the cosine was 0.9989 on average and 0.995 at least on 954 real photos (docs/performance.md)"


class FeatureSource:
    """Makes features; loads the network at the first use.

    Args:
        settings: Which features.
        store: Where they are kept, if not in the user's cache.
        fine_tuned: The model whose network makes them, where one was trained here.
        own: The backbone, where it was given as an object.
        axes: Those of second-order features, once they were found in train.
        kept: The maps of photos, where second-order features on further axes will be asked for.

    Attributes:
        looks: The photos of each part that was supplied and what they look like (`photo_reading.look_of`); None where
            an earlier version stored their features without it.
    """

    def __init__(
        self,
        settings: FeatureSettings,
        store: Path | None = None,
        fine_tuned: Model | None = None,
        own: GivenBackbone | None = None,
        axes: Axes | None = None,
        kept: KeptMaps | None = None,
    ) -> None:
        self._own, self.axes, self._kept = own, axes, kept
        if own is not None:
            own.refuse_settings(settings)
        self.settings, self.fine_tuned, self._store_root = settings, fine_tuned, store or default_store()
        self._is_cropped: dict[str, bool] = {}
        self._cut_short: dict[str, str] = {}
        self.looks: list[tuple[list[str], NDArray[np.uint8] | None]] = []

    @cached_property
    def backbone(self) -> Any:
        if self._own is not None:
            return self._own
        if self.settings.backbone.startswith(OWN):
            raise MisuseError(
                f"The features come from {self.settings.backbone}, a backbone that was given as an object: load the "
                "model with it, fieldmark.load_model(path, backbone=OBJECT)."
            )
        if self.fine_tuned is not None:
            if self.medium.visual and self.settings.output not in ("features", "logits"):
                asked = f"output={self.settings.output}"
                raise MisuseError(f"{asked} is for networks as they are, not for trained ones. Leave output out.")
            fitted = self.fine_tuned.fitted
            return fitted.method.backbone(fitted.arrays, self.settings.size, self.settings.resize)
        if self.axes is not None:
            return load_backbone(self.settings, self.axes if self._kept is None else None)
        return local_module(self.settings) or imported(self.settings.medium.network)(self.settings)

    def fit(self, train: Part, name: str = "") -> FeatureSource:
        """The source with what its features take from train: for second order, the axes of channels.

        Args:
            train: The part.
            name: The input that it makes features of; empty for the media of the release.
        """
        if self.settings.output != SECOND_ORDER or self.axes is not None or not self.medium.visual:
            return self
        if media_of(train).medium != self.medium or not train.items["media_ids"].list.len().sum():
            return self  # which is refused when features are made
        if name not in ("", PHOTO.name):
            raise MisuseError(f"{name}.output={SECOND_ORDER}: it is for the photos of a release. Leave it out.")
        axes = axes_of_train(self.backbone, train, self.crop, self._store_root, self._kept)
        return FeatureSource(self.settings, self._store_root, axes=axes, kept=self._kept)

    def keeping_maps(self) -> FeatureSource:
        """The source for who fits it again and again to other photos of one release: the network looks at each once."""
        return FeatureSource(self.settings, self._store_root, self.fine_tuned, self._own, self.axes, KeptMaps())

    @property
    def origin_known(self) -> bool:
        """Whether it is known what the backbone was trained on."""
        return not self.settings.backbone.startswith(OWN)

    def _store(self, backbone: Any) -> FeatureStore:
        """Where the features of a backbone are kept: nowhere for long, where nothing tells when it changes."""
        return FeatureStore(self._store_root if getattr(backbone, "kept", True) else process_store(), backbone.digest)

    @property
    def medium(self) -> Medium:
        """Whether these are features of recordings or of photos."""
        return self.settings.medium if self.fine_tuned is None else self.fine_tuned.medium

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        if not self.medium.visual:
            return dict(self.backbone.about)
        crop, margin = self.crop
        cropped = {"crop": crop, "crop_margin": margin} if self._is_cropped else {}  # not for pictures of other inputs
        shown = {"views": self.settings.views, "embeddings": self.settings.embeddings}
        shown |= {"output": self.settings.output} if self.settings.output != "features" else {}
        return {**self.backbone.about, **shown, **cropped}

    @property
    def settings_used(self) -> FeatureSettings:
        """The settings with the precision and the decoder that features were made with, where a GPU chose them."""
        half = getattr(self.backbone, "precision", "") == "half"
        on_gpu = getattr(self.backbone, "decoder", "") == "gpu"
        settings = replace(self.settings, precision="half") if half else self.settings
        return replace(settings, decoder="gpu") if on_gpu else settings

    @property
    def crop(self) -> tuple[str, float]:
        """Where the boxes of photos come from (empty for whole photos), and their margin."""
        return self.settings.crop.replace("none", ""), self.settings.crop_margin

    @property
    def remarks(self) -> list[str]:
        """What a person should know who uses these features: terms that are not free, and what was incomplete."""
        whole = len(self._is_cropped) - sum(self._is_cropped.values())
        told = [remark_on_whole(self.crop[0], whole, len(self._is_cropped))] if whole else []
        if self.axes is not None:
            told.append(f"Second-order features have their axes from {PHOTOS} photos of train at most, without labels.")
        told += [*self._remark_on_precision, *getattr(self.backbone, "remarks", ())]
        if self._cut_short:
            from fieldmark.features.sounds import remark_on_cut

            told += remark_on_cut(self._cut_short)
        if self.fine_tuned is not None and self.fine_tuned.license != NOT_STATED:
            return [f"The license of the fine-tuned backbone: {self.fine_tuned.license}.", *told]
        return [*([self.backbone.about["license"]] if "license" in self.backbone.about else []), *told]

    @property
    def _remark_on_precision(self) -> list[str]:
        half = getattr(self.backbone, "precision", "single") == "half"
        if half:
            return [f"Features were computed in half precision on a GPU. On a CPU they differ slightly: {HALF_AGREES}."]
        if self.settings.precision == "half":
            return [
                "The model was fitted on features in half precision from a GPU; here they are computed in single "
                f"precision: {HALF_AGREES}."
            ]
        return []

    def supply(self, part: Part, name: str = "", what: str | None = None) -> Part:
        """The part with features of one of its inputs, one row per item.

        Args:
            part: The part.
            name: The input; empty for its media.
            what: What is read, for the progress bar.
        """
        if name and (part.media is None or name != part.media.medium.name):
            return self._supply_layer(part, name, what or name)
        medium = media_of(part).medium
        if self.medium != medium:
            raise MisuseError(
                f"backbone={self.settings.backbone} does not read {medium.plural}: take {medium.networks}."
            )
        if self.crop[0] and not medium.visual:
            raise MisuseError(f"crop={self.crop[0]} is for photos; these are {medium.plural}.")
        what = what or medium.plural
        if name and medium.visual:
            return self._supply_some(part, name, what)
        return with_features(part, medium.name, imported(medium.features)(self, part, what))

    def of_recordings(self, part: Part, what: str) -> NDArray[np.float32]:
        """Features of the stretches of recordings that items are."""
        from fieldmark.features.sounds import Clip, extract_sounds

        media = media_of(part)
        rows = part.items.select(pl.col("media_ids").list.first(), "start_s", "end_s").iter_rows()
        store = FeatureStore(self._store_root, self.backbone.digest)
        return extract_sounds(
            [Clip(*row) for row in rows],
            media.open,
            self.backbone,
            store,
            output=self.settings.output,
            where=media.where,
            what=what,
            cut_short=self._cut_short,
        )

    def of_photos(self, part: Part, what: str) -> NDArray[np.float32]:
        """Features of items with at least one photo each; those of several have the mean."""
        media = media_of(part)
        ids, photos = part.items["media_ids"], part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        if (photos == 0).any():
            raise MisuseError(
                f"{int((photos == 0).sum()):,} of {len(photos):,} items have no photo to take features of: name what a "
                "method should read instead, such as --set inputs=environment,place."
            )
        boxes = boxes_of(part, *self.crop, self._store_root)
        if boxes.source:
            self._is_cropped |= {one: one in boxes.boxes for one in media.ids}
        features = self._of_photos(ids.explode().to_list(), media.read, media.where, what, boxes)
        if (photos > 1).any():
            sums = np.add.reduceat(features, np.cumsum(photos) - photos, axis=0)
            features = np.asarray(sums / photos[:, None], dtype=np.float32)
        return features

    def _supply_some(self, part: Part, name: str, what: str) -> Part:
        """Features of photos for a method that names its inputs: items without a photo have zeros, and are marked."""
        absent = (part.items["media_ids"].list.len().fill_null(0) == 0).to_numpy()
        there = part.take(~absent)
        rows = self.of_photos(there, what) if len(there) else np.zeros((0, self._width), np.float32)
        features = np.zeros((len(part), rows.shape[1]), dtype=np.float32)
        features[~absent] = rows
        supplied = with_features(part, name, features)
        return replace(supplied, missing={**part.missing, name: absent})

    def _supply_layer(self, part: Part, name: str, what: str) -> Part:
        """Features of another input that holds pictures; where an item has none, zeros, and it is marked."""
        if not self.medium.visual:
            raise MisuseError(f"{name}.backbone={self.settings.backbone} does not read pictures.")
        layers = {key: layer for key, layer in part.layers.items() if layer.input == name}
        rows, absent = [np.zeros((len(part), 0), dtype=np.float32)], np.ones(len(part), dtype=np.bool_)
        for key, layer in layers.items():
            column = part.items["media_ids"].list.first() if layer.by == "media_id" else part.items[layer.by]
            ids = column.to_list()
            distinct = list(dict.fromkeys(ids))
            there = [one for one, file in zip(distinct, layer.there(distinct), strict=True) if file]
            made = self._of_photos(there, partial(_file, layer), str, f"{what}, {key}")
            row_of = {one: row for row, one in enumerate(there)}
            own = np.zeros((len(part), made.shape[1] if there else self._width), dtype=np.float32)
            for row, one in enumerate(ids):
                if one in row_of:
                    own[row], absent[row] = made[row_of[one]], False
            rows.append(own)
        supplied = with_features(part, name, np.concatenate(rows, axis=1))
        return replace(supplied, missing={**part.missing, name: absent})

    @cached_property
    def _width(self) -> int:
        """How many features a picture has, for a part in which nothing has one: those of a black picture."""
        black = io.BytesIO()
        Image.new("RGB", (8, 8)).save(black, "PNG")
        return int(self.backbone([self.backbone.decode(black.getvalue())])["features"].shape[1])

    def _of_photos(
        self,
        media: list[str],
        read: Callable[[str], bytes],
        where: Callable[[str], str],
        what: str,
        boxes: PhotoBoxes | None = None,
    ) -> NDArray[np.float32]:
        """Features of photos: the mean over the views of each. Every view is kept in the store by itself."""
        from fieldmark.features.extraction import fill_store

        if self.settings.output == "logits":
            raise MisuseError("output=logits is for recordings; photos have features, stages or second-order.")
        if self.settings.output == SECOND_ORDER and self.axes is None:
            raise ValueError("second-order features are fitted to train before they are used")
        views = views_of(self.backbone.preprocessing, self.settings.views)
        total: NDArray[np.float32] | None = None
        for number, view in enumerate(views, start=1):
            seen = self.backbone if view == self.backbone.preprocessing else replace(self.backbone, preprocessing=view)
            named = what if len(views) == 1 else f"{what}, view {number} of {len(views)}"
            store = self._store(seen) if self._kept is None else self._kept.store(seen)
            looks_at = seen if self._kept is None else WithMaps(seen)
            keys = fill_store(media, read, looks_at, store, boxes=boxes, where=where, what=named)
            if self._kept is None or self.axes is None:
                features = store.get(keys, dtype=np.float32)
            else:
                features = self._kept.pooled(store, keys, self.axes)
            if number == 1 and boxes is not None:
                self.looks.append((media, _looks(store, keys)))
            total = features if total is None else row_by_row(np.add, total, features)
        assert total is not None  # there is always the plain view
        features = total if len(views) == 1 else row_by_row(lambda rows: rows / np.float32(len(views)), total)
        return row_by_row(quantized, features) if self.settings.embeddings == "quantized" else features


def _looks(store: FeatureStore, keys: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    from fieldmark.features.extraction import LOOKS

    try:
        return store.get(keys, LOOKS)
    except FileNotFoundError:
        return None


def _file(layer: Layer, one: str) -> bytes:
    return layer.files([one])[0] or b""


def with_features(part: Part, name: str, features: NDArray[np.float32]) -> Part:
    """The part with the features of one more input."""
    return replace(part, features={**part.features, name: features})


# The devices of the driver of NVIDIA, and of Linux inside Windows.
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg")


def load_backbone(settings: FeatureSettings, axes: Axes | None = None) -> Backbone | PackagedBackbone:
    """Loads a backbone by name.

    Args:
        settings: Which.
        axes: Those of its channels, for second-order features; without any, the network is loaded as it is.

    Raises:
        MisuseError: When there is no such network, or its weights cannot be downloaded.
        InputError: When a file of weights does not fit the network.
    """
    if runs_without_torch(settings) and not gpu_can_be_used():
        return _packaged(settings) if axes is None else load_packaged(settings, axes)
    if settings.backbone in PACKAGED and settings.weights == "pretrained" and not installed("torch"):
        for engine in ("onnx", "onnxruntime"):
            require(engine, f"The backbone {settings.backbone}")
    module: Any = require("fieldmark.features.backbones", "Reading photos")
    backbone: Backbone = module.load_torch_backbone(settings, axes)
    return backbone


@lru_cache(maxsize=2)
def _packaged(settings: FeatureSettings) -> PackagedBackbone:
    """The last packaged backbones stay: fits of a grid that follow each other read and compile them once."""
    return load_packaged(settings)


def gpu_can_be_used() -> bool:
    """Whether torch would find a GPU; it is asked only on machines with the driver of one."""
    if not installed("torch"):
        return False
    driver = find_library("nvcuda") if sys.platform == "win32" else any(Path(one).exists() for one in GPU_DEVICES)
    if not driver:
        return False
    torch: Any = require("torch", "A backbone on a GPU")
    return bool(torch.cuda.is_available())
