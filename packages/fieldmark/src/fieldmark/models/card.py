"""The model card: what a model answers, where it learned that, and what to know before trusting it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fieldmark.benchmarks.titles import metric_is_share, metric_title
from fieldmark.methods.base import NOT_STATED
from fieldmark.models.guides.dangers import never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.guides.rollup import OF_LABEL, rank_of_labels

if TYPE_CHECKING:
    from fieldmark.models.model import Model

MOST_LABELS = 500


def _crop(model: Model) -> list[str]:
    """The line that says which part of a photo is shown, where that is not all of it."""
    settings: Any = model.features.get("", model.fitted.method)
    crop = getattr(settings, "crop", "")
    if crop in ("", "none"):
        return []
    return [f"- Photos are cropped before the network sees them: crop={crop}, crop_margin={settings.crop_margin:g}."]


def _external_data(model: Model) -> list[str]:
    """What besides the release it rests on; that this is unknown, where nobody has said."""
    declared = model.trained.get("external_data", [])
    if declared is None:
        return ["- External data: unknown. Whoever made the backbone or the method has not declared what it has seen."]
    return [f"- External data: {sentence}." for sentence in declared]


def _caution(model: Model) -> list[str]:
    """What it cannot do, and what must not be done because of it; that follows from its taxa."""
    never = never_because_of_a_model(groups_of(model.labels, model.taxa))
    return [" ".join(["It knows these labels and no others.", *(f"**{sentence}**" for sentence in never)])]


def _scores(model: Model) -> list[str]:
    """What it scored where it was made, with intervals: a table for each part."""
    lines = []
    for part, scores in model.trained.get("scores", {}).items():
        lines += ["", f"## Scores on {part}", "", "| metric | score | 95 % interval |", "|---|---|---|"]
        for name, score in scores.items():
            where = model.trained["benchmark"]
            scale, digits, unit = (100, 1, " %") if metric_is_share(name, where) else (1, 3, "")
            value, low, high = (score.get(key) for key in ("value", "low", "high"))
            shown = "undefined" if value is None else f"{scale * value:.{digits}f}{unit}"
            between = "" if low is None or high is None else f"{scale * low:.{digits}f} to {scale * high:.{digits}f}"
            lines.append(f"| {metric_title(name, where)} | {shown} | {between} |")
    if lines and model.simulated:
        lines += ["", "Scores on simulated data say nothing about nature."]
    return lines


def _labels(model: Model) -> list[str]:
    """The labels it tells apart, by their names; folded, since there may be many."""
    taxa = {row["label"]: row for row in model.taxa.iter_rows(named=True)}
    lines = ["", f"## Its {len(model.labels):,} labels", "", "<details><summary>All of them</summary>", ""]
    for label in model.labels.names[:MOST_LABELS]:
        row = taxa.get(label, {})
        names = [row.get(key) for key in ("common_name", "scientific_name", "species")]
        further = list(dict.fromkeys(str(name) for name in names if name and str(name) != label))
        marks = ["poisonous or venomous"] if row.get("poisonous") else []
        told = f" ({', '.join([*further[:2], *marks])})" if further or marks else ""
        lines.append(f"- {label}{told}")
    if len(model.labels) > MOST_LABELS:
        lines.append(f"- and {len(model.labels) - MOST_LABELS:,} more in `model.json`")
    return [*lines, "", "</details>"]


def _answers_to_people(model: Model) -> list[str]:
    """How the answers of `fieldmark identify` were held to val."""
    guide = model.guide
    if guide is None:
        return []
    drawn_on = "validation"
    if guide.checked is not None:
        drawn_on = f"{guide.checked['observations']:,} observations that a person checked"
    told = f"`fieldmark identify` gives these by rules that were drawn on {drawn_on}:"
    lines = ["", "## Answers to people", "", told, ""]
    for rank, line in guide.roll_up.lines.items():
        given, right = guide.roll_up.right[rank]
        called = rank_of_labels(model.taxonomy) if rank == OF_LABEL else rank
        said = f"from a probability of {line:g} on: {right} of {given} right" if line is not None else "never"
        lines.append(f"- Answers at the rank {called}: {said}.")
    lines.append(
        f"- Possibly unknown: above a strangeness of {guide.strangers.line:.3f}, which accepts 95 % of validation."
    )
    for known, sets in guide.conformal.items():
        where = f"with {known.replace('+', ', ')}" if known else "from the photo alone"
        lines.append(f"- The short list {where} holds the right name in {100 * sets.coverage:.0f} % of observations.")
        if sets.checked:
            lines.append(
                f"  Measured over {sets.checked['splits']} random halves of {drawn_on}: "
                f"{100 * sets.checked['coverage']:.1f} %, {sets.checked['size']:.2f} names on average."
            )
    if not guide.conformal:
        few = f"{drawn_on} are too few" if guide.checked is not None else "validation has too few observations"
        lines.append(f"- No short list with a promise: {few}.")
    return lines


def card(model: Model, scores: Mapping[str, str] | None = None) -> str:
    """The card of a model.

    Args:
        model: The model.
        scores: Scores to print, by name, ready for reading.
    """
    made = model.trained
    world = " The photos are **simulated**: it knows nothing of nature." if model.simulated else ""
    settings = {name: value for name, value in model.fitted.method.options.items() if value != ""}
    lines = [
        "---",
        f"license: {model.license if model.license != NOT_STATED else 'other'}",
        "library_name: fieldmark",
        "tags: [biodiversity, fine-grained-recognition, image-classification]",
        "---",
        f"# {model.name} on {made['benchmark']}",
        "",
        f"Answers {len(model.labels):,} labels. Learned from {' and '.join(made['parts'])} of "
        f"`{made['benchmark']}` (version {made['version']}, seed {made['seed']}).{world}",
        "",
        "```python",
        "from pathlib import Path",
        "",
        "import fieldmark",
        "",
        'model = fieldmark.load_model("this folder")',
        'predictions = model.predict_photos([Path("photo.jpg")])',
        "```",
        "",
        f"- License: {model.license}. The terms of the training photos apply as well.",
        *_external_data(model),
        *(f"- Extra annotations: {sentence}." for sentence in made.get("extra_annotations") or ()),
        *(f"- {remark}" for remark in (made.get("backbone") or {}).get("remarks", ())),
        *_crop(model),
        f"- Steps after the network: {', '.join(step.name for step in model.steps) or 'none'}.",
        *(f"- {remark}" for remark in model.fitted.remarks),
        "",
        *(["| metric | score |", "|---|---|"] if scores else []),
        *(f"| {name} | {value} |" for name, value in (scores or {}).items()),
        *([""] if scores else []),
        *_caution(model),
        *_scores(model),
        *_answers_to_people(model),
        *_labels(model),
        "",
        "## Settings",
        "",
        "```json",
        json.dumps(settings, indent=2),
        "```",
        "",
    ]
    return "\n".join(lines)
