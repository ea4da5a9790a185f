"""Any number of labels per item."""

from __future__ import annotations

from fieldmark.questions.any_labels import AnyLabels
from fieldmark.questions.photos import Photos


def test_items_of_any_labels_may_have_none_or_several():
    table = {"id": ["p", "p", "q"], "label": ["a", "b", None]}
    truth, labels, *_ = AnyLabels().given(Photos(), table, None, None, ())
    assert (truth.items, truth.rows.rows(), labels.names) == (("p", "q"), [("p", "a"), ("p", "b")], ("a", "b"))
