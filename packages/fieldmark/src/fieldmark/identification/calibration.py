"""A model calibrated by a person's own checked answers: one temperature and a bias for each species.

The table has a row for each photo, as the review page writes it:

```
file,label,observation,drawn,date,lat,lon
walk/1.jpg,Amanita muscaria,o1,random,2026-09-02,,
```

`file` and `label` (the name as it was checked) are needed. Photos of one `observation` are one question. Where `drawn`
tells why a row was reviewed, those drawn at random count and no others: what was looked at because it was in doubt
says nothing about the rest. The step `bias-temperature` is fitted to what the model says, biases drawn to none where a
species has few observations; it is kept only where it lowers the log loss on observations that it was not fitted to.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.identification.name_lists import NameFinder
from fieldmark.identification.specimens import SpecimenQuery
from fieldmark.models import Model, load_model
from fieldmark.models.guides import Guide
from fieldmark.models.guides.conformal import calibrate as calibrate_sets
from fieldmark.models.guides.contexts import contexts_of
from fieldmark.models.guides.guide import context_key
from fieldmark.models.guides.rollup import learn_roll_up
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.storage.files import appearing_folder, with_digest
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column, parse_places
from fieldmark.views.parts import Part
from fieldmark.work.progress import progress

FEWEST, FOLDS, SEED = 20, 5, 0
RANDOM = "random"
CONTEXT = ("date", "lat", "lon", "habitat", "substrate", "country", "site")


@dataclass(frozen=True)
class Calibrated:
    """What a calibration did.

    Args:
        observations: How many checked observations counted.
        species: Of how many species.
        left_out: How many observations were of names that the model does not know.
        before, after: The mean log loss without and with the calibration, on observations that it was not fitted to.
        promise: Whether short lists keep a promise, by the checked observations.
        model: The calibrated model; None where the calibration does not help.
    """

    observations: int
    species: int
    left_out: int
    before: float
    after: float
    promise: bool
    model: Model | None


@dataclass(frozen=True)
class _Checked:
    files: tuple[Path, ...]
    code: int
    known: Mapping[str, Any]


def calibrate_model(
    model: str | Path, checked: Path, out: Path, *, synonyms: Mapping[str, str] | None = None, overwrite: bool = False
) -> Calibrated:
    """Calibrates a model by checked answers and writes it to a folder of its own, where that helps.

    Args:
        model: The folder of a model or of the run that made it.
        checked: The table.
        out: The folder of the calibrated model.
        synonyms: Other names, each with the model's name for it.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When the table is at fault.
        MisuseError: When too few observations count, or the model gives no probabilities.
    """
    loaded = load_model(model)
    if "calibrated" in loaded.trained:
        raise MisuseError(f"{model} was calibrated before: calibrate the model that it came from, by all checked rows.")
    rows, left_out = _read(checked, NameFinder(loaded, synonyms or {}))
    if len(rows) < FEWEST:
        raise MisuseError(
            f"{checked} has {len(rows)} observations that count, and a calibration needs {FEWEST}: check more of them, "
            "drawn at random."
        )
    said = _ask(loaded, rows)
    if said.scale == "score":
        raise MisuseError(f"The model {loaded.name!r} gives scores that only rank, which cannot be calibrated.")
    truth = np.array([row.code for row in rows], dtype=np.int32)
    across = _cross_fitted(loaded, said, truth)
    before, after = _loss(said, truth), _loss(across, truth)
    counted = (len(rows), len(set(truth.tolist())), left_out, before, after)
    if after >= before:
        return Calibrated(*counted, promise=False, model=None)
    step = _fit(loaded, said, truth)
    guide = None if loaded.guide is None else _guide(loaded, loaded.guide, across, truth, counted)
    steps = [one for one in loaded.steps if not one.decides]
    deciding = [one for one in loaded.steps if one.decides]
    by = f"the labels of {len(rows):,} observations by which it was calibrated, {with_digest(checked.name, checked)}"
    trained = {
        **loaded.trained,
        "calibrated": {"observations": len(rows), "own": True},
        "external_data": [*(loaded.trained.get("external_data") or ()), by],
    }
    made = replace(loaded, steps=(*steps, step, *deciding), guide=guide, trained=trained)
    with appearing_folder(out, overwrite=overwrite) as folder:
        made.save(folder)
    return Calibrated(*counted, promise=bool(guide is not None and guide.conformal), model=made)


def _read(path: Path, finder: NameFinder) -> tuple[list[_Checked], int]:
    """The observations that count, and how many others are of names that the model does not know."""
    try:
        with path.open("rb") as file:
            table = read_csv(file, path, required=("file", "label"))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise InputError(path, found="no such file", expected="a table of checked answers: file,label") from error
    table = parse_places(parse_column(table, "date", datetime.date, path), path)
    if "drawn" in table.columns and table["drawn"].is_not_null().any():
        table = table.filter(pl.col("drawn") == RANDOM)
    if "observation" not in table.columns:
        table = table.with_columns(observation="file")
    found, left_out = [], 0
    for group in table.with_columns(observation=pl.coalesce("observation", "file")).partition_by(
        "observation", maintain_order=True
    ):
        if group["label"].n_unique() > 1:
            names = " and ".join(map(repr, group["label"].unique(maintain_order=True)[:2]))
            raise InputError(path, found=f"observation {group['observation'][0]!r} as {names}", expected="one name")
        label = finder.label(str(group["label"][0]))
        if label is None:
            left_out += 1
            continue
        first = group.row(0, named=True)
        known = {name: first[name] for name in CONTEXT if first.get(name) is not None}
        files = tuple(_existing(path, str(file)) for file in group["file"])
        found.append(_Checked(files, finder.model.labels.code_of[label], known))
    return found, left_out


def _existing(table: Path, file: str) -> Path:
    places = (Path(file), table.parent / file)
    place = next((one for one in places if one.is_file()), None)
    if place is None:
        raise InputError(table, found=f"{file!r}, which is not there", expected="the path of a photo")
    return place


def _ask(model: Model, rows: list[_Checked]) -> LabelScores:
    """What the model says about each observation, steps applied."""
    answers = []
    with progress("asking the model", len(rows)) as tick:
        for number, row in enumerate(rows):
            said = SpecimenQuery(model, row.files, "mean", row.known).final
            answers.append(replace(said, items=(str(number),), decisions=None))
            tick(1)
    return LabelScores.concat(answers)


def _fit(model: Model, said: LabelScores, truth: NDArray[np.int32]) -> BiasTemperature:
    items = pl.DataFrame({"item_id": said.items})
    lesson = Lesson(BENCHMARKS["folder"].task, model.labels, model.taxa, Part(items, LabelTargets(truth)))
    return BiasTemperature().fit(said, lesson)


def _cross_fitted(model: Model, said: LabelScores, truth: NDArray[np.int32]) -> LabelScores:
    """Each observation calibrated by the others: in turn a fifth is left out of the fit."""
    fold = np.random.default_rng(SEED).permutation(len(truth)) % FOLDS
    columns = np.array(said.columns, dtype=np.float64)
    for number in range(FOLDS):
        own = np.flatnonzero(fold == number)
        others = np.flatnonzero(fold != number)
        step = _fit(model, said.take(others), truth[others])
        columns[own] = step.apply(said.take(own), pl.DataFrame()).columns
    return said.with_columns(columns, "log_probability")


def _loss(said: LabelScores, truth: NDArray[np.int32]) -> float:
    chances = said.probabilities()[np.arange(len(truth)), truth].astype(np.float64)
    return round(float(-np.log(np.maximum(chances, 1e-12)).mean()), 6)


def _guide(
    model: Model, guide: Guide, across: LabelScores, truth: NDArray[np.int32], counted: tuple[Any, ...]
) -> Guide:
    """The guide with rules drawn on the checked observations; where they are too few, the promise is withdrawn."""
    chances = np.asarray(across.chances(), dtype=np.float64)
    sets = calibrate_sets(chances, truth, guide.counts)
    names = ("observations", "species", "left_out", "log_loss_before", "log_loss_after")
    about = dict(zip(names, counted, strict=True))
    return replace(
        guide,
        roll_up=learn_roll_up(chances, truth, model.taxonomy),
        conformal={} if sets is None else {context_key(contexts_of(model.steps)): sets},
        checked=about,
    )
