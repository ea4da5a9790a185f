"""The harness: opens a benchmark, fits a method, applies steps, scores, and writes the folder of a run.

```
OUT/
  run.csv                  the answers on test, in the benchmark's own format (on val, where there is no test);
                           run.parquet for masks
  run.json                 where they came from
  CITATION.bib             what to cite for the data, where that is known
  scorecard.json           the score on test (on val, where there is no truth for test), with .units.parquet beside it
  scorecard-val.json       the score on val
  predictions/val.parquet  every score of every label, steps applied
  predictions/test.parquet
  unknown-scores.json      how well each novelty score tells the unknown, where a method has some
  unknown-scores/*.parquet those scores, one row per item
  model/                   see `fieldmark.models`
  training/log.jsonl       what was measured along the way, for methods that train a network
  search.csv, search.json  what was tried, where settings were chosen by cross-validation
  auto.csv, auto.json      what `auto` tried, the best score over time, and what it expects on test
  chain.json               what it chose, as `--method chain.json` takes it
  split.csv, split.json    the parts, where they are not those of the benchmark
```
While a network is trained its checkpoints lie in `OUT.training`, and the finished folds of a search in `OUT.search`;
the same command goes on from them.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark, Task
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.features.extraction import UnreadableError, unreadable
from fieldmark.features.given_backbones import GivenBackbone, given_backbone
from fieldmark.fitting.additions import Added, with_added
from fieldmark.fitting.allowed import allowed_steps
from fieldmark.fitting.auto import AUTO, Auto, has_own_val, run_auto, test_units
from fieldmark.fitting.auto_table import AutoSearched
from fieldmark.fitting.chains import chain_of
from fieldmark.fitting.configuration import Configured, configured_method
from fieldmark.fitting.fit_part import Learned, learn, readable_inputs, revealed_labels, supplied_view, supply_of
from fieldmark.fitting.run_folders import model_of, run_of, score_part, write_run
from fieldmark.fitting.sandboxed import WALLED, WalledMethod, Walls, configured_walled, refuse_unwalled
from fieldmark.fitting.search import Search, Trial, plan, run_search
from fieldmark.fitting.search_table import Searched
from fieldmark.fitting.unknown_table import UnknownTable, unknown_table
from fieldmark.methods.base import ON_VAL, ChosenSetting, Method
from fieldmark.models import Model, load_model
from fieldmark.models.photo_by_photo import OF_FEATURES, check_pooling
from fieldmark.models.supply import Supply, remarks_on_missing
from fieldmark.notebooks import html_note, html_page
from fieldmark.questions.truth import Truth
from fieldmark.runs.provenance import Run
from fieldmark.sandbox.trusted_code import trusting_code
from fieldmark.scoring import Scorecard
from fieldmark.splits.files import SPLIT_FILE, Split, read_split
from fieldmark.steps import Step
from fieldmark.storage.files import appearing_folder, only_writer
from fieldmark.views.broken_media import broken_media, refuse_official, without_media
from fieldmark.views.open_benchmark import ANSWERABLE_PARTS, Opened, open_benchmark, open_release
from fieldmark.views.parts import View
from fieldmark.work.engines import working_on

# Stands for the method until `auto` has found one.
PLACEHOLDER = "frequent"


@dataclass(frozen=True)
class FitResult:
    """What `fit` made: the folder of the run and what stands in it; predictions and truth by part."""

    folder: Path
    run: Run
    model: Model
    scorecards: dict[str, Scorecard]
    unknown: UnknownTable | None = None
    predictions: Mapping[str, Any] = field(default_factory=dict)
    truth: Mapping[str, Truth] = field(default_factory=dict)

    @property
    def scorecard(self) -> Scorecard:
        """The score on test, or on val where there is no truth for test."""
        return self.scorecards.get("test") or self.scorecards["val"]

    def __repr__(self) -> str:
        return f"<FitResult of {self.run.method} in {self.folder}>\n{self.scorecard}"

    def _repr_html_(self) -> str:
        """The score, what a reader should know about it, and where the run lies."""
        remarks = [html_note(remark) for remark in self.run.remarks]
        card = self.scorecard._repr_html_()
        return html_page(f"{self.run.method}: {self.folder}", card, *remarks)


def fit(
    benchmark: str,
    data: str | Path,
    method: str | Method | Any,
    out: str | Path | None = None,
    *,
    backbone: Any = None,
    preprocessing: Any = None,
    settings: Mapping[str, Any] | None = None,
    steps: Sequence[str] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    store: str | Path | None = None,
    external_data: Sequence[str] = (),
    split: str | Path | None = None,
    search: Search | None = None,
    extra_annotations: Sequence[str] = (),
    pooling: str = OF_FEATURES,
    shared: str | Path | None = None,
    add: str | Path | None = None,
    engine: str | None = None,
    address: str | None = None,
    walls: Walls | None = None,
    trust_code: bool = False,
    skip_broken: bool = False,
    auto: Auto | None = None,
) -> FitResult:
    """Fits a method to a benchmark and writes the folder of the run.

    All choices are made on val: open settings, steps, temperatures. If Fieldmark drew val from train, the final model
    is fitted to both with those choices; if the release has its own val, it is not.

    Args:
        benchmark: The name of the benchmark.
        data: The root of the release.
        method: The name of the method, "auto" for the best chain that can be found in the time given, a `Chain`, its
            text or its file (`fitting.chains`), a `Method`, or anything with scikit-learn's `fit` and `predict_proba`,
            which gets features.
        out: The folder to write; runs/BENCHMARK-METHOD if not given.
        backbone: What makes the features, as the setting of that name, or as an object: a `torch.nn.Module` with its
            preprocessing, or anything with `encode(images)` (`features.given_backbones`).
        preprocessing: Of a backbone that is a network: timm's `data_config`, a transform of torchvision or open_clip,
            or an image processor of transformers.
        settings: Settings of the method and of its features.
        steps: The names of the steps, in order, each with settings after a colon (`group-temperature:column=habitat`);
            those that the method asks for if not given, else temperature, with max-softmax in an open set, and presence
            where several labels may hold at once.
        seed: The seed of everything random: parts that are drawn, and methods that draw.
        overwrite: Whether an existing folder is replaced.
        store: The feature store, if not the user's cache.
        external_data: External data, one sentence each; named weights are recorded automatically. For your own backbone
            it is unknown unless given here ("none" for nothing).
        split: A split file (`fieldmark split`) in place of the split of the benchmark.
        search: Settings to choose by cross-validation on train before the fit.
        extra_annotations: Extra annotations made on the media of the release, one sentence each.
        pooling: How items of several photos are answered: features, mean, max or attention (`models.photo_by_photo`).
        shared: A folder for fitted parts of methods that other fits can take over, as those of an ablation do.
        add: A table of checked answers to learn from as well (`fitting.additions`).
        engine: What makes features and samples rasters: "local", or "ray" for a cluster (`work.engines`).
        address: With "ray": the address of the cluster, "auto" for the one of this machine.
        walls: Runs the method in a sandbox with only the data it may see (`fitting.sandboxed`).
        trust_code: Whether a backbone in a folder may be a pickled module, which can run any code when it is read.
        skip_broken: Skips unreadable photos and recordings, and records them; never in an official test set.
        auto: With the method "auto": how long it may search, and for what (`fitting.auto`).

    Raises:
        InputError: When the release or the split is at fault.
        MisuseError: When names or settings are, or when the task does not allow what the method sees.
        PeekingError: When answers depend on items that method and steps say they do not look at.
    """
    # Names and settings are checked before anything is read; what is left open follows from what the release holds.
    declared = BENCHMARKS[benchmark]
    features, parts = (None if place is None else Path(place) for place in (store, shared))
    settings = dict(settings or {})
    given = own_backbone(backbone, preprocessing, settings)
    chain = chain_of(method, settings, steps)
    if chain is not None:
        method, settings, steps = chain.method, dict(chain.settings), chain.steps
    if method == AUTO:
        _refuse_with_auto(settings, search, given, walls)
        configured, auto = configured_method(PLACEHOLDER, {}), auto or Auto()
    elif walls is not None:
        refuse_unwalled(steps, search)
        if given is not None or not isinstance(method, str):
            raise MisuseError("--walled takes methods and backbones by name, and not objects.")
        configured = configured_walled(method, settings, seed, walls, data)
    else:
        configured = replace(configured_method(method, settings, seed), own_backbone=given)
    if search is not None and (configured.own or given is not None):
        raise MisuseError("--search takes methods and backbones by name, and not objects.")
    name = AUTO if method == AUTO else configured.name
    out = Path("runs", f"{benchmark.replace('/', '-')}-{name}") if out is None else out
    asked = _Asked(configured, steps, seed, features, auto if method == AUTO else None)
    if method != AUTO:
        asked.allowed_steps(declared.task)
    planned = plan(configured.name, settings, search, seed) if search is not None else None
    check_pooling(pooling)
    other_split = read_split(Path(split)) if split is not None else None
    seconds: dict[str, float] = {}
    scratch, trials = Path(f"{out}.training"), Path(f"{out}.search")
    with (
        _held(Path(out)),
        working_on(engine, address),
        trusting_code(trust_code),
        appearing_folder(Path(out), overwrite=overwrite) as folder,
    ):
        with _timed(seconds, "open"):
            dataset = open_release(declared, data)
            skipped = broken_media(dataset) if skip_broken else {}
            if skipped:
                refuse_official(declared, dataset, skipped)
                dataset = without_media(dataset, skipped)
            opened = open_benchmark(declared, dataset, seed=seed, split=other_split)
        added = with_added(opened, Path(add)) if add is not None else None
        opened = opened if added is None else added.opened
        told = revealed_labels(opened, "test")
        configured, unfitted, searched = _settled(asked, planned, opened, trials, seconds)
        supply = supply_of(configured, opened, features)
        with _timed(seconds, "features"):
            view = replace(_supplied(opened, supply), shared=parts)
        with _timed(seconds, "fit"):
            learned = learn(configured.method, unfitted, view, opened, (supply, pooling), scratch)
        if isinstance(searched, AutoSearched) and has_own_val(opened):
            searched = searched.measured_on_val(score_part(opened, learned.on_train.val, "val"), test_units(opened))
        model = model_of(
            configured,
            learned,
            opened,
            supply,
            data,
            seed=seed,
            external_data=external_data,
            extra_annotations=extra_annotations,
            pooling=pooling,
            added=added,
            chain=searched.chain if isinstance(searched, AutoSearched) else chain,
        )
        choices = [*remarks_on_missing(view), *_remarks_on_data(declared, opened, added), *([WALLED] if walls else [])]
        choices += _remarks_on_choices(configured.method, learned, opened, searched)
        choices += _remarks_on_unknown(configured.method, steps, opened.benchmark.task)
        choices += [f"Left out, because it cannot be read: {path} ({why})" for path, why in skipped.items()]
        run = replace(run_of(model, opened, supply, data, seconds, choices, searched), skipped=list(skipped))
        predictions = {"val": learned.on_train.val}
        with _timed(seconds, "predict"):
            answered = _answer_checked(model, learned, opened, view, told)
            predictions |= {} if answered is None else {"test": answered}
        with _timed(seconds, "score"):
            scorecards = {part: score_part(opened, predictions[part], part, run) for part in opened.truth}
            unknown = unknown_table(opened, view, {"val": learned.on_train.fitted, "test": model.fitted})
        for table in (unknown, searched):
            if table is not None:
                table.write(folder)
        write_run(folder, opened, run, model, predictions, scorecards)
        if scratch.exists():
            shutil.copytree(scratch, folder / "training", ignore=shutil.ignore_patterns("*.pt", "*.safetensors"))
    # What an interrupted search has done stays: the same command with --overwrite goes on from there.
    interrupted = isinstance(searched, AutoSearched) and searched.interrupted
    for done in (scratch,) if interrupted else (scratch, trials):
        shutil.rmtree(done, ignore_errors=True)
    if isinstance(configured.method, WalledMethod):
        configured.method.inmate.close()
    return FitResult(Path(out), run, model, scorecards, unknown, predictions, opened.truth)


def own_backbone(backbone: Any, preprocessing: Any, settings: dict[str, Any]) -> GivenBackbone | None:
    """A backbone that is given as an object; one that is given by its name goes to the settings."""
    if backbone is None or isinstance(backbone, str):
        if preprocessing is not None:
            raise MisuseError("preprocessing= is that of a backbone that is given as an object.")
        settings |= {} if backbone is None else {"backbone": backbone}
        return None
    made = given_backbone(backbone, preprocessing)
    settings["backbone"] = made.name
    return made


def _answer_checked(
    model: Model, learned: Learned, opened: Opened, view: View, told: NDArray[np.int32] | None
) -> Any | None:
    """The answers on test; there, or on val where there is no test, it is tried whether they depend on others."""
    task, part = opened.benchmark.task, "val" if view.test is None else "test"
    units = dict(zip(opened.items[part]["item_id"], opened.items[part][task.unit], strict=True))
    if view.test is not None:
        return model.predict(view.test, order=task.time_order, truth=told, unit_of=units)
    assert view.val is not None  # open_benchmark refuses an empty val
    if task.time_order is None:  # in time order val was tried when it was answered
        replace(model, fitted=learned.on_train.fitted).predict(view.val.unlabeled(), unit_of=units)
    return None


@dataclass(frozen=True)
class _Asked:
    """A method with its settings and the names of its steps, as they were asked for."""

    configured: Configured
    step_names: Sequence[str] | None
    seed: int
    store: Path | None
    auto: Auto | None = None

    def allowed_steps(self, task: Task) -> list[Step]:
        """The steps for a task, which must allow what they and the method see."""
        return allowed_steps(self.configured.name, self.configured.method, task, self.step_names)


def _settled(
    asked: _Asked,
    planned: tuple[Search, list[Trial]] | None,
    opened: Opened,
    trials: Path,
    seconds: dict[str, float],
) -> tuple[Configured, list[Step], Searched | None]:
    """The method and its steps with nothing left open: by a search, and by what the release holds."""
    task = opened.benchmark.task
    if asked.auto is not None:
        return _found_by_auto(asked, asked.auto, opened, trials, seconds)
    steps = asked.allowed_steps(task)  # again: it may be another task where the release has no open set
    if planned is None:
        return asked.configured.on_release(readable_inputs(opened)), steps, None
    with _timed(seconds, "search"):
        names, seed, store = asked.step_names, asked.seed, asked.store
        searched = run_search(*planned, opened, steps=names, seed=seed, store=store, scratch=trials)
    best = planned[1][searched.best].configured.on_release(readable_inputs(opened))
    return best, allowed_steps(best.name, best.method, task, asked.step_names), searched


def _found_by_auto(
    asked: _Asked, auto: Auto, opened: Opened, trials: Path, seconds: dict[str, float]
) -> tuple[Configured, list[Step], Searched]:
    """The chain that `auto` finds, as a method and its steps."""
    with _timed(seconds, "search"):
        names, seed, store = asked.step_names, asked.seed, asked.store
        searched = run_auto(auto, opened, steps=names, seed=seed, store=store, scratch=trials)
    chain = searched.chain
    found = configured_method(chain.method, chain.settings, asked.seed).on_release(readable_inputs(opened))
    return found, allowed_steps(found.name, found.method, opened.benchmark.task, chain.steps), searched


def _refuse_with_auto(settings: Mapping[str, Any], search: Search | None, backbone: Any, walls: Walls | None) -> None:
    """Refuses what `auto` decides by itself."""
    if settings or search is not None or backbone is not None or walls is not None:
        raise MisuseError("auto chooses method, features and settings itself: leave out --set, --search and --walled.")


def _supplied(opened: Opened, supply: Supply) -> View:
    """The view with its features.

    Raises:
        UnreadableError: When files cannot be read: all of them are named, those of other parts as well.
    """
    try:
        return supplied_view(opened, supply)
    except UnreadableError as error:
        every = broken_media(opened.dataset)
        if len(every) < 2:
            raise
        root = opened.dataset.release.root
        raise unreadable(list(every.items()), lambda path: f"{root}/{path}") from error


def _remarks_on_data(declared: Benchmark, opened: Opened, added: Added | None) -> list[str]:
    """What a reader should know about a release without an open set, and about answers that were added."""
    remarks = [] if added is None else list(added.remarks)
    if opened.benchmark is not declared:
        remarks.insert(0, f"The release has no open set for {declared.name}: this run is of {opened.benchmark.name}.")
    return remarks


def _remarks_on_choices(asked: Method, learned: Learned, opened: Opened, searched: Searched | None) -> list[str]:
    """What a reader should know about how settings were chosen, by search and on val."""
    units = len(set(opened.truth["val"].units)) if "val" in opened.truth else len(opened.items["val"])
    on_val = remarks_on_val(asked, learned.on_train.fitted.chosen, units)
    return [*(searched.remarks if searched is not None else ()), *on_val]


def _remarks_on_unknown(method: Method, names: Sequence[str] | None, task: Task) -> list[str]:
    """That a method which scores strangeness draws no line to unknown, where the task has no unknown species."""
    if names is not None or task.unknown or not any(step.needs_unknown for step in method.default_steps() or ()):
        return []
    scored = "novelty scores are in the predictions (unknown)"
    return [f"The task has no unknown species, so no threshold for unknown was set; {scored}."]


def predict(
    model: str | Path | Model,
    data: str | Path,
    *,
    split: str = "test",
    out: str | Path | None = None,
    benchmark: str | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Any:
    """Predicts one part of a release with a fitted model, and writes the run file if `out` is given.

    Args:
        model: A model, or the folder of one or of the run that made it.
        data: The root of the release.
        split: Which part.
        out: The run file to write, in the benchmark's format.
        benchmark: The benchmark whose parts and format are meant, if not the one the model was trained on.
        engine: What makes features, as in `fit`.
        address: Of the cluster, as in `fit`.
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    declared = BENCHMARKS[benchmark or loaded.trained["benchmark"]]
    cut_by = None if benchmark else split_of_model(model, loaded)
    opened = open_benchmark(declared, open_release(declared, data), seed=loaded.trained["seed"], split=cut_by)
    part = {"train": opened.view.train, "val": opened.view.val, "test": opened.view.test}.get(split)
    if part is None:
        raise MisuseError(f"{data} has no part called {split!r} to predict. {did_you_mean(split, ANSWERABLE_PARTS)}")
    task = opened.benchmark.task
    with working_on(engine, address):
        predictions = loaded.predict(part.unlabeled(), order=task.time_order, truth=revealed_labels(opened, split))
    if out is not None:
        task.run.write(Path(out), predictions)
    return predictions


