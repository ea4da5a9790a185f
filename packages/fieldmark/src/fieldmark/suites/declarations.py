"""What a suite is: a list of cells with a version, each a benchmark on a release with a protocol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Metric


@dataclass(frozen=True)
class SuiteCell:
    """One cell of a suite.

    Args:
        name: Unique in the suite; the folder of its results.
        benchmark: What is asked.
        release: The folder of the release under the root of all data.
        kingdom: Of what is to be told apart; empty where there are several.
        metric: By which metric it counts: a share, higher being better. The one that decides the benchmark if empty.
        shots: So many training photos per class, drawn with the seed; 0 for all of train.
        seed: Of everything random.
        world: The simulated release that is written where the folder is not there; empty for real ones.
        world_seed: The seed of that world.
        source: Where a release comes from that `fieldmark get` does not know, for those who do not have it.
        also_in: Collections that hold some of its media, as declarations of external data call them: a network that
            was trained on one may have seen what it is tested on.
    """

    name: str
    benchmark: str
    release: str
    kingdom: str = ""
    metric: str = ""
    shots: int = 0
    seed: int = 0
    world: str = ""
    world_seed: int = 0
    source: str = ""
    also_in: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """What is asked, in a few words.

        >>> SuiteCell("mine", "folder", "mine", shots=4).question
        'photos, one label, few shots'
        """
        task = BENCHMARKS[self.benchmark].task
        kinds = (type(one).__name__ for one in (task.items, task.answer))
        words = [re.sub(r"(?<!^)(?=[A-Z])", " ", kind).lower() for kind in kinds]
        return ", ".join([*words, *(["few shots"] if self.shots else [])])

    @property
    def scored_by(self) -> Metric:
        """The metric by which the cell counts."""
        task = BENCHMARKS[self.benchmark].task
        return next((one for one in task.metrics if one.name == self.metric), task.deciding)

    @property
    def protocol(self) -> dict[str, int]:
        """What is done otherwise than the benchmark has it."""
        return {"shots": self.shots} if self.shots else {}


@dataclass(frozen=True)
class Suite:
    """A list of cells.

    Args:
        name: On the command line.
        version: Raised whenever the cells, or what they ask, change.
        title: What it answers, in a line.
        cells: In the order of the table; empty for `own`, whose cells are the folders under the root.
        methods: The heads that a backbone is given where none are named.
        backbones: Those that are run where none are named; empty where the methods need none.
        settings: Of all models.
    """

    name: str
    version: str
    title: str
    cells: tuple[SuiteCell, ...]
    methods: tuple[str, ...]
    backbones: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [cell.name for cell in self.cells]
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two cells bear the same name")
