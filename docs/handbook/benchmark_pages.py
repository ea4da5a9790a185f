"""A page for each benchmark, from its declaration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.benchmarks.declarations import Benchmark, Metric
from fieldmark.benchmarks.selection import conventions
from fieldmark.releases import DATASETS
from fieldmark.runs.formats import OneOf, RunFormat
from fieldmark.settings import setting_notes
from fieldmark.splits import InBlocks, Seeded
from handbook.markdown import code, table

# Where a page by hand says more, by the beginning of the benchmark's name.
PAGES = {
    "folder/segmentation": "segmentation.md",
    "fungitastic-mini/segmentation": "segmentation.md",
    "fungitastic-fewshot": "few-shot.md",
    "fungitastic": "fungitastic.md",
    "fungiclef": "fungitastic.md",
    "fgvcx": "fgvcx.md",
    "plantclef": "plantclef.md",
    "birdclef": "birdclef.md",
    "geolifeclef": "geolifeclef.md",
    "snakeclef": "snakeclef.md",
    "semi-": "semi.md",
    "occurrences": "occurrences.md",
}
# Our own studies (studies/pages) that bear on a benchmark, by the beginning of its name.
OURS = {
    "fungitastic-fewshot": ("fewshot",),
    "fungitastic-mini/segmentation": ("world_masks", "butterflies"),
    "folder/segmentation": ("butterflies",),
    "fungitastic/cost": ("costs",),
    "fungitastic-mini/cost": ("costs",),
    "fungitastic/open": ("openset",),
    "fungitastic-mini/open": ("openset",),
    "fungitastic/temporal": ("temporal",),
    "fungitastic-mini/temporal": ("temporal",),
    "fungitastic": ("modalities",),
    "folder": ("birds", "fungi"),
    "plantclef-2020": ("plants", "plants_gpu"),
    "birdclef-2020": ("soundscapes",),
    "snakeclef-2020": (
        "snake_countries",
        "snake-photos",
    ),
    "semi-": (
        "semi",
        "semi_worlds",
    ),
}


def file_of(name: str) -> str:
    """The file of a benchmark's page."""
    return f"benchmarks/{name.replace('/', '-')}.md"


def overview() -> str:
    """The page that lists them all."""
    rows = (
        [f"[`{name}`]({Path(file_of(name)).name})", BENCHMARKS.about(name), BENCHMARKS[name].task.metrics[0].title]
        for name in BENCHMARKS
    )
    return "\n".join(
        [
            "# Benchmarks",
            "",
            "Each page is generated from the declaration that the scorer uses. [Challenges](../challenges.md) has all "
            "run formats on one page; [disagreements](../disagreements.md) shows where papers, organizers and "
            "libraries compute different numbers.",
            "",
            table(["benchmark", "", "primary metric"], rows),
            "",
        ]
    )


def page(name: str, studies: Mapping[str, str]) -> str:
    """The page of one benchmark.

    Args:
        name: Its name.
        studies: The title of each study that has a page, by its name.
    """
    benchmark = BENCHMARKS[name]
    earlier = ", ".join(f"`{name}@{version}`" for version in benchmark.earlier)
    version = f"Version {benchmark.version}" + (f"; earlier ones: {earlier}." if earlier else ".")
    lines = [f"# {name}", "", f"{_sentence(BENCHMARKS.about(name))} {version}", ""]
    if benchmark.provisional:
        lines += ['!!! warning "Provisional"', "", f"    {benchmark.provisional}", ""]
    more = _first(PAGES, name)
    if more:
        lines += [f"More by hand: [{more.removesuffix('.md')}](../{more}).", ""]
    lines += ["```", f"fieldmark score {name} RUN --truth truth.csv --classes classes.csv"]
    if benchmark.dataset in DATASETS:
        lines += [f"fieldmark fit {name} --data ROOT --method linear"]
    lines += ["```", "", *_task(benchmark), *_split(benchmark), *_metrics(benchmark), *_run(benchmark.task.run)]
    lines += [*_reported(benchmark, studies), *_peculiarities(benchmark)]
    return "\n".join(lines)


def _task(benchmark: Benchmark) -> list[str]:
    task = benchmark.task
    order = task.time_order
    rows = [
        ["one answer is about", f"one {task.items.noun}"],
        ["what is answered", task.answer.wants],
        ["unknown species", "may occur, and are answered as -1" if task.unknown else "do not occur"],
        ["independent unit", f"{code(task.unit)}: intervals leave out one at a time"],
        ["a method may read", ", ".join(code(one) for one in task.inputs)],
        ["a method may look at", ", ".join(f"the {one}" for one in task.sees)],
        ["a method may learn from", ", ".join(task.learns_from)],
    ]
    if task.coarse:
        rows.append(["coarse labels of unlabeled items", ", ".join(task.coarse)])
    if order is not None:
        together = "items of one day see each other" if order.day_together else "each item is answered by itself"
        told = "never" if order.labels_after_days is None else f"after {order.labels_after_days} days"
        rows.append(["time order", f"{together}; labels become known {told}"])
    if task.by:
        rows.append(["scores are also shown by", ", ".join(task.by)])
    return ["## Task", "", table(["", ""], rows), ""]


