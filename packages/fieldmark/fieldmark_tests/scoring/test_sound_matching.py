"""Detections against annotations by window, event, recording and day, beside a program that looks at everything."""

import math

import numpy as np
import polars as pl
import pytest

from fieldmark.errors import MisuseError
from fieldmark.scoring.sound_matching import MatchRule, match_sounds

SPECIES = ("a", "b")


def sounds(rows, *, scored=True):
    columns = {"recording": pl.String, "start_s": pl.Float64, "end_s": pl.Float64, "label": pl.String}
    return pl.DataFrame(rows, schema={**columns, **({"score": pl.Float64} if scored else {})}, orient="row")


def spans(rows):
    full = [(name, start, end, name[:1], "2024-05-01") for name, start, end in rows]
    columns = {"recording": pl.String, "start_s": pl.Float64, "end_s": pl.Float64, "site": pl.String, "date": pl.String}
    return pl.DataFrame(full, schema=columns, orient="row")


def shares(a, b, c, d, least):
    shared, shorter = min(b, d) - max(a, c), min(b - a, d - c)
    return shared > 0 and shared >= min(least, shorter)


def naive(heard, noted, listened, rule):
    """(score, right) of all answers, and the best score of all positives, of each species, sorted."""
    inside = [one for one in heard if any(one[0] == s[0] and shares(*one[1:3], *s[1:3], 0) for s in listened)]
    truth = [one for one in noted if any(one[0] == s[0] and shares(*one[1:3], *s[1:3], 0) for s in listened)]
    found = {}
    for species in SPECIES:
        said, true = [one for one in inside if one[3] == species], [one for one in truth if one[3] == species]
        if rule.kind == "event":
            meets = lambda x, y: x[0] == y[0] and shares(*x[1:3], *y[1:3], rule.overlap_s)  # noqa: E731
            answers = [
                (one[4], any(meets(one, other) for other in true))
                for one in said
                if any(meets(one, other) for other in true)
                or not any(meets(one, other) for other in truth if other[3] is None)
            ]
            positives = [max((one[4] for one in said if meets(one, other)), default=-math.inf) for other in true]
        else:
            answers, positives = [], []
            for name, pieces in items_of(listened, rule):
                least = rule.overlap_s if rule.kind == "window" else 0

                def hits(one, name=name, pieces=pieces, least=least):
                    return one[0] == name and any(shares(*one[1:3], *piece, least) for piece in pieces)

                scores = [one[4] for one in said if hits(one)]
                present = any(hits(one) for one in true)
                unnamed = any(hits(one) for one in truth if one[3] is None)
                if scores and (present or not unnamed):
                    answers.append((max(scores), present))
                if present:
                    positives.append(max(scores, default=-math.inf))
        found[species] = (sorted(answers), sorted(positives))
    return found


def items_of(listened, rule):
    if rule.kind == "recording":
        return [(name, [s[1:3] for s in listened if s[0] == name]) for name in dict.fromkeys(s[0] for s in listened)]
    hop, made = rule.hop_s or rule.window_s, []
    for name, start, end in listened:
        for number in range(200):
            begin = number * hop
            if min(begin + rule.window_s, end) - max(begin, start) >= rule.window_s / 2:
                made.append((name, [(begin, begin + rule.window_s)]))
    return made


def test_every_rule_counts_as_a_naive_program_does():
    draw = np.random.default_rng(0)
    rules = [
        MatchRule("window", 3.0),
        MatchRule("window", 5.0, overlap_s=0.5),
        MatchRule("window", 3.0, hop_s=1.5, overlap_s=1.0),
        MatchRule("event"),
        MatchRule("event", overlap_s=1.0),
        MatchRule("recording"),
    ]
    for case in range(150):
        heard = [
            (
                str(draw.choice(["r1", "r2", "r3"])),
                start,
                start + length,
                str(draw.choice(SPECIES)),
                round(draw.random(), 1),
            )
            for start, length in zip(draw.integers(0, 40, 12) / 2, draw.integers(1, 8, 12) / 2, strict=True)
        ]
        noted = [
            (str(draw.choice(["r1", "r2"])), start, start + length, draw.choice(["a", "b", None]))
            for start, length in zip(draw.integers(0, 40, 6) / 2, draw.integers(1, 8, 6) / 2, strict=True)
        ]
        listened = [("r1", 0.0, float(draw.integers(5, 25))), ("r2", float(draw.integers(0, 9)), 20.0)]
        rule = rules[case % len(rules)]
        matched = match_sounds(sounds(heard), sounds(noted, scored=False), spans(listened), rule, species=SPECIES)
        for species, (answers, positives) in naive(heard, noted, listened, rule).items():
            ours = matched.species[species]
            assert sorted(zip(ours.score.tolist(), ours.right.tolist(), strict=True)) == answers
            assert sorted(ours.best.tolist()) == positives


def test_a_window_that_nobody_listened_to_is_not_silence():
    heard, noted = sounds([("r1", 0, 3, "a", 0.9), ("r1", 30, 33, "a", 0.8)]), sounds([("r1", 1, 2, "a")], scored=False)
    whole = match_sounds(heard, noted, spans([("r1", 0.0, 60.0)]), MatchRule(), species=SPECIES)
    start = match_sounds(heard, noted, spans([("r1", 0.0, 6.0)]), MatchRule(), species=SPECIES)
    assert whole.species["a"].right.tolist() == [True, False] and whole.items == 20
    assert start.species["a"].right.tolist() == [True] and start.items == 2 and start.outside == (1, 0)


def test_what_an_annotator_could_not_name_is_neither_right_nor_wrong():
    noted = sounds([("r1", 0, 3, None), ("r1", 0, 3, "b")], scored=False)
    heard = sounds([("r1", 0, 3, "a", 0.9), ("r1", 0, 3, "b", 0.4)])
    matched = match_sounds(heard, noted, spans([("r1", 0.0, 9.0)]), MatchRule(), species=SPECIES)
    assert matched.left_out == 1 and not len(matched.species["a"].score)
    assert matched.species["b"].right.tolist() == [True]


def test_recordings_of_one_day_at_one_site_are_one_question():
    listened = spans([("x1", 0.0, 9.0), ("x2", 0.0, 9.0), ("y1", 0.0, 9.0)])
    heard = sounds([("x1", 0, 3, "a", 0.3), ("x2", 0, 3, "a", 0.7), ("y1", 0, 3, "a", 0.5)])
    noted = sounds([("x1", 0, 3, "a")], scored=False)
    days = match_sounds(heard, noted, listened, MatchRule("site-day"), species=SPECIES, by="site").species["a"]
    assert sorted(zip(days.score.tolist(), days.right.tolist(), strict=True)) == [(0.5, False), (0.7, True)]
    assert days.best.tolist() == [0.7]
    nowhere = listened.with_columns(date=pl.lit(None, pl.String))
    with pytest.raises(MisuseError, match="site and the date"):
        match_sounds(heard, noted, nowhere, MatchRule("site-day"), species=SPECIES)
