"""Tables of studies that train variants with several seeds and set them against each other."""

from __future__ import annotations

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
