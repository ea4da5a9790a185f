"""What the full releases and 100 million observations cost, from measured rates: the tables of `docs/scale.md`.

`python -m studies.perf.costs --core-hour 0.03 --gpu-hour 2.5 --memory-gib 256` prints them for other prices and
machines. Nothing here is measured: each figure is a rate of `studies/results/perf-*.json` times a count, and every
assumption is a field of `Assumptions`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from studies.evidence.markdown import table
from studies.evidence.results import read_result

FUNGITASTIC_PHOTOS = 650_000
TRAIN = {"full": 433_701, "mini": 46_842, "few": 7_819}  # Table 2 of the paper
VAL = {"full": 89_659, "mini": 9_412, "few": 2_285}
TEST = {"full": 91_832, "mini": 10_738, "few": 1_909}
EPOCHS = 100  # of the recipes `fungitastic-*`, as in the organizers' scripts
PLACES, SPECIES, TEST_PLACES, RASTERS = 1_900_000, 31_435, 42_405, 27
MANY, SOUND_HOURS = 100_000_000, 1000

# What is kept of a photo: 1,280 features in half precision, 1,000 logits in single, a key; a square of 256 px.
STORED_BYTES, SQUARE_BYTES, JPEG_SHARE = 1280 * 2 + 1000 * 4 + 16, 256 * 256 * 3, 1 / 8
# Which measured network stands for one that was not: hours are scaled by multiply-adds.
STANDS_FOR = {
    "resnet50": "resnet50",
    "resnext50": "resnet50",
    "efficientnet_b3": "resnet50",
    "efficientnetv2_b3": "resnet50",
    "convnext_base": "convnext_base",
    "vit_base": "vit_base",
    "swin_base": "vit_base",
    "beit_base": "vit_base",
}
MEASURED = {
    "resnet50": "resnet50, batch 256",
    "vit_base": "vit_base_patch16_224, batch 256",
    "convnext_base": "convnext_base, batch 128",
}

PARTS, FEW_SHOT_TOO = ("full", "mini", "few"), ("beit_base", "convnext_base", "vit_base")


@dataclass(frozen=True)
class Assumptions:
    """What is not measured and may be changed; prices are in US dollars.

    Args:
        core_hour: The price of a processor core for an hour.
        gpu_hour: The price of an H200 with its cores for an hour.
        disk_tb_month: The price of a terabyte for a month.
        memory_gib: The memory of the machine that a single process may fill.
        forward_share: What a photo costs that is only reviewed, as a share of one that is learned from.
    """

    core_hour: float = 0.05
    gpu_hour: float = 4.0
    disk_tb_month: float = 25.0
    memory_gib: float = 64.0
    forward_share: float = 1 / 3


class Growth(NamedTuple):
    """What a stage costs: something fixed, and something for each item."""

    seconds: float
    seconds_per_item: float
    mib: float
    mib_per_item: float

    def hours(self, items: float) -> float:
        """Core hours for so many items."""
        return (self.seconds + self.seconds_per_item * items) / 3600

    def gib(self, items: float) -> float:
        """Peak memory for so many items."""
        return (self.mib + self.mib_per_item * items) / 1024

    def most_items(self, gib: float) -> float:
        """How many items fit into some memory."""
        return float("inf") if self.mib_per_item <= 0 else max(0.0, (gib * 1024 - self.mib) / self.mib_per_item)


def growth_of(stage: dict[str, Any]) -> Growth:
    """The line through the two largest of the sizes that were measured.

    >>> growth_of({"items": [1, 4, 16], "cpu_s": [3, 6, 18], "peak_mib": [10, 10, 10]}).hours(3600)
    1.0005555555555556
    """
    few, many = stage["items"][-2:]
    lines = []
    for what in ("cpu_s", "peak_mib"):
        first, last = stage[what][-2:]
        slope = max(0.0, (last - first) / (many - few))
        lines += [max(0.0, first - slope * few), slope]
    return Growth(*lines)


def needed(name: str) -> dict[str, Any]:
    """A measured result.

    Raises:
        FileNotFoundError: When it has not been measured.
    """
    result = read_result(f"perf-{name}")
    if result is None:
        raise FileNotFoundError(f"run `python -m studies.perf {name}`")
    return result


def assumed(given: Assumptions) -> str:
    """What is assumed, with the names under which it can be changed."""
    told = (Assumptions.__doc__ or "").partition("Args:")[2]
    meanings = dict(line.strip().split(": ", 1) for line in told.strip().splitlines())
    rows = [[f"`{field.name}`", f"{getattr(given, field.name):.3g}", meanings[field.name]] for field in fields(given)]
    return table(["assumption", "value", ""], [[name, value, meaning.rstrip(".")] for name, value, meaning in rows])


def fungitastic(given: Assumptions) -> str:
    """All photos of FungiTastic, read, turned into features and packed."""
    sizes = needed("photos")["sizes"]
    network = needed("photos")["network_cpu_ms"]
    rows = []
    for size, one in sizes.items():
        hours = FUNGITASTIC_PHOTOS * one["cpu_ms"]["extraction without a network"] / 3.6e6
        disk = one["kib_per_photo"] * 1024 * FUNGITASTIC_PHOTOS
        rows.append([f"photos of {size}, read and decoded", *_spent(given, cores=hours), _gb(disk)])
    hours = FUNGITASTIC_PHOTOS * network / 3.6e6
    stored = STORED_BYTES * FUNGITASTIC_PHOTOS
    rows.append(["features by EfficientNet-Lite0 on processors", *_spent(given, cores=hours), _gb(stored)])
    gpu = needed("gpu")
    for size, decoders in gpu["decoders"].items():
        rate = max(rate for way, rate in decoders.items() if way.endswith("libjpeg-turbo"))
        hours = FUNGITASTIC_PHOTOS / rate / 3600
        what = f"decoded for a GPU by its {gpu['machine']['cores']} cores, {size}"
        rows.append([what, *_spent(given, gpus=hours), ""])
    square = SQUARE_BYTES * FUNGITASTIC_PHOTOS
    rows.append(["a raw pack of squares of 256 px", "", "", "", _gb(square)])
    rows.append(["a JPEG pack of them", "", "", "", _gb(square * JPEG_SHARE)])
    return table(["650,000 photos", "core hours", "GPU hours", "dollars", "disk"], rows)


def training(given: Assumptions) -> str:
    """The cells of FungiTastic's Tables 4 and 5 that are trained: hours and money for each."""
    rates, cells = needed("gpu")["networks"], needed("table4")["cells"]
    counted = needed("networks")["giga_multiply_adds"]
    rows, total, least = [], 0.0, 0.0
    for architecture, like in STANDS_FOR.items():
        parts = PARTS if architecture in FEW_SHOT_TOO else PARTS[:2]
        measured = rates[MEASURED[like]]["engine, raw pack, crops, RandAugment"]
        for size, cost in counted[architecture].items():
            cell = cells[f"fungitastic-{architecture}-{size}"]
            hours = {part: _training_hours(part, cell["photos_per_s"], cell["looked_at_per_s"]) for part in parts}
            together = sum(hours.values())
            large = measured * counted[like]["224"] / max(cost, counted[like][size])
            quick = sum(_training_hours(part, large, large / given.forward_share) for part in parts)
            total, least = total + together, least + quick
            scaled = "" if architecture == like and size == "224" else f" (from {like})"
            each = [f"{hours[part]:.1f}" if part in hours else "" for part in PARTS]
            told = [f"{cell['photos_per_s']:,.0f}", f"{cell['memory_gib']:g}"]
            dollars = f"{together * given.gpu_hour:,.0f}"
            rows.append([f"{architecture}, {size} px", *told, *each, dollars, f"{large:,.0f}{scaled}", f"{quick:.1f}"])
    hours_and_dollars = [f"{total:,.0f} hours", "", "", f"{total * given.gpu_hour:,.0f}"]
    rows.append(["all", "", "", *hours_and_dollars, "", f"{least:,.0f} hours"])
    columns = ["cell", "photos/s", "GiB", "FungiTastic, h", "Mini, h", "FewShot, h", "dollars"]
    return table([*columns, "compiled, large batches: photos/s", "h"], rows)


