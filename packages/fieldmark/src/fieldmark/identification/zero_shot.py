"""BioCLIP and other networks of open_clip that name photos by a list of species, without a photo to learn from.

Photos and names lie in one space: a name is written as its taxa and its common name, as BioCLIP was trained, and the
name whose direction is nearest to that of the photo comes first. Stevens et al., "BioCLIP: a vision foundation model
for the tree of life" (2024); Gu et al., "BioCLIP 2" (2025). Nothing is known about how often such answers are right for
the list at hand, so that the answer says so and is never called known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import MisuseError
from fieldmark.features.embeddings import unit_rows
from fieldmark.features.hub import HUB, LOCAL
from fieldmark.features.named_backbones import NAMED
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.store import default_store
from fieldmark.identification.checklists import read_checklist
from fieldmark.identification.photo_answers import PhotoAnswer, RankedClaim
from fieldmark.identification.pretrained import TrainedElsewhere
from fieldmark.methods.base import Arrays, Fitted, features_of
from fieldmark.models import Model
from fieldmark.models.guides.rollup import BANDS, RollUp
from fieldmark.models.supply import FeatureSource, Supply
from fieldmark.runs.label_scores import Scale
from fieldmark.storage.files import appearing_file
from fieldmark.tables.labels import Labels
from fieldmark.tables.schema import RANKS
from fieldmark.views.parts import Part
from fieldmark.work.progress import progress

PREFIXES: Final = (HUB, LOCAL, "openclip:")
BATCH_NAMES = 64
# From which share of the probability on a taxon of the list is stated; nothing was calibrated.
LINE = 0.9


def is_zero_shot(model: str) -> bool:
    """Whether a model is one that names by a list.

    >>> is_zero_shot("bioclip"), is_zero_shot("local-dir:bioclip"), is_zero_shot("runs/linear")
    (True, True, False)
    """
    return (model in NAMED and not Path(model).exists()) or model.startswith(PREFIXES)


@dataclass(frozen=True)
class ZeroShotHead(TrainedElsewhere):
    """Scores names by the cosine between photo and name, times the temperature of the network."""

    @property
    def scale(self) -> Scale:
        return "logit"

    def scores(self, arrays: Arrays, part: Part) -> NDArray[np.float32]:
        return np.asarray(arrays["scale"] * (unit_rows(features_of(part)) @ arrays["names"].T), dtype=np.float32)

    def plainly(self, model: Model, answer: PhotoAnswer) -> PhotoAnswer:
        """The answer with what its probabilities are worth, and a claim where one taxon of the list has nearly all."""
        told = (
            f"Named by a list of {len(model.labels):,} species, without training for it: the probabilities are shares "
            "among these names and were checked on no photo."
        )
        without = dict.fromkeys(("species", "genus", "family", "order", "class", "kingdom"), LINE)
        rule = RollUp(without, dict.fromkeys(without, (1.0,) * len(BANDS)), {})
        chances = np.zeros(len(model.labels))
        for name in answer.names:
            chances[model.labels.code_of[name.label]] = name.probability
        found = rule.answer(chances, model.taxonomy) if "species" in model.taxonomy.ranks else None
        claim = None
        if found is not None:
            labels = tuple(model.labels.names[code] for code in found.codes)
            claim = RankedClaim(found.rank, found.taxon, found.probability, labels)
        return replace(answer, claim=claim, short_list=None, remarks=(*answer.remarks, told))


def zero_shot_model(model: str, checklist: Path | None, country: str | None = None) -> Model:
    """A network that names by a list.

    Args:
        model: A named backbone with a text half (bioclip-2), or a network of open_clip as `--set backbone=` takes it.
        checklist: The list of species.
        country: Only species of this country, where the list tells countries.

    Raises:
        MisuseError: When there is no list, or the weights are not here and cannot be downloaded.
        InputError: When the list cannot be read.
    """
    if model in NAMED and not NAMED[model].names_photos:
        able = ", ".join(name for name, one in NAMED.items() if one.names_photos)
        raise MisuseError(
            f"{model} knows no names: fit it to photos first (fieldmark fit ... --set backbone={model}), or take one "
            f"of {able}."
        )
    if checklist is None:
        raise MisuseError(f"{model} names by a list of species: add --checklist FILE (CSV or Darwin Core Archive).")
    taxa = read_checklist(checklist, country)
    settings = FeatureSettings(model)
    source = FeatureSource(settings)
    network = getattr(source.backbone, "network", None)
    if network is None or not hasattr(network, "encode_text"):
        raise MisuseError(f"{model} has no words, so that it cannot name by a list: take a network of open_clip.")
    texts = [text_of(row) for row in taxa.iter_rows(named=True)]
    names = _embedded(texts, network, settings, source.backbone.digest)
    arrays = {"names": names, "scale": np.asarray(network.logit_scale.exp().item(), dtype=np.float32)}
    made = Model(
        name=model,
        fitted=Fitted(ZeroShotHead(), arrays),
        steps=(),
        labels=Labels(tuple(taxa["label"])),
        taxa=taxa,
        features={"": settings},
        trained={"benchmark": "pairs of photos and names, by others"},
    )
    made.__dict__["supply"] = Supply({"": source})  # the network is large, and is there already
    return made


def text_of(row: Mapping[str, Any]) -> str:
    """A species in the words that BioCLIP was trained with.

    >>> text_of({"class": "Aves", "genus": "Pica", "species": "Pica pica", "common_name": "magpie"})
    'a photo of Aves Pica pica with common name magpie.'
    """
    above = [str(row[rank]) for rank in RANKS[:-1] if row.get(rank) and rank != "genus"]
    common = f" with common name {row['common_name']}" if row.get("common_name") else ""
    return f"a photo of {' '.join([*above, str(row['species'])])}{common}."


def _embedded(texts: Sequence[str], network: Any, settings: FeatureSettings, digest: str) -> NDArray[np.float32]:
    """The directions of texts, kept beside the features of photos: thousands of names take minutes."""
    key = hashlib.blake2b("\n".join([digest, *texts]).encode(), digest_size=16).hexdigest()
    path = default_store().parent / "names" / f"{key}.npy"
    if path.is_file():
        return np.asarray(np.load(path), dtype=np.float32)
    import torch

    from fieldmark.features.clip import tokenizer_of

    tokenizer, rows = tokenizer_of(settings), []
    device = next(network.parameters()).device
    with torch.inference_mode(), progress("reading names", len(texts)) as tick:
        for start in range(0, len(texts), BATCH_NAMES):
            batch = list(texts[start : start + BATCH_NAMES])
            rows.append(network.encode_text(tokenizer(batch).to(device)).float().cpu().numpy())
            tick(len(batch))
    names = unit_rows(np.concatenate(rows))
    with appearing_file(path) as partial, partial.open("wb") as file:
        np.save(file, names)
    return names
