"""What kind of living thing each label of a model is: a fungus, a snake, a plant, a bird, an insect, a mammal, or
something else.

It follows from the ranks of the taxa. Where they say nothing, the genus or family is looked up in short lists
(`known_genera`); a label that is in none takes the group of all others, where these agree.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from fieldmark.tables.labels import Labels
from fieldmark.tables.scientific_names import parse_name

FUNGI, SNAKES, PLANTS, BIRDS, INSECTS = "fungi", "snakes", "plants", "birds", "insects"
MAMMALS, OTHER = "mammals", "other"
KINGDOMS: Final = {"fungi": FUNGI, "plantae": PLANTS}
CLASSES: Final = {"aves": BIRDS, "insecta": INSECTS, "mammalia": MAMMALS}
ORDERS: Final = {"serpentes": SNAKES, "agaricales": FUNGI, "boletales": FUNGI, "russulales": FUNGI}


def groups_of(labels: Labels, taxa: pl.DataFrame) -> tuple[str, ...]:
    """The group of each label.

    >>> taxa = pl.DataFrame({"label": ["a", "b"], "kingdom": ["Fungi", None], "poisonous": [None, None]})
    >>> groups_of(Labels(("a", "b", "Naja naja")), taxa)
    ('fungi', 'other', 'snakes')
    """
    row_of = {row["label"]: row for row in taxa.iter_rows(named=True)}
    found = [_group(label, row_of.get(label, {})) for label in labels.names]
    agreed = {group for group in found if group}
    rest = agreed.pop() if len(agreed) == 1 else OTHER
    return tuple(group or rest for group in found)


def is_genus(label: str) -> bool:
    """Whether a label is the name of a genus in the short lists."""
    return label.lower() in FUNGUS_GENERA or label.lower() in SNAKE_GENERA


def _group(label: str, row: dict[str, str | None]) -> str:
    """The group by the ranks of one label; empty where nothing tells."""
    ranks = {name: str(row.get(name) or "").lower() for name in ("kingdom", "class", "order", "family", "genus")}
    genus = ranks["genus"] or (parse_name(label.replace("_", " ")).genus or label).lower()
    if ranks["family"] in SNAKE_FAMILIES or ORDERS.get(ranks["order"]) == SNAKES or genus in SNAKE_GENERA:
        return SNAKES
    by_rank = KINGDOMS.get(ranks["kingdom"]) or CLASSES.get(ranks["class"]) or ORDERS.get(ranks["order"])
    if by_rank:
        return by_rank
    if ranks["kingdom"] or ranks["class"]:
        return OTHER
    return FUNGI if genus in FUNGUS_GENERA else ""


_SNAKE_FAMILIES = """
acrochordidae aniliidae anomalepididae atractaspididae boidae bolyeriidae calamariidae calamariinae colubridae
cylindrophiidae dipsadidae elapidae gerrhopilidae homalopsidae hydrophiidae lamprophiidae leptotyphlopidae loxocemidae
natricidae pareidae psammophiidae pseudaspididae pseudoxenodontidae pythonidae sibynophiidae tropidophiidae
typhlopidae uropeltidae viperidae xenodermidae xenopeltidae xenophidiidae
"""


_SNAKE_GENERA = """
acanthophis agkistrodon ahaetulla atheris bitis boa boiga bothriechis bothrops bungarus calamaria calliophis causus
cerastes cerberus chrysopelea coelognathus coluber coronella crotalus daboia deinagkistrodon demansia dendrelaphis
dendroaspis diadophis dispholidus drymarchon echis elaphe epicrates eryx eunectes gloydius gonyosoma hemachatus
hemorrhois heterodon hierophis hydrophis lachesis lampropeltis laticauda leptodeira liophis lycodon malayopython
masticophis micrurus morelia naja natrix nerodia notechis opheodrys ophiophagus oxybelis oxyrhabdium oxyuranus
pantherophis pituophis protobothrops psammophis pseudechis pseudonaja ptyas python rhabdophis rhinechis sistrurus
storeria thamnophis thelotornis trimeresurus tropidolaemus vipera xenopeltis zamenis
"""


_FUNGUS_GENERA = """
agaricus agrocybe albatrellus aleuria amanita armillaria aureoboletus auricularia bisporella bjerkandera bolbitius
boletus bovista calocera calocybe calvatia cantharellus chlorophyllum chroogomphus clathrus clavaria clavulina
clavulinopsis clitocybe clitopilus collybia coltricia conocybe coprinellus coprinopsis coprinus cortinarius
craterellus crepidotus crucibulum cyathus cyclocybe cystoderma daedalea daedaleopsis desarmillaria entoloma exidia
fistulina flammulina fomes fomitopsis fuligo galerina ganoderma geastrum geoglossum gomphidius gomphus gymnopilus
gymnopus gyromitra gyroporus handkea hebeloma helvella hericium hydnellum hydnum hygrocybe hygrophoropsis hygrophorus
hymenochaete hypholoma hypomyces imleria infundibulicybe inocybe inosperma ischnoderma kuehneromyces laccaria
lacrymaria lactarius lactifluus laetiporus leccinum lentinula lentinus lenzites leotia lepiota lepista leucoagaricus
leucocoprinus lycogala lycoperdon lyophyllum macrolepiota marasmiellus marasmius megacollybia melanoleuca meripilus
morchella mucidula mutinus mycena mycetinis neoboletus omphalotus otidea oudemansiella panaeolus panellus paralepista
paxillus peziza phaeolepiota phaeolus phallus phellinus phlebia pholiota pholiotina phyllotopsis piptoporus pleurotus
plicaturopsis pluteus polyporus psathyrella pseudohydnum pseudosperma psilocybe ramaria rhizopogon rhodocollybia
rubroboletus russula sarcodon sarcomyxa sarcoscypha schizophyllum scleroderma scutellinia sparassis stereum
strobilomyces stropharia suillellus suillus tapinella trametes tremella trichaptum trichoglossum tricholoma
tricholomopsis tubaria tylopilus tyromyces verpa volvariella volvopluteus xerocomellus xerocomus xeromphalina xerula
xylaria xylobolus
"""


SNAKE_FAMILIES = frozenset(_SNAKE_FAMILIES.split())


SNAKE_GENERA = frozenset(_SNAKE_GENERA.split())


FUNGUS_GENERA = frozenset(_FUNGUS_GENERA.split())