def _training_hours(part: str, learned_per_s: float, looked_at_per_s: float) -> float:
    looked_at = EPOCHS * VAL[part] + TEST[part]
    return (EPOCHS * TRAIN[part] / learned_per_s + looked_at / looked_at_per_s) / 3600


def geolifeclef(given: Assumptions) -> str:
    """1.9 million observations of GeoLifeCLEF 2020."""
    rasters, forest, metric = needed("rasters"), needed("random_forest"), needed("metrics_geo")
    hours = rasters["seconds"] * rasters.get("machine", {"cores": 2})["cores"] / rasters["points"] * PLACES / 3600
    values = 4 * RASTERS * PLACES
    memory = rasters["peak_memory_mib"] - rasters["peak_memory_before_mib"] - rasters["values_mib"]
    peak = forest["peak_gib_of_8_allowed"]
    rows = [
        ["27 rasters at each place", *_spent(given, cores=hours), f"{(memory / 1024 + values / 2**30):.1f} GiB"],
        [f"a forest of 10 trees on {forest['places']:,} places", "", "", "", f"{peak:.1f} GiB"],
        ["the same on all places, linear", "", "", "", f"{peak * PLACES / forest['places']:.1f} GiB"],
        ["the scores of test, all at once", "", "", "", f"{4 * TEST_PLACES * SPECIES / 2**30:.1f} GiB"],
        ["the scores of train, all at once", "", "", "", f"{4 * PLACES * SPECIES / 2**30:.0f} GiB"],
        [
            "adaptive top-30 of test, streamed",
            *_spent(given, cores=metric["seconds"] / 3600),
            f"{metric['peak_memory_over_allowed'] * 1.5:.1f} GiB",
        ],
    ]
    return table(["1.9 million observations", "core hours", "GPU hours", "dollars", "memory"], rows)


