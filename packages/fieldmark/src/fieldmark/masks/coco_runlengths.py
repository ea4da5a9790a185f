"""Run lengths as COCO writes them: column by column from background, as a list or as a compressed text.

In the text, a length from the fourth on is the difference to the one two before it; each number stands in groups of
five bits, the lowest first, a sixth bit says that more follow, and 48 is added to make it a letter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fieldmark.masks.runlengths import Mask, MaskRow, Runs, decode_runs, encode_runs

FIRST_LETTER, GROUP_BITS, MORE, SIGN = 48, 5, 0x20, 0x10
# Lengths fit into so many groups; a text with more is none that COCO wrote.
MOST_GROUPS = 12
# With fewer pixels than this for each change along a column, sorting the changes takes longer than transposing.
PIXELS_PER_CHANGE = 64


def coco_rle(mask: Mask, *, compressed: bool = False) -> dict[str, Any]:
    """A mask as COCO writes it.

    >>> coco_rle(np.array([[0, 1, 1], [0, 0, 1]], dtype=bool))
    {'size': [2, 3], 'counts': [2, 1, 1, 2]}
    >>> coco_rle(np.array([[0, 1, 1], [0, 0, 1]], dtype=bool), compressed=True)
    {'size': [2, 3], 'counts': '2111'}
    """
    runs = runs_by_columns(mask)
    return {"size": list(mask.shape), "counts": compress(runs) if compressed else runs.tolist()}


def runs_by_columns(mask: Mask) -> Runs:
    """The run lengths of a mask column by column: those of the transposed mask, mostly without transposing it.

    Where few pixels differ from the one above, they are found row by row, which is how a mask lies in memory, and only
    their places are put into the order of columns.

    >>> runs_by_columns(np.array([[0, 1, 1], [0, 0, 1]], dtype=bool))
    array([2, 1, 1, 2])
    """
    height, width = mask.shape
    below = mask[1:] != mask[:-1]
    if not mask.size or np.count_nonzero(below) * PIXELS_PER_CHANGE > mask.size:
        return encode_runs(mask.T)
    line, column = np.divmod(np.flatnonzero(below), width)
    over_edge = np.flatnonzero(mask[0, 1:] != mask[-1, :-1]) + 1  # from the foot of a column to the head of the next
    short = np.int32 if mask.size < 2**31 else np.int64  # sorts twice as fast
    changes = np.concatenate([column * height + line + 1, over_edge * height]).astype(short)
    changes.sort()
    first = [0, 0] if mask[0, 0] else [0]
    return np.asarray(np.diff(np.concatenate([first, changes, [mask.size]])), dtype=np.int64)


def mask_of_coco(rle: Any) -> Mask:
    """The mask behind run lengths of COCO, as a list or as a text.

    Raises:
        ValueError: When it is something else, or does not fill its picture.
    """
    size = rle.get("size") if isinstance(rle, dict) else None
    counts = rle.get("counts") if isinstance(rle, dict) else None
    if not isinstance(size, list) or len(size) != 2 or not all(type(one) is int and one > 0 for one in size):
        raise ValueError("no size of two whole numbers")
    if isinstance(counts, str):
        runs = decompress(counts)
    elif isinstance(counts, list) and all(type(one) is int and 0 <= one < 2**62 for one in counts):
        runs = np.array(counts, dtype=np.int64)
    else:
        raise ValueError("counts that are neither a list of whole numbers nor a text")
    height, width = size
    if runs.sum() != height * width:
        raise ValueError(f"runs of {runs.sum()} pixels for a picture of {height * width}")
    return decode_runs(runs, width, height).T


def row_of_coco(label: str, rle: Any) -> MaskRow:
    """The same as a row of run lengths."""
    return MaskRow.of(label, mask_of_coco(rle))


def compress(runs: Runs) -> str:
    """Run lengths as the text of COCO.

    >>> compress(np.array([6, 1, 40, 4, 5, 4, 5, 4, 21]))
    '61X13mN000`0'
    """
    rest = runs.astype(np.int64)
    rest[3:] -= runs[1:-2]
    letters, used = [], [np.ones(len(rest), dtype=np.bool_)]
    while used[-1].any():
        bits = (rest & (MORE - 1)).astype(np.uint8)
        rest = rest >> GROUP_BITS
        more = rest != -((bits & SIGN) // SIGN).astype(np.int8)  # what is left of a negative number ends as -1
        letters.append(bits + FIRST_LETTER + MORE * more.astype(np.uint8))
        used.append(used[-1] & more)
    if not letters:
        return ""
    return np.stack(letters, axis=1)[np.stack(used[:-1], axis=1)].tobytes().decode("ascii")


def decompress(text: str) -> Runs:
    """The run lengths behind a text of COCO.

    >>> decompress("61X13mN000`0").tolist()
    [6, 1, 40, 4, 5, 4, 5, 4, 21]

    Raises:
        ValueError: When no such text can be.
    """
    values = np.frombuffer(text.encode("ascii", errors="replace"), dtype=np.uint8).astype(np.int64) - FIRST_LETTER
    if len(values) and (values.min() < 0 or values.max() >= 2 * MORE or values[-1] & MORE):
        raise ValueError("a text that COCO does not write")
    last = np.flatnonzero(values & MORE == 0)
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    place = np.arange(len(values)) - np.repeat(first, last - first + 1)
    if len(place) and place.max() >= MOST_GROUPS:
        raise ValueError("a number with too many digits")
    numbers = np.add.reduceat((values & (MORE - 1)) << (GROUP_BITS * place), first) if len(first) else values
    negative = values[last] & SIGN != 0
    numbers = np.where(negative, numbers - (1 << (GROUP_BITS * (place[last] + 1))), numbers)
    for start in (1, 2):  # lengths of one kind add up: those of the mask, and those of the background after the first
        numbers[start::2] = np.cumsum(numbers[start::2])
    if (numbers < 0).any():
        raise ValueError("a negative run length")
    return np.asarray(numbers, dtype=np.int64)
