"""The mean of runs: of the predictions that they keep, or that their models make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Task
from fieldmark.errors import InputError, MisuseError, did_you_mean
from fieldmark.fitting.allowed import ORDER, lessons_of, parts_learned_from
from fieldmark.fitting.fit_part import applied, fit_steps, revealed_labels
from fieldmark.fitting.harness import predict
from fieldmark.fitting.run_folders import score_part
from fieldmark.models import MODEL_FOLDER
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.mean_scores import Mean, mean_predictions, member_probabilities
from fieldmark.runs.predictions import PREDICTIONS_FOLDER, predictions_file, read_predictions
from fieldmark.runs.provenance import UNKNOWN, Run
from fieldmark.scoring import SCORECARD_FILE, Scorecard
from fieldmark.scoring.run_reader import read_run
from fieldmark.splits.files import SPLIT_FILE
from fieldmark.stats.mixture import mixture_weights
from fieldmark.steps import Step, make_step, step_to_data
from fieldmark.steps.base import Lesson
from fieldmark.steps.multilabel import enough_rows
from fieldmark.storage.addresses import recorded_place
from fieldmark.storage.files import appearing_folder
from fieldmark.storage.local_inputs import local_input
from fieldmark.views.open_benchmark import Opened, open_benchmark, open_release, split_of_run

WEIGHTS = ("equal", "val")
PARTS = ("val", "test")


@dataclass(frozen=True)
class RunMember:
    """A run that is averaged.

    Args:
        path: Its folder, or its file.
        run: Where it came from; None for a file from elsewhere.
    """

    path: Path
    run: Run | None

    @classmethod
    def at(cls, path: str | Path) -> RunMember:
        """The run in a folder, or in a file in the format of the challenge."""
        place = local_input(path, "a run")
        return cls(place, Run.read(place) if place.is_dir() else None)

    def predictions(self, part: str, opened: Opened, data: str | Path) -> LabelScores | None:
        """What it says of a part; None where it says nothing: a file from elsewhere answers test alone.

        Raises:
            InputError: When it keeps neither predictions of this release nor a model.
        """
        view = {"val": opened.view.val, "test": opened.view.test}[part]
        if view is None:
            return None
        made: Any = None
        if self.run is None:
            if part == "test":
                task, labels = opened.benchmark.task, opened.view.labels
                made = read_run(task, self.path, view.item_ids, labels, closed=True, stored=True)[0]
        elif self.run.data_digest == opened.dataset.digest and predictions_file(self.path, part).exists():
            made = read_predictions(predictions_file(self.path, part))
        elif self.run.made_elsewhere and self.run.data_digest == opened.dataset.digest:
            made = None  # it answers one part alone
        elif (self.path / MODEL_FOLDER).exists():
            made = predict(self.path, data, split=part, benchmark=opened.benchmark.name)
        else:
            hint = "Fit it on this release, or name a run that keeps its model."
            found = f"a run of another release, or without {PREDICTIONS_FOLDER}/{part}.parquet, and without a model"
            raise InputError(self.path, found=found, expected="predictions of this release", hint=hint)
        if made is not None and not isinstance(made, LabelScores):
            raise InputError(self.path, found="masks", expected="scores of labels, which have a mean")
        if made is not None and set(made.items) != set(view.item_ids):
            expected = "those of the first run: the same seed and the same split"
            raise InputError(self.path, found=f"answers to other items of {part}", expected=expected)
        return made


@dataclass(frozen=True)
class EnsembleResult:
    """What `ensemble` made: the folder of the run, where it came from, and what it scored."""

    folder: Path
    run: Run
    scorecards: dict[str, Scorecard]

    @property
    def scorecard(self) -> Scorecard | None:
        """The score on test, or on val where there is no truth for test; None where there is no truth."""
        return self.scorecards.get("test") or self.scorecards.get("val")


def ensemble(
    runs: Sequence[str | Path],
    out: str | Path,
    *,
    data: str | Path | None = None,
    benchmark: str | None = None,
    mean: Mean = "probabilities",
    weights: str | Sequence[float] = "equal",
    steps: Sequence[str] | None = None,
    overwrite: bool = False,
) -> EnsembleResult:
    """Averages the predictions of runs, and writes the folder of the run that is their mean.

    Args:
        runs: Folders of runs (`fit`), or run files from elsewhere in the format of the challenge.
        out: The folder to write: all that `fit` writes, less a model.
        data: The release; the one that the first run names if not given. Runs of another release predict this one with
            their models.
        benchmark: The benchmark; that of the first run if not given.
        mean: Of probabilities, of logits or of ranks (`runs.mean_scores`).
        weights: "equal", "val" (the mixture of lowest log loss there), or one number for each run.
        steps: Steps fitted on val after the mean; those of the task if not given.
        overwrite: Whether an existing folder is replaced.

    Raises:
        InputError: When a run is at fault.
        MisuseError: When runs do not go together, or names and weights are wrong.
    """
    if len(runs) < 2:
        raise MisuseError("An ensemble needs at least two runs.")
    members = [RunMember.at(run) for run in runs]
    told = [member.run for member in members if member.run is not None]
    opened, data = _opened(members, told, data, benchmark)
    task = opened.benchmark.task
    answers: dict[str, list[LabelScores]] = {}
    for part in PARTS:
        made = [member.predictions(part, opened, data) for member in members]
        found = [one for one in made if one is not None]
        if found and len(found) == len(members):
            answers[part] = found
    if not answers:
        raise MisuseError("The runs have no part in common that all of them answer.")
    shares = _weights(weights, answers.get("val"), opened, len(members))
    several = task.answer.several
    combined = {part: mean_predictions(own, shares, mean=mean, several=several) for part, own in answers.items()}
    fitted: tuple[Step, ...] = ()
    if "val" in combined:
        fitted, combined = _with_steps(steps, combined, opened)
    elif steps:
        raise MisuseError("Steps are fitted on val, and a run that is only a file does not answer it.")
    run = _record(members, opened, data, {"mean": mean, "weights": shares.tolist()}, weights, fitted)
    scorecards = {part: score_part(opened, own, part, run) for part, own in combined.items() if part in opened.truth}
    with appearing_folder(Path(out), overwrite=overwrite) as folder:
        _write(folder, opened, run, combined, scorecards)
    return EnsembleResult(Path(out), run, scorecards)


def _opened(
    members: Sequence[RunMember], told: Sequence[Run], data: str | Path | None, benchmark: str | None
) -> tuple[Opened, str | Path]:
    """The benchmark that all runs answer, on the release."""
    name = benchmark or next((run.benchmark for run in told), None)
    place = data or next((run.data for run in told), None)
    if name is None or place is None:
        raise MisuseError("Run files alone say neither benchmark nor release: give --benchmark NAME and --data ROOT.")
    for member in members:
        if member.run is not None and benchmark is None and member.run.benchmark != name:
            raise MisuseError(f"{members[0].path} is a run of {name}, {member.path} one of {member.run.benchmark}.")
    declared = BENCHMARKS[name]
    dataset = open_release(declared, place)
    first = next((member for member in members if member.run is not None), None)
    own = first is not None and first.run is not None and first.run.data_digest == dataset.digest
    split = split_of_run(first.path, first.run) if own and first is not None and first.run is not None else None
    seed = first.run.seed if first is not None and first.run is not None else 0
    return open_benchmark(declared, dataset, seed=seed, split=split), place


def _weights(
    asked: str | Sequence[float], val: Sequence[LabelScores] | None, opened: Opened, members: int
) -> NDArray[np.float64]:
    if asked == "equal":
        return np.full(members, 1 / members)
    if asked != "val":
        try:
            numbers = [float(one) for one in (asked.split(",") if isinstance(asked, str) else asked)]
        except ValueError as error:
            hint = did_you_mean(str(asked), WEIGHTS)
            raise MisuseError(f"--weights {asked}: expected equal, val, or a number for each run. {hint}") from error
        if len(numbers) != members or min(numbers) < 0 or not sum(numbers) > 0:
            raise MisuseError(f"--weights {asked}: expected {members} numbers of at least 0, and one above.")
        return np.array(numbers) / sum(numbers)
    part = opened.view.val
    if val is None or part is None or part.targets is None:
        raise MisuseError("--weights val: not every run answers val; give numbers, or equal.")
    several, known = opened.benchmark.task.answer.several, part.of_known_labels()
    assert known.targets is not None  # it is that of val
    chances = [member_probabilities(one.select(known.item_ids), several=several) for one in val]
    if not several:
        codes = known.targets.codes
        return mixture_weights(np.stack([one[np.arange(len(codes)), codes] for one in chances]))
    rows = enough_rows(len(known), len(val[0].labels))
    holds = known.targets.holds(len(val[0].labels))[rows]
    return mixture_weights(np.stack([np.where(holds, one[rows], 1 - one[rows]).ravel() for one in chances]))


def _with_steps(
    names: Sequence[str] | None, combined: Mapping[str, LabelScores], opened: Opened
) -> tuple[tuple[Step, ...], dict[str, LabelScores]]:
    """The steps, fitted on val, and the predictions with them applied."""
    task, view = opened.benchmark.task, opened.view
    assert view.val is not None  # it is answered
    wanted = [make_step(one) for one in (task.answer.default_steps if names is None else names)]
    for step in wanted:
        _refuse_unfit(step, task, combined["val"], asked=names is not None)
    wanted = [step for step in wanted if combined["val"].dense or step.takes_lists]
    lesson = Lesson(task, view.labels, opened.dataset.taxa, view.val, view.train)
    val = combined["val"].coded_by(view.labels).select(view.val.item_ids)
    fitted, on_val = fit_steps(wanted, val, lesson)
    done = {"val": on_val}
    if "test" in combined and view.test is not None:
        test = combined["test"].coded_by(view.labels).select(view.test.item_ids)
        done["test"] = applied(fitted, test, view.test.items, task, revealed_labels(opened, "test"))
    return fitted, done


def _refuse_unfit(step: Step, task: Task, val: LabelScores, *, asked: bool) -> None:
    step.check(task)
    if step.sees not in task.sees:
        raise MisuseError(f"The step {step.name!r} is shown {step.sees}; the task allows {' or '.join(task.sees)}.")
    for source in step.learns_from:
        if source not in task.learns_from:
            allowed = " and ".join(task.learns_from)
            raise MisuseError(f"The step {step.name!r} learns from {source}; the task allows {allowed}.")
    if asked and not (val.dense or step.takes_lists):
        raise MisuseError(f"The step {step.name} needs a score for every label, and the mean lists the best.")


def _record(
    members: Sequence[RunMember],
    opened: Opened,
    data: str | Path,
    how: dict[str, Any],
    weights: str | Sequence[float],
    steps: Sequence[Step],
) -> Run:
    """Where the mean came from: what any member brought in, saw and learned from, it did."""
    runs = [member.run for member in members]
    told = [run for run in runs if run is not None]

    def united(name: str) -> list[Any]:
        return list(dict.fromkeys(one for run in told for one in getattr(run, name) or ()))

    seen = {word for run in told for word in run.sees.split(" and ")} | {step.sees for step in steps}
    widest = "test set" if "test set" in seen else " and ".join(one for one in ORDER[1:] if one in seen) or "item"
    if UNKNOWN in seen and widest != "test set":  # a run that was made elsewhere
        widest = UNKNOWN
    unstated = [member for member in members if member.run is None or member.run.external_data is None]
    listed = [
        {"run": member.path.name, "method": run.method, "options": run.options} if run else {"run": member.path.name}
        for member, run in zip(members, runs, strict=True)
    ]
    chosen = ["The weights were chosen on val."] if weights == "val" else []
    unknown = [f"Nothing is known about how {member.path.name} was made." for member in members if member.run is None]
    return Run(
        benchmark=opened.benchmark.name,
        version=opened.benchmark.version,
        method="ensemble",
        options={**how, "members": listed},
        sees=widest,
        features=None,
        steps=[step_to_data(step) for step in steps],
        trained_on=parts_learned_from(united("trained_on"), steps),
        seed=told[0].seed if told else 0,
        data=recorded_place(data),
        data_digest=opened.dataset.digest,
        world=opened.dataset.release.world,
        remarks=[*united("remarks"), *unknown, *chosen],
        external_data=None if unstated else united("external_data"),
        learns_from=united("learns_from"),
        step_lessons=[*(one for run in told for one in run.step_lessons), *lessons_of(steps)],
        split=told[0].split if told else None,
        extra_annotations=united("extra_annotations"),
        modalities=united("modalities"),
    )


def _write(
    folder: Path,
    opened: Opened,
    run: Run,
    predictions: Mapping[str, LabelScores],
    scorecards: Mapping[str, Scorecard],
) -> None:
    for part, own in predictions.items():
        own.write(predictions_file(folder, part))
    run_format = opened.benchmark.task.run
    run_format.write(folder / run_format.file_name, predictions.get("test") or predictions["val"])
    if main := scorecards.get("test") or scorecards.get("val"):
        main.write(folder / SCORECARD_FILE)
    if "val" in scorecards:
        scorecards["val"].write(folder / "scorecard-val.json")
    if opened.split is not None:
        opened.split.write(folder / SPLIT_FILE)
    run.write(folder)


__all__ = ["EnsembleResult", "RunMember", "ensemble"]