def soundscapes(given: Assumptions) -> str:
    """A thousand hours of recordings, from what one hour took."""
    sound = needed("sound")
    rows = []
    for what, rate, mib in (
        ("BirdNET V2.4", sound["birdnet_times_real_time"], sound["birdnet_peak_mb_400_allowed"]),
        (
            sound["network"],
            sound["network_times_real_time_60_wanted"],
            sound["network_mb_beyond_libraries_400_allowed"],
        ),
    ):
        rows.append([what, *_spent(given, cores=SOUND_HOURS / rate * sound["cores"])[::2], f"{mib / 1024:.2f} GiB"])
    return table([f"{SOUND_HOURS:,} hours of recordings", "core hours", "dollars", "memory"], rows)


def many(given: Assumptions) -> str:
    """100 million observations through each stage, by the growth that was measured, and where memory ends."""
    rows = []
    stages = {name: stage for name, stage in needed("growth")["stages"].items() if name != "world"}
    for name, stage in sorted(stages.items(), key=lambda pair: _largest(pair[1], given)):
        line = growth_of(stage)
        most = line.most_items(given.memory_gib)
        fits = "any number" if most == float("inf") else f"{most / 1e6:,.1f} million"
        rows.append([name, *_spent(given, cores=line.hours(MANY))[::2], f"{line.gib(MANY):,.0f} GiB", fits])
    columns = ["100 million items", "core hours", "dollars", "memory", f"fits into {given.memory_gib:g} GiB"]
    return table(columns, rows)


def _largest(stage: dict[str, Any], given: Assumptions) -> float:
    return growth_of(stage).most_items(given.memory_gib)


def many_on_disk(given: Assumptions) -> str:
    """What 100 million photos take on disk, and what that costs for a month."""
    sizes = {size: one["kib_per_photo"] * 1024 for size, one in needed("photos")["sizes"].items()}
    kinds = {f"photos of {size}": each for size, each in sizes.items()}
    kinds |= {"features and logits": STORED_BYTES, "features alone": 2560 + 16, "a raw pack": SQUARE_BYTES}
    rows = [
        [kind, f"{each * MANY / 1e12:,.1f} TB", f"{each * MANY / 1e12 * given.disk_tb_month:,.0f}"]
        for kind, each in kinds.items()
    ]
    return table(["100 million photos", "disk", "dollars a month"], rows)


def checked(given: Assumptions) -> str:
    """What a larger size took beside what the smaller ones had predicted."""
    rows = []
    for name, one in needed("scale")["stages"].items():
        rows.append(
            [
                name,
                f"{one['small']:,}",
                f"{one['large']:,}",
                f"{one['predicted_cpu_s']:,.1f} / {one['cpu_s']:,.1f}",
                f"{one['seconds_over_predicted']:.2f}",
                f"{one['predicted_peak_mib']:,.0f} / {one['peak_mib']:,.0f}",
                f"{one['memory_over_predicted']:.2f}",
            ]
        )
    columns = ["", "predicted from", "for", "CPU s predicted / taken", "ratio", "MiB predicted / taken", "ratio"]
    return table(columns, rows)


def _spent(given: Assumptions, *, cores: float = 0.0, gpus: float = 0.0) -> list[str]:
    dollars = cores * given.core_hour + gpus * given.gpu_hour
    return [_hours(cores), _hours(gpus), f"{dollars:,.2f}" if dollars < 10 else f"{dollars:,.0f}"]


def _hours(hours: float) -> str:
    return "" if hours == 0 else f"{hours:,.0f}" if hours >= 10 else f"{hours:.2f}"


def _gb(number: float) -> str:
    return f"{number / 1e9:,.1f} GB"


TABLES: dict[str, Callable[[Assumptions], str]] = {
    "assumptions": assumed,
    "fungitastic": fungitastic,
    "tables_4_and_5": training,
    "geolifeclef": geolifeclef,
    "soundscapes": soundscapes,
    "hundred_million": many,
    "hundred_million_on_disk": many_on_disk,
    "predictions": checked,
}


def usual(render: Callable[[Assumptions], str]) -> Callable[[], str]:
    """A table with the assumptions as they are written here."""
    return lambda: render(Assumptions())


COST_TABLES = {name: usual(render) for name, render in TABLES.items()}


def main() -> None:
    """Prints all tables for given assumptions."""
    parser = argparse.ArgumentParser(prog="python -m studies.perf.costs", description=__doc__)
    for field in fields(Assumptions):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=float, default=field.default)
    given = Assumptions(**vars(parser.parse_args()))
    for name, render in TABLES.items():
        print(f"## {name}\n\n{render(given)}")


if __name__ == "__main__":
    main()
