"""The page: a header with the number that counts, then the sections."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path, PurePath

from markupsafe import Markup

from fieldmark.models.guides.dangers import never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.releases.record import record_of
from fieldmark.reports.markup import label, render
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.section import Context
from fieldmark.reports.sections import SECTIONS
from fieldmark.scoring import cautions
from fieldmark.storage.files import appearing_file
from fieldmark.storage.local_inputs import local_input
from fieldmark.version import __version__


def write_page(runs: Sequence[str | Path], out: str | Path, *, data: str | Path | None = None) -> Path:
    """Writes the page about some runs; see `fieldmark.reports.report`."""
    local = [local_input(run, "the folder of a run") for run in runs]
    html = render_page(load_context(local, data=data))
    path = Path(out)
    with appearing_file(path) as partial:
        partial.write_text(html, encoding="utf-8")
    return path


def render_page(context: Context) -> str:
    """The whole page as text."""
    shape = context.task.answer.shape
    sections = [section for section in (SECTIONS[name] for name in SECTIONS) if shape in section.shapes]
    rendered = [
        {
            "name": section.name,
            "title": section.heading(context),
            "short": section.heading(context).partition(",")[0],
            "html": Markup(section.render(context)),
        }
        for section in sections
        if section.applies(context)
    ]
    card = context.first.scorecard
    primary = context.task.metrics[0].name
    return render(
        "page.html.j2",
        context=context,
        title=page_title(context),
        release=PurePath(context.first.run.data).name,
        best_possible=_best_possible(context),
        style=Markup(
            resources.files("fieldmark.reports").joinpath("templates", "page.css").read_text(encoding="utf-8")
        ),
        sections=rendered,
        card=card,
        shares={metric.name for metric in context.task.metrics if metric.is_share},
        primary=primary,
        others=[name for name in context.shown_metrics if name != primary],
        cautions=cautions([card.metrics]),
        never=never_because_of_a_model(groups_of(context.labels, context.opened.dataset.taxa)),
        version=__version__,
    )


def _best_possible(context: Context) -> float | None:
    """What the exact posterior given the traits is expected to get right, on a world that knows it for these items."""
    bounds = (context.first.run.world or {}).get("best_possible") or {}
    return bounds.get(context.opened.benchmark.world_bound) if context.part == "test" else None


def page_title(context: Context) -> str:
    """Data and method, and whether the data are simulated.

    Data that others know go by the name of the benchmark, one's own by that of their folder; a world has no name of its
    own, whatever folder it was written to.
    """
    mark = " (simulated data)" if context.simulated else ""
    benchmark = context.opened.benchmark
    known = record_of(benchmark.dataset)
    own = known is not None and known.homepage is None
    name = label(PurePath(context.first.run.data).name) if own and not context.simulated else benchmark.name
    return f"{name}: {context.first.title}{mark}"
