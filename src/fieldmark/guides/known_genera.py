"""Common genera of fungi and snakes, and the families of snakes: what a label is where no taxa tell.

The lists say nothing about danger, and are far from complete.
"""

from __future__ import annotations

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
