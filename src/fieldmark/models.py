"""A fitted model on disk and in memory: what it learned, its steps, its labels and the features it needs.

```
MODEL/
  README.md            the model card
  model.json           method with its settings, steps, labels and their taxa, features, where it was trained
  weights.safetensors  what the method learned
  backbone/            the model whose fine-tuned network makes the features, where one does; laid out like this one
```
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from fieldmark.errors import InputError, MisuseError
from fieldmark.features.embeddings import quantized
from fieldmark.features.photos import views_of
from fieldmark.features.settings import EMBEDDERS, FINE_TUNED, FeatureSettings, names_folder
from fieldmark.features.store import FeatureStore, default_store
from fieldmark.files import check_name, write_json
from fieldmark.hub import HUB_PREFIX
from fieldmark.labels import Labels
from fieldmark.methods import METHODS, Fitted
from fieldmark.methods.base import opener_of
from fieldmark.registry import require
from fieldmark.runs.predictions import Predictions
from fieldmark.steps import Step, step_from_data, step_to_data
from fieldmark.tables import ITEMS, RANKS
from fieldmark.taxonomy import Taxonomy
from fieldmark.version import __version__
from fieldmark.views import Part

MODEL_FOLDER, MODEL_FILE, ARRAYS_FILE = "model", "model.json", "weights.safetensors"
BACKBONE_FOLDER = "backbone"
CARD_FILE, NOT_STATED = "README.md", "not stated"
PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class FeatureSource:
    """Supplies parts with features; loads the network at the first use.

    Args:
        settings: Which features.
        store: Where they are kept, if not in the user's cache.
        fine_tuned: The model whose network makes them, for settings that name one no longer by its folder.

    Raises:
        InputError: When the backbone is a folder without a network that was trained here.
        MisuseError: When other weights are asked for than those in the folder.
    """

    def __init__(self, settings: FeatureSettings, store: Path | None = None, fine_tuned: Model | None = None) -> None:
        if fine_tuned is None and names_folder(settings.backbone):
            settings, fine_tuned = _open_fine_tuned(settings)
        self.settings, self.fine_tuned, self._store_root = settings, fine_tuned, store or default_store()

    @cached_property
    def backbone(self) -> Any:
        if self.fine_tuned is not None:
            fitted: Any = self.fine_tuned.fitted
            return fitted.method.backbone(fitted.arrays, self.settings.size, self.settings.resize)
        if self.settings.backbone in EMBEDDERS:
            from fieldmark.features.embedders import load_embedder

            return load_embedder(self.settings)
        module: Any = require("fieldmark.features.backbones", "Reading photos")
        return module.load_backbone(self.settings)

    @property
    def hears(self) -> bool:
        """Whether these are features of recordings, and not of photos."""
        if self.fine_tuned is not None:
            return "audio" in self.fine_tuned.fitted.method.needs
        return self.settings.backbone in EMBEDDERS

    @property
    def about(self) -> dict[str, Any]:
        """What a run records about its features."""
        if self.hears:
            return dict(self.backbone.about)
        return {**self.backbone.about, "views": self.settings.views, "embeddings": self.settings.embeddings}

    @property
    def remarks(self) -> list[str]:
        """What a person should know who uses these features: the terms of weights that are not free."""
        if self.fine_tuned is not None and self.fine_tuned.license != NOT_STATED:
            return [f"The license of the fine-tuned backbone: {self.fine_tuned.license}."]
        return [self.backbone.about["license"]] if "license" in self.backbone.about else []

    def supply(self, part: Part, *, where: Callable[[str], str] = str, what: str | None = None) -> Part:
        """The part with features, one row per item."""
        if self.hears != (part.media_kind == "recording"):
            heard = f"one of {', '.join(EMBEDDERS)}, or a run of cnn"
            known = heard if part.media_kind == "recording" else "a network for photos"
            raise MisuseError(f"backbone={self.settings.backbone} does not read {part.media_kind}s: take {known}.")
        if part.media_kind == "recording":
            return self._supply_sounds(part, where, what or "recordings")
        return self._supply_photos(part, where, what or "photos")

    def _supply_sounds(self, part: Part, where: Callable[[str], str], what: str) -> Part:
        from fieldmark.features.sounds import Clip, extract_sounds

        rows = part.items.select(pl.col("media_ids").list.first(), "start_s", "end_s").iter_rows()
        store = FeatureStore(self._store_root, self.backbone.digest)
        features = extract_sounds(
            [Clip(*row) for row in rows],
            opener_of(part),
            self.backbone,
            store,
            output=self.settings.output,
            where=where,
            what=what,
        )
        return replace(part, features=features)

    def _supply_photos(self, part: Part, where: Callable[[str], str], what: str) -> Part:
        media, photos = part.items["media_ids"], part.items["media_ids"].list.len().to_numpy().astype(np.int64)
        if (photos == 0).any():
            raise ValueError("features are taken of items with at least one photo each")
        if part.read_medium is None:
            raise ValueError("this part comes without a way to open its photos")
        features = self._of_photos(media.explode().to_list(), part.read_medium, where, what)
        if (photos > 1).any():
            # An item of several photos has the mean of their features.
            sums = np.add.reduceat(features, np.cumsum(photos) - photos, axis=0)
            features = np.asarray(sums / photos[:, None], dtype=np.float32)
        return replace(part, features=features)

    def _of_photos(
        self, media: list[str], read_medium: Callable[[str], bytes], where: Callable[[str], str], what: str
    ) -> NDArray[np.float32]:
        """Features of photos: the mean over the views of each. Every view is kept in the store by itself."""
        from fieldmark.features.extraction import extract

        views = views_of(self.backbone.preprocessing, self.settings.views)
        total: NDArray[np.float32] | None = None
        for number, view in enumerate(views, start=1):
            seen = self.backbone if view == self.backbone.preprocessing else replace(self.backbone, preprocessing=view)
            named = what if len(views) == 1 else f"{what}, view {number} of {len(views)}"
            store = FeatureStore(self._store_root, seen.digest)
            features = extract(media, read_medium, seen, store, where=where, what=named)
            total = features if total is None else total + features
        assert total is not None  # there is always the plain view
        features = total / np.float32(len(views))
        return quantized(features) if self.settings.embeddings == "quantized" else features


@dataclass(frozen=True)
class Model:
    """A fitted method with its steps, ready to answer.

    Args:
        name: The name of the method.
        fitted: The method with its choices made, and what it learned.
        steps: The fitted steps, in order.
        labels, taxa: What it can answer, with ranks and flags.
        features: The features it needs, None for none.
        trained: Where it was trained (benchmark, data digest, simulated or not).
        license: Under which terms it may be used; the terms of the photos it learned from bind as well.
        backbone: The model whose fine-tuned network makes the features, None for any other backbone.
    """

    name: str
    fitted: Fitted
    steps: tuple[Step, ...]
    labels: Labels
    taxa: pl.DataFrame
    features: FeatureSettings | None
    trained: dict[str, Any]
    license: str = NOT_STATED
    backbone: Model | None = None

    @property
    def simulated(self) -> bool:
        return bool(self.trained.get("world"))

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy.of(self.labels, self.taxa)

    @cached_property
    def feature_source(self) -> FeatureSource | None:
        return FeatureSource(self.features, fine_tuned=self.backbone) if self.features else None

    def predict(self, part: Part) -> Predictions:
        """Predictions for a part, all steps applied. Features are supplied where they are missing."""
        if self.feature_source is not None and part.features is None:
            part = self.feature_source.supply(part)
        predictions = self.fitted.predict(part, self.labels)
        for step in self.steps:
            predictions = step.apply(predictions, part.items)
        return predictions

    def predict_photos(self, photos: Sequence[Path]) -> Predictions:
        """Predictions for photo files; the id of each is its path."""
        ids = [str(photo) for photo in photos]
        for name in ids:
            check_name(name)
        items = ITEMS.check(
            pl.DataFrame({"item_id": ids, "observation_id": ids}).with_columns(media_ids=pl.concat_list("item_id")),
            "photos",
        )
        return self.predict(Part(items, truth=None, read_medium=lambda path: Path(path).read_bytes()))

    def save(self, folder: Path) -> None:
        """Writes the model into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: np.asarray(array, order="C") for name, array in self.fitted.arrays.items()}, folder / ARRAYS_FILE
        )
        if self.backbone is not None:  # a copy: the folder it came from may move or be trained anew
            self.backbone.save(folder / BACKBONE_FOLDER)
        (folder / CARD_FILE).write_text(self.card(), encoding="utf-8")
        write_json(
            folder / MODEL_FILE,
            {
                "fieldmark_model": 1,
                "code_version": __version__,
                "license": self.license,
                "remarks": list(self.fitted.remarks),
                "method": self.name,
                "options": asdict(self.fitted.method),  # type: ignore[call-overload]
                "features": asdict(self.features) if self.features else None,
                "steps": [step_to_data(step) for step in self.steps],
                "trained": self.trained,
                "labels": list(self.labels.names),
                "taxa": self.taxa.to_dicts(),
            },
        )

    def card(self, scores: Mapping[str, str] | None = None) -> str:
        """The model card: what it answers, where it learned that, and what to know before trusting it.

        Args:
            scores: Scores to print, by name, ready for reading.
        """
        made = self.trained
        world = " The photos are **simulated**: it knows nothing of nature." if self.simulated else ""
        settings = {name: value for name, value in asdict(self.fitted.method).items() if value != ""}  # type: ignore[call-overload]
        lines = [
            "---",
            f"license: {self.license if self.license != NOT_STATED else 'other'}",
            "library_name: fieldmark",
            "tags: [biodiversity, fine-grained-recognition, image-classification]",
            "---",
            f"# {self.name} on {made['benchmark']}",
            "",
            f"Answers {len(self.labels):,} labels. Learned from {' and '.join(made['parts'])} of "
            f"`{made['benchmark']}` (version {made['version']}, seed {made['seed']}).{world}",
            "",
            "```python",
            "from pathlib import Path",
            "",
            "import fieldmark",
            "",
            'model = fieldmark.load_model("this folder")',
            'predictions = model.predict_photos([Path("photo.jpg")])',
            "```",
            "",
            f"- License: {self.license}. The terms of the photos it learned from bind as well.",
            *(f"- External data: {sentence}." for sentence in made.get("external_data") or ()),
            *(f"- {remark}" for remark in (made.get("backbone") or {}).get("remarks", ())),
            f"- Steps after the network: {', '.join(step.name for step in self.steps) or 'none'}.",
            *(f"- {remark}" for remark in self.fitted.remarks),
            "",
            *(["| metric | score |", "|---|---|"] if scores else []),
            *(f"| {name} | {value} |" for name, value in (scores or {}).items()),
            *([""] if scores else []),
            "It tells these labels apart and knows no others. **Never eat a mushroom because a model named it.**",
            "",
            "## Settings",
            "",
            "```json",
            json.dumps(settings, indent=2),
            "```",
            "",
        ]
        return "\n".join(lines)


