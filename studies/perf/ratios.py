"""What each result says as ratios to a named peer or limit; all of it read from `studies/results/perf-*.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Result = dict[str, Any]


class Ratio(NamedTuple):
    """One line of the table: what was measured, the ratio, and to what."""

    measured: str
    ratio: str
    beside: str


def times_faster(ratio: float) -> str:
    """A ratio of times in words.

    >>> times_faster(3.14), times_faster(0.5)
    ('3.1 times as fast', '0.50 times as fast')
    """
    return f"{ratio:.0f} times as fast" if ratio >= 10 else f"{ratio:.2g} times as fast" if ratio >= 1 else _slow(ratio)


def _slow(ratio: float) -> str:
    return f"{ratio:.2f} times as fast"


def share(part: float, whole: float = 1.0) -> str:
    """A share of a limit in percent.

    >>> share(3, 4)
    '75 %'
    """
    return f"{100 * part / whole:.0f} %"


def _photos(result: Result) -> list[Ratio]:
    lines = []
    for size, one in result["sizes"].items():
        for job, part in one["share_of_limit"].items():
            if job in ("decode, resize, batch", "the same in threads", "extraction without a network"):
                lines.append(Ratio(f"{size}: {job}", share(part), "libjpeg-turbo decoding alone"))
        faster = times_faster(one["times_faster_than_imagefolder"])
        lines.append(Ratio(f"{size}: decode, resize, batch", faster, "torchvision ImageFolder with Pillow"))
    return lines


def _growth(result: Result) -> list[Ratio]:
    most = result["highest_exponent_allowed"]
    return [
        Ratio(f"{name}: exponent of {what}", f"{stage[f'{what}_exponent']:g}", f"at most {most}")
        for name, stage in result["stages"].items()
        for what in ("time", "memory")
    ]


def _scale(result: Result) -> list[Ratio]:
    return [
        Ratio(f"{name}: {what} at {one['large']:,} items", f"{ratio:.2f}", f"predicted from {one['small']:,} items")
        for name, one in result["stages"].items()
        for what, ratio in (("seconds", one["seconds_over_predicted"]), ("memory", one["memory_over_predicted"]))
    ]


def _method_memory(result: Result) -> list[Ratio]:
    return [
        Ratio(f"{name}: memory of its own, for each further MiB of features", share(one["share_of_features"]), "1 MiB")
        for name, one in result["methods"].items()
    ]


def _scoring(result: Result) -> list[Ratio]:
    rows = f"{result['rows']:,} rows"
    return [
        Ratio(f"macro-F1, {rows}", times_faster(result["sklearn_value_over_our_value"]), "scikit-learn's f1_score"),
        Ratio(
            "macro-F1 with its interval",
            times_faster(result["sklearn_value_over_our_value_and_interval"]),
            "scikit-learn's value alone",
        ),
        Ratio(
            "macro-F1 with its interval",
            times_faster(result["bootstrap_of_1000_sklearn_values_over_ours"]),
            "a bootstrap of 1,000 values of scikit-learn",
        ),
        Ratio(
            "a whole scorecard with intervals from CSV, CPU",
            f"{result['whole_scorecard_from_csv_over_one_sklearn_value_cpu']:.1f} times",
            "scikit-learn's value alone",
        ),
        Ratio("a run file read, checked and scored", share(result["run_file_seconds_of_1_allowed"]), "one second"),
    ]


def _metrics_retrieval(result: Result) -> list[Ratio]:
    peer = "scikit-learn's average_precision_score"
    return [
        Ratio("cmAP, all scores", times_faster(result["sklearn_over_ours_full_matrix"]), peer),
        Ratio("cmAP, ten scores per segment", times_faster(result["sklearn_over_ours_ten_per_segment"]), peer),
    ]


def _metrics_geo(result: Result) -> list[Ratio]:
    return [
        Ratio("adaptive top-30, peak memory", share(result["peak_memory_over_allowed"]), "1.5 GiB"),
        Ratio(
            "adaptive top-30", f"{result['time_over_adding_up_the_scores']:g} times the time", "adding up the scores"
        ),
    ]


def _sound(result: Result) -> list[Ratio]:
    return [
        Ratio("log-mel spectrograms", times_faster(result["librosa_over_ours"]), "librosa, on the same samples"),
        Ratio(
            "an hour through a small network", times_faster(result["network_times_real_time_60_wanted"]), "real time"
        ),
        Ratio("an hour, memory", share(result["network_mb_beyond_libraries_400_allowed"], 400), "400 MB"),
        Ratio("an hour through BirdNET", times_faster(result["birdnet_times_real_time"]), "real time"),
        Ratio("an hour through BirdNET, memory", share(result["birdnet_peak_mb_400_allowed"], 400), "400 MB"),
    ]


def _occurrences(result: Result) -> list[Ratio]:
    rows = f"an archive of {result['rows']:,} records"
    peer = "python-dwca-reader going through the terms"
    return [
        Ratio(rows, times_faster(result["python_dwca_reader_iterating_over_ours"]), peer),
        Ratio(
            rows,
            f"{result['ours_over_polars_reading_the_unpacked_text']:g} times the time",
            "polars reading the unpacked text",
        ),
        Ratio(rows, share(result["seconds_of_10_allowed"], 10), "ten seconds"),
    ]


def _masks(result: Result) -> list[Ratio]:
    by_work: dict[str, list[float]] = {}
    for case, one in result["cases"].items():
        by_work.setdefault(case.partition(",")[0], []).append(1 / max(one["ratio"], 0.01))
    return [
        Ratio(f"{work} a mask", f"{min(ratios):.2f} to {max(ratios):.2g} times as fast", "pycocotools")
        for work, ratios in by_work.items()
    ]


def _rasters(result: Result) -> list[Ratio]:
    points = f"{result['points']:,} points through {result['rasters']} rasters"
    return [Ratio(points, times_faster(result["times_faster_than_the_loop"]), "a loop over rasterio's sample")]


def _random_forest(result: Result) -> list[Ratio]:
    small, large = "500 species, 20,000 places", f"{result['species']:,} species, {result['places']:,} places"
    faster = times_faster(result["scikit_learn_over_ours_at_500_species_and_20000_places"])
    return [
        Ratio(f"a random forest, {small}", faster, "scikit-learn"),
        Ratio(f"a random forest, {large}, memory", share(result["peak_gib_of_8_allowed"], 8), "8 GiB"),
    ]


def _packages(result: Result) -> list[Ratio]:
    return [Ratio("the core, installed", share(result["core_size_mib"], 600), "600 MiB")]


def _startup(result: Result) -> list[Ratio]:
    lines = []
    for name, one in result["commands"].items():
        if "limit_s" in one:
            lines.append(Ratio(f"`fieldmark {name}`, CPU", share(one["cpu_over_import_torch"]), "`import torch`"))
            lines.append(
                Ratio(f"`fieldmark {name}`, clock", share(one["wall_s"], one["limit_s"]), f"{one['limit_s']} s")
            )
    return lines


def _identifying(result: Result) -> list[Ratio]:
    return [
        Ratio(
            "a photo in a loaded process",
            share(result["further_questions_s"], result["limit_s"]),
            f"{result['limit_s']} s",
        ),
        Ratio("its memory", share(result["peak_gib"], result["limit_gib"]), f"{result['limit_gib']} GiB"),
        Ratio("a folder, named", share(result["batch_rate_over_extractor"]), "the rate of the extractor alone"),
    ]


def _store(result: Result) -> list[Ratio]:
    return [Ratio("features from the store", times_faster(result["computing_over_finding"]), "computing them")]


def _boards(result: Result) -> list[Ratio]:
    lines = []
    for row in result["rows"]:
        for readers, one in row["readers"].items():
            what = f"a board of {row['entries']:,} entries, {readers} readers, the slowest 5 %"
            lines.append(Ratio(what, f"{one['p95_ratio']:g} times the time", "a page that does nothing"))
    return lines


def _submissions(result: Result) -> list[Ratio]:
    what = f"{result['runs']} runs of {result['rows_each']:,} rows"
    rate = f"{result['scored_per_minute']:g} a minute"
    times = result["cpu_s_of_scoring"] / result["cpu_s_of_fieldmark_score"]
    return [
        Ratio(f"{what}, scored by {result['workers']} workers", rate, "the clock"),
        Ratio("CPU time of the process that scores one", f"{times:.2f} times", "`fieldmark score` of the same run"),
    ]


LOOKING = "forward, inputs on the device"


def _sharing(result: Result) -> list[Ratio]:
    rates = result["photos_per_s"]
    return [Ratio(way, times_faster(rate / rates["one alone"]), "one alone") for way, rate in list(rates.items())[1:]]


def _table4(result: Result) -> list[Ratio]:
    return [
        Ratio(cell.removeprefix("fungitastic-"), share(one["memory_gib"], 139.0), "the memory of the GPU")
        for cell, one in result["cells"].items()
    ]


def _gpu(result: Result) -> list[Ratio]:
    lines = []
    for network, rates in result["networks"].items():
        for loop, rate in rates.items():
            limit = LOOKING if loop.startswith("extraction") else "plain compiled"
            if loop.startswith(("extraction", "engine")) and limit in rates:
                lines.append(Ratio(f"{network}: {loop}", share(rate, rates[limit]), limit))
    long = result["long_extraction"]["photos_per_s"]
    lines.append(
        Ratio("a longer extraction by processes", times_faster(long["processes"] / long["threads"]), "threads")
    )
    return lines


def _extraction_gpu(result: Result) -> list[Ratio]:
    lines = []
    for network, rates in result.items():
        for side in ("500 px", "1600 px"):
            if isinstance(rates, dict) and (script := rates.get(f"plain script, {side}")):
                whole = rates[f"extraction from {side}"]["whole"]
                lines.append(Ratio(f"{network}, photos of {side}, into the store", share(whole, script), PLAIN_SCRIPT))
    return lines


def _suite_page(result: Result) -> list[Ratio]:
    what = f"{result['models']} models by {result['cells']} cells, opened in Chromium"
    return [Ratio(what, share(result["opened_s"], result["limit_s"]), "one second")]


def _suites(result: Result) -> list[Ratio]:
    cells, models = len(result["cells"]), result["models"]
    what = f"{models} models in {cells} cells of a suite, killed twice"
    return [Ratio(what, f"{result['times_less']:.1f} times less processor time", "its single fits")]


def _extraction_cpu(result: Result) -> list[Ratio]:
    whats = {
        "extraction_ms": "extraction, start of the engine included",
        "process_ms": "the same with the start of Python",
        "later_half_ms": "its later half",
        "second_order_extraction_ms": "extraction in second order, start of the engine included",
    }
    over = result["over_bare_openvino"]
    return [
        Ratio(f"{result['photos']:,} photos, CPU: {what}", f"{over[name]:.2f} times", "OpenVINO alone")
        for name, what in whats.items()
    ]


def _large_folder(result: Result) -> list[Ratio]:
    return [
        Ratio(f"{name}: exponent of time", f"{stage['time_exponent']:g}", "at most 1.1")
        for name, stage in result["stages"].items()
        if stage["time_exponent"] is not None
    ]


def _large_tables(result: Result) -> list[Ratio]:
    return [
        Ratio(
            f"{one['records']:,} {name}, opened, CPU", f"{one['open_cpu_s'] / one['read_cpu_s']:.1f} times", RAW_FILES
        )
        for name, one in result["releases"].items()
    ]


def _real_sizes(result: Result) -> list[Ratio]:
    return [
        Ratio(f"`{name}`: memory", share(one["peak_gib"], result["allowed_gib"]), f"{result['allowed_gib']} GiB")
        for name, one in result["methods"].items()
    ]


RAW_FILES = "the same library reading the raw files"
PLAIN_SCRIPT = "a script of 40 lines without a store, its start and compilation not counted"
RATIOS: dict[str, Callable[[Result], list[Ratio]]] = {
    "photos": _photos,
    "growth": _growth,
    "scale": _scale,
    "method_memory": _method_memory,
    "scoring": _scoring,
    "metrics_retrieval": _metrics_retrieval,
    "metrics_geo": _metrics_geo,
    "sound": _sound,
    "occurrences": _occurrences,
    "masks": _masks,
    "rasters": _rasters,
    "random_forest": _random_forest,
    "packages": _packages,
    "startup": _startup,
    "suites": _suites,
    "suite_page": _suite_page,
    "identifying": _identifying,
    "boards": _boards,
    "submissions": _submissions,
    "store": _store,
    "gpu": _gpu,
    "extraction_gpu": _extraction_gpu,
    "extraction_cpu": _extraction_cpu,
    "large_folder": _large_folder,
    "real_sizes": _real_sizes,
    "large_tables": _large_tables,
    "table4": _table4,
    "sharing": _sharing,
}
