"""The table about field guides."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table


def field_guide(name: str, result: dict[str, Any]) -> str:
    """How often a guide answers as `identify` does, what it weighs, and what bad inputs do to it."""
    total, same, plain = result["photos"], result["same"], result["beside_plain_identify"]
    text = (
        "## Field guide\n\n"
        "An exported guide in Chromium beside `identify` under the same rule for danger notices (`ask_groups=False`), "
        f"{total} test photos of four releases, single precision: the same first name for {same['name']}, its "
        f"probability within 0.01 for {result['within_0_01']}, "
        f"the same verdict (known or possibly unknown) for {same['verdict']}, the same danger notice (none, brief, "
        f"whole) for {same['danger']}, the same claim for {same['claim']}, the same short list for "
        f"{same['short_list']}, a nearest training photo of the same name for {same['nearest']}. What differs comes "
        "from the decoder of JPEGs and from features of training photos in 8 bits.\n\n"
        "A plain `identify` also asks the packaged network whether a photo may show a fungus or a snake, which a guide "
        f"does not carry. Beside it, the danger notice is of the same length (none, brief, whole) for {plain['same']}; "
        f"the guide says less for {plain['quieter']} (no notice at all for {plain['silent']} of them) and "
        f"more for {plain['louder']}.\n\n"
    )
    text += table(
        [
            "",
            "method",
            "photos",
            "same name",
            "same verdict",
            "same notice",
            "largest difference",
            "unknown",
            "warned",
            "less, more than plain",
        ],
        [_agreement(key, one) for key, one in result["releases"].items()],
    )
    text += (
        "\nWhat a first visit takes, all files and as sent; right first answers on val with 95 % intervals, and paired "
        "differences to single precision in points. Seconds are medians on one thread of a machine with other work: "
        "the whole answer in Chromium, and decoding and network by ONNX Runtime for Python.\n\n"
    )
    text += table(
        [
            "",
            "MB: single, half, 8-bit",
            "val",
            "single",
            "half less",
            "8-bit less",
            "s, Chromium",
            "s, Python",
            "times",
            "network alone",
        ],
        [_size(key, one) for key, one in result["releases"].items()],
    )
    return text + _threads(result["releases"])


def _threads(releases: dict[str, Any]) -> str:
    """What threads save, where they were timed."""
    timed = {name: one["seconds_by_threads"] for name, one in releases.items() if "seconds_by_threads" in one}
    if not timed:
        return ""
    rows = [
        [name, *(f"{seconds:.3f}" for seconds in own.values()), f"{own['1'] / own['2']:.2f}"]
        for name, own in timed.items()
    ]
    return (
        "\nThreads are used, up to four, where a page is isolated as those of a guide are. Median seconds of the "
        "network, photo by photo in turn, on a machine of two cores with about ten other processes, where a second "
        "thread only waits for the first; on idle cores nothing was timed:\n\n"
        + table(["", *(f"{threads} threads" for threads in next(iter(timed.values()))), "one to two"], rows)
        + "\nWebGPU is not used: its runtime takes 5.8 MB as sent in place of 3.1 MB (onnxruntime-web of one version, "
        "gzip), with which half precision no longer keeps to 12 MB, and no GPU was there to time it.\n"
    )


def field_guide_faults(name: str, result: dict[str, Any]) -> str:
    """What bad inputs do to a guide."""
    bad, guides = result["photos"], result["guides"]
    return (
        "### Bad inputs\n\n"
        f"Noise, cut and damaged photos, odd pictures: of {sum(bad.values()):,}, {bad['told']:,} ended in a sentence, "
        f"{bad['answered']:,} were pictures after all and answered, {bad['silent']} were silent. Guides whose data "
        f"were damaged at one place: of {sum(guides.values())}, {guides['told']} told in a sentence, "
        f"{guides['answered']} answered, {guides['silent']} silent. "
        f"The page answered afterwards: {'yes' if result['alive'] else 'no'}.\n"
    )


def field_guide_large(name: str, result: dict[str, Any]) -> str:
    """The same for large photos."""
    same, total = result["same"], result["photos"]
    return (
        "### Large photos\n\n"
        f"{total} photos of snakes, enlarged to a short side of {result['short_side_px']:,} px with noise added (real "
        f"photos of phones were not at hand): the same first name for {same['name']}, verdict for {same['verdict']}, "
        f"danger notice for {same['danger']} and claim for {same['claim']}; the probability within 0.01 for "
        f"{result['within_0_01']}, different by {result['median_difference']:.4f} in the median and "
        f"{result['largest_difference']:.3f} at most. Browsers decode all of a JPEG, Pillow a part of it.\n"
    )


def _agreement(key: str, one: dict[str, Any]) -> list[str]:
    same, plain = one["same"], one["beside_plain_identify"]
    counts = [one["photos"], same["name"], same["verdict"], same["danger"]]
    return [
        f"{key} (`{one['release']}`)",
        one["method"],
        *map(str, counts),
        f"{one['largest_difference']:.0e}",
        str(one["unknown"]),
        str(one["warned"]),
        f"{plain['quieter']}, {plain['louder']}",
    ]


def _size(key: str, one: dict[str, Any]) -> list[str]:
    loads, losses, seconds = one["first_load_mb"], one["losses"], one["median"]
    learned = " (learned from)" if one["val_learned_from"] else ""
    return [
        key,
        ", ".join(f"{loads[name]:.1f}" for name in ("single", "half", "8-bit")),
        f"{one['val_observations']}{learned}",
        _share(losses["single"]["right"], " %"),
        _share(losses["half"]["less"]),
        _share(losses["8-bit"]["less"]),
        f"{seconds['browser_s']:.3f}",
        f"{seconds['python_s']:.3f}",
        f"{seconds['browser_s'] / seconds['python_s']:.1f}",
        f"{seconds['browser_network_s'] / seconds['python_network_s']:.1f}",
    ]


def _share(triple: list[float | None], unit: str = "") -> str:
    value, low, high = (None if one is None else 100 * one for one in triple)
    between = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
    return f"{value:.1f}{between}{unit}"