def load_model(path: str | Path) -> Model:
    """Opens a model from its folder, from the folder of the run that made it, or from the hub (`hf://owner/name`).

    Raises:
        InputError: When there is no model there, or it is of another make.
    """
    if str(path).startswith(HUB_PREFIX):
        from fieldmark.hub import pull

        path = pull(str(path))
    folder = Path(path)
    if (folder / MODEL_FOLDER / MODEL_FILE).exists():
        folder = folder / MODEL_FOLDER
    file = folder / MODEL_FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        arrays = load_file(folder / ARRAYS_FILE)
        if data["fieldmark_model"] != 1:
            raise InputError(file, found=f"model format {data['fieldmark_model']}", expected="format 1")
        method = METHODS[data["method"]](**data["options"])
        features = FeatureSettings(**data["features"]) if data["features"] else None
        return Model(
            name=data["method"],
            fitted=Fitted(method, arrays, tuple(data.get("remarks", ()))),
            steps=tuple(step_from_data(step) for step in data["steps"]),
            labels=Labels(tuple(data["labels"])),
            taxa=pl.DataFrame(data["taxa"], schema_overrides=dict.fromkeys(RANKS, pl.String)),
            features=features,
            trained=data["trained"],
            license=data.get("license", NOT_STATED),
            backbone=_beside(folder) if features and features.backbone.startswith(FINE_TUNED) else None,
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "Make one with `fieldmark fit`."
        raise InputError(path, found="no model", expected="the folder of a model or a run", hint=hint) from error
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, SafetensorError) as error:
        raise InputError(file, found=f"something else ({error})", expected="a model of Fieldmark") from error


