"""How the runs were made."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any, ClassVar

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.questions.targets import Shape
from fieldmark.releases.facts import titles_to_cite
from fieldmark.reports.markup import SEES, render, seconds
from fieldmark.reports.section import Context, ScoredRun, Section
from fieldmark.reports.sections.scores import backbone
from fieldmark.runs.provenance import Run


class Origin(Section):
    """The provenance of each run."""

    name = "origin"
    title = "Provenance"
    shapes: ClassVar[tuple[Shape, ...]] = ("codes", "pairs", "masks")

    def applies(self, context: Context) -> bool:
        return True

    def render(self, context: Context) -> str:
        return render("sections/origin.html.j2", runs=[(scored, facts(scored)) for scored in context.runs])


def facts(scored: ScoredRun) -> list[tuple[str, str]]:
    """What `run.json` says, in the order a reader would ask."""
    run = scored.run
    timings = ", ".join(f"{phase} {seconds(spent)}" for phase, spent in run.seconds.items())
    rows = [
        ("Benchmark", f"{run.benchmark}, version {run.version}"),
        ("Method", run.method),
        ("Options", _listed(run.options)),
        ("Sees", SEES.get(run.sees, run.sees)),
        ("Modalities", ", ".join(run.modalities)),
        *([("Several photos of an item", f"pooled: {run.pooling}")] if run.pooling else []),
        ("Features", backbone(run.features)),
        ("Digest of the backbone", str((run.features or {}).get("digest", ""))),
        ("External data", run.external_data_in_words),
        *([("Extra annotations", "; ".join(run.extra_annotations))] if run.extra_annotations else []),
        ("Steps", "; ".join(_step(step) for step in run.steps)),
        ("Trained on", " + ".join(run.trained_on)),
        ("Scored on", scored.scorecard.split),
        ("Seed", str(run.seed)),
        # The name of the folder, not its path: a page travels, and where it was made is nobody's business.
        ("Data", PurePath(run.data).name),
        ("Digest of the data", run.data_digest),
        *([("To cite", cited)] if (cited := _citation(run)) else []),
        ("World", _listed(_plain(run.world)) if run.world else "no"),
        ("Phases", timings),
        ("Code", f"Fieldmark {run.code_version}"),
        ("Made", run.created),
        ("Remarks", " ".join(run.remarks)),
    ]
    return [(name, value or "none") for name, value in rows]


def _citation(run: Run) -> str:
    """The papers that present the data; a world is not their data."""
    titles = titles_to_cite(run.benchmark) if run.world is None and run.benchmark in BENCHMARKS else []
    return f"{'; '.join(titles)} (fieldmark cite {run.benchmark})" if titles else ""


def _step(step: dict[str, Any]) -> str:
    settings = {name: value for name, value in step.items() if name != "step"}
    return f"{step.get('step', 'unnamed')} ({_listed(settings)})" if settings else str(step.get("step", "unnamed"))


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in values.items())


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what is nested or long: the mark of a world carries more than a table cell holds."""
    return {name: value for name, value in values.items() if isinstance(value, (int, float)) or len(str(value)) < 40}


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


SECTION = Origin()
