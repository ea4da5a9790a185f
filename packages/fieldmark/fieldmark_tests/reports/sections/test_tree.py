"""Boxes against the counts they stand for."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fieldmark.reports.charts.treemap import Rectangle, squarify
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context, readable_names
from fieldmark.reports.sections import SECTIONS, tree
from fieldmark.reports.sections.long_tail import part_frequencies, shift_and_chance
from fieldmark_tests.reports.by_hand import FUNGI, FUNGI_TAXA, MakeRelease, MakeRun, noisy


def leaves(taxa: list[tree.TaxonGroup]) -> list[tree.Leaf]:
    return [leaf for taxon in taxa for leaf in [*taxon.leaves, *leaves(taxon.taxa)]]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_fill_the_room_in_proportion_and_never_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.ceil(rng.pareto(0.8, rng.integers(1, 60)) + 1).tolist()
    room = Rectangle(10, 20, 300, 200)
    boxes = squarify(sizes, room)
    for size, box in zip(sizes, boxes, strict=True):
        assert box.area == pytest.approx(size / sum(sizes) * room.area)
        assert box.x >= room.x - 1e-6 and box.x + box.width <= room.x + room.width + 1e-6
        assert box.y >= room.y - 1e-6 and box.y + box.height <= room.y + room.height + 1e-6
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            wide = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            tall = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert wide <= 1e-6 or tall <= 1e-6


def test_equal_boxes_are_nearly_square() -> None:
    boxes = squarify([1.0] * 12, Rectangle(0, 0, 400, 300))
    assert all(box.width == pytest.approx(box.height) for box in boxes)


def test_no_room_and_no_sizes_are_no_error() -> None:
    assert squarify([], Rectangle(0, 0, 10, 10)) == []
    assert [box.area for box in squarify([3, 1], Rectangle(0, 0, 0, 0))] == [0, 0]


def test_leaves_hold_the_counts_of_their_class(fungi: Path, make_run: MakeRun) -> None:
    context = load_context([make_run(fungi, noisy)])
    answers = zip(context.truth, context.predictions.scores.argmax(axis=1), strict=True)
    right = Counter(context.labels.names[truth] for truth, answer in answers if truth == answer)
    taxa = tree.grow(context, ["genus"])
    assert {taxon.title: taxon.training for taxon in taxa} == {"Amanita": 18, "Boletus": 8, "Galerina": 1}
    for leaf in leaves(taxa):
        counts = FUNGI[leaf.title]
        assert (leaf.training, leaf.scored, leaf.right) == (counts["train"], counts["test"], right[leaf.title])


def test_a_rank_that_only_repeats_the_one_below_is_left_out(make_release: MakeRelease, make_run: MakeRun) -> None:
    repeated = {
        name: {**about, "family": f"{about['genus']}ceae", "order": "Agaricales"} for name, about in FUNGI_TAXA.items()
    }
    context = load_context([make_run(make_release(FUNGI, taxa=repeated), noisy)])
    assert tree.levels(context) == ["genus"]
    joined = {
        name: {**about, "family": "Agaricaceae" if name[0] == "G" else "Boletaceae"}
        for name, about in FUNGI_TAXA.items()
    }
    context = load_context([make_run(make_release(FUNGI, taxa=joined, name="joined"), noisy, name="other")])
    assert tree.levels(context) == ["family", "genus"]
    family = {taxon.title: taxon for taxon in tree.grow(context, ["family", "genus"])}
    assert [taxon.title for taxon in family["Boletaceae"].taxa] == ["Amanita", "Boletus"]


def test_a_single_genus_stands_around_its_classes(make_release: MakeRelease, make_run: MakeRun) -> None:
    names = ("Russula alba", "Russula nigra")
    context = load_context([make_run(make_release({name: {"train": 2, "val": 1, "test": 1} for name in names}), noisy)])
    html = SECTIONS["tree"].render(context)
    assert "2 classes in 1 genus." in html
    assert ">alba</text>" in html and ">Russula</text>" in html


def test_without_ranks_there_is_no_tree(make_release: MakeRelease, make_run: MakeRun) -> None:
    bare = {"thing one": {"train": 2, "val": 1, "test": 1}, "thing two": {"train": 2, "val": 1, "test": 1}}
    assert not SECTIONS["tree"].applies(load_context([make_run(make_release(bare), noisy)]))


@pytest.fixture
def thousand(make_release: MakeRelease, make_run: MakeRun) -> Context:
    """A thousand classes in many genera; every seventh has no training photo."""
    names = [
        f"Genus{'abcdefghij'[n // 100]}{'abcdefghij'[n // 10 % 10]} epithet{'abcdefghij'[n % 10]}" for n in range(1000)
    ]
    counts = {name: {"train": int(n % 7 > 0), "val": int(n < 5), "test": int(n % 2)} for n, name in enumerate(names)}
    return load_context([make_run(make_release(counts), noisy)])


def test_a_thousand_classes_have_a_box_each_and_only_names_that_fit(thousand: Context) -> None:
    html = SECTIONS["tree"].render(thousand)
    assert len(re.findall(r'<rect class="heat-', html)) == sum(n % 7 > 0 for n in range(1000))
    untrained = sum(n % 7 == 0 and (n < 5 or n % 2) for n in range(1000))  # the others have no photo at all
    assert f"{untrained} classes without training photos have no area" in html
    assert len(html) < 250_000
    boxes = tree.lay_out(tree.grow(thousand, ["genus"]), Rectangle(0, 0, tree.WIDTH, tree.HEIGHT), thousand)
    for box in boxes:
        assert not box.text or len(box.text) * box.size * tree.LETTER <= box.place.width
    judged = [box for box in boxes if box.kind.startswith("heat") and box.kind != "heat-0"]
    assert len(judged) == sum(n % 7 > 0 and n % 2 for n in range(1000))


def test_the_shift_between_parts_is_the_total_variation(fungi: Path, make_run: MakeRun) -> None:
    context = load_context([make_run(fungi, noisy)])
    found = {row.part: row for row in part_frequencies(context)}
    assert list(found) == ["train", "val", "test"] and found["train"].shift is None
    totals = {part: sum(counts[part] for counts in FUNGI.values()) for part in found}
    for part in ("val", "test"):
        gaps = [abs(counts[part] / totals[part] - counts["train"] / totals["train"]) for counts in FUNGI.values()]
        assert found[part].shift == pytest.approx(sum(gaps) / 2)
        assert found[part].items == totals[part]
        assert found[part].classes == sum(counts[part] > 0 for counts in FUNGI.values())


def test_parts_dealt_at_random_shift_no_more_than_chance() -> None:
    rng = np.random.default_rng(3)
    codes = rng.choice(50, 4000, p=(1 / np.arange(1, 51)) / (1 / np.arange(1, 51)).sum()).astype(np.int32)
    dealt, chance = shift_and_chance(codes[:3000], codes[3000:], np.arange(4000), 50)
    assert dealt == pytest.approx(chance, abs=0.02)
    shifted, chance = shift_and_chance(codes[:3000], (49 - codes[3000:]).astype(np.int32), np.arange(4000), 50)
    assert shifted > 3 * chance


def test_classes_are_called_by_their_scientific_name_and_with_authors_only_in_doubt() -> None:
    names = ["Amanita muscaria (L.) Lam.", "Russula alba Fr.", "Russula alba Pers.", None]
    taxa = pl.DataFrame({"label": ["0", "1", "2", "Boletus_edulis"], "scientific_name": names})
    assert list(readable_names(taxa).values()) == [
        "Amanita muscaria",
        "Russula alba Fr.",
        "Russula alba Pers.",
        "Boletus edulis",
    ]
    assert readable_names(taxa.drop("scientific_name"))["Boletus_edulis"] == "Boletus edulis"
