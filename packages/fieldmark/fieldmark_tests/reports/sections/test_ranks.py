"""Answers by genus."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import ranks
from fieldmark_tests.reports.by_hand import FUNGI_TAXA, MakeRelease, MakeRun, noisy
from fieldmark_tests.reports.sections.first_answers import answers


def test_rows_by_genus_match_item_by_item_counts(context: Context) -> None:
    assert ranks.grouping_rank(context) == "genus"
    rows, total = ranks.rows_by_taxon(context, "genus")
    names, genus_of = context.labels.names, {name: about["genus"] for name, about in FUNGI_TAXA.items()}
    counted: dict[str, Counter[str]] = {}
    for (truth, answer, _), scores in zip(answers(context), context.predictions.scores, strict=True):
        mass: Counter[str] = Counter()
        for name, score in zip(names, scores, strict=True):
            mass[genus_of[name]] += float(np.exp(score))
        tally = counted.setdefault(genus_of[truth], Counter())
        tally["items"] += 1
        tally["hits"] += truth == answer
        tally["taxon_hits"] += mass.most_common(1)[0][0] == genus_of[truth]
        tally["inside"] += truth != answer and genus_of[truth] == genus_of[answer]
    assert {row.title for row in rows} == set(counted)
    for row in rows:
        tally = counted[row.title]
        assert (row.items, row.hits, row.taxon_hits, row.inside) == tuple(
            tally[key] for key in ("items", "hits", "taxon_hits", "inside")
        )
        assert row.classes == sum(genus == row.title for genus in genus_of.values())
    assert total.items == len(context.truth) and total.hits == sum(row.hits for row in rows)


def test_many_genera_are_summed_without_losing_items(make_release: MakeRelease, make_run: MakeRun) -> None:
    names = [f"Genus{chr(97 + n // 6)}{chr(97 + n % 6)} {epithet}" for n in range(36) for epithet in ("alba", "nigra")]
    root = make_release({name: {"train": 1, "val": 1, "test": 1} for name in names})
    context = load_context([make_run(root, noisy)])
    rows, total = ranks.rows_by_taxon(context, "genus")
    assert len(rows) == 26 and rows[-1].kind == "rest" and rows[-1].taxa == 11
    for name in ("items", "classes", "hits", "taxon_hits", "inside", "taxa"):
        assert sum(getattr(row, name) for row in rows) == getattr(total, name)
