"""The taxonomy as nested boxes: what there is to learn from, and how well it was learned."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fieldmark.reports.charts import heat
from fieldmark.reports.charts.treemap import Rectangle, squarify
from fieldmark.reports.markup import counted, percent, render
from fieldmark.reports.section import Context, Section
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS

WIDTH = 1036
# A few classes do not need the room of thousands.
HEIGHT, HEIGHT_OF_FEW, FEW_CLASSES = 740, 460, 60
MOST_LEVELS = 2
# The height of the heading of an outer and of an inner group, its size of type, and the least box that gets one.
HEADINGS = ((19.0, 12.5, 54.0, 40.0), (15.0, 11.0, 40.0, 30.0))
LABEL_SIZE, LARGE_LABEL_SIZE = 11.0, 13.0
# The mean width of a letter by the size of type; a little generous, since fonts differ.
LETTER, BOLD_LETTER = 0.56, 0.63
LEAST_LETTERS = 5
# A box below this many square pixels cannot be pointed at, and needs no text to show there.
LEAST_POINTED_PIXELS = 12.0


@dataclass(frozen=True)
class Leaf:
    """One class: its training items, its scored items, and how many of those were answered right."""

    code: int
    title: str
    training: int
    scored: int
    right: int


@dataclass(frozen=True)
class TaxonGroup:
    """A group of classes, or of groups."""

    title: str
    taxa: list[TaxonGroup] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @property
    def training(self) -> int:
        return sum(taxon.training for taxon in self.taxa) + sum(leaf.training for leaf in self.leaves)


@dataclass(frozen=True)
class TreeBox:
    """One box of the drawing.

    Args:
        place: Where it stands.
        kind: "outer" or "inner" for groups, or the step of a class: "heat-1" to "heat-5", "heat-0" without items.
        text: What is written in it; empty where there is no room.
        size: The size of type.
        tip: What a pointer over it tells; empty for none.
    """

    place: Rectangle
    kind: str
    text: str = ""
    size: float = LABEL_SIZE
    tip: str = ""


class TreeSection(Section):
    """The taxonomy of the classes."""

    name = "tree"
    title = "The tree"

    def applies(self, context: Context) -> bool:
        return bool(levels(context)) and bool(context.train_counts.any())

    def render(self, context: Context) -> str:
        ranks = levels(context)
        taxa = grow(context, ranks)
        trained = context.train_counts > 0
        height = HEIGHT if trained.sum() > FEW_CLASSES else HEIGHT_OF_FEW
        boxes = lay_out(taxa, Rectangle(0, 0, WIDTH, height), context)
        return render(
            "sections/tree.html.j2",
            context=context,
            ranks=ranks,
            counts={rank: len(set(context.taxonomy.ranks[rank][1][trained]) - {UNKNOWN}) for rank in ranks},
            boxes=boxes,
            steps=heat.SHARE_TITLES,
            unjudged=any(box.kind == "heat-0" for box in boxes),
            classes=int(trained.sum()),
            untrained=int((~trained).sum()),
            width=WIDTH,
            height=height,
        )


def levels(context: Context) -> list[str]:
    """The lowest ranks above species that group what is below them, at most two, the higher first."""
    ranks: list[str] = []
    below = len(context.labels)
    for rank in reversed(RANKS[: RANKS.index("species")]):
        if rank not in context.taxonomy.ranks or len(ranks) == MOST_LEVELS:
            continue
        taxa = len(context.taxonomy.ranks[rank][0])
        # A single genus is shown around its classes; a single family around that would say nothing new.
        if taxa < below and (not ranks or taxa > 1):
            ranks.append(rank)
            below = taxa
    return ranks[::-1]


def grow(context: Context, ranks: list[str]) -> list[TaxonGroup]:
    """The classes with training items, grouped by rank; classes without a taxon stand together."""
    known = context.truth != UNKNOWN
    right = np.bincount(context.truth[context.correct & known], minlength=len(context.labels))
    scored = np.bincount(context.truth[known], minlength=len(context.labels))
    leaves = [
        Leaf(code, context.title(name), int(context.train_counts[code]), int(scored[code]), int(right[code]))
        for code, name in enumerate(context.labels.names)
        if context.train_counts[code]
    ]
    return _group(context, leaves, ranks)


def lay_out(taxa: list[TaxonGroup], room: Rectangle, context: Context, depth: int = 0) -> list[TreeBox]:
    """The boxes from the outside in, so that later ones are drawn over earlier ones."""
    boxes: list[TreeBox] = []
    for taxon, place in zip(taxa, squarify([taxon.training for taxon in taxa], room), strict=True):
        inner = depth > 0 or not taxon.taxa
        height, size, least_width, least_height = HEADINGS[1 if inner else 0]
        fits = place.width >= least_width and place.height >= least_height
        text = shortened(taxon.title, place.width - 8, size * (LETTER if inner else BOLD_LETTER)) if fits else ""
        boxes.append(TreeBox(place, "inner" if inner else "outer", text, size))
        border = 1.0 if min(place.width, place.height) > 8 else 0.25
        inside = place.inset(top=height if text else border, sides=border)
        boxes += lay_out(taxon.taxa, inside, context, depth + 1)
        boxes += _leaf_boxes(taxon, inside, context)
    return boxes


def shortened(text: str, width: float, letter: float) -> str:
    """As much of a text as fits into a width, or nothing where that would be no more than a few letters.

    >>> shortened("Amanitaceae", 200, 6), shortened("Amanitaceae", 50, 6), shortened("Amanitaceae", 20, 6)
    ('Amanitaceae', 'Amanita…', '')
    """
    letters = int(width / letter)
    if letters >= len(text):
        return text
    return f"{text[: letters - 1]}…" if letters > LEAST_LETTERS else ""


def _group(context: Context, leaves: list[Leaf], ranks: list[str]) -> list[TaxonGroup]:
    rank, *below = ranks
    members: dict[str | None, list[Leaf]] = {}
    for leaf in leaves:
        members.setdefault(context.taxonomy.taxon(leaf.code, rank), []).append(leaf)
    taxa = []
    for name, inside in sorted(members.items(), key=lambda entry: (entry[0] is None, entry[0] or "")):
        title = name or f"{rank} not known"
        taxa.append(
            TaxonGroup(title, taxa=_group(context, inside, below)) if below else TaxonGroup(title, leaves=inside)
        )
    return taxa


def _leaf_boxes(taxon: TaxonGroup, room: Rectangle, context: Context) -> list[TreeBox]:
    boxes = []
    places = squarify([leaf.training for leaf in taxon.leaves], room)
    for leaf, place in zip(taxon.leaves, places, strict=True):
        kind = f"heat-{heat.share_step(leaf.right / leaf.scored) + 1}" if leaf.scored else "heat-0"
        # Inside the box of a genus its name need not be said again.
        name = leaf.title.removeprefix(f"{taxon.title} ")
        size = next((size for size in (LARGE_LABEL_SIZE, LABEL_SIZE) if _fits(name, place, size)), None)
        tip = _tip(leaf, context) if place.area >= LEAST_POINTED_PIXELS else ""
        boxes.append(TreeBox(place, kind, name if size else "", size or LABEL_SIZE, tip))
    return boxes


def _fits(text: str, place: Rectangle, size: float) -> bool:
    return place.height >= size + 5 and len(text) * size * LETTER <= place.width - 6


def _tip(leaf: Leaf, context: Context) -> str:
    learned = counted(leaf.training, f"training {context.item_noun}")
    if not leaf.scored:
        return f"{leaf.title}: {learned}, none in {context.part}"
    share = percent(leaf.right / leaf.scored)
    return f"{leaf.title}: {learned}, {leaf.right} of {leaf.scored} in {context.part} right ({share})"


SECTION = TreeSection()
