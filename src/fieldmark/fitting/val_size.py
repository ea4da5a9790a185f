"""Whether val is large enough for what was chosen on it."""

from __future__ import annotations

from fieldmark.methods.base import Method

# A share measured on U independent units has a standard error of sqrt(p (1 - p) / U), 0.5 / sqrt(U) at most. Settings
# of one method rarely differ by more than a few points: with an error above 1.5 points val picks among them by chance.
LARGEST_ERROR = 0.015


def largest_error(units: int) -> float:
    """The largest standard error that a share measured on so many independent units can have.

    >>> round(largest_error(100), 3)
    0.05
    """
    return float(0.5 / max(units, 1) ** 0.5)


def remarks_on_val(asked: Method, fitted: Method, units: int) -> list[str]:
    """A sentence where a method made choices on a val that is small; none otherwise.

    Args:
        asked: The method as it was configured.
        fitted: The same with its choices made.
        units: How many independent units val has.
    """
    before, after = asked.options, fitted.options
    chosen = [name for name in after if after[name] != before.get(name) and name not in asked.follows_from_task]
    if asked.chooses_on_val:
        chosen.append("the epoch")
    error = largest_error(units)
    if not chosen or error <= LARGEST_ERROR:
        return []
    said = f"val has {units:,} independent units, so that a share measured on it has a standard error of up to"
    advice = " --search auto chooses by cross-validation on train instead." if asked.search_space else ""
    return [f"SMALL VAL: {said} {100 * error:.1f} points; it chose {' and '.join(chosen)}.{advice}"]
