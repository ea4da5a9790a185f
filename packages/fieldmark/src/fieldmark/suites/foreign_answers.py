"""Answers that were made elsewhere, as results of a suite beside those of its own models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.runs.provenance import Run
from fieldmark.scoring import Scorecard
from fieldmark.storage.local_inputs import local_input
from fieldmark.suites.declarations import Suite, SuiteCell
from fieldmark.suites.results import file_of, result_data, write_result
from fieldmark.suites.suite_runs import provenance_of, releases_of, wanted_cells
from fieldmark.views.score_run import Table, found_run, score
from fieldmark.work.grid import address_of

ELSEWHERE = "answers made elsewhere"


def add_answers(
    suite: Suite,
    data: str | Path,
    out: str | Path,
    answers: Mapping[str, Table],
    *,
    name: str,
    external_data: Sequence[str] = (),
) -> list[Path]:
    """Scores the answers that a model gave in cells of a suite, and writes a result for each.

    Args:
        suite: The suite.
        data: The folder that contains the releases.
        out: The folder of results.
        answers: By cell, a run file in the format of its benchmark, the folder of a run, or a table.
        name: The name of the model in the table.
        external_data: What went in besides the release, or "none"; unknown until it is said. The folder of a run says
            it itself.

    Raises:
        MisuseError: For a cell that there is not, or without its release, or external data of a run that states them.
        InputError: When answers are at fault.
    """
    cells = wanted_cells(suite, list(answers))
    digests, missing = releases_of(cells, Path(data))
    for why in missing.values():
        raise MisuseError(why)
    written = []
    for cell in cells:
        card, run = _scored(cell, Path(data, cell.release), answers[cell.name], external_data)
        content = {
            "benchmark": cell.benchmark,
            "version": BENCHMARKS[cell.benchmark].version,
            "data_digest": digests[cell.name],
            "method": ELSEWHERE,
            "called": name,
            "values": address_of([values.tolist() for values in card.pseudo.values()]),
            "protocol": cell.protocol,
            "seed": cell.seed,
        }
        about = {
            "suite": suite.name,
            "suite_version": suite.version,
            "cell": cell.name,
            "kingdom": cell.kingdom,
            "model": {"name": name, "method": ELSEWHERE, "settings": {}, "steps": []},
            "content": content,
            "address": address_of(content),
        }
        written.append(Path(out, file_of(cell.name, name, address_of(content))))
        made = result_data(about, card, cell.scored_by.name, provenance_of(run), {"seconds": {}})
        write_result(written[-1], made)
    return written


def _scored(cell: SuiteCell, data: Path, answers: Table, external_data: Sequence[str]) -> tuple[Scorecard, Run]:
    if isinstance(answers, (str, Path)):
        in_one_file = not BENCHMARKS[cell.benchmark].task.run.folders
        run = found_run(local_input(answers, "a run"), in_one_file=in_one_file)[1]
        if run is not None and external_data:
            raise MisuseError(f"{answers} is a run that states its external data: leave out --external-data.")
        if run is not None:
            return score(cell.benchmark, answers, data=data, seed=cell.seed), run
    with TemporaryDirectory(prefix="fieldmark-") as folder:
        place = Path(folder, "run")
        card = score(cell.benchmark, answers, data=data, seed=cell.seed, out=place, external_data=external_data)
        return card, Run.read(place)