def split_of_model(model: str | Path | Model, loaded: Model) -> Split | None:
    """The split that a model was trained with, where it was not that of the benchmark: it lies beside the model.

    Raises:
        MisuseError: When it is not there, or another one is.
    """
    record = loaded.trained.get("split")
    if record is None:
        return None
    places = [] if isinstance(model, Model) else [Path(model) / SPLIT_FILE, Path(model).parent / SPLIT_FILE]
    for place in places:
        if place.exists() and (split := read_split(place)).digest == record["digest"]:
            return split
    raise MisuseError(
        f"The model was trained with the split {record['file']} (digest {record['digest']}), which is not beside it: "
        f"keep {SPLIT_FILE} in the folder of the run, and name that folder."
    )


def _held(out: Path) -> AbstractContextManager[None]:
    """Keeps other commands off the folder and its checkpoints; of the processes of one training the first does so."""
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK", "0")  # of all hosts, where torchrun says it
    return only_writer(out) if rank == "0" else nullcontext()


@contextmanager
def _timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[phase] = round(time.perf_counter() - start, 3)


# A share measured on U independent units has a standard error of sqrt(p (1 - p) / U), 0.5 / sqrt(U) at most. Settings
# of one method rarely differ by more than a few points: with an error above 1.5 points val picks among them by chance.
LARGEST_ERROR = 0.015


def largest_error(units: int) -> float:
    """The largest standard error that a share measured on so many independent units can have.

    >>> round(largest_error(100), 3)
    0.05
    """
    return float(0.5 / max(units, 1) ** 0.5)


def remarks_on_val(asked: Method, chosen: Sequence[ChosenSetting], units: int) -> list[str]:
    """A sentence where a method made choices on a val that is small; none otherwise.

    Args:
        asked: The method as it was configured.
        chosen: What it chose as it was fitted, and on which part.
        units: How many independent units val has.
    """
    on_val = [choice for choice in chosen if choice.on_val]
    error = largest_error(units)
    if not on_val or error <= LARGEST_ERROR:
        return []
    said = f"val has {units:,} independent units, so a share measured on it has a standard error of up to"
    names = " and ".join(choice.name if choice.on == ON_VAL else f"{choice.name} (with train)" for choice in on_val)
    open_to_search = any(choice.name in asked.search_space for choice in on_val)
    advice = " --search auto chooses by cross-validation on train instead." if open_to_search else ""
    return [f"SMALL VAL: {said} {100 * error:.1f} points; it chose {names}.{advice}"]
