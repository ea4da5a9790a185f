"""The tables of the pages about speed and scale, between markers; the words around them are typed by hand.

```
<!-- measured: NAME -->
made from studies/results/perf-*.json
<!-- end of NAME -->
```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from studies.evidence.markdown import table
from studies.evidence.packaged_tables import startup
from studies.evidence.results import ROOT, read_result
from studies.perf.costs import COST_TABLES, needed
from studies.perf.jobs import JOBS
from studies.perf.machine import in_words
from studies.perf.ratios import RATIOS, share

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


def cpu_extraction_table() -> str:
    """Milliseconds of processors per photo: extraction, its parts and the bare engines."""
    result = needed("extraction_cpu")
    whats = {
        "process_ms": "extraction, with the start of Python",
        "extraction_ms": "extraction, with the start of the engine",
        "later_half_ms": "its later half",
        "second_order_extraction_ms": "extraction in second order, with the start of the engine",
        "openvino_ms": "OpenVINO alone",
        "onnxruntime_ms": "ONNX Runtime alone",
        "decoding_ms": "decoding and resizing alone",
    }
    bare = result["cpu_ms"]["openvino_ms"]
    rows = [
        [words, f"{result['cpu_ms'][name]:.2f}", f"{result['cpu_ms'][name] / bare:.2f}"]
        for name, words in whats.items()
    ]
    return table(["", "CPU ms per photo", "/ OpenVINO alone"], rows)


def folder_table() -> str:
    """What commands take on folders of photos."""
    result = needed("large_folder")
    rows = []
    for stage, one in result["stages"].items():
        least, *seconds = one["cpu_s"]
        each = 1000 * (seconds[-1] - least) / (result["photos"][-1] - result["photos"][0])
        told = " / ".join(f"{value:,.0f}" for value in seconds)
        peaks = " / ".join(f"{value:,}" for value in one["peak_mib"][1:])
        grown = one["time_exponent"]
        rows.append([stage, told, f"{each:.2f}", "" if grown is None else f"{grown:.2f}", peaks])
    photos = " / ".join(f"{number:,}" for number in result["photos"][1:])
    told = table([f"{photos} photos", "CPU seconds", "ms per photo", "exponent", "peak MiB"], rows)
    return f"{told}\n{result['remark']}\n" if "remark" in result else told


def real_sizes_table() -> str:
    """What methods take at the size of FungiTastic."""
    rows = [
        [
            f"`{name}`",
            f"{one['fit_cpu_s']:,.0f}",
            f"{one['answer_cpu_ms_each']:.2f} ({one['answered']:,} answered)",
            f"{one['peak_gib']:.1f}",
        ]
        for name, one in needed("real_sizes")["methods"].items()
    ]
    return table(["", "fit, CPU s", "CPU ms per answer", "peak GiB"], rows)


def large_tables_table() -> str:
    """What releases take that are opened at their full number of records."""
    rows = [
        [
            f"{one['records']:,} {name}",
            f"{one['open_cpu_s']:.1f} ({one['open_cpu_s'] / one['read_cpu_s']:.1f} times the raw files)",
            f"{one['time_exponent']:.2f}",
            f"{one['open_peak_mib'] / 1024:.1f}",
        ]
        for name, one in needed("large_tables")["releases"].items()
    ]
    return table(["opened", "CPU seconds", "exponent", "peak GiB"], rows)


def mask_table() -> str:
    """Run lengths beside pycocotools, case by case."""
    rows = [
        [case, f"{one['fieldmark_ms']:g}", f"{one['pycocotools_ms']:g}", f"{one['ratio']:g}"]
        for case, one in needed("masks")["cases"].items()
    ]
    return table(["", "ms", "pycocotools, ms", "ratio"], rows)


def training_rates() -> str:
    """Photos per second of the engine as it is; earlier states are in a file of results."""
    networks = _without_extraction(needed("gpu")["networks"])
    rates = table(["photos/s", *networks], _rates_by_loop(networks, "plain compiled"))
    earlier = "Earlier states: `studies/results/perf-training_gpu.json`."
    return f"{LAST_ENGINE[:1].upper()}{LAST_ENGINE[1:]}:\n\n{rates}\n{earlier}\n"


def extraction_rates() -> str:
    """Photos per second of extraction on the GPU, beside the network alone and a plain script."""
    result = needed("extraction_gpu")
    networks = {
        name: rates for name, rates in result.items() if isinstance(rates, dict) and "plain script, 500 px" in rates
    }
    loops = list(dict.fromkeys(loop for rates in networks.values() for loop in rates))
    rows = [[loop, *(_whole_and_later(rates.get(loop)) for rates in networks.values())] for loop in loops]
    sizes = {
        name.removeprefix("processes, "): rates for name, rates in result.items() if name.startswith("processes, ")
    }
    ways = [[way, *(f"{rates[way]:,.0f}" for rates in sizes.values())] for way in next(iter(sizes.values()))]
    alone = table(["decoded by 16 processes alone, photos/s", *sizes], ways)
    agreed = result["agreement"]["efficientnet_lite0"]
    cosines = [[way, *(f"{each[part]:.5f}" for part in each)] for way, each in agreed.items() if isinstance(each, dict)]
    words = f"cosine with single precision and the CPU's decoder, {agreed['photos']:,} real photos"
    agreement = table([words, "mean", "lowest 1 %", "lowest"], cosines)
    kib = ", ".join(
        f"{result['photos'][size]:,} of {size}, {each} KiB" for size, each in result["kib_per_photo"].items()
    )
    remark = f"Photos: {kib}. In brackets the rate after the first third of the photos was stored."
    return table(["photos/s", *networks], rows) + f"\n{remark}\n\n{alone}\n{agreement}"


def _whole_and_later(rate: float | Mapping[str, float] | None) -> str:
    if rate is None:
        return ""
    return f"{rate['whole']:,.0f} ({rate['after the start']:,.0f})" if isinstance(rate, Mapping) else f"{rate:,.0f}"


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


# What users look for is in `docs`, everything else in `studies/pages`.
PAGES: dict[str, Mapping[str, Callable[[], str]]] = {
    "docs/performance.md": {
        "photos": photo_times,
        "extraction_cpu": cpu_extraction_table,
        "growth": growth_table,
        "large_folder": folder_table,
        "startup": startup_table,
        "training_gpu": training_rates,
        "extraction_gpu": extraction_rates,
    },
    "studies/pages/performance.md": {
        "ratios": all_ratios,
        "method_memory": method_memory_table,
        "masks": mask_table,
        "sharing": sharing_rates,
    },
    "docs/scale.md": {**COST_TABLES, "large_tables": large_tables_table, "real_sizes": real_sizes_table},
}


def renewed(page: str) -> str:
    """The text of a page with its tables made anew.

    Raises:
        ValueError: When a table has no place on the page, or the page a place for a table that nobody makes.
    """
    tables, text = PAGES[page], (ROOT / page).read_text(encoding="utf-8")
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
        (ROOT / page).write_text(renewed(page), encoding="utf-8")
    return [Path(page) for page in PAGES]
