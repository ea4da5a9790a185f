"""Tables of studies that train variants with several seeds and set them against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.evidence.markdown import percent, table

ABOUT = {
    "front-ends": (
        "## Learned filters and triplets on real clips",
        "`birds_chipnotes`: {clips} clips of {sources} recordings, each answered by networks that did not hear its "
        "recording. Mel spectrograms against Gabor filters that are learned, and labels alone against triplets beside "
        "them; the same settings for all, none chosen.",
    ),
    "objectives": (
        "## Genera and triplets beside labels, on real birds",
        "`birds_cub_odd` at 224 px with the settings that were chosen on val for labels alone. Genera are those of the "
        "species whose English name tells one. Triplets do not go with mixup, so that labels stand without it too.",
    ),
}


def variants(name: str, result: dict[str, Any]) -> str:
    """Top-1 of each variant over the seeds, and the differences with their intervals."""
    title, about = ABOUT[name]
    rows = []
    for variant, runs in result["top_1"].items():
        values = [run[0] for run in runs]
        span = f"{100 * min(values):.1f} to {100 * max(values):.1f}"
        rows.append([variant, f"{100 * float(np.mean(values)):.1f}", span])
    differences = [[pair, percent(triple)] for pair, triple in result["top_1_ahead"].items()]
    return (
        f"{title}\n\n{about.format(**result)}\n\n"
        + table(["variant", "top 1, %: mean of seeds", "from, to"], rows)
        + "\nAhead by, in points, with a 95 % interval over units and seeds:\n\n"
        + table(["", "ahead by"], differences)
    )


def encoders(name: str, result: dict[str, Any]) -> str:
    """What an encoder that learned some groups gains on species that it has not seen."""
    groups = list(result["before"])

    def shown(values: Sequence[float]) -> str:
        return "{:+.1f} ({:+.1f} to {:+.1f})".format(*values)

    before = ["before, %", *("{:.1f} ({:.1f} to {:.1f})".format(*result["before"][one]["lda_4"]) for one in groups)]
    rows = [
        [f"learned {learned}", *(shown(own[one]["lda_4"]) if one in own else "" for one in groups)]
        for learned, own in result["gains_by_group_learned"].items()
    ]
    heads = list(next(iter(result["tried_gains"].values())))
    tried = [[arm, *(shown(own[head]) for head in heads)] for arm, own in result["tried_gains"].items()]
    return (
        "## Encoders that learned relatives (real photos)\n\n"
        f"`fieldmark encoder train` ({result['network']}) on half of the classes of a group; the other half is then "
        f"told apart from {result['shots']} photos each by `lda`. Top-1, gain in points over the network as it was: "
        f"mean of {len(result['seeds'])} seeds (lowest to highest), {result['episodes']} draws each. Settings were "
        "chosen for each seed on halves of the bird species learned from.\n\n"
        + table(["", *groups], [before, *rows])
        + "\n"
        "Settings tried, on birds, within the species learned from: gain in points by head (`_4`: four photos).\n\n"
        + table(["", *heads], tried)
    )
