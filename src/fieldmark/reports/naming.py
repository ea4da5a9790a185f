"""What readers call a class."""

from __future__ import annotations

import re
from collections import Counter

import polars as pl

from fieldmark.reports.markup import label

BINOMIAL = re.compile(r"^(\w[\w-]+ (?:\N{MULTIPLICATION SIGN} ?)?[a-zà-ÿ][\w-]+)(?=\s|$)")
BELOW_SPECIES = re.compile(r"\b(?:subsp|ssp|var|subvar|f|forma)\.? [a-zà-ÿ][\w-]+(?=\s|$)")


def readable_names(taxa: pl.DataFrame) -> dict[str, str]:
    """The name of each label's class: the scientific name where the release gives it, otherwise the label itself.

    Authors are left out unless two classes would then be called the same; where even full names are, the label follows.
    Birds, whose labels are codes, go by their common names.
    """
    if "common_name" in taxa.columns:
        rows = taxa.select("label", "common_name").iter_rows()
        common = {name: called or label(name) for name, called in rows}
        times = Counter(common.values())
        return {name: called if times[called] == 1 else f"{called} ({name})" for name, called in common.items()}
    if "scientific_name" not in taxa.columns:
        return {name: label(name) for name in taxa["label"]}
    full = {name: text or label(name) for name, text in taxa.select("label", "scientific_name").iter_rows()}
    short = {name: without_authors(text) for name, text in full.items()}
    times = Counter(short.values())
    chosen = {name: text if times[text] == 1 else full[name] for name, text in short.items()}
    times = Counter(chosen.values())
    return {name: text if times[text] == 1 else f"{text} ({name})" for name, text in chosen.items()}


def without_authors(scientific_name: str) -> str:
    """A scientific name without the people who gave it.

    >>> without_authors("Amanita muscaria (L.) Lam."), without_authors("Russula nauseosa f. fuscata (Fr.) Moënne-Locc.")
    ('Amanita muscaria', 'Russula nauseosa f. fuscata')
    >>> without_authors("Fungi")
    'Fungi'
    """
    binomial = BINOMIAL.match(scientific_name)
    if binomial is None:
        return scientific_name
    return " ".join([binomial.group(1), *BELOW_SPECIES.findall(scientific_name, binomial.end())])
