"""The tables of studies about masks."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import table


def butterflies(name: str, result: dict[str, Any]) -> str:
    """The families of masks on real butterflies."""
    rows = []
    for family, found in result["families"].items():
        test, apart = found["test"], found["against_saliency"]
        rows.append(
            [
                family,
                ", ".join(str(value) for value in found["setting"]),
                f"{100 * found['left_out_species']['mean']:.1f}" if found["left_out_species"] else "not chosen",
                f"{100 * test[0]:.1f} [{100 * test[1]:.1f}, {100 * test[2]:.1f}]",
                str(found.get("tested", sum(result["photos"][species] for species in found["test_by_species"]))),
                " / ".join(f"{100 * value:.1f}" for value in found["test_by_species"].values()),
                _apart(apart) if family != "saliency" else "",
                str(found["below_half"]),
            ]
        )
    heads = [
        "",
        "setting",
        "IoU, species left out",
        "IoU on test",
        "photos",
        "004 / 005",
        "against saliency",
        "below 0.5",
    ]
    missing = f"Not run yet: {', '.join(result['left_out'])}.\n\n" if result["left_out"] else ""
    return f"## Masks of butterflies (real photos)\n\n{result['about']}\n\n{missing}" + table(heads, rows)


def foreground(name: str, result: dict[str, Any]) -> str:
    """Classifiers of the object and of what surrounds it."""
    rows = [
        [
            row["learned"],
            row["shown"],
            _score(row["macro_f1_all"]),
            _score(row["top_1"]),
            "" if row["difference"] is None else _apart(row["difference"]),
        ]
        for row in result["rows"]
    ]
    heads = ["learned from", "shown", "macro-F1", "top-1", "macro-F1 against whole photos"]
    text = f"## Foreground and background of butterflies (real photos)\n\n{result['about']}\n\n" + table(heads, rows)
    few, worlds = result["few_labels"], result["worlds"]
    rows = [
        [row["masks"], row["learned"], row["shown"], _score(row["top_1"]), _apart(row["difference"])]
        for row in few["rows"]
    ]
    heads = ["masks", "learned from", "shown", "top-1", "against whole photos"]
    text += f"\n\n{few['about']}\n\n" + table(heads, rows)
    rows = [
        [row["learned"], row["shown"], _score(row["macro_f1_all"]), _apart(row["difference"])] for row in worlds["rows"]
    ]
    heads = ["learned from", "shown", "macro-F1 (simulated)", "against whole photos"]
    return f"{text}\n\n{worlds['about']}\n\n" + table(heads, rows)


def world_masks(name: str, result: dict[str, Any]) -> str:
    """A U-Net against an ellipse."""
    metrics = ("iou", "miou", "miou_with_background")
    rows = []
    for method, found in result["methods"].items():
        scores = [_score(found["test"][one]) if one in found["test"] else "" for one in metrics]
        rows.append([method, *scores, f"{found['seconds']:g}", f"{found['processor_seconds']:g}"])
    heads = ["", "IoU", "mIoU of parts", "mIoU with background", "seconds", "of processors"]
    return f"## Masks on a world of fungi (simulated)\n\n{result['about']}\n\n" + table(heads, rows)


def _score(score: list[float | None]) -> str:
    value, low, high = score
    bounds = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * (value or 0):.1f}{bounds}"


def _apart(apart: list[float | None]) -> str:
    value, low, high = apart
    bounds = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * (value or 0):+.1f}{bounds}"
