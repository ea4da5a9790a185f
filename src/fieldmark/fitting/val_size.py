"""Whether val is large enough for what was chosen on it."""

from __future__ import annotations

from collections.abc import Sequence

from fieldmark.methods.base import ON_VAL, ChosenSetting, Method

# A share measured on U independent units has a standard error of sqrt(p (1 - p) / U), 0.5 / sqrt(U) at most. Settings
# of one method rarely differ by more than a few points: with an error above 1.5 points val picks among them by chance.
LARGEST_ERROR = 0.015


def largest_error(units: int) -> float:
    """The largest standard error that a share measured on so many independent units can have.

    >>> round(largest_error(100), 3)
    0.05
    """
    return float(0.5 / max(units, 1) ** 0.5)


def remarks_on_val(asked: Method, chosen: Sequence[ChosenSetting], units: int) -> list[str]:
    """A sentence where a method made choices on a val that is small; none otherwise.

    Args:
        asked: The method as it was configured.
        chosen: What it chose as it was fitted, and on which part.
        units: How many independent units val has.
    """
    on_val = [choice for choice in chosen if choice.on_val]
    error = largest_error(units)
    if not on_val or error <= LARGEST_ERROR:
        return []
    said = f"val has {units:,} independent units, so that a share measured on it has a standard error of up to"
    names = " and ".join(choice.name if choice.on == ON_VAL else f"{choice.name} (with train)" for choice in on_val)
    open_to_search = any(choice.name in asked.search_space for choice in on_val)
    advice = " --search auto chooses by cross-validation on train instead." if open_to_search else ""
    return [f"SMALL VAL: {said} {100 * error:.1f} points; it chose {names}.{advice}"]