def _split(benchmark: Benchmark) -> list[str]:
    split, rule = benchmark.split, benchmark.split.otherwise
    rows = [[part, code(getattr(split, part) or "") or "none"] for part in ("train", "val", "test", "unlabeled")]
    lines = ["## Split", "", f"Dataset {code(benchmark.dataset)}, subset {code(benchmark.subset)}.", ""]
    lines += [table(["part", "as the release calls it"], rows), ""]
    if isinstance(rule, Seeded):
        drawn = f"{rule.val:.0%} for val and {rule.test:.0%} for test"
        lines += [
            f"What the release leaves uncut is drawn with a seed, by observation and class by class: {drawn}.",
            "",
        ]
    if isinstance(rule, InBlocks):
        drawn = f"{rule.val:.0%} for val and {rule.test:.0%} for test, {rule.across} blocks across"
        lines += [f"What the release leaves uncut is drawn with a seed, by spatial block: {drawn}.", ""]
    return lines


def _metrics(benchmark: Benchmark) -> list[str]:
    decides = benchmark.task.deciding
    rows = []
    for name, metric in conventions(benchmark).items():
        place = "primary" if metric is benchmark.task.metrics[0] else "other convention" if ":" in name else ""
        rows.append([code(name), metric.title, place, f"{_sentence(metric.about)} {_direction(metric)}"])
    lines = ["## Metrics", "", table(["name", "title", "", "conventions"], rows), ""]
    if decides is not benchmark.task.metrics[0]:
        lines += [f"In a hosted challenge {code(decides.name)} decides, since the primary metric could be gamed.", ""]
    return lines


def _direction(metric: Metric) -> str:
    unit = "in percent" if metric.is_share else f"in {metric.unit}"
    return f"{'Higher' if metric.higher_is_better else 'Lower'} is better; {unit}."


def _run(run: RunFormat) -> list[str]:
    lines = ["## Run format", ""]
    formats = dict(run.formats) if isinstance(run, OneOf) else {"": run}
    if len(formats) > 1:
        lines += ["One of:", ""]
    for title, one in formats.items():
        lines += [f"### `{title}`", ""] if title else []
        lines += [_sentence(inspect.cleandoc(type(one).__doc__ or "").partition("\n")[0]), ""]
        rows = [[note.name, code(_shown(getattr(one, note.name))), note.about] for note in setting_notes(type(one))]
        lines += [table(["rule", "here", ""], rows), ""] if rows else []
        example = re.search(r"```\n(.*?)```", inspect.getmodule(type(one)).__doc__ or "", re.DOTALL)
        if example:
            lines += [
                "The format in general, with other columns where the rules above say so:",
                "",
                f"```\n{example[1]}```",
                "",
            ]
    return lines


def _reported(benchmark: Benchmark, studies: Mapping[str, str]) -> list[str]:
    lines = ["## Results", ""]
    if benchmark.reported:
        names = list(dict.fromkeys(name for one in benchmark.reported for name in one.values))
        percents = {metric.name: metric.is_share for metric in benchmark.task.metrics}
        rows = (
            [one.what, *(_number(one.values.get(name), percents.get(name, True)) for name in names), one.source]
            for one in benchmark.reported
        )
        lines += ["Reported by others, as printed there; none is ours:", ""]
        lines += [table(["what", *(code(name) for name in names), "source"], rows), ""]
    else:
        lines += ["No published results are attached.", ""]
    ours = _first(OURS, benchmark.name)
    if not ours:
        return [*lines, "Ours: none. The release was not available, and no study on other data applies.", ""]
    listed = ", ".join(f"[{studies[name]}](../results/{name}.md)" for name in ours)
    return [*lines, f"Ours, on other data than this release: {listed}.", ""]


def _peculiarities(benchmark: Benchmark) -> list[str]:
    lines = ["## Peculiarities", ""]
    lines += [f"- {sentence}" for sentence in benchmark.not_known]
    if benchmark.without_open_set is not None:
        lines.append(f"- Where the release has no open set, {code(benchmark.without_open_set.name)} is meant.")
    if benchmark.dataset not in DATASETS:
        return [*lines, "- Its release is not read here; runs are scored against tables of truth and classes.", ""]
    told = inspect.getmodule(DATASETS[benchmark.dataset]).__doc__ or ""
    told = inspect.cleandoc(told)
    return [*lines, *([""] if len(lines) > 2 else []), f"The release, as `datasets` opens it: {told}", ""]


def _first(by_prefix: Mapping[str, Any], name: str) -> Any:
    """What belongs to the longest prefix of a name."""
    fitting = [prefix for prefix in by_prefix if name.startswith(prefix)]
    return by_prefix[max(fitting, key=len)] if fitting else None


def _number(value: float | None, percent: bool) -> str:
    if value is None:
        return ""
    return f"{100 * value:.1f}" if percent else f"{value:g}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(one if isinstance(one, str) else "/".join(one) for one in value)
    return "none" if value is None or value == "" else repr(value) if isinstance(value, str) else str(value)


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")
