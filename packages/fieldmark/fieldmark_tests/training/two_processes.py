"""Trainings in two processes: `torchrun --nproc-per-node 2 -m fieldmark_tests.training.two_processes FOLDER`.

All of them in one start, since most of the time goes into importing torch. Of those that are killed, the second process
kills itself once, in the middle of an epoch; torchrun then starts both again, and they go on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fieldmark.training.draws import Draws
from fieldmark_tests.training.examples import EXAMPLES, HOW, plain


class Shared(NamedTuple):
    """A training that two processes share."""

    example: str
    strategy: str
    dropout: float = 0.0
    killed: bool = False

    @property
    def folder(self) -> str:
        return "-".join([self.example, self.strategy, f"{self.dropout:g}", *(["killed"] if self.killed else [])])


STRATEGIES = ("ddp", "fsdp")
ALIKE = [Shared(example, strategy) for strategy in STRATEGIES for example in EXAMPLES]
KILLED = [Shared("single", strategy, 0.2, killed=True) for strategy in STRATEGIES]
WHOLE = [one._replace(killed=False) for one in KILLED]
DIES_AT = 14  # of four steps in each of five epochs


def transform_of(training: Shared, folder: Path) -> Callable[[Sequence[Any], Draws | None], Any]:
    """Leaves inputs as they are; the second process of a training that is killed ends at a step, the first time."""
    steps = 0

    def deadly(raw: Sequence[Any], draws: Draws | None) -> Any:
        nonlocal steps
        steps += draws is not None
        mark = folder.parent / f"{folder.name}.died"
        if training.killed and steps == DIES_AT and os.environ["RANK"] == "1" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(raw, draws)

    return deadly


def main() -> None:
    """Trains all that is not done yet."""
    for training in (*ALIKE, *WHOLE, *KILLED):
        folder = Path(sys.argv[1]) / training.folder
        how = replace(HOW, strategy=training.strategy)
        transform = transform_of(training, folder)
        EXAMPLES[training.example](folder, how, dropout=training.dropout, transform=transform)


if __name__ == "__main__":
    main()
