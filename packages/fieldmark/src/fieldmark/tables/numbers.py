"""Numbers in files that people hand over: ASCII digits and nothing else.

Python also reads `1_0` as 10 and `٣` as 3. A reader who does not expect that sees another number, or none.
"""

from __future__ import annotations

import math


def parse_float(text: str) -> float:
    """The number that a text says in ASCII digits, with a point and an exponent if need be.

    Raises:
        ValueError: When it says none, or `nan` or `inf`.

    >>> parse_float("-2.5e3")
    -2500.0
    """
    value = float(_plain(text))
    if not math.isfinite(value):
        raise ValueError(f"no finite number: {text!r}")
    return value


def parse_int(text: str) -> int:
    """The whole number that a text says in ASCII digits.

    Raises:
        ValueError: When it says none.

    >>> parse_int("042")
    42
    """
    return int(_plain(text))


def is_plain(text: str) -> bool:
    """Whether a text has no digits of other scripts and no underscores, which Python takes for parts of numbers.

    >>> is_plain("10"), is_plain("1_0"), is_plain("３")
    (True, False, False)
    """
    return text.isascii() and "_" not in text


def is_digits(text: str) -> bool:
    """Whether a text is ASCII digits and nothing else.

    >>> is_digits("007"), is_digits("٣"), is_digits("²"), is_digits("")
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit()


def is_whole(text: str) -> bool:
    """Whether a text is a whole number from 0 on as programs write it: ASCII digits without zeros in front.

    >>> [is_whole(text) for text in ("0", "10", "05", "٣", "")]
    [True, True, False, False, False]
    """
    return is_digits(text) and (text == "0" or text[0] != "0")


def _plain(text: str) -> str:
    if not is_plain(text):
        raise ValueError(f"not ASCII digits: {text!r}")
    return text
