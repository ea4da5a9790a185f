"""A fitted model on disk and in memory: what it learned, its steps, its labels and the features it needs.

```
MODEL/
  README.md            the model card
  model.json           method with its settings, steps, labels and their taxa, features, where it was trained
  weights.safetensors  what the method learned, and what its steps keep
  guide.json, guide.safetensors  what it keeps to answer people (`guides`), where it names one label for each photo
  backbone/            the model whose fine-tuned network makes the features, where one does; laid out like this one
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors import SafetensorError

from fieldmark.benchmarks.declarations import TimeOrder
from fieldmark.benchmarks.titles import metric_is_share, metric_title
from fieldmark.errors import InputError, MisuseError
from fieldmark.features.given_backbones import GivenBackbone, given_backbone
from fieldmark.features.second_order import SECOND_ORDER, Axes
from fieldmark.features.settings import FINE_TUNED, FeatureSettings, names_folder
from fieldmark.methods import METHODS, Fitted
from fieldmark.methods.base import NOT_STATED
from fieldmark.models.array_file import load_arrays, save_arrays
from fieldmark.models.card import card
from fieldmark.models.guides import Guide, load_guide
from fieldmark.models.guides.dangers import never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.hub import HUB_PREFIX
from fieldmark.models.own_objects import own_method, own_record, refuse_other_backbone
from fieldmark.models.photo_by_photo import OF_FEATURES, answer, answer_checked, check_pooling
from fieldmark.models.streams import answer_stream
from fieldmark.models.supply import FeatureSource, InputEncoder, Supply
from fieldmark.notebooks import DrawnPlot, bounds_text, draw_intervals, html_note, html_page, html_table
from fieldmark.questions.items import loose_items
from fieldmark.runs.provenance import external_data_in_words
from fieldmark.sandbox.trusted_code import trusting_code
from fieldmark.steps import Step, step_from_data, step_to_data
from fieldmark.steps.base import apply_step
from fieldmark.steps.past import DATE, apply_checked
from fieldmark.storage.files import check_name, write_json
from fieldmark.storage.local_inputs import local_input
from fieldmark.tables.labels import Labels
from fieldmark.tables.media import MEDIA, PHOTO, Medium
from fieldmark.tables.schema import RANKS
from fieldmark.tables.taxonomy import Taxonomy
from fieldmark.version import __version__
from fieldmark.views.parts import Part, loose_media

MODEL_FOLDER, MODEL_FILE, ARRAYS_FILE = "model", "model.json", "weights.safetensors"
BACKBONE_FOLDER = "backbone"
CARD_FILE = "README.md"
# Arrays that steps keep stand beside those of the method, under the number of the step.
STEP_PREFIX = "steps."
# Likewise those of the encoders of inputs, under the name of the input.
INPUT_PREFIX = "inputs."
# And the axes of second-order features.
AXES_PREFIX = "axes."


@dataclass(frozen=True)
class Model:
    """A fitted method with its steps, ready to answer.

    Args:
        name: The name of the method.
        fitted: The method with its choices made, and what it learned.
        steps: The fitted steps, in order.
        labels: What it can answer.
        taxa: The same with ranks and flags, one row each.
        features: The features it needs, by the name of the input; empty for the media of the release.
        trained: Where it was trained (benchmark, data digest, simulated or not).
        license: Under which terms it may be used; the terms of the photos it learned from bind as well.
        backbone: The model whose fine-tuned network makes the features, None for any other backbone.
        encoders: What makes numbers of inputs that no backbone looks at, as train made it, by the name of the input.
        guide: What it keeps to answer people; None for models that do not give one label to each photo, and old ones.
        store: Where features of what it is asked about are kept, if not in the user's cache.
        axes: Those of second-order features, by the name of the input.
        own: Whether its method is an object that no registry names.
        own_backbone: What makes its features, where that was given as an object.
    """

    name: str
    fitted: Fitted
    steps: tuple[Step, ...]
    labels: Labels
    taxa: pl.DataFrame
    features: Mapping[str, FeatureSettings]
    trained: dict[str, Any]
    license: str = NOT_STATED
    backbone: Model | None = None
    encoders: Mapping[str, InputEncoder] = field(default_factory=dict)
    guide: Guide | None = None
    store: Path | None = None
    axes: Mapping[str, Axes] = field(default_factory=dict)
    own: bool = False
    own_backbone: GivenBackbone | None = None

    @property
    def simulated(self) -> bool:
        return bool(self.trained.get("world"))

    @cached_property
    def taxonomy(self) -> Taxonomy:
        return Taxonomy.of(self.labels, self.taxa)

    @cached_property
    def supply(self) -> Supply:
        """Where its features come from."""
        sources = {
            name: FeatureSource(one, self.store, self._fine_tuned(one), self.own_backbone, self.axes.get(name))
            for name, one in self.features.items()
        }
        return Supply(sources, self.encoders)

    def _fine_tuned(self, settings: FeatureSettings) -> Model | None:
        return self.backbone if settings.backbone.startswith(FINE_TUNED) else None

    @property
    def medium(self) -> Medium:
        """Whether it answers photos or recordings."""
        if self.supply.main is not None:
            return self.supply.main.medium
        forms = {need.form for need in self.fitted.method.needs}
        return next((medium for medium in MEDIA.values() if medium.form in forms), PHOTO)

    @property
    def pooling(self) -> str:
        """How items of several photos are answered: from the mean of their features, or by a pooling of answers."""
        return str(self.trained.get("pooling", OF_FEATURES))

    def predict(
        self,
        part: Part,
        *,
        order: TimeOrder | None = None,
        truth: NDArray[np.int32] | None = None,
        pooling: str = "",
        unit_of: Mapping[str, Any] | None = None,
    ) -> Any:
        """Predictions for a part, all steps applied. Features are supplied where they are missing.

        Args:
            part: The items.
            order: How they are handed out in time order, where the task asks for it.
            truth: The label codes of the items, for tasks that tell them some days later.
            pooling: How items of several photos are answered (`photo_by_photo`), if not as the model was fitted.
            unit_of: The unit of each item, for those who check: a few items are then asked again, each by itself or
                with its unit alone, as they always are in time order.

        Raises:
            PeekingError: When answers depend on items that method and steps say they do not look at.
        """
        check_pooling(pooling or self.pooling)
        if order is None and self.fitted.method.sees == "past" and DATE in part.items.columns:
            order = TimeOrder()
        if order is not None:
            return answer_stream(
                self.fitted,
                self.steps,
                part,
                self.labels,
                order,
                truth=truth,
                supply=self.supply.supply,
                pooling=pooling or self.pooling,
            )
        how = (self.fitted, part, self.labels, self.supply.supply, pooling or self.pooling)
        if unit_of is None:
            predictions = answer(*how)
            for step in self.steps:
                predictions = apply_step(step, predictions, part.items)
            return predictions
        predictions = answer_checked(self.name, *how, unit_of)
        for step in self.steps:
            predictions = apply_checked(step, predictions, part.items, unit_of)
        return predictions

    def predict_photos(self, photos: Sequence[Path], context: Mapping[str, Any] | None = None) -> Any:
        """Predictions for photo files; the id of each is its path. The context (country, date) holds for all."""
        for photo in photos:
            check_name(str(photo))
        return self.predict(Part(loose_items(photos, context), media=loose_media(PHOTO, photos)))

    def save(self, folder: Path) -> None:
        """Writes the model into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        save_arrays(self._arrays(), folder / ARRAYS_FILE)
        if self.backbone is not None:  # a copy: the folder it came from may move or be trained again
            self.backbone.save(folder / BACKBONE_FOLDER)
        if self.guide is not None:
            self.guide.save(folder)
        (folder / CARD_FILE).write_text(card(self), encoding="utf-8")
        own = own_record(self, folder)
        write_json(
            folder / MODEL_FILE,
            {
                "fieldmark_model": 1,
                "code_version": __version__,
                "license": self.license,
                "remarks": list(self.fitted.remarks),
                "method": self.name,
                "options": self.fitted.method.options,
                **({"own": own} if own else {}),
                "features": self.features[""].to_data() if "" in self.features else None,
                **self._further_features(),
                "steps": [step_to_data(step) for step in self.steps],
                "trained": self.trained,
                "labels": list(self.labels.names),
                "taxa": self.taxa.to_dicts(),
            },
        )

    def _further_features(self) -> dict[str, Any]:
        named = {name: one.to_data() for name, one in self.features.items() if name}
        encoded = {name: encoder.to_data()[0] for name, encoder in self.encoders.items()}
        return {**({"features_of": named} if named else {}), **({"encoders": encoded} if encoded else {})}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        kept = {
            f"{STEP_PREFIX}{number}.{name}": array
            for number, step in enumerate(self.steps)
            for name, array in step.arrays.items()
        }
        encoded = {
            f"{INPUT_PREFIX}{name}.{key}": array
            for name, encoder in self.encoders.items()
            for key, array in encoder.to_data()[1].items()
        }
        axes = {f"{AXES_PREFIX}{name}": array for name, array in self.axes.items()}
        return {**self.fitted.arrays, **kept, **encoded, **axes}

    def to_frame(self) -> pl.DataFrame:
        """One row for each label: its code, and what is known about its taxon."""
        labels = pl.DataFrame({"code": range(len(self.labels)), "label": list(self.labels.names)})
        return labels.join(self.taxa, on="label", how="left", maintain_order="left")

    def plot(self) -> DrawnPlot:
        """What it scored where it was made, with intervals; shares only.

        Raises:
            MisuseError: For a model that keeps no scores, as those of earlier versions.
        """
        part, scores = next(reversed(self.trained.get("scores", {"": {}}).items()))
        where = self.trained["benchmark"]
        defined = {name: score for name, score in scores.items() if score["value"] is not None}
        shares = {name: score for name, score in defined.items() if metric_is_share(name, where)}
        if not shares:
            raise MisuseError("This model keeps no scores to draw: it was made before models did, or has no shares.")
        mark = " (simulated data)" if self.simulated else ""
        bounds = [(score["value"], score["low"], score["high"]) for score in shares.values()]
        label = f"{part} of {where}{mark}, 95 % intervals"
        return draw_intervals([metric_title(name, where) for name in shares], bounds, label=label)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {len(self.labels):,} labels, fitted to {self.trained['benchmark']}>"

    def _repr_html_(self) -> str:
        made, where = self.trained, self.trained["benchmark"]
        facts = [
            ["labels", f"{len(self.labels):,}"],
            ["learned from", f"{' and '.join(made['parts'])} of {where} (seed {made['seed']})"],
            ["steps", ", ".join(step.name for step in self.steps) or "none"],
            ["license", self.license],
            ["external data", external_data_in_words(made.get("external_data", []))],
        ]
        tables = [html_table(["", ""], facts, numbers=False)]
        for part, scores in made.get("scores", {}).items():
            rows = [
                [metric_title(name, where), *bounds_text(_number(one["value"]), one["low"], one["high"], percent=share)]
                for name, one in scores.items()
                for share in [metric_is_share(name, where)]
            ]
            tables.append(html_table([f"score on {part}", "", "95 % interval"], rows))
        never = [html_note(sentence) for sentence in never_because_of_a_model(groups_of(self.labels, self.taxa))]
        return html_page(f"{self.name} on {where}", *tables, *never, simulated=self.simulated)

    def card(self, scores: Mapping[str, str] | None = None) -> str:
        """The model card, with scores to print by name."""
        return card(self, scores)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def load_model(
    path: str | Path,
    *,
    method: Any = None,
    backbone: Any = None,
    preprocessing: Any = None,
    trust_code: bool = False,
) -> Model:
    """Opens a model from its folder, from the folder of the run that made it, or from the hub (`hf://owner/name`).

    Args:
        path: Where it is.
        method: For a model of an own method its class; for one of an own estimator, the fitted estimator.
        backbone: For a model whose features an own object makes, that object.
        preprocessing: That of the backbone, as in `fit`.
        trust_code: Whether a pickled estimator may be read, which can run any code.

    Raises:
        InputError: When there is no model there, it is of another make, or an object that it needs is missing.
    """
    with trusting_code(trust_code):
        return _load(path, method, None if backbone is None else given_backbone(backbone, preprocessing))


