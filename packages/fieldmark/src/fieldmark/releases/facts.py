"""What to know about a release before using it: its record in plain data, and what to cite."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.releases import DATASETS
from fieldmark.releases.download.manifests import MANIFESTS
from fieldmark.releases.record import bibtex_entries, record_of

CITATION_FILE = "CITATION.bib"


def facts_of(name: str) -> dict[str, Any]:
    """The record of a dataset as plain data; None for what is not known.

    Raises:
        MisuseError: When there is no such dataset.
    """
    about, record = DATASETS.about(name), record_of(name)
    benchmarks = [one for one in BENCHMARKS if BENCHMARKS[one].dataset == name]
    facts: dict[str, Any] = {"name": name, "about": about, "benchmarks": benchmarks}
    if record is None:
        return facts
    return facts | {
        "license": record.license,
        "terms": record.terms,
        "homepage": record.homepage,
        "size": None if record.size is None else asdict(record.size) | {"in_words": str(record.size)},
        "download": _download(name),
        "world": None if record.world is None else record.world.about,
        "citation": record.citation,
    }


def _download(name: str) -> dict[str, int] | None:
    """How many files `fieldmark get` knows, and how many bytes those have whose size is published."""
    if name not in MANIFESTS:
        return None
    sizes = [file.expected_size for file in MANIFESTS[name].files]
    known = [size for size in sizes if size is not None]
    return {"files": len(sizes), "bytes_known": sum(known), "files_of_unknown_size": len(sizes) - len(known)}


def citations_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """What to cite for datasets or benchmarks: the entries of BibTeX by key, for each name.

    Raises:
        MisuseError: For a name that is neither.
    """
    return {name: dict(bibtex_entries(_citation(name))) for name in names}


def _citation(name: str) -> str:
    if name not in DATASETS and name not in BENCHMARKS:
        known = sorted({*DATASETS, *BENCHMARKS})
        raise MisuseError(f"There is no dataset and no benchmark called {name!r}. {did_you_mean(name, known)}")
    record = record_of(name if name in DATASETS else BENCHMARKS[name].dataset)
    return "" if record is None else record.citation or ""


def titles_to_cite(name: str) -> list[str]:
    """The titles of the papers to cite for a dataset or a benchmark."""
    titles = (re.search(r"^  title = \{(.*)\},$", entry, re.MULTILINE) for entry in citations_of([name])[name].values())
    return [found[1] for found in titles if found]
