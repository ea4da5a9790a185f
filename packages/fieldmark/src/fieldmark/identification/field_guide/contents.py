"""What a field guide knows besides its network, as plain data: `guide.json`, and the arrays it refers to.

The page computes with these numbers as `identification.photos` does with the model itself; words that are the same for
every answer (advice, photos that help) are taken over from here, so that they are written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.exporting.answering_network import AnsweringNetwork
from fieldmark.exporting.identifications import MACHINE, UNVERIFIED
from fieldmark.features.resampling import Resampler, always_across_first, fewer_rows_later, same_pixels
from fieldmark.identification.advice import DANGER_ADVICE, NEXT_PHOTOS, OTHER_ADVICE, WHAT_IS_FEARED
from fieldmark.identification.darwin_core_rows import TERMS, WITHHELD
from fieldmark.identification.label_facts import THREATENED, LabelFacts
from fieldmark.identification.pretrained import TrainedElsewhere
from fieldmark.models import Model
from fieldmark.models.guides import Guide
from fieldmark.models.guides.contexts import columns_of_contexts, contexts_of
from fieldmark.models.guides.dangers import NEVER, allowed_by
from fieldmark.models.guides.living_groups import is_genus
from fieldmark.models.guides.novelty import K
from fieldmark.models.guides.rollup import BANDS, OF_LABEL, ladder, rank_of_labels
from fieldmark.steps import Step, step_to_data
from fieldmark.steps.novelty import unit
from fieldmark.steps.priors.base import PriorSource
from fieldmark.steps.priors.contexts import WITHIN
from fieldmark.steps.priors.countries import NOT_KNOWN, countries
from fieldmark.steps.priors.counts import Counts
from fieldmark.steps.priors.presence_tables import CONTINENT, PresenceTable
from fieldmark.steps.priors.prior import Prior
from fieldmark.version import __version__

FORMAT: Final = 1
# Columns that the page asks a person for.
ASKED: Final = ("date", "lat", "lon", "country", "habitat", "substrate", "site")


@dataclass
class ArrayFile:
    """Arrays one after the other, and where each lies: `{"array": [offset, values, type, rows]}` stands for one."""

    pieces: list[bytes] = field(default_factory=list)
    size: int = 0

    def put(self, values: NDArray[Any], dtype: str) -> dict[str, list[Any]]:
        """Adds an array and returns what refers to it."""
        array = np.ascontiguousarray(values, dtype=dtype)
        offset = -(-self.size // 8) * 8
        self.pieces += [bytes(offset - self.size), array.astype(array.dtype.newbyteorder("<")).tobytes()]
        self.size = offset + array.nbytes
        return {"array": [offset, array.size, dtype, len(array) if array.ndim > 1 else 1]}

    def bytes(self) -> bytes:
        """The file."""
        return b"".join(self.pieces)


def guide_contents(model: Model, network: AnsweringNetwork, arrays: ArrayFile) -> dict[str, Any]:
    """The plain data of a guide; large arrays go into the file of arrays.

    Raises:
        MisuseError: When a step of the model, or the way it answers, cannot be written as data.
    """
    if isinstance(model.fitted.method, TrainedElsewhere):
        raise MisuseError(f"The model {model.name!r} was trained elsewhere and is not exported as an app.")
    return {
        "fieldmark_guide_app": FORMAT,
        "version": __version__,
        "model": model.name,
        "simulated": model.simulated,
        "scale": model.fitted.method.scale,
        "reading": _reading(network),
        "steps": [plain_step(step, model, arrays) for step in model.steps],
        "contexts": {name: columns_of_contexts([name]) for name in contexts_of(model.steps)},
        "countries": countries_of(model.steps),
        **_labels(model),
        "words": guide_words(),
        "guide": None if model.guide is None else _guide(model.guide, arrays),
        "allowed_by_costs": allowed_by(),
    }


# --- photos ---------------------------------------------------------------------------------------------------------


def _reading(network: AnsweringNetwork) -> dict[str, Any]:
    views = [
        {
            "size_px": one.size_px,
            "side_px": round(one.size_px / one.crop),
            "resize": one.resize,
            "place": list(one.place),
            "mirrored": one.mirrored,
        }
        for one in network.views
    ]
    orders: dict[str, Callable[[int, int, tuple[int, int]], bool]] = {
        "fewer rows later": fewer_rows_later,
        "always": always_across_first,
    }
    across = next((name for name, rule in orders.items() if same_pixels(Resampler(across_first=rule))), "always")
    return {"views": views, "squashed": network.squashed, "across_first": across}


# --- steps ----------------------------------------------------------------------------------------------------------

# Steps that are numbers; what each is saved with is what the page reads.
PLAIN_STEPS: Final = (
    "temperature",
    "bias-temperature",
    "group-temperature",
    "unknown-score",
    "max-softmax",
    "unknown-probability",
    "unknown-threshold",
    "min-cost",
    # Photos of one specimen are pooled before the steps; to one observation these do nothing more.
    "observation-mean",
    "observation-max",
    "observation-attention",
)


def plain_step(step: Step, model: Model, arrays: ArrayFile) -> dict[str, Any]:
    """A step as the page reads it.

    Raises:
        MisuseError: For a step that is more than numbers.
    """
    if isinstance(step, Prior):
        sources = [_source(one, step, arrays) for one in step.fitted_sources]
        exponents = [float(one) for one in step.exponents]
        return {"step": "prior", "rule": step.rule, "exponents": exponents, "sources": sources}
    if step.name not in PLAIN_STEPS:
        raise MisuseError(
            f"The model {model.name!r} cannot be exported as an app: its step {step.name} is not among those that are "
            f"plain numbers ({', '.join(PLAIN_STEPS)}, and priors from counts or tables)."
        )
    return step_to_data(step)


def _source(source: PriorSource, step: Prior, arrays: ArrayFile) -> dict[str, Any]:
    if step.several or not isinstance(source, Counts | PresenceTable):
        raise MisuseError(
            f"The step {step.name} cannot be exported as an app: its prior comes from {source.kind}, which is no table."
        )
    shared = {"kind": source.kind, "context": source.context, "back_off": source.back_off}
    if isinstance(source, Counts):
        return {
            **shared,
            "groups": [list(names) for names in source.groups],
            "log_prior": arrays.put(source.log_prior, "float64"),
            "log_ratios": arrays.put(source.arrays["log_ratios"], "float32"),
        }
    return {
        **shared,
        "floor": source.floor,
        "places": list(source.places),
        "continent_prefix": CONTINENT,
        "present": arrays.put(source.arrays["present"], "uint8"),
        "listed": arrays.put(source.arrays["listed"], "uint8"),
    }


def countries_of(steps: tuple[Step, ...]) -> dict[str, Any] | None:
    """Countries by name, where a prior asks for one."""
    priors = [step for step in steps if isinstance(step, Prior)]
    if not any("country" in one.context.split(WITHIN) for step in priors for one in _with_context(step)):
        return None
    by_name = {name: [one.code, one.continent] for name, one in countries().items()}
    return {"by_name": by_name, "not_known": sorted(NOT_KNOWN)}


def _with_context(step: Prior) -> list[Any]:
    return [source for source in step.fitted_sources if isinstance(source, Counts | PresenceTable)]


# --- labels ---------------------------------------------------------------------------------------------------------


def _labels(model: Model) -> dict[str, Any]:
    facts, taxonomy = LabelFacts.of(model), model.taxonomy
    red = {}
    if "red_list" in model.taxa.columns:
        red = {row["label"]: row["red_list"] in THREATENED for row in model.taxa.iter_rows(named=True)}
    own_rank = rank_of_labels(taxonomy)
    ranks = {}
    for rank in ladder(taxonomy):
        if rank == OF_LABEL:
            claimed = ["genus" if own_rank == OF_LABEL and is_genus(one) else own_rank for one in model.labels.names]
            names, of = model.labels.names, list(range(len(model.labels)))
        else:
            names, of = taxonomy.ranks[rank][0].names, taxonomy.ranks[rank][1].tolist()
            claimed = [rank] * len(names)
        records = [
            facts.records.of(name, None if at == OF_LABEL else at) for name, at in zip(names, claimed, strict=True)
        ]
        ranks[rank] = {
            "of": of,
            "records": [
                {**one._asdict(), "rank": one.rank or OF_LABEL, "lineage": dict(one.lineage)} for one in records
            ],
        }
    return {
        "labels": [
            {
                "label": taxon.label,
                "species": taxon.species,
                "common_name": taxon.common_name,
                "poisonous": taxon.poisonous,
                "group": group,
                "dangerous": bool(dangerous),
                "threatened": red.get(taxon.label, False),
            }
            for taxon, group, dangerous in zip(facts.taxa, facts.groups, facts.dangerous, strict=True)
        ],
        "taxa": [{key: value for key, value in row.items() if value is not None} for row in model.taxa.to_dicts()],
        "ranks": ranks,
    }


def guide_words() -> dict[str, Any]:
    """Words that are the same for every answer."""
    return {
        "next_photos": {group: list(photos) for group, photos in NEXT_PHOTOS.items()},
        "advice": {group: list(advice) for group, advice in DANGER_ADVICE.items()},
        "other_advice": list(OTHER_ADVICE),
        "feared": dict(WHAT_IS_FEARED),
        "never": dict(NEVER),
        "machine": MACHINE,
        "unverified": UNVERIFIED,
        "withheld": WITHHELD,
        "terms": list(TERMS),
    }


# --- what the model keeps to answer people --------------------------------------------------------------------------


def _guide(guide: Guide, arrays: ArrayFile) -> dict[str, Any]:
    strangers = guide.strangers
    return {
        "roll_up": guide.roll_up.to_data(),
        "bands_from": list(BANDS),
        "unknown_line": strangers.line,
        "far": arrays.put(strangers.far, "float64"),
        "doubt": arrays.put(strangers.doubt, "float64"),
        "neighbor": K,
        "danger_line": guide.danger.line,
        "conformal": {name: sets.to_data() for name, sets in guide.conformal.items()},
        "counts": guide.counts.tolist(),
        "checked": None if guide.checked is None else dict(guide.checked),
        "kept": {
            "rows": len(strangers.kept),
            "codes": guide.photos.codes[: len(strangers.kept)].tolist(),
            "paths": [str(path) for path in guide.photos.paths[: len(strangers.kept)]],
        },
    }


def quantized_rows(rows: NDArray[Any]) -> NDArray[np.int8]:
    """Rows of length one in 8 bits, each with steps of its own; what reads them scales them to length one again."""
    single = unit(rows)
    step = np.maximum(np.abs(single).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / 127
    return np.asarray(np.rint(single / step), dtype=np.int8)
