"""Runs models through a suite: every cell a fit, kept as one small file (`results`), by the grid runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import FieldmarkError, MisuseError, did_you_mean
from fieldmark.features.given_backbones import GivenBackbone
from fieldmark.features.packaged import PackagedBackbone
from fieldmark.features.settings import PACKAGED, FeatureSettings
from fieldmark.fitting import fit
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.harness import own_backbone
from fieldmark.methods import METHODS, Method
from fieldmark.models.supply.sources import load_backbone
from fieldmark.releases import open_dataset
from fieldmark.releases.record import record_of
from fieldmark.runs.provenance import Run
from fieldmark.settings import configure
from fieldmark.splits.division import UNUSED
from fieldmark.splits.files import SPLIT_FILE, Split
from fieldmark.suites.catalog import suite_named
from fieldmark.suites.costs import added_memory, cost_of
from fieldmark.suites.declarations import Suite, SuiteCell
from fieldmark.suites.episodes import MethodEntry, draw_photos
from fieldmark.suites.ranking import SuiteTable, suite_table
from fieldmark.suites.results import SuiteResult, file_of, options_of, read_results, result_data, write_result
from fieldmark.suites.strengths import strengths_of
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release
from fieldmark.work.engines import working_on
from fieldmark.work.grid import GridCell, address_of, run_grid
from fieldmark_worlds import WORLDS


@dataclass(frozen=True)
class SuiteModel(MethodEntry):
    """A model of a suite: a method, by name or as an object, on features that an object may make.

    Args:
        backbone: The object that makes features, where it is none that has a name.
        external_data: What besides the releases went in, as in `fit`.
    """

    backbone: GivenBackbone | None = None
    external_data: tuple[str, ...] = ()

    @property
    def has_objects(self) -> bool:
        """Whether it cannot be sent to another process by its names alone."""
        return self.backbone is not None or not isinstance(self.method, str)


@dataclass(frozen=True)
class SuiteTask:
    """One fit of a suite, as it is sent to whoever does the work.

    Args:
        suite, version: Of which suite it is a cell.
        cell: What is asked.
        model: What answers.
        data: Where the release lies.
        content: All that the result depends on.
        store: Where features are kept.
    """

    suite: str
    version: str
    cell: SuiteCell
    model: SuiteModel
    data: Path
    content: Mapping[str, Any]
    store: Path | None


@dataclass(frozen=True)
class SuiteRun:
    """What became of a run through a suite.

    Args:
        suite: With all its cells.
        results: Of the models that were asked for, where there are any.
        missing: Cells without a release, each with what to do.
        failed: Model and cell that were refused, each with the reason.
        made: How many results were made now, not stored before.
    """

    suite: Suite
    results: tuple[SuiteResult, ...]
    missing: Mapping[str, str]
    failed: Mapping[tuple[str, str], str]
    made: int


def models_of(
    suite: Suite,
    backbones: Sequence[str] = (),
    methods: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> list[SuiteModel]:
    """Every backbone with every method; those of the suite where none are named.

    Args:
        suite: Whose usual ones are meant.
        backbones: As in `--set backbone=`; methods that need none are run without.
        methods: Each with settings behind a colon, as in `MethodEntry.parse`.
        settings: Of all models.
    """
    common = {**suite.settings, **(settings or {})}
    entries: dict[str, SuiteModel] = {}
    for backbone in backbones or suite.backbones or ("",):
        for text in methods or suite.methods:
            entry = MethodEntry.parse(text, {**common, **({"backbone": backbone} if backbone else {})})
            name = f"{backbone} {text}".strip()
            if backbone and not _takes_backbone(entry):
                entry = MethodEntry.parse(text, {key: value for key, value in common.items() if key != "size"})
                name = text
            entries[name] = SuiteModel(name, entry.method, entry.settings)
    return list(entries.values())


def evaluate(
    model: Any,
    suite: str,
    data: str | Path = "data",
    out: str | Path = "results",
    *,
    preprocessing: Any = None,
    backbone: Any = None,
    name: str = "",
    settings: Mapping[str, Any] | None = None,
    external_data: Sequence[str] = (),
    only: Sequence[str] = (),
    processes: int = 1,
) -> SuiteTable:
    """Evaluates a model on every cell of a suite, and ranks it with all results in the same folder.

    Args:
        model: A backbone, which is run with the heads of the suite: its name, a `torch.nn.Module` with its
            preprocessing, or an object with `encode(images)`. Or a method: with settings, as
            `"lda:backbone=efficientnet_lite0"`, or whatever else `fit` takes for one. Or answers that were made
            elsewhere: by cell, a run file, the folder of a run, or a table.
        suite: The name of the suite.
        data: The folder that contains the releases.
        out: The folder of results, new or to continue.
        preprocessing: Of a network, as in `fit`.
        backbone: What makes the features of a method, as in `fit`.
        name: The name of the model in the table; required if the model is an object.
        settings: Of the model and of its features.
        external_data: What besides the releases went in, as in `fit`; of an own backbone it is unknown until declared.
        only: Names of cells; all if empty.
        processes: The number of cells to run in parallel.

    Raises:
        MisuseError: When names or settings are invalid, or nothing could be run.
    """
    declared = suite_named(suite, data)
    if not name and not (isinstance(model, str) and (backbone is None or isinstance(backbone, str))):
        raise MisuseError("A model that is no name needs one for the table: evaluate(model, name=...).")
    if isinstance(model, Mapping):
        from fieldmark.suites.foreign_answers import add_answers  # which stands on this module

        add_answers(declared, data, out, model, name=name, external_data=external_data)
        return suite_table(declared, read_results([out]))
    models = [
        replace(one, external_data=tuple(external_data))
        for one in _evaluated(declared, model, backbone, preprocessing, name, dict(settings or {}))
    ]
    done = run_suite(declared, data, out, models=models, only=only, processes=processes)
    if not done.results:
        why = [*done.failed.values(), *done.missing.values()]
        raise MisuseError(f"No cell of the suite {suite} could be run. {why[0] if why else ''}".strip())
    return suite_table(declared, read_results([out]))


def run_suite(
    suite: str | Suite,
    data: str | Path,
    out: str | Path,
    *,
    models: Sequence[SuiteModel] = (),
    only: Sequence[str] = (),
    processes: int = 1,
    store: str | Path | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> SuiteRun:
    """Fits and scores every model on every cell whose release is there; what is stored is not fitted again.

    Args:
        suite: The suite, or its name.
        data: The root under which the releases lie, each in the folder that its cell names.
        out: The folder of results, new or to continue.
        models: What is run; those of the suite if not given.
        only: Names of cells; all if empty.
        processes: The number of cells to run in parallel. Features are computed once whatever the number.
        store: The feature store, if not the user's cache.
        engine: "local", or "ray" for cells on a cluster whose nodes reach the same data.
        address: With "ray": the address of the cluster.

    Raises:
        MisuseError: When names or settings are at fault.
    """
    suite = suite_named(suite, data) if isinstance(suite, str) else suite
    chosen = list(models) or models_of(suite)
    for model in chosen:
        if isinstance(model.method, str):  # names and settings are refused before anything is read
            configured_method(model.method, model.settings)
    if (processes > 1 or engine == "ray") and any(model.has_objects for model in chosen):
        raise MisuseError("Models that are objects stay in this process: leave processes and engine as they are.")
    cells = wanted_cells(suite, only)
    digests, missing = releases_of(cells, Path(data))
    grid: list[GridCell[SuiteTask]] = []
    for cell in cells:
        for model in chosen if cell.name in digests else ():
            content = _content(cell, model, digests[cell.name])
            task = SuiteTask(suite.name, suite.version, cell, model, Path(data, cell.release), content, _path(store))
            path = Path(out, file_of(cell.name, model.name, address_of(content)))
            features = {key: str(value) for key, value in model.settings.items() if key in _OF_FEATURES}
            made_by = None if model.backbone is None else model.backbone.digest
            grid.append(GridCell(path, task, (str(task.data), made_by, tuple(sorted(features.items())))))
    failed: dict[tuple[str, str], str] = {}
    made = 0
    _settle_engines([cell.task.model for cell in grid if not cell.path.exists()])
    with working_on(engine, address):
        what = f"suite {suite.name}"
        for outcome in run_grid(what, grid, fit_cell, write_result, processes=processes, keep_going=True):
            task = outcome.cell.task
            made += outcome.state == "made"
            if outcome.problem is not None:
                failed[task.model.name, task.cell.name] = str(outcome.problem)
    there = [cell.path for cell in grid if cell.path.exists()]
    return SuiteRun(suite, tuple(read_results(there)), missing, failed, made)


def fit_cell(task: SuiteTask) -> dict[str, Any]:
    """One model on one cell, as the data of its result."""
    cell, model = task.cell, task.model
    with TemporaryDirectory(prefix="fieldmark-") as folder, added_memory() as memory:
        split = None
        if cell.shots:
            declared = BENCHMARKS[cell.benchmark]
            opened = open_benchmark(declared, open_release(declared, task.data), seed=cell.seed)
            split = Path(folder, SPLIT_FILE)
            few_shots(opened, cell.shots, cell.seed).write(split)
        fitted = fit(
            cell.benchmark,
            task.data,
            model.method,
            Path(folder, "run"),
            backbone=model.backbone,
            settings=model.settings,
            steps=model.steps or None,
            external_data=model.external_data,
            seed=cell.seed,
            store=task.store,
            split=split,
        )
        cost = {"seconds": fitted.run.seconds, "memory_mib": memory(), **cost_of(fitted.model)}
    about = {
        "suite": task.suite,
        "suite_version": task.version,
        "cell": cell.name,
        "kingdom": cell.kingdom,
        "model": {
            "name": model.name,
            "method": _named(model.method),
            "settings": task.content["settings"],
            "steps": list(model.steps),
        },
        "content": dict(task.content),
        "address": address_of(task.content),
    }
    strengths = strengths_of(fitted)
    return result_data(about, fitted.scorecard, cell.scored_by.name, provenance_of(fitted.run), cost, strengths)


def few_shots(opened: Opened, shots: int, seed: int) -> Split:
    """The parts of a benchmark with so many photos per class in train; val and test stay whole, the rest is unused.

    Val stays apart from train in the final fit as well: it would be many more shots.
    """
    rows = draw_photos(opened.view.train, shots, [seed, 0])
    items = {part: table for part, table in opened.items.items() if part in ("val", "test")}
    items |= {"train": opened.items["train"][np.sort(rows)]}
    part_of = dict.fromkeys(opened.dataset.media["media_id"], UNUSED)
    for part, table in items.items():
        part_of |= dict.fromkeys(table["media_ids"].explode(), part)
    table = pl.DataFrame({"id": list(part_of), "part": list(part_of.values())})
    return Split(table, {"rule": f"{shots} photos per class", "seed": seed})


_OF_FEATURES = ("backbone", "size", "weights", "resize", "views", "embeddings", "crop")


def _evaluated(
    suite: Suite, model: Any, backbone: Any, preprocessing: Any, name: str, settings: dict[str, Any]
) -> list[SuiteModel]:
    """What `evaluate` was asked for, as models of a suite."""
    named = isinstance(model, str) and model.partition(":")[0] in METHODS
    if named or isinstance(model, Method) or (hasattr(model, "fit") and not hasattr(model, "encode")):
        own = own_backbone(backbone, preprocessing, settings)
        if not named:
            return [SuiteModel(name, model, settings, backbone=own)]
        entry = MethodEntry.parse(model, {**suite.settings, **settings})
        return [SuiteModel(name or model, entry.method, entry.settings, backbone=own)]
    if backbone is not None:
        raise MisuseError("backbone= is for a method: the first argument is none.")
    own = own_backbone(model, preprocessing, settings)  # made once, so that all heads share its features
    if own is None:
        return models_of(suite, [model], settings=settings)
    common = {key: value for key, value in {**suite.settings, **settings}.items() if key != "size"}
    heads = [MethodEntry.parse(text, common) for text in suite.methods]
    return [SuiteModel(f"{name} {one.name}", one.method, one.settings, backbone=own) for one in heads]


def _takes_backbone(entry: MethodEntry) -> bool:
    """Whether a method reads features of photos or recordings, so that a backbone makes a difference."""
    configured = configured_method(entry.method, {})
    return bool(configured.features) or bool(configured.method.open_inputs)


def wanted_cells(suite: Suite, only: Sequence[str]) -> list[SuiteCell]:
    """The cells that were named; all if none were."""
    names = [cell.name for cell in suite.cells]
    for name in only:
        if name not in names:
            raise MisuseError(f"The suite {suite.name} has no cell called {name!r}. {did_you_mean(name, names)}")
    return [cell for cell in suite.cells if not only or cell.name in only]


def _settle_engines(models: Sequence[SuiteModel]) -> None:
    """Has every packaged network run by one engine from its first photo on, however often the run is interrupted."""
    settings = {
        configure({"backbone": "", **configured.method.feature_defaults, **given}, FeatureSettings)[0]
        for model in models
        if model.backbone is None and isinstance(model.method, str)
        for configured in (configured_method(model.method, model.settings),)
        for given in configured.features.values()
    }
    for one in sorted(settings, key=str):
        if one.backbone in PACKAGED and isinstance(network := load_backbone(one), PackagedBackbone):
            network.settle_engine()


def _content(cell: SuiteCell, model: SuiteModel, data_digest: str) -> dict[str, Any]:
    """All that the score of a model in a cell depends on."""
    return {
        "benchmark": cell.benchmark,
        "version": BENCHMARKS[cell.benchmark].version,
        "data_digest": data_digest,
        "method": _named(model.method),
        **_content_of_method(model),
        **({} if model.backbone is None else _content_of_backbone(model)),
        "settings": {key: str(value) for key, value in sorted(model.settings.items())},
        "steps": list(model.steps),
        "protocol": cell.protocol,
        "seed": cell.seed,
    }


def _content_of_method(model: SuiteModel) -> dict[str, Any]:
    """All settings of a method, so that a default that changes is another content; of an object, what it shows."""
    if not isinstance(model.method, str):
        return {"called": model.name, "settings_of_object": _shown(model.method)}
    return {"options": options_of(model.method, model.settings)}


def _content_of_backbone(model: SuiteModel) -> dict[str, Any]:
    """A backbone that is an object: by its fingerprint, or by the name of the model where nobody can tell."""
    assert model.backbone is not None
    return {"called": model.name, "backbone": model.backbone.made_by, "fingerprint": model.backbone.fingerprint}


def _named(method: Any) -> str:
    """A method in a record: its name, or the class of one that has none. The name of the model tells those apart."""
    return method if isinstance(method, str) else f"{type(method).__module__}.{type(method).__qualname__}"


def _shown(method: Any) -> str:
    """How an object shows its settings, as those of scikit-learn do; empty where that names a place in memory.

    >>> _shown({"l2": 0.1}), _shown(object())
    ("{'l2': 0.1}", '')
    """
    text = repr(method)
    return "" if " at 0x" in text else text


def provenance_of(run: Run) -> dict[str, Any]:
    """What a result tells of the run behind it."""
    kept = ("options", "features", "steps", "sees", "learns_from", "external_data", "extra_annotations", "modalities")
    # What is shared tells nothing of the machine that made it.
    remarks = [remark.replace(run.data, Path(run.data).name) for remark in run.remarks]
    shared = {name: getattr(run, name) for name in (*kept, "split", "code_version", "created")}
    return {**shared, "remarks": remarks}


def releases_of(cells: Sequence[SuiteCell], root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The digests of the releases that are there, by cell; and what to do about the others."""
    digests: dict[str, str] = {}
    missing: dict[str, str] = {}
    opened: dict[tuple[str, str, str], str] = {}
    for cell in cells:
        place, declared = root / cell.release, BENCHMARKS[cell.benchmark]
        if cell.world and not place.exists():
            WORLDS[cell.world](place, size="tiny", seed=cell.world_seed)
        if not place.exists():
            missing[cell.name] = _how_to_get(cell, declared.dataset, place)
            continue
        key = cell.release, declared.dataset, declared.subset
        try:
            if key not in opened:
                opened[key] = open_dataset(declared.dataset, place, declared.subset).digest
            digests[cell.name] = opened[key]
        except FieldmarkError as error:
            missing[cell.name] = str(error)
    return digests, missing


def _how_to_get(cell: SuiteCell, dataset: str, place: Path) -> str:
    record = record_of(dataset)
    if cell.source:
        return f"{place} is not there. Put it there: {cell.source}."
    if record is not None and record.download:
        return f"{place} is not there. `fieldmark get {dataset} {place}` fetches what may be fetched."
    return (
        f"{place} is not there. Put the release {dataset} there; `fieldmark list datasets {dataset}` says what it is."
    )


def _path(place: str | Path | None) -> Path | None:
    return None if place is None else Path(place)
