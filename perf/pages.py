"""The tables of `docs/performance.md` and `docs/scale.md`, between markers; the words around them are typed by hand.

```
<!-- measured: NAME -->
made from docs/results/perf-*.json
<!-- end of NAME -->
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from evidence.markdown import table
from evidence.packaged_tables import startup
from evidence.results import RESULTS, read_result

from perf.costs import COST_TABLES, needed
from perf.jobs import JOBS
from perf.machine import in_words
from perf.ratios import RATIOS, share

DOCS = RESULTS.parent
# What distinguishes the training engine that `perf gpu` has measured from those before it.
LAST_ENGINE = (
    "squares read straight into memory that the GPU fetches, crops and RandAugment compiled, JPEG packs decoded by "
    "simplejpeg; epochs of 60 steps"
)
MARKED = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL)


def all_ratios() -> str:
    """Every result as ratios, one table for each job, with where it comes from."""
    parts = []
    for name, ratios in RATIOS.items():
        result = read_result(f"perf-{name}")
        if result is None:
            about = JOBS[name].about if name in JOBS else name
            parts.append(f"**{name}** ({about}): not measured yet.\n")
            continue
        lines = [[line.measured, line.ratio, line.beside] for line in ratios(result)]
        source = f"`{result['command']}`; {in_words(result)}."
        parts.append(f"**{name}**\n\n{table(['', 'ratio', 'to'], lines)}\n{source}\n")
    return "\n".join(parts)


def photo_times() -> str:
    """Milliseconds of processors per photo."""
    result = needed("photos")
    sizes = result["sizes"]
    jobs = list(next(iter(sizes.values()))["cpu_ms"])
    rows = [["libjpeg-turbo alone (the limit)", *(f"{one['limit_ms']:.2f} (100 %)" for one in sizes.values())]]
    rows += [
        [job, *(f"{one['cpu_ms'][job]:.2f} ({share(one['share_of_limit'][job])})" for one in sizes.values())]
        for job in jobs
    ]
    columns = ["CPU milliseconds per photo", *(f"{size}, {one['kib_per_photo']} KiB" for size, one in sizes.items())]
    return table(columns, rows)


def growth_table() -> str:
    """Time and memory of the stages at three sizes."""
    rows, above, result = [], [], needed("growth")
    for name, one in result["stages"].items():
        above += [
            f"{what} of `{name}` ({one[f'{what}_exponent']:.2f})"
            for what in ("time", "memory")
            if one[f"{what}_exponent"] > result["highest_exponent_allowed"]
        ]
        seconds, peaks = ([f"{value:,g}" for value in one[what]] for what in ("cpu_s", "peak_mib"))
        items = " / ".join(f"{number:,}" for number in one["items"])
        exponents = [f"{one[what]:.2f}" for what in ("time_exponent", "memory_exponent")]
        rows.append([name, items, " / ".join(seconds), exponents[0], " / ".join(peaks), exponents[1]])
    told = (
        f"Above {result['highest_exponent_allowed']}: {', '.join(above) or 'none'}. {result.get('remark', '')}".strip()
    )
    return table(["", "items", "CPU seconds", "exponent", "peak MiB", "exponent"], rows) + f"\n{told}\n"


def method_memory_table() -> str:
    """What methods hold themselves at two sizes of features."""
    rows = []
    for name, one in needed("method_memory")["methods"].items():
        sizes = (" / ".join(f"{value:,}" for value in one[what]) for what in ("features_mib", "own_mib"))
        rows.append([f"`{name}`", *sizes, share(one["share_of_features"])])
    return table(["", "features, MiB", "of its own, MiB", "of each further MiB"], rows)


def startup_table() -> str:
    """How long commands take from the shell."""
    return startup("startup", needed("startup")).partition("\n\n")[2]


def mask_table() -> str:
    """Run lengths beside pycocotools, case by case."""
    rows = [
        [case, f"{one['fieldmark_ms']:g}", f"{one['pycocotools_ms']:g}", f"{one['ratio']:g}"]
        for case, one in needed("masks")["cases"].items()
    ]
    return table(["", "ms", "pycocotools, ms", "ratio"], rows)


def training_rates() -> str:
    """Photos per second of every engine that was measured on the GPU, the last one first."""
    now = {"engine": LAST_ENGINE, "photos_per_s": _without_extraction(needed("gpu")["networks"])}
    parts = []
    for run in (now, *needed("training_gpu")["runs"]):
        networks = run["photos_per_s"]
        rows = _rates_by_loop(networks, "plain compiled")
        parts.append(f"{run['engine'][:1].upper()}{run['engine'][1:]}:\n\n" + table(["photos/s", *networks], rows))
    return "\n".join(parts)


def extraction_rates() -> str:
    """Photos per second of extraction on the GPU, and of the decoders alone."""
    result = needed("gpu")
    networks = {
        name: {loop: rate for loop, rate in rates.items() if _is_extraction(loop)}
        for name, rates in result["networks"].items()
    }
    rows = _rates_by_loop(networks, "forward, inputs on the device")
    decoders = [
        [loop, *(f"{rates[loop]:,.0f}" for rates in result["decoders"].values())]
        for loop in next(iter(result["decoders"].values()))
    ]
    alone = table(["decoding and resizing alone, photos/s", *result["decoders"]], decoders)
    long = result["long_extraction"]
    longer = [[way, f"{long['photos'][way]:,}", f"{rate:,.0f}"] for way, rate in long["photos_per_s"].items()]
    many = table([f"a longer extraction, {long['network']}, read by", "photos", "photos/s"], longer)
    reader = [f"Photos were read by {result['reader']}."] if "reader" in result else []
    remarks = " ".join([*reader, *([result["remark"]] if "remark" in result else [])])
    return table(["photos/s", *networks], rows) + f"\n{alone}\n{many}\n{remarks}\n"


def sharing_rates() -> str:
    """Photos per second of small trainings that share a GPU."""
    rates = needed("sharing")["photos_per_s"]
    return table(["all together, photos/s", ""], [[way, f"{rate:,.0f}"] for way, rate in rates.items()])


def _is_extraction(loop: str) -> bool:
    return loop.startswith(("forward", "extraction"))


def _without_extraction(networks: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    kept = {
        name: {loop: rate for loop, rate in rates.items() if not _is_extraction(loop)}
        for name, rates in networks.items()
    }
    return {name: rates for name, rates in kept.items() if rates}


def _rates_by_loop(networks: Mapping[str, Mapping[str, float]], limit: str) -> list[list[str]]:
    loops = list(dict.fromkeys(loop for rates in networks.values() for loop in rates))
    return [[loop, *(_rate(rates, loop, limit) for rates in networks.values())] for loop in loops]


def _rate(rates: Mapping[str, float], loop: str, limit: str) -> str:
    if loop not in rates:
        return ""
    part = "" if loop.endswith("alone") else f" ({share(rates[loop], rates[limit])})"
    return f"{rates[loop]:,.0f}{part}"


PAGES: dict[str, Mapping[str, Callable[[], str]]] = {
    "performance.md": {
        "ratios": all_ratios,
        "photos": photo_times,
        "growth": growth_table,
        "method_memory": method_memory_table,
        "startup": startup_table,
        "masks": mask_table,
        "training_gpu": training_rates,
        "extraction_gpu": extraction_rates,
        "sharing": sharing_rates,
    },
    "scale.md": COST_TABLES,
}


def renewed(page: str) -> str:
    """The text of a page with its tables made anew.

    Raises:
        ValueError: When a table has no place on the page, or the page a place for a table that nobody makes.
    """
    tables, text = PAGES[page], (DOCS / page).read_text(encoding="utf-8")
    places = [name for _, name, _, _ in MARKED.findall(text)]
    if sorted(places) != sorted(tables):
        raise ValueError(f"{page} has places for {sorted(places)}, and there are tables for {sorted(tables)}")
    return MARKED.sub(lambda found: f"{found[1]}{_made(tables[found[2]])}{found[4]}", text)


def _made(render: Callable[[], str]) -> str:
    try:
        return render()
    except FileNotFoundError as error:
        return f"Not measured yet: {error}.\n"


def write_pages() -> list[Path]:
    """Renews the tables of all pages."""
    for page in PAGES:
        (DOCS / page).write_text(renewed(page), encoding="utf-8")
    return [(DOCS / page).relative_to(RESULTS.parents[1]) for page in PAGES]