def _beside(folder: Path) -> Model:
    """The model of the backbone that a model was saved with."""
    if not (folder / BACKBONE_FOLDER).is_dir():
        hint = "Copy the whole folder of the model, with all that is in it."
        raise InputError(
            folder, found=f"no {BACKBONE_FOLDER}/", expected="the fine-tuned network behind its features", hint=hint
        )
    return load_model(folder / BACKBONE_FOLDER)


def _open_fine_tuned(settings: FeatureSettings) -> tuple[FeatureSettings, Model]:
    """The model in the folder that a backbone is given by, and the settings that from then on go with it."""
    if settings.weights != "pretrained":
        raise MisuseError(f"weights={settings.weights}: the network in {settings.backbone} comes with its own weights.")
    model = load_model(settings.backbone)
    method: Any = model.fitted.method
    if not hasattr(method, "backbone"):
        raise InputError(
            settings.backbone,
            found=f"a model of the method {model.name}",
            expected="one that has trained a network",
            hint="Make one with `fieldmark fit --method finetune` (photos) or cnn (recordings).",
        )
    return replace(settings, backbone=f"{FINE_TUNED}{method.network}"), model


def find_photos(places: Iterable[Path]) -> list[Path]:
    """All photos among files and folders (searched to any depth), sorted within each folder.

    Raises:
        InputError: For a place that does not exist, or when there is no photo at all.
    """
    places = list(places)
    photos: list[Path] = []
    for place in places:
        if place.is_dir():
            photos += sorted(p for p in place.rglob("*") if p.suffix.lower() in PHOTO_SUFFIXES and p.is_file())
        elif place.is_file():
            photos.append(place)
        else:
            raise InputError(place, found="no such file or folder", expected="a photo or a folder of photos")
    if not photos:
        raise InputError(places[0], found="no photos", expected=f"files ending in {', '.join(PHOTO_SUFFIXES)}")
    return photos
