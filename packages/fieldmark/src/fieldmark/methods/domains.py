"""What methods need to know about domains: which is asked about, what lies in it, and which labels it has taught."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.methods.base import truth_of
from fieldmark.splits.official import field_domain
from fieldmark.views.parts import Part, View

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Domains:
    """The items of train by domain.

    Args:
        asked: The domain that is asked about: photos in the field.
        field: Which items of train are in it; all others teach from another domain, such as sheets.
        photographed: Which labels have items in it.
        pressed: Which labels have items in another one.
    """

    asked: str
    field: Flags
    photographed: Flags
    pressed: Flags

    @property
    def both(self) -> Flags:
        """The labels that can teach how one domain becomes the other."""
        return self.photographed & self.pressed

    @classmethod
    def of(cls, view: View, method: str, asked: str = "") -> Domains:
        """The domains of a view.

        Args:
            view: The view.
            method: Who asks, for messages.
            asked: The domain that is asked about; empty for that of val or, if val does not say, the one whose name
                says photo or field.

        Raises:
            MisuseError: When train lies in one domain alone, or nobody can tell which is asked about.
        """
        column = view.train.items["domain"]
        names = sorted(column.drop_nulls().unique().to_list())
        if len(names) < 2:
            raise MisuseError(
                f"{method} learns from two domains, such as sheets and field photos; train has "
                f"{' and '.join(names) or 'none'}. Folders name them as train/<domain>/<class>/."
            )
        asked = asked or _asked(view, names)
        if asked not in names:
            raise MisuseError(f"{method}: which of {', '.join(names)} is asked about? Say --set asked=NAME.")
        field = (column == asked).fill_null(False).to_numpy()
        truth = truth_of(view.train)
        flags = [np.zeros(len(view.labels), dtype=np.bool_) for _ in range(2)]
        flags[0][truth[field]], flags[1][truth[~field]] = True, True
        return cls(asked, field, *flags)


def _asked(view: View, names: list[str]) -> str:
    told = [] if view.val is None else view.val.items["domain"].drop_nulls().unique().to_list()
    return str(told[0]) if len(told) == 1 else field_domain(names) or ""


def pairs_of(part: Part, field: Flags) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The items of observations in both domains: rows outside the field, and rows of the same plants in it."""
    observation = part.items["observation_id"].to_list()
    in_field: dict[str, int] = {one: row for row, one in enumerate(observation) if field[row]}
    rows = [(row, in_field[one]) for row, one in enumerate(observation) if not field[row] and one in in_field]
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]
