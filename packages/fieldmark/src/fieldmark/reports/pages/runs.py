"""From the folders of runs to what the sections of a report are given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import InputError, MisuseError
from fieldmark.questions.truth import Truth
from fieldmark.releases import release_of
from fieldmark.reports.pages.thumbnails import Thumbnails
from fieldmark.reports.section import Context, ScoredRun
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.predictions import read_predictions
from fieldmark.runs.provenance import ABLATION_FILE, RUN_FILE, Run
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.views.broken_media import without_media
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release, split_of_run


def load_context(folders: Sequence[str | Path], *, data: str | Path | None = None) -> Context:
    """Reads runs, scorecards, the answers of the first run, and opens the release behind them.

    Raises:
        InputError: When the runs do not go together, or when the release is not what they were made on.
    """
    if not folders:
        raise MisuseError("A report needs the folder of at least one run.")
    paths = [_run_folder(Path(folder)) for folder in folders]
    runs = _named(paths, [Run.read(path) for path in paths])
    _check_same_question(paths, runs)
    opened = _open(runs[0].run, paths[0], data)
    part = runs[0].scorecard.split
    if part not in opened.truth:
        where = opened.dataset.release.root
        raise InputError(where, found=f"no labels for {part}", expected="the release that the run was scored on")
    truth = opened.truth[part]
    predictions = _answers(paths[0] / "predictions" / f"{part}.parquet", opened, truth)
    label_of = dict(opened.items[part].select("item_id", opened.benchmark.task.answer.column).iter_rows())
    codes = opened.view.labels.encode([label_of.get(item) for item in truth.items])
    unit = np.unique(np.array(truth.units, dtype=str), return_inverse=True)[1]
    return Context(opened, runs, part, predictions, codes, unit.astype(np.int32), Thumbnails(opened), paths[0])


def _run_folder(folder: Path) -> Path:
    """The folder of a run; for that of an ablation, the run with all modalities."""
    whole = folder / "all"
    return whole if (folder / ABLATION_FILE).exists() and (whole / RUN_FILE).exists() else folder


def _named(paths: Sequence[Path], runs: Sequence[Run]) -> tuple[ScoredRun, ...]:
    """Runs under the name of their method, or of their folder where two have the same method."""
    methods = [run.method for run in runs]
    return tuple(
        ScoredRun(
            title=run.method if methods.count(run.method) == 1 else path.resolve().name,
            run=run,
            scorecard=Scorecard.read(path / SCORECARD_FILE),
            folder=path,
        )
        for path, run in zip(paths, runs, strict=True)
    )


def _check_same_question(paths: Sequence[Path], runs: Sequence[ScoredRun]) -> None:
    first = runs[0]
    for path, scored in zip(paths, runs, strict=True):
        for what, found, expected in (
            ("the benchmark", _benchmark_of(scored), _benchmark_of(first)),
            ("data with the digest", scored.run.data_digest, first.run.data_digest),
            ("a score on", scored.scorecard.split, first.scorecard.split),
            ("the split", _split_of(scored), _split_of(first)),
        ):
            if found != expected:
                raise InputError(
                    path,
                    found=f"{what} {found}",
                    expected=f"{expected} as in {paths[0]}",
                    hint="One page shows runs of one benchmark on the same data: write a page for each.",
                )


def _split_of(scored: ScoredRun) -> str:
    return scored.run.split["digest"] if scored.run.split else "of the benchmark"


def _benchmark_of(scored: ScoredRun) -> str:
    return f"{scored.run.benchmark} (version {scored.run.version})"


def _open(run: Run, folder: Path, data: str | Path | None) -> Opened:
    benchmark = BENCHMARKS[run.benchmark]
    root = run.data if data is None else data
    try:
        release_of(benchmark.dataset, root)
    except InputError as error:
        hint = "If the folder moved, pass its new place with --data." if data is None else "Check --data."
        raise InputError(root, found=error.found, expected="the release that the run was made on", hint=hint) from error
    dataset = without_media(open_release(benchmark, root), run.skipped)
    if dataset.digest != run.data_digest:
        raise InputError(
            root,
            found=f"data with the digest {dataset.digest}",
            expected=f"{run.data_digest}, on which the run was made",
            hint="The release changed since: fit again, or pass the unchanged release with --data.",
        )
    return open_benchmark(benchmark, dataset, seed=run.seed, split=split_of_run(folder, run))


def _answers(path: Path, opened: Opened, truth: Truth) -> Any:
    predictions = read_predictions(path)
    if isinstance(predictions, LabelScores) and predictions.labels != opened.view.labels:
        raise InputError(path, found="other labels", expected="those of the benchmark")
    absent = set(truth.items) - set(predictions.items)
    if absent:
        raise InputError(path, found=f"no answer for {min(absent)!r}", expected="one for each item that was scored")
    return predictions.select(truth.items)
