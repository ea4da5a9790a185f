"""Real: BirdNET against the annotations that are there, and thresholds with a promise on real answers.

Recordings: the clips of two Australian species of `soundscapes_qut` (boobooks: the clips with boxes; noisy pittas: the
same) and the spinetail of `bird_recordings`, BirdNET on windows of three seconds, scores from 0.01 on, no place and no
date. The boxes are of one species, so that other detections are not scored.

Promises: the test photos of three sets, answered by `linear` on frozen features with its defaults, fitted to train.
Each answer is a detection of the species it names. 500 times a share of the photos is annotated and thresholds that
promise a precision of 0.9 with a risk of 0.05 are computed as `fieldmark detections --thresholds` does; a threshold
keeps the promise where the precision at it is at least 0.9 on all test photos, drawn or not. The unit is the photo
(specimens are not known), and photos of a set are alike in ways that recordings of a site are not.

Words: how often the first answers of these models are right, by the word that `identify` puts beside a probability.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

import fieldmark
from fieldmark.identification.review.batch import BatchSettings, identify_many
from fieldmark.identification.text import CONFIDENCE_WORDS, confidence_word
from fieldmark.metrics.sound_events import Matches
from fieldmark.scoring.sound_matching import MatchRule
from fieldmark.scoring.sound_thresholds import promises
from studies.evidence.results import real_data

DRAWS, PROMISE, RISK = 500, 0.9, 0.05
# The set, which part of its test photos is annotated.
PHOTOS = {"birds_cub_odd": 0.25, "snakes_philippines": 0.5, "fungi_genera": 0.8}
RULES = (MatchRule("event"), MatchRule("window"), MatchRule("window", window_s=10.0), MatchRule("recording"))
# What annotations call the bird of the one recording of `bird_recordings` that has some.
SPINETAIL = "synonym,name\nCRER,Cranioleuca erythrops\n"


def run() -> dict[str, Any] | None:
    """Both questions; None without the real data."""
    qut, birds = real_data("soundscapes_qut"), real_data("bird_recordings")
    if qut is None or birds is None or any(real_data(name) is None for name in PHOTOS):
        return None
    answers = {name: _answers(name) for name in PHOTOS}
    return {
        "about": __doc__,
        "recordings": _recordings(qut, birds),
        "promises": [_promised(name, share, answers[name]) for name, share in PHOTOS.items()],
        "words": {name: _words(own) for name, own in answers.items()},
    }


def _recordings(qut: Path, birds: Path) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        settings = BatchSettings(at_least=0.01, each_window=True)
        identify_many(qut, "birdnet", place / "qut", settings)
        (place / "spinetail").mkdir()
        (place / "spinetail" / "scikit-maad_spinetail.wav").symlink_to(birds / "scikit-maad_spinetail.wav")
        identify_many(place / "spinetail", "birdnet", place / "bird", settings)
        (place / "names.csv").write_text(SPINETAIL)
        asked = (
            ("qut", qut / "boobook_set" / "positive", "Ninox boobook", qut),
            ("qut", qut / "noisypitta" / "pos", "Pitta versicolor", qut),
            ("bird", birds / "scikit-maad_spinetail.txt", "Cranioleuca erythrops", place / "spinetail"),
        )
        for answers, against, species, sounds in asked:
            for rule in RULES:
                card = fieldmark.detections(
                    place / answers,
                    against,
                    listened="recordings",
                    recordings=sounds,
                    rule=rule,
                    label=species,
                    names=(place / "names.csv",),
                )
                rows.append(_row(species, rule, card))
    return rows


def _row(species: str, rule: MatchRule, card: Any) -> dict[str, Any]:
    one = next(score for score in card.species if score.name == species)
    promise = next(promised for promised in card.thresholds if promised.name == species)
    scores = {
        name: [None if value is None or value != value else round(value, 4) for value in (at.value, at.low, at.high)]
        for name, at in (("precision", one.precision), ("recall", one.recall), ("ap", one.average_precision))
    }
    return {
        "species": species,
        "rule": rule.kind if rule.kind != "window" else f"window of {rule.window_s:g} s",
        "recordings": card.units,
        "called": one.answers,
        "positive": one.positives,
        **scores,
        "threshold": promise.at_least,
        "reason": promise.reason,
    }


def _promised(name: str, share: float, species: dict[str, Matches]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    photos = sum(len(one.score) for one in species.values())
    kept = {kind: {"asked": 0, "given": 0, "held": 0} for kind in ("own", "pooled")}
    for _ in range(DRAWS):
        drawn = rng.random(photos) < share
        _count(species, {one: _annotated(matches, drawn) for one, matches in species.items()}, kept)
    return {"set": name, "photos": photos, "annotated": share, **kept}


def _words(species: dict[str, Matches]) -> list[dict[str, Any]]:
    sure = np.concatenate([one.score for one in species.values()])
    right = np.concatenate([one.right for one in species.values()])
    said = np.array([confidence_word(chance) for chance in sure])
    rows = []
    for _, word in CONFIDENCE_WORDS:
        own = said == word
        number, hits = int(own.sum()), int(right[own].sum())
        low = float(betaincinv(hits, number - hits + 1, 0.025)) if hits else 0.0
        high = float(betaincinv(hits + 1, number - hits, 0.975)) if hits < number else 1.0
        stated = float(sure[own].mean()) if number else float("nan")
        rows.append({"word": word, "photos": number, "stated": stated, "right": hits, "low": low, "high": high})
    return rows


def _answers(name: str) -> dict[str, Matches]:
    """The first answers to the test photos of a set, by the species they name."""
    data = real_data(name)
    assert data is not None
    with tempfile.TemporaryDirectory() as folder:
        result = fieldmark.fit("folder", data, "linear", out=Path(folder, "run"))
    scores, truth = result.predictions["test"], result.truth["test"]
    probabilities = scores.probabilities()
    first, sure = probabilities.argmax(axis=1), probabilities.max(axis=1).astype(np.float64)
    true = dict(truth.rows.select("item_id", "label").iter_rows())
    right = np.array([true[item] == scores.labels.names[code] for item, code in zip(scores.items, first, strict=True)])
    photo = np.arange(len(first))
    species = {}
    for code in np.unique(first):
        own = np.flatnonzero(first == code)
        found = own[right[own]]
        species[scores.labels.names[code]] = Matches(sure[own], right[own], photo[own], sure[found], photo[found])
    return species


def _annotated(matches: Matches, drawn: NDArray[np.bool_]) -> Matches:
    own, found = drawn[matches.unit], drawn[matches.positive_unit]
    return Matches(
        matches.score[own], matches.right[own], matches.unit[own], matches.best[found], matches.positive_unit[found]
    )


def _count(everything: dict[str, Matches], annotated: dict[str, Matches], kept: dict[str, dict[str, int]]) -> None:
    made = promises(annotated, common={}, share=PROMISE, risk=RISK)
    pool = [one for one in made if one.pooled]
    groups = [("own", [one.name], one.at_least) for one in made if not one.pooled]
    groups += [("pooled", [one.name for one in pool], pool[0].at_least)] if pool else []
    for kind, names, at_least in groups:
        kept[kind]["asked"] += 1
        if at_least is None:
            continue
        kept[kind]["given"] += 1
        right = np.concatenate([everything[name].right[everything[name].score >= at_least] for name in names])
        kept[kind]["held"] += bool(right.mean() >= PROMISE)
