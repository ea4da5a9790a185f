"""What smaller weights cost: right first answers on val, beside those of single precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.exporting.answering_network import AnsweringNetwork
from fieldmark.exporting.weight_precision import PRECISIONS, Precision, with_precision
from fieldmark.features.photos import Preprocessing, decode_square
from fieldmark.fitting.harness import split_of_model
from fieldmark.models import Model
from fieldmark.registry import require
from fieldmark.runs.label_scores import LabelScores
from fieldmark.stats.intervals import interval
from fieldmark.stats.paired_shares import paired_share_interval
from fieldmark.steps.base import apply_step
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.views.parts import Part
from fieldmark.work.progress import progress

# So many observations of val are asked at most, drawn at random; each costs three looks at a photo.
MOST_OBSERVATIONS: Final = 200
SEED: Final = 0


@dataclass(frozen=True)
class WeightLoss:
    """What weights of some precision answer on val.

    Args:
        precision: Which.
        right: The share of first answers that are right, with its 95 % interval.
        less: The same less that of single precision, with its interval; None for single precision itself.
        same: The share of observations with the same first answer as in single precision.
    """

    precision: Precision
    right: tuple[float, float | None, float | None]
    less: tuple[float, float, float] | None
    same: float


@dataclass(frozen=True)
class ValLosses:
    """The losses of all precisions on some observations of val, the first photo of each; or why there are none."""

    observations: int = 0
    losses: tuple[WeightLoss, ...] = ()
    not_measured: str = ""


def losses_on_val(model: Model, place: str | Path, network: AnsweringNetwork, data: str | Path | None) -> ValLosses:
    """Answers val with weights of each precision.

    Args:
        model: The model.
        place: Its folder, where the split lies that it was trained with.
        network: The same as a graph.
        data: The root of the release, if not where the model was fitted.
    """
    root = data or (model.guide.photos.root if model.guide is not None else "")
    if not root or not Path(root).exists():
        return ValLosses(not_measured="The photos that the model was fitted to are not here (--data names them).")
    if network.squashed is not None:
        return ValLosses(not_measured="For fine-tuned networks nothing is measured yet.")
    declared = BENCHMARKS[model.trained["benchmark"]]
    opened = open_benchmark(
        declared, open_release(declared, root), seed=model.trained["seed"], split=split_of_model(place, model)
    )
    val = opened.view.val
    if val is None or val.targets is None:
        return ValLosses(not_measured="There is no val.")
    part = _some(val)
    right = _first_answers(model, part, network)
    assert part.targets is not None
    return ValLosses(len(part), tuple(_losses(right, part.targets.codes)))


def _some(val: Part) -> Part:
    """One item of each observation, of at most so many."""
    assert val.targets is not None
    known = np.flatnonzero(val.targets.codes >= 0)
    first = known[np.unique(val.items["observation_id"].to_numpy()[known], return_index=True)[1]]
    drawn = np.random.default_rng(SEED).permutation(first)[:MOST_OBSERVATIONS]
    return val.take(np.sort(drawn))


def _first_answers(model: Model, part: Part, network: AnsweringNetwork) -> dict[Precision, NDArray[np.int32]]:
    """The code of the first name of each item by each precision, steps applied."""
    assert part.media is not None
    sessions = {name: _session(with_precision(network.graph, name)) for name in PRECISIONS}
    rows: dict[Precision, list[LabelScores]] = {name: [] for name in PRECISIONS}
    with progress("answering val with smaller weights", len(part)) as tick:
        for number, media in enumerate(part.items["media_ids"].to_list()):
            squares = squares_of(part.media.read(media[0]), network.views)
            item = part.take(np.array([number]))
            for name, session in sessions.items():
                rows[name].append(_answer(model, item, session, squares))
            tick(1)
    return {name: np.concatenate([one.top(1)[:, 0] for one in answers]) for name, answers in rows.items()}


def squares_of(photo: bytes, views: Sequence[Preprocessing]) -> NDArray[np.uint8]:
    """What the graph takes of a photo."""
    return np.stack([decode_square(photo, view) for view in views])


def _session(graph: Any) -> Any:
    runtime: Any = require("onnxruntime", "Checking an exported model")
    return runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def _answer(model: Model, item: Part, session: Any, squares: NDArray[np.uint8]) -> LabelScores:
    names = [output.name for output in session.get_outputs()]
    said = dict(zip(names, session.run(names, {"squares": squares}), strict=True))
    unknown = said["unknown"][:, 0] if "unknown" in said else None
    scale = model.fitted.method.scale
    predictions = LabelScores(item.item_ids, model.labels, said["scores"], scale, unknown=unknown)
    for step in model.steps:
        predictions = apply_step(step, predictions, item.items)
    return predictions


def _losses(answers: dict[Precision, NDArray[np.int32]], truth: NDArray[np.int32]) -> list[WeightLoss]:
    right = {name: codes == truth for name, codes in answers.items()}
    found = []
    for name, own in right.items():
        value = float(own.mean())
        around = interval(value, own.astype(np.float64), proportion=True)
        less = None if name == "single" else paired_share_interval(own, right["single"])
        same = float((answers[name] == answers["single"]).mean())
        found.append(WeightLoss(name, (value, around.low, around.high), less, same))
    return found
