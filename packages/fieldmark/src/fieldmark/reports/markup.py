"""How values become HTML: the templates, and the filters they share."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from typing import Any

import polars as pl
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from fieldmark.benchmarks.titles import metric_title

EN_DASH = "\N{EN DASH}"

SEES = {
    "item": "one item at a time",
    "unit": "all items of one unit",
    "past": "items of earlier dates",
    "test set": "the whole test set at once",
}


def render(template: str, **values: Any) -> str:
    """Fills a template of this package; values are escaped unless they are markup already."""
    return _environment().get_template(template).render(**values)


def percent(value: float) -> str:
    """A share with one decimal.

    >>> percent(0.64177)
    '64.2%'
    """
    return f"{100 * value:.1f}%"


def figure(value: float, share: bool = True, decimals: int | None = None) -> str:
    """A score as a reader wants it: a share in percent (without the sign), any other as it is.

    >>> figure(0.64177), figure(4.3244, share=False), figure(float("nan"))
    ('64.2', '4.324', 'undefined')
    """
    if value != value:
        return "undefined"
    digits = decimals if decimals is not None else 1 if share else 3
    return f"{100 * value if share else value:.{digits}f}"


def sureness(value: float) -> str:
    """A stated confidence; never a certainty that only rounding made.

    >>> sureness(0.42), sureness(0.9987)
    ('42%', '>99%')
    """
    return ">99%" if value > 0.99 else f"{value:.0%}"


def count(number: int) -> str:
    """A number with thousands set apart.

    >>> count(2888)
    '2,888'
    """
    return f"{number:,}"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "photo"), counted(2, "genus")
    ('1 photo', '2 genera')
    """
    return f"{count(number)} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of the nouns that reports use.

    >>> [plural(noun) for noun in ("photo", "class", "genus", "family", "species")]
    ['photos', 'classes', 'genera', 'families', 'species']
    """
    irregular = {"genus": "genera", "species": "species", "phylum": "phyla"}
    if noun in irregular:
        return irregular[noun]
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "ch")) else f"{noun}s"


def label(name: str) -> str:
    """A label as a reader would write it.

    >>> label("Amanita_muscaria")
    'Amanita muscaria'
    """
    return name.replace("_", " ")


def seconds(duration: float) -> str:
    """A duration as a person would say it.

    >>> seconds(0.026), seconds(57.8), seconds(3700)
    ('0.03 s', '58 s', '1 h 2 min')
    """
    if duration < 10:
        return f"{duration:.2f} s"
    if duration < 120:
        return f"{duration:.0f} s"
    minutes = round(duration / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def as_download(table: pl.DataFrame) -> str:
    """A table as an address that holds it as CSV, so that a page needs no file beside it."""
    return "data:text/csv;charset=utf-8;base64," + b64encode(table.write_csv().encode()).decode()


def strict_environment(*packages: str) -> Environment:
    """The templates of packages, the first that has one deciding.

    A name without a value is an error, and text is escaped.
    """
    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _environment() -> Environment:
    environment = strict_environment("fieldmark.reports")
    for filter_ in (percent, figure, sureness, count, counted, plural, label, seconds):
        environment.filters[filter_.__name__] = filter_
    environment.filters["metric"] = metric_title
    environment.globals["SEES"] = SEES
    return environment