def _load(path: str | Path, given_method: Any = None, own_backbone: GivenBackbone | None = None) -> Model:
    if str(path).startswith(HUB_PREFIX):
        from fieldmark.models.hub import pull

        path = pull(str(path))
    folder = local_input(path, "a model")
    if (folder / MODEL_FOLDER / MODEL_FILE).exists():
        folder = folder / MODEL_FOLDER
    file = folder / MODEL_FILE
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        arrays = load_arrays(folder / ARRAYS_FILE)
        if data["fieldmark_model"] != 1:
            raise InputError(file, found=f"model format {data['fieldmark_model']}", expected="format 1")
        name = _method_name(data)
        own = data.get("own", {})
        method = own_method(own, data, given_method, folder) if "method" in own else METHODS[name](**data["options"])
        refuse_other_backbone(own, own_backbone, folder)
        settings = {"": data["features"], **data.get("features_of", {})}
        features = {name: FeatureSettings(**one) for name, one in settings.items() if one}
        encoders = {
            name: InputEncoder.from_data(one, _own(arrays, f"{INPUT_PREFIX}{name}."))
            for name, one in data.get("encoders", {}).items()
        }
        axes = _own(arrays, AXES_PREFIX) if _has_axes(features) else {}
        apart = (
            STEP_PREFIX,
            *(f"{AXES_PREFIX}{name}" for name in axes),
            *(f"{INPUT_PREFIX}{name}." for name in encoders),
        )
        learned = {name: array for name, array in arrays.items() if not name.startswith(apart)}
        return Model(
            name=name,
            fitted=Fitted(method, learned, tuple(data.get("remarks", ()))),
            steps=tuple(_step(step, number, arrays) for number, step in enumerate(data["steps"])),
            labels=Labels(tuple(data["labels"])),
            taxa=pl.DataFrame(data["taxa"], schema_overrides=dict.fromkeys(RANKS, pl.String)),
            features=features,
            trained=data["trained"],
            license=data.get("license", NOT_STATED),
            backbone=_beside(folder) if _is_fine_tuned(features) else None,
            encoders=encoders,
            guide=load_guide(folder),
            axes=axes,
            own="method" in own,
            own_backbone=own_backbone,
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


def _method_name(data: Mapping[str, Any]) -> str:
    """The method of a stored model; an ensemble for places was called `ensemble` before there were others."""
    name = str(data["method"])
    return "place-ensemble" if name == "ensemble" and "background" in data["options"] else name


def _is_fine_tuned(features: Mapping[str, FeatureSettings]) -> bool:
    return any(settings.backbone.startswith(FINE_TUNED) for settings in features.values())


def _has_axes(features: Mapping[str, FeatureSettings]) -> bool:
    return any(settings.output == SECOND_ORDER for settings in features.values())


def _step(data: Mapping[str, Any], number: int, arrays: Mapping[str, NDArray[Any]]) -> Step:
    return step_from_data(data, _own(arrays, f"{STEP_PREFIX}{number}."))


def _own(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def feature_source(
    settings: FeatureSettings, store: Path | None = None, own: GivenBackbone | None = None
) -> FeatureSource:
    """The source of features, with the model behind them where a backbone is given by its folder.

    `own` is the backbone itself, where it was given as an object.

    Raises:
        InputError: When the backbone is a folder without a network that was trained here.
        MisuseError: When other weights are asked for than those in the folder.
    """
    if own is not None and settings.backbone == own.name:
        return FeatureSource(settings, store, own=own)
    if not names_folder(settings.backbone):
        return FeatureSource(settings, store)
    if settings.weights != "pretrained":
        raise MisuseError(f"weights={settings.weights}: the network in {settings.backbone} comes with its own weights.")
    model = load_model(settings.backbone)
    if not model.fitted.method.trains_network:
        raise InputError(
            settings.backbone,
            found=f"a model of the method {model.name}",
            expected="one that has trained a network",
            hint="Make one with `fieldmark fit --method finetune` (photos) or cnn (recordings).",
        )
    method: Any = model.fitted.method
    named = replace(settings, backbone=f"{FINE_TUNED}{method.network_name}")
    if not settings.crop and model.medium.visual:  # photos are shown as in the training
        named = replace(named, crop=method.crop, crop_margin=method.crop_margin)
    return FeatureSource(named, store, model)
