"""Table 3 of Semi-iNat, typed once more from the document."""

from __future__ import annotations

from fieldmark.fitting.configuration import configured_method
from fieldmark.suites.tables import TABLES

TYPED = {
    "baseline-scratch": (0.192, 0.364), "oracle-scratch": (0.933, 0.969),
    "baseline-imagenet": (0.410, 0.637), "oracle-imagenet": (0.943, 0.975),
}  # fmt: skip


def test_the_numbers_are_those_of_the_document():
    cells = TABLES["semi-inat-table3"].cells
    reported = {cell.name: (cell.reported[0].values["top_1"], cell.reported[0].values["top_5"]) for cell in cells}
    assert reported == TYPED


def test_every_cell_is_resnet_50_by_sgd_with_as_many_iterations_as_the_document_says():
    iterations = {}
    for cell in TABLES["semi-inat-table3"].cells:
        method = configured_method(cell.method, cell.settings).method
        assert (method.network, method.optimizer, method.schedule, method.batch) == ("resnet50", "sgd", "cosine", 64)
        assert ("hidden labels" in method.learns_from) == cell.name.startswith("oracle")
        photos = 97_210 if cell.name.startswith("oracle") else 9_721
        iterations[cell.name] = method.epochs * (photos // 64)
    expected = {"baseline": 50_000, "oracle": 150_000}
    for name, number in iterations.items():
        kind, _, start = name.partition("-")
        wanted = expected[kind] * (3 if start == "scratch" else 1)
        assert abs(number / wanted - 1) < 0.01, name
