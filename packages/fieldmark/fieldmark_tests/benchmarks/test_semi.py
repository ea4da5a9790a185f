"""Semi-iNat and Semi-Aves."""

from __future__ import annotations

import fieldmark


def test_semi_inat(run):
    truth, classes = {"id": ["p.jpg", "q.jpg"], "label": ["3", "0"]}, {"label": list("0123456")}
    card = fieldmark.score(
        "semi-inat-2021", run("Id,Category\np.jpg,0 1 2 3 4\nq.jpg,0 1 2 3 4\n"), truth=truth, classes=classes
    )
    assert (card.metrics["top_1"].value, card.metrics["top_5"].value) == (0.5, 1.0)


def test_confusion_between_phyla_is_counted_where_classes_name_them(run):
    truth = {"id": list("pqr"), "label": ["3", "0", "1"]}
    classes = {"label": list("0123"), "group": ["Chordata", "Chordata", "Mollusca", "Mollusca"]}
    card = fieldmark.score("semi-inat-2021", run("Id,Category\np,2\nq,2\nr,0\n"), truth=truth, classes=classes)
    assert card.confusion == {"groups": ["Chordata", "Mollusca"], "counts": [[1, 1], [0, 1]]}
