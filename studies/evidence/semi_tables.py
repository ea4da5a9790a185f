"""Tables of the studies with few labels: real birds on frozen features and with training, and worlds."""

from __future__ import annotations

from typing import Any

from studies.evidence.markdown import difference, table


def birds_with_few_labels(name: str, result: dict[str, Any]) -> str:
    """Methods on frozen features, balanced and long-tailed."""
    parts = [f"## Few labels, many unlabeled photos: real birds, frozen features\n\n{result['about']}\n"]
    taught = ["unlabeled taught", "of it out-of-class", "in-class taught rightly"]
    for tail, own in result["sets"].items():
        columns = ["", "top-1", "less supervised", f"less {own['labels_alone']}", *taught]
        parts.append(
            f"{tail.capitalize()}: {own['labels']} labels of {result['species']} species, {own['unlabeled']:,} "
            f"unlabeled photos, {own['unlabeled_in_class']:,} of them in-class, {own['test']:,} test photos, "
            f"{result['draws']} draws; differences with 95 % intervals over photos and draws.\n"
        )
        parts.append(table(columns, [_beside(own["labels_alone"], method, row) for method, row in own["rows"].items()]))
    return "\n".join(parts)


def worlds_with_few_labels(name: str, result: dict[str, Any]) -> str:
    """The same on simulated releases."""
    rows = [_row(method, row)[:3] for method, row in result["rows"].items()]
    return (
        "## Few labels, many unlabeled photos: worlds (simulated)\n\n"
        f"{result['size'].capitalize()} worlds of Semi-iNat 2021 over {len(result['seeds'])} seeds, frozen Lite0; "
        "differences with 95 % intervals over seeds.\n\n" + table(["", "top-1", "less supervised"], rows)
    )


def training_with_few_labels(name: str, result: dict[str, Any]) -> str:
    """Fine-tuning with unlabeled photos."""
    return _trained("fine-tuning", result)


def tails_with_few_labels(name: str, result: dict[str, Any]) -> str:
    """Fine-tuning with a long tail of labels, coarse labels and momentum contrast."""
    return _trained("fine-tuning with a long tail, coarse labels and momentum contrast", result)


def _trained(title: str, result: dict[str, Any]) -> str:
    parts = [f"## Few labels, many unlabeled photos: real birds, {title}\n\n{result['about']}\n"]
    columns = ["", "top-1", "less supervised", "draws", "sure of in-class, %", "sure of out-of-class, %"]
    for start, rows in result["sets"].items():
        shown = []
        for arm, row in rows.items():
            sure = [f"{100 * row[f'sure_{which}']:.1f}" for which in ("in_class", "out_of_class")]
            shown.append([*_row(arm, row)[:3], str(row["draws"]), *sure])
        if shown:
            parts.append(f"From {start}:\n\n{table(columns, shown)}")
    return "\n".join(parts)


def _beside(best: str, name: str, row: dict[str, Any]) -> list[str]:
    cells = _row(name, row)
    ahead = "" if name == best else difference(row["ahead_of_labels_alone"], 100.0, ".1f")
    return [*cells[:3], ahead, *cells[3:]]


def _row(name: str, row: dict[str, Any]) -> list[str]:
    ahead = row["ahead_of_supervised"]  # none where there is one draw
    shown = "" if name == "supervised" or ahead is None else difference(ahead, 100.0, ".1f")
    cells = [name, f"{100 * row['mean_top_1']:.1f}", shown]
    taught = row.get("unlabeled")
    if not taught:
        return [*cells, "", "", ""]
    keys = ("taught", "weight_on_out_of_class", "in_class_right")
    return [*cells, *(f"{100 * taught[key]:.0f} %" for key in keys)]
