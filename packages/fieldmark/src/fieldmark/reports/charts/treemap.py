"""Nested boxes whose areas stand for sizes.

Squarified treemaps: Bruls, Huizing and van Wijk, "Squarified Treemaps", 2000. Boxes of one row share its length; a row
takes boxes as long as that makes the worst of them squarer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rectangle:
    """In pixels, from the upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height

    def inset(self, *, top: float, sides: float) -> Rectangle:
        """What remains inside a border; never less than nothing."""
        return Rectangle(
            self.x + min(sides, self.width / 2),
            self.y + min(top, self.height),
            max(self.width - 2 * sides, 0.0),
            max(self.height - top - sides, 0.0),
        )


def squarify(sizes: Sequence[float], room: Rectangle) -> list[Rectangle]:
    """Fills a room with one box per size, areas in proportion, as square as it gets.

    Args:
        sizes: All positive.
        room: What to fill.

    Returns:
        The boxes in the order of the sizes.

    >>> [round(box.area) for box in squarify([6, 2], Rectangle(0, 0, 8, 4))]
    [24, 8]
    """
    order = sorted(range(len(sizes)), key=lambda number: (-sizes[number], number))
    scale = room.area / sum(sizes) if sizes else 0.0
    areas = [sizes[number] * scale for number in order]
    placed: list[Rectangle] = []
    while len(placed) < len(areas):
        row = _next_row(areas[len(placed) :], min(room.width, room.height))
        boxes, room = _lay(row, room)
        placed += boxes
    back = sorted(range(len(order)), key=order.__getitem__)
    return [placed[place] for place in back]


def _next_row(areas: Sequence[float], side: float) -> Sequence[float]:
    """The first areas that together make the squarest row along a side."""
    total, worst = 0.0, float("inf")
    for number, area in enumerate(areas):
        total += area
        thickness = total / side if side else 0.0
        # Areas come in falling order, so that the first and the last of a row are its extremes.
        if not thickness or not area:
            continue
        now = max(areas[0] / thickness**2, thickness**2 / area)
        if now > worst:
            return areas[:number]
        worst = now
    return areas


def _lay(row: Sequence[float], room: Rectangle) -> tuple[list[Rectangle], Rectangle]:
    """Boxes of one row along the shorter side of the room, and the room that is left."""
    boxes: list[Rectangle] = []
    if room.width >= room.height:
        thickness = sum(row) / room.height if room.height else 0.0
        y = room.y
        for area in row:
            height = area / thickness if thickness else 0.0
            boxes.append(Rectangle(room.x, y, thickness, height))
            y += height
        return boxes, Rectangle(room.x + thickness, room.y, max(room.width - thickness, 0.0), room.height)
    thickness = sum(row) / room.width
    x = room.x
    for area in row:
        width = area / thickness if thickness else 0.0
        boxes.append(Rectangle(x, room.y, width, thickness))
        x += width
    return boxes, Rectangle(room.x, room.y + thickness, room.width, max(room.height - thickness, 0.0))
