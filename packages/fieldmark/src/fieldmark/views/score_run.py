"""A run against the truth of a release, or against small tables; and that truth written as such tables."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.selection import with_metrics
from fieldmark.errors import MisuseError
from fieldmark.questions.truth import SIMULATED
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import TableRun
from fieldmark.runs.predictions import Predictions, predictions_file, refuse_repeated
from fieldmark.runs.provenance import (
    MADE_ELSEWHERE,
    RUN_FILE,
    UNKNOWN,
    Run,
    declared_external_data,
    run_file,
)
from fieldmark.scoring import SCORECARD_FILE, Scorecard, score_predictions
from fieldmark.scoring.given_truth import read_truth
from fieldmark.scoring.run_reader import read_run, refuse_other_labels
from fieldmark.storage.addresses import place_text, recorded_place, refuse_address
from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.storage.local_inputs import local_input
from fieldmark.storage.release import WORLD_FILE
from fieldmark.tables.frames import is_table
from fieldmark.tables.given_tables import LINE, read_given
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release, split_of_run, suited
from fieldmark.work.blocks import map_blocks
from fieldmark.work.engines import cluster, working_on
from fieldmark.work.progress import progress

# A file, or a table in memory: of polars, pandas, pyarrow or NumPy, or columns by name (`tables.frames`).
Table = Path | str | pl.DataFrame | Mapping[str, Any] | Any


class _ScoredAnswers(NamedTuple):
    """A scored run: its scorecard, its answers, the file or table they came from, and the release, where it has one."""

    card: Scorecard
    answers: Any
    source: Any
    opened: Opened | None


def score(
    name: str,
    run: Table | Predictions,
    *,
    data: Path | str | None = None,
    truth: Table | None = None,
    classes: Table | None = None,
    media: Table | None = None,
    split: str = "test",
    seed: int | None = None,
    metrics: Sequence[str | Metric] | None = None,
    out: Path | str | None = None,
    external_data: Sequence[str] = (),
    overwrite: bool = False,
) -> Scorecard:
    """Scores a run, and writes the folder of a run if `out` is given.

    Args:
        name: The benchmark.
        run: A run file, the folder of a run, a table with the columns of such a file, or predictions.
        data: The release that holds the truth; or:
        truth: A table (or CSV file) with `id`, `label` and, where rows are not independent, `unit`.
        classes: A table (or CSV file) with `label`: the classes of the benchmark, and what metrics want to know about
            them (`poisonous`, `rare`). Without it, those of the truth and of the run.
        media: For soundscapes, a table (or CSV file) with `MediaId`, `seconds` and `site`, so that silence counts.
        split: The part of the release that is scored.
        seed: The seed of drawn parts; without it, the one in the run's folder, or 0.
        metrics: The metrics, if not those of the benchmark: names of its metrics, with another convention
            behind a colon ("roc_auc:ties=zero"), or metrics themselves.
        out: The folder to write for a run that was made elsewhere, which `compare`, `report`, `ensemble` and `submit`
            take as those of `fit`. Needs `data`.
        external_data: External data of such a run, one sentence each, or "none"; unknown if not given.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When the run or the truth is at fault.
        MisuseError: When the truth is named twice or not at all, or a folder is asked for that cannot be written.
    """
    if out is None:
        if external_data:
            raise MisuseError("External data are recorded in the folder of a run: add --out FOLDER.")
        return _score(name, run, data, (truth, classes, media), split, seed, metrics).card
    if data is None or metrics is not None:
        raise MisuseError("--out writes the folder of a run: it needs --data ROOT, and takes no --metric.")
    called = Path(out).name if not isinstance(run, (str, Path)) else Path(run).name.partition(".")[0]
    about = _Elsewhere(called, run if isinstance(run, (str, Path)) else None, declared_external_data(external_data))
    with appearing_folder(Path(out), overwrite=overwrite) as folder:
        scored = _score(name, run, data, (None, None, None), split, seed, None, about)
        _write_folder(folder, scored, about.record(scored.opened, data, seed or 0))
    return scored.card


@dataclass(frozen=True)
class _Elsewhere:
    """What is known of a run that was made elsewhere.

    Args:
        method: What to call it.
        place: Its file; None for a table in memory.
        external_data: What its maker declares; None for nothing said.
    """

    method: str
    place: Path | str | None
    external_data: list[str] | None

    def record(self, opened: Opened | None, data: Path | str, seed: int) -> Run:
        """Where the run came from, as far as anybody has said."""
        assert opened is not None  # a folder needs the release
        file = "a table in memory" if self.place is None else Path(self.place).name
        return Run(
            benchmark=opened.benchmark.name,
            version=opened.benchmark.version,
            method=self.method,
            options={MADE_ELSEWHERE: file},
            sees=UNKNOWN,
            features=None,
            steps=[],
            trained_on=[],
            seed=seed,
            data=recorded_place(data),
            data_digest=opened.dataset.digest,
            world=opened.dataset.release.world,
            remarks=[
                f"Made elsewhere and scored here ({file}): what it learned from and what it saw is not known.",
                *opened.dataset.remarks,
            ],
            external_data=self.external_data,
        )


def _score(
    name: str,
    run: Table | Predictions,
    data: Path | str | None,
    tables: tuple[Table | None, Table | None, Table | None],
    split: str,
    seed: int | None,
    metrics: Sequence[str | Metric] | None,
    about: _Elsewhere | None = None,
) -> _ScoredAnswers:
    """A run scored as `score` says; `tables` are truth, classes and media."""
    benchmark, dataset, opened = BENCHMARKS[name], None, None
    truth, classes, media = tables
    if (data is None) == (truth is None):
        raise MisuseError("A score needs the truth from one place: either --data ROOT or --truth FILE.")
    if data is not None:
        dataset = open_release(benchmark, data)
        benchmark = suited(benchmark, dataset)
    benchmark = benchmark if metrics is None else with_metrics(benchmark, metrics)
    task = benchmark.task
    source: Any = TableRun(run) if is_table(run) else run
    provenance = None
    if isinstance(run, (str, Path)):
        source, provenance = found_run(local_input(run, "a run"), in_one_file=not task.run.folders)
        seed = provenance.seed if provenance is not None and seed is None else seed
    if about is not None and provenance is not None:
        raise MisuseError(f"{place_text(Path(str(run)))} is the folder of a run already: --out is for files.")
    if dataset is not None:
        cut_by = split_of_run(source.parent, provenance) if provenance is not None else None
        opened = open_benchmark(benchmark, dataset, seed=seed or 0, split=cut_by)
        kept_truth, labels, table = opened.truth_of(split), opened.view.labels, opened.dataset.taxa
    else:
        kept_truth, labels, table, part = read_truth(task, _at_hand(truth), _at_hand(classes), _at_hand(media))
        split = part or split
    answers = source
    if not isinstance(source, (Path, TableRun)) and not hasattr(source, "blocks"):
        raise MisuseError(f"A run is a file, a folder, a table or predictions, not {type(source).__name__}.")
    if isinstance(source, (Path, TableRun)):
        closed = classes is not None or dataset is not None
        answers, labels = read_run(task, source, kept_truth.items, labels, closed=closed, stored=True)
    else:
        refuse_repeated(source.items, "the predictions")
        if isinstance(source, LabelScores):
            refuse_other_labels(task, "the predictions", source.labels.names, labels)
            labels = source.labels
    if about is not None and data is not None:
        provenance = about.record(opened, data, seed or 0)
    card = score_predictions(benchmark, answers, kept_truth, labels=labels, split=split, run=provenance, classes=table)
    return _ScoredAnswers(card, answers, source, opened)


def _write_folder(folder: Path, scored: _ScoredAnswers, run: Run) -> None:
    """Writes a run that was made elsewhere as `fit` writes its own, less a model; its file is kept as it is."""
    assert scored.opened is not None  # a folder needs the release
    part, run_format = scored.card.split, scored.opened.benchmark.task.run
    scored.answers.write(predictions_file(folder, part))
    target = folder / run_format.file_name
    if isinstance(scored.source, Path) and scored.source.is_file() and scored.source.suffix == target.suffix:
        shutil.copyfile(scored.source, target)
    else:
        run_format.write(target, scored.answers)
    scored.card.write(folder / SCORECARD_FILE)
    if part == "val":
        scored.card.write(folder / "scorecard-val.json")
    run.write(folder)


def score_many(
    name: str,
    runs: Sequence[Path | str],
    *,
    engine: str | None = None,
    address: str | None = None,
    **how: Any,
) -> dict[str, Scorecard]:
    """Scores many runs of one benchmark, each as `score` does; a block of the work is one run.

    Args:
        name: The benchmark.
        runs: Run files, or folders of runs.
        engine: What scores them: "local", or "ray" for a cluster (`work.engines`).
        address: With "ray": the address of the cluster, "auto" for the one of this machine.
        how: What `score` takes besides: where the truth lies, the split, the metrics.

    Returns:
        The scorecard of each run, by its path.

    Raises:
        InputError: When a run or the truth is at fault; nothing is returned then.
        MisuseError: When a run is named twice.
    """
    paths = [Path(run) for run in runs]
    repeated = next((path for path in paths if paths.count(path) > 1), None)
    if repeated is not None:
        raise MisuseError(f"{place_text(repeated)} is named twice among the runs.")
    cards: dict[str, Scorecard] = {}
    with working_on(engine, address), progress("scoring runs", len(paths) if len(paths) > 1 else 0) as tick:
        for path, card in zip(paths, map_blocks(partial(_scored, name, how), paths, cluster()), strict=True):
            cards[place_text(path)] = card
            tick(1)
    return cards


def _scored(name: str, how: Mapping[str, Any], run: Path) -> Scorecard:
    return score(name, run, **how)


def _at_hand(table: Table | None) -> Any:
    """A table, or its file on this machine."""
    return local_input(table, "a table") if isinstance(table, (str, Path)) else table


def found_run(run: Path, *, in_one_file: bool) -> tuple[Path, Run | None]:
    """The run file, and where it came from if it lies in the folder of a run."""
    if run.is_dir() and (in_one_file or run_file(run).exists()):
        run = run_file(run)
    if run == run_file(run.parent) and (run.parent / RUN_FILE).exists():
        return run, Run.read(run.parent)
    return run, None


def write_truth(
    name: str, data: str | Path, out: str | Path, *, split: str = "test", seed: int = 0, overwrite: bool = False
) -> int:
    """Writes the truth of one part of a release as `truth.csv` and `classes.csv`, and returns the number of items.

    For soundscapes `media.csv` lists the recordings; masks are written as `truth.parquet`.

    Raises:
        InputError: When the release does not hold the labels of that part.
    """
    out = Path(out)
    refuse_address(out, "The truth")
    benchmark = BENCHMARKS[name]
    opened = open_benchmark(benchmark, open_release(benchmark, data), seed=seed)
    task = opened.benchmark.task
    truth = opened.truth_of(split)
    with appearing_folder(out, overwrite=overwrite) as folder:
        table, taxa = opened.items[split], opened.dataset.taxa
        task.answer.write_truth(task.items, folder, truth, table, taxa, task.by)
        if truth.simulated:
            _mark_simulated(folder, opened.dataset.release.world)
    return len(truth.items)


def _mark_simulated(folder: Path, world: Mapping[str, Any] | None) -> None:
    """Says in every table that has a header, and in a file beside them, that the truth is that of a world."""
    write_json(folder / WORLD_FILE, dict(world or {}))
    for path in folder.glob("*.csv"):
        table = read_given(path, "truth", ()).frame.drop(LINE) if _has_header(path) else None
        if table is not None:
            table.with_columns(pl.lit("true").alias(SIMULATED)).write_csv(path)


def _has_header(path: Path) -> bool:
    """Whether a table of truth names its columns; the events of soundscapes do not."""
    with path.open(encoding="utf-8") as file:
        return ";" not in file.readline()
