"""How often the packaged photo model claims a species and is wrong (real photos).

Two groups of photos. On the reference photos (butterflies of Leeds, camera traps of the Jura) the lines of the ranks
are drawn: for each rank the lowest probability from which on at least four of five claims are right, nine of ten for
species and genera, with one right and one wrong claim added. Each photo counts twice: as it is, and as it would be
answered by a model that does not know its family, since most of what people show it is of families that it does not
know. On the others (fungi, birds, snakes) the model is judged with those lines. Intervals are exact (Clopper-Pearson)
over photos; for Amanita over specimens, a specimen being wrong where any of its photos is.

What was changed after looking at the photos it is judged by, in two looks: at first each reference photo counted once,
as it is, and four of five right genera were enough. The lines of genus and family were 0.5 then, and 193 of 204 genera
claimed of birds were wrong. `first_lines` keeps those lines and what came of them. The lines themselves come from the
reference photos alone; that of species did not move. Later the smoothing of labels and the many classes of dogs were
undone (`imagenet_model.taxon_chances`), the lines drawn again, and a photo was no longer called unknown because no
label stands out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from fieldmark.identification.packaged import imagenet_taxa
from fieldmark.identification.packaged.imagenet_model import MOSTLY_THINGS, imagenet_model, tells_something
from fieldmark.models.guides.rollup import RollUp, at_rank
from fieldmark.storage.files import write_json
from fieldmark.tables.labels import UNKNOWN
from fieldmark.tables.schema import RANKS
from studies.evidence.results import real_data

# The phylum tells a naturalist nothing that the class does not.
LADDER = tuple(rank for rank in reversed(RANKS) if rank != "phylum")
GRID = tuple(round(0.5 + step / 40, 3) for step in range(20))
LINES_FILE = Path(imagenet_taxa.__file__).with_name("imagenet_lines.json")
SURE = dict.fromkeys(LADDER, 0.8) | {"species": 0.9, "genus": 0.9}
FIRST_SURE = SURE | {"genus": 0.8}

BUTTERFLIES = {
    "001": "Danaus plexippus",
    "002": "Heliconius charithonia",
    "003": "Heliconius erato",
    "004": "Junonia coenia",
    "005": "Lycaena phlaeas",
}
# Species, genus, family and order of the folders.
TRAPS = {
    "blaireaux": ("Meles meles", "Meles", "Mustelidae", "Carnivora"),
    "chamois": ("Rupicapra rupicapra", "Rupicapra", "Bovidae", "Artiodactyla"),
    "chat": ("Felis catus", "Felis", "Felidae", "Carnivora"),
    "chevreuil": ("Capreolus capreolus", "Capreolus", "Cervidae", "Artiodactyla"),
    "chien": ("Canis familiaris", "Canis", "Canidae", "Carnivora"),
    "lievre": ("Lepus europaeus", "Lepus", "Leporidae", "Lagomorpha"),
    "lynx": ("Lynx lynx", "Lynx", "Felidae", "Carnivora"),
    "renard": ("Vulpes vulpes", "Vulpes", "Canidae", "Carnivora"),
    "sangliers": ("Sus scrofa", "Sus", "Suidae", "Artiodactyla"),
}
INSECT = {"class": "Insecta", "phylum": "Arthropoda", "kingdom": "Animalia"}
MAMMAL = {"class": "Mammalia", "phylum": "Chordata", "kingdom": "Animalia"}
BIRD = {"class": "Aves", "phylum": "Chordata", "kingdom": "Animalia"}
SNAKE = {"order": "Squamata", "class": "Reptilia", "phylum": "Chordata", "kingdom": "Animalia"}
SNAKE_FAMILIES = {"Naja": "Elapidae", "Trimeresurus": "Viperidae", "Tropidolaemus": "Viperidae"} | dict.fromkeys(
    ("Calamaria", "Coelognathus", "Dendrelaphis", "Gonyosoma", "Lycodon", "Ptyas"), "Colubridae"
)
# The last word of the name of a bird of CUB, and the family of all birds there that have it.
BIRD_FAMILIES = {
    "Albatross": "Diomedeidae",
    "Bunting": "Cardinalidae",
    "Cardinal": "Cardinalidae",
    "Crow": "Corvidae",
    "Cuckoo": "Cuculidae",
    "Finch": "Fringillidae",
    "Gadwall": "Anatidae",
    "Goldfinch": "Fringillidae",
    "Hummingbird": "Trochilidae",
    "Jay": "Corvidae",
    "Junco": "Passerellidae",
    "Mallard": "Anatidae",
    "Merganser": "Anatidae",
    "Nutcracker": "Corvidae",
    "Pelican": "Pelecanidae",
    "Raven": "Corvidae",
    "Sparrow": "Passerellidae",
    "Tanager": "Cardinalidae",
    "Towhee": "Passerellidae",
    "Violetear": "Trochilidae",
}
# Birds of CUB whose last word stands for several families.
BIRDS_APART = {"House_Sparrow": "Passeridae", "Evening_Grosbeak": "Fringillidae"} | {
    "Rose_breasted_Grosbeak": "Cardinalidae"
}
BIRD_GENERA = {"Purple_Finch": "Haemorhous", "Pelican": "Pelecanus", "Lazuli_Bunting": "Passerina"} | {"Junco": "Junco"}
# Orders by the last word; all other birds of CUB are perching birds.
BIRD_ORDERS = {
    **dict.fromkeys(("Albatross", "Fulmar"), "Procellariiformes"),
    **dict.fromkeys(("Auklet", "Tern", "Gull", "Jaeger"), "Charadriiformes"),
    **dict.fromkeys(("Gadwall", "Mallard", "Merganser"), "Anseriformes"),
    **dict.fromkeys(("Hummingbird", "Violetear"), "Apodiformes"),
    "Cormorant": "Suliformes",
    "Cuckoo": "Cuculiformes",
    "Grebe": "Podicipediformes",
    "Kingfisher": "Coraciiformes",
    "Pelican": "Pelecaniformes",
    "Will": "Caprimulgiformes",
    "Woodpecker": "Piciformes",
}
FUNGUS = {"class": "Agaricomycetes", "phylum": "Basidiomycota", "kingdom": "Fungi"}
FUNGUS_ABOVE = {"Boletus": ("Boletaceae", "Boletales"), "Suillus": ("Suillaceae", "Boletales")}


class Shown(NamedTuple):
    """A photo with the taxa it shows by rank (those not told count as wrong where they are claimed), and its unit."""

    path: Path
    taxa: dict[str, str]
    unit: str


def run() -> dict[str, Any] | None:
    """The lines from the reference photos, and what is claimed about the others."""
    folders = {name: real_data(name) for name in (*REFERENCE, *JUDGED)}
    found = {name: folder for name, folder in folders.items() if folder is not None}
    if len(found) < len(folders):
        return None
    reference = [one for name, photos in REFERENCE.items() for one in photos(found[name])]
    chances = asked(reference)
    truth = [one.taxa for one in reference]
    known_lines, known_right = draw_lines(chances, truth, FIRST_SURE)
    lines, right = draw_lines(np.concatenate([chances, without_family(chances, truth)]), [*truth, *truth])
    kept = {"lines": lines, "claims_right": right}
    write_json(LINES_FILE, kept)
    imagenet_model.cache_clear()
    guide = imagenet_model().guide
    assert guide is not None
    sets, before = {}, {}
    for name, photos in JUDGED.items():
        shown = list(photos(found[name]))
        answers = asked(shown)
        sets[name] = judged(shown, answers, guide.roll_up)
        before[name] = judged(shown, answers, replace(guide.roll_up, lines=known_lines))
        print(name, sets[name], flush=True)
    return {
        "reference": {"photos": len(reference), **kept, "claims": judged(reference, chances, guide.roll_up)},
        "sets": sets,
        "first_lines": {"lines": known_lines, "claims_right": known_right, "sets": before},
    }


def asked(shown: Sequence[Shown]) -> NDArray[np.float64]:
    """The probability of each taxon for each photo; the rest lies on what is no organism."""
    predictions = imagenet_model().predict_photos([one.path for one in shown])
    return np.asarray(predictions.chances(), dtype=np.float64)


def without_family(chances: NDArray[np.float64], truth: Sequence[dict[str, str]]) -> NDArray[np.float64]:
    """The probabilities if the model did not know the family of what each photo shows."""
    families, code_of = imagenet_model().taxonomy.ranks["family"]
    family = np.array([families.code_of.get(taxa.get("family", ""), UNKNOWN - 1) for taxa in truth])
    left = np.where(code_of[None] == family[:, None], 0.0, chances)
    rest = np.maximum(1 - chances.sum(axis=1, keepdims=True) + left.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(left / rest)


def draw_lines(
    chances: NDArray[np.float64], truth: Sequence[dict[str, str]], wanted: Mapping[str, float] = SURE
) -> tuple[dict[str, float | None], dict[str, list[int]]]:
    """The line of each rank, from the lowest on, and how many claims there were given and right."""
    taxonomy, left = imagenet_model().taxonomy, np.ones(len(chances), dtype=np.bool_)
    lines: dict[str, float | None] = {}
    given: dict[str, list[int]] = {}
    for rank in LADDER:
        names, _, sums = at_rank(chances, taxonomy, rank)
        best = sums.argmax(axis=1)
        sure = sums[np.arange(len(sums)), best]
        right = np.array([taxa.get(rank) == names[code] for taxa, code in zip(truth, best, strict=True)])
        reached = ((line, left & (sure >= line)) for line in GRID)
        lines[rank] = next(
            (line for line, there in reached if (right[there].sum() + 1) / (there.sum() + 2) >= wanted[rank]), None
        )
        answered = left & (sure >= (2.0 if lines[rank] is None else lines[rank]))
        given[rank] = [int(answered.sum()), int(right[answered].sum())]
        left &= ~answered
    return lines, given


def judged(shown: Sequence[Shown], chances: NDArray[np.float64], rule: RollUp) -> dict[str, Any]:
    """How many claims are made at each rank and how many of them are wrong, by the rules that `identify` follows."""
    model = imagenet_model()
    counts = {rank: [0, 0] for rank in LADDER}
    unknown, wrong_units = 0, set()
    for one, row in zip(shown, chances, strict=True):
        if row.sum() < 1 - MOSTLY_THINGS:
            unknown += 1
            continue
        claim = rule.answer(row, model.taxonomy)
        if claim is None or not tells_something(claim.rank, claim.taxon):
            unknown += 1
            continue
        wrong = one.taxa.get(claim.rank) != claim.taxon
        counts[claim.rank][0] += 1
        counts[claim.rank][1] += wrong
        if wrong and claim.rank == "species":
            wrong_units.add(one.unit)
    units = len({one.unit for one in shown})
    low, high = _exact(len(wrong_units), units)
    return {
        "photos": len(shown),
        "units": units,
        "wrong_species_claims": [round(len(wrong_units) / units, 4), round(low, 4), round(high, 4)],
        "called_unknown": round(unknown / len(shown), 4),
        "claims_and_wrong_by_rank": {rank: pair for rank, pair in counts.items() if pair[0]},
    }


def _exact(number: int, of: int) -> tuple[float, float]:
    """The exact 95 % interval of a share (Clopper-Pearson)."""
    low = float(betaincinv(number, of - number + 1, 0.025)) if number else 0.0
    return low, float(betaincinv(number + 1, of - number, 0.975)) if number < of else 1.0


def _butterflies(root: Path) -> Iterator[Shown]:
    for path in sorted((root / "images").glob("*.jpg")):
        species = BUTTERFLIES[path.name[:3]]
        family = "Lycaenidae" if species.startswith("Lycaena") else "Nymphalidae"
        genus = species.partition(" ")[0]
        taxa = {"species": species, "genus": genus, "family": family, "order": "Lepidoptera", **INSECT}
        yield Shown(path, taxa, path.name)


def _traps(root: Path) -> Iterator[Shown]:
    for path in sorted(root.glob("*/*/*.*")):
        if path.parent.name in TRAPS:
            ranks = dict(zip(("species", "genus", "family", "order"), TRAPS[path.parent.name], strict=True))
            yield Shown(path, {**ranks, **MAMMAL}, path.name)


def _fungi(root: Path) -> Iterator[Shown]:
    for path in sorted(root.glob("*/*.jpg")):
        family, order = FUNGUS_ABOVE.get(path.parent.name, ("", ""))
        yield Shown(path, {"family": family, "order": order, **FUNGUS}, str(path))


def _amanita(root: Path) -> Iterator[Shown]:
    with (root / "images_with_metadata.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (root / row["file"]).is_file():
                yield Shown(root / row["file"], FUNGUS, row["specimen_id"])


def _birds(root: Path) -> Iterator[Shown]:
    for path in sorted((root / "test").glob("*/*.jpg")):
        name = path.parent.name.partition(".")[2]
        last = name.rpartition("_")[2]
        ranks = {"family": BIRDS_APART.get(name, BIRD_FAMILIES.get(last, "")), **BIRD}
        genus = BIRD_GENERA.get(name) or BIRD_GENERA.get(last, "")
        yield Shown(path, {"genus": genus, "order": BIRD_ORDERS.get(last, "Passeriformes"), **ranks}, str(path))


def _snakes(root: Path) -> Iterator[Shown]:
    for path in sorted(root.glob("*/*/*.jpg")):
        genus = path.parent.name.partition("_")[0]
        species = path.parent.name.replace("_", " ")
        yield Shown(
            path, {"species": species, "genus": genus, "family": SNAKE_FAMILIES.get(genus, ""), **SNAKE}, str(path)
        )


REFERENCE = {"butterflies_leeds": _butterflies, "camera_traps_jura": _traps}
JUDGED = {
    "fungi_genera": _fungi,
    "fungi_amanita": _amanita,
    "birds_cub_odd": _birds,
    "snakes_philippines": _snakes,
}
