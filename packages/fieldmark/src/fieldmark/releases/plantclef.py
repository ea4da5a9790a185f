"""PlantCLEF 2020 as it is released: herbarium sheets to learn from, photos in the field to recognize.

```
ROOT/                                             or ROOT/<one folder>/, as the archive is unpacked
  herbarium/<ClassId>/<id>.jpg, <id>.xml          pressed and dried plants on paper
  photo/<ClassId>/<id>.jpg, <id>.xml              living plants in the field
  herbarium_photo_associations/<ClassId>/...      plants that were photographed and pressed: both, mixed
  test/<id>.jpg, <id>.xml                         field photos to recognize, also one folder down
  test/ground_truth.csv                           ObservationId;ClassId: what only the organizers have; optional
  classes.csv                                     ClassId[,scientific_name,genus,family,rare]; optional
```

Quirks:

- The XML beside a picture holds unescaped ampersands and undocumented tags; see `plantclef_xml`.
- In the associations folder `<PhotoType>` tells sheets (`Herbarium`) from photos (anything else). A picture there
  without XML, or whose XML says nothing of it, is skipped: nobody can tell what it is.
- Elsewhere the folder tells the domain, and everywhere it tells the class. A picture without XML, or with XML that
  cannot be read, is an observation of its own. All of these are counted by `fieldmark check`.
- An observation that is in both domains is one observation; its photos and its sheets are two items.
- An answer is given for each observation of test, not for each photo.
- The list of rarely photographed species behind the second metric is not public: `classes.csv` may name them in `rare`.
- The label set is every class of the training folders, in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import polars as pl

from fieldmark.errors import InputError, MisuseError
from fieldmark.releases.citations import LIFECLEF_2020, preprint
from fieldmark.releases.plant_families import family_of
from fieldmark.releases.plantclef_xml import BrokenXmlError, PlantFacts, read_facts
from fieldmark.releases.record import PublishedSize, ReleaseRecord, World
from fieldmark.storage.release import Release
from fieldmark.tables.dataset import Dataset
from fieldmark.tables.media import PHOTO
from fieldmark.tables.reader import read_csv
from fieldmark.tables.schema import parse_column
from fieldmark.tables.scientific_names import parse_name
from fieldmark.work.blocks import all_cores, blocks_of, map_blocks
from fieldmark.work.progress import progress

SHEET, FIELD = "herbarium", "photo"
ASSOCIATIONS = "herbarium_photo_associations"
TRAINING = (SHEET, ASSOCIATIONS, FIELD)
TEST = "test"
CLASSES_FILE, TRUTH_FILE = "classes.csv", "ground_truth.csv"
# Columns of small tables, in lower case and without underscores, by what they are called here.
RENAMED = {"classid": "label", "observationid": "observation_id", "scientificname": "scientific_name"}
SPELLED = {"label": "ClassId", "observation_id": "ObservationId"}
# So many files are read by one worker at a time.
BLOCK_FILES = 256


@dataclass(frozen=True)
class PlantPicture:
    """One picture of the release.

    Args:
        path: Where it lies.
        folder: Which of the folders it lies in.
        label: The class whose folder it lies in; None in test.
        facts: What its XML says; None without XML.
        broken: What is wrong with its XML; empty if nothing is.
    """

    path: str
    folder: str
    label: str | None
    facts: PlantFacts | None = None
    broken: str = ""

    @property
    def media_id(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def domain(self) -> str | None:
        """`herbarium` or `photo`; None for one of the associations folder that does not say."""
        if self.folder != ASSOCIATIONS:
            return SHEET if self.folder == SHEET else FIELD
        kind = self.facts.text("phototype", "content", "imagetype") if self.facts else None
        return None if kind is None else SHEET if SHEET in kind.lower() else FIELD

    @property
    def observation_id(self) -> str:
        """The observation it belongs to: its own where nothing says which."""
        return (self.facts and self.facts.text("observationid")) or f"{self.folder}-{self.media_id}"


def open_plantclef(release: Release, subset: str = "all", *, name: str = "plantclef-2020") -> Dataset:
    """Opens PlantCLEF 2020; there are no subsets.

    Raises:
        InputError: When there are no sheets to learn from, or a table is not what it should be.
    """
    if subset != "all":
        raise MisuseError(f"{name} has no subset called {subset!r}.")
    pictures = training_pictures(release)
    if not any(one.domain == SHEET for one in pictures):
        layout = f"{SHEET}/<ClassId>/<id>.jpg"
        raise InputError(release.root, found="no herbarium sheets", expected=f"pictures in {layout}")
    told = [one for one in pictures if one.domain is not None]
    tested = test_pictures(release)
    taxa = _taxa(release, told)
    everything = [*told, *tested]
    ids = _unique_ids(everything)
    truth = true_classes(release)
    media = pl.DataFrame(
        {
            "media_id": ids,
            "observation_id": [one.observation_id for one in everything],
            "path": [one.path for one in everything],
            "parts": [[TEST if one.folder == TEST else "train"] for one in everything],
            "domain": [one.domain for one in everything],
        }
    )
    _refuse_shared(release, told, tested)
    observations = _observations(release, everything, truth)
    return Dataset(name, release, taxa, observations, media, _remarks(pictures, told, tested))


def open_plantclef_2021(release: Release, subset: str = "all") -> Dataset:
    """The pictures of 2020 under the name of 2021. The traits of species that 2021 adds are not read."""
    return open_plantclef(release, subset, name="plantclef-2021")


def base_of(release: Release) -> str:
    """Below which folder the release lies: none, or the only one that holds its folders; ends in a slash."""
    if any(name in TRAINING for name in release.folders()):
        return ""
    inside = [name for name in release.folders() if any(one in TRAINING for one in release.folders(name))]
    return f"{inside[0]}/" if len(inside) == 1 else ""


def training_pictures(release: Release) -> list[PlantPicture]:
    """Every picture of the training folders with what its XML says."""
    base = base_of(release)
    bare = [
        (PlantPicture(f"{base}{folder}/{label}/{name}", folder, label), f"{PurePosixPath(name).stem}.xml" in names)
        for folder in TRAINING
        for label in release.folders(f"{base}{folder}")
        for names in (set(release.files(f"{base}{folder}/{label}")),)
        for name in sorted(names)
        if PHOTO.owns(name)
    ]
    return _with_facts(release, bare)


def test_folders(release: Release) -> list[str]:
    """The folders whose names hold "test", at the root or beside the training folders, and what lies in them."""
    tops = {name for base in {"", base_of(release)} for name in _named_test(release, base)}
    return [folder for top in sorted(tops) for folder in (top, *(f"{top}/{one}" for one in release.folders(top)))]


def _named_test(release: Release, base: str) -> Iterator[str]:
    for name in release.folders(base.rstrip("/")):
        if TEST in name.lower() and f"{base}{name}/" != base_of(release):
            yield f"{base}{name}"


def test_pictures(release: Release) -> list[PlantPicture]:
    """Every picture of test with what its XML says."""
    bare = [
        (PlantPicture(f"{folder}/{name}", TEST, None), f"{PurePosixPath(name).stem}.xml" in names)
        for folder in test_folders(release)
        for names in (set(release.files(folder)),)
        for name in sorted(names)
        if PHOTO.owns(name)
    ]
    return _with_facts(release, bare)


def lonely_xml(release: Release) -> list[str]:
    """The XML files that no picture lies beside."""
    base = base_of(release)
    folders = [f"{base}{top}/{label}" for top in TRAINING for label in release.folders(f"{base}{top}")]
    lonely = []
    for folder in (*folders, *test_folders(release)):
        names = release.files(folder)
        pictures = {PurePosixPath(name).stem for name in names if PHOTO.owns(name)}
        xml = [name for name in names if name.lower().endswith(".xml")]
        lonely += [f"{folder}/{name}" for name in xml if PurePosixPath(name).stem not in pictures]
    return lonely


def true_classes(release: Release) -> dict[str, str]:
    """The class of each observation of test, where the release says it."""
    paths = [f"{folder}/{TRUTH_FILE}" for folder in ("", *test_folders(release)) if folder] + [TRUTH_FILE]
    for path in paths:
        if release.exists(path):
            table = _table(release, path, ("observation_id", "label"))
            twice = table["observation_id"].is_duplicated().arg_true()
            if len(twice):
                line = int(twice[1]) + 2
                found = f"the observation {table['observation_id'][line - 2]} again"
                raise InputError(release.where(path), line=line, found=found, expected="each observation once")
            return dict(table.select("observation_id", "label").iter_rows())
    return {}


def _with_facts(release: Release, bare: Sequence[tuple[PlantPicture, bool]]) -> list[PlantPicture]:
    def read_block(block: Sequence[tuple[PlantPicture, bool]]) -> list[PlantPicture]:
        xml = release.read_many(str(PurePosixPath(one.path).with_suffix(".xml")) for one, beside in block if beside)
        return [_with_xml(one, next(xml)) if beside else one for one, beside in block]

    pictures: list[PlantPicture] = []
    with progress("reading XML", len(bare)) as tick:
        for block in map_blocks(read_block, blocks_of(bare, BLOCK_FILES), all_cores("thread")):
            pictures += block
            tick(len(block))
    return pictures


def _with_xml(picture: PlantPicture, xml: bytes) -> PlantPicture:
    try:
        return replace(picture, facts=read_facts(xml))
    except BrokenXmlError as error:
        return replace(picture, broken=str(error))


def _unique_ids(pictures: Sequence[PlantPicture]) -> list[str]:
    """File names, with the folder in front where two pictures share one."""
    names = pl.Series([one.media_id for one in pictures], dtype=pl.String)
    shared = names.is_duplicated()
    return [
        f"{one.folder}-{one.label or ''}-{name}" if twice else name
        for one, name, twice in zip(pictures, names, shared, strict=True)
    ]


def _observations(release: Release, pictures: Sequence[PlantPicture], truth: dict[str, str]) -> pl.DataFrame:
    rows: dict[str, tuple[object, ...]] = {}
    for one in pictures:
        facts, observation = one.facts or PlantFacts(), one.observation_id
        label = truth.get(observation) if one.folder == TEST else one.label
        lat, lon = facts.number("latitude", "lat", at_most=90), facts.number("longitude", "lon", at_most=180)
        row = (observation, label, facts.date, lat, lon, facts.text("location", "locality"), facts.text("author"))
        before = rows.setdefault(observation, row)
        if before[1] != label:
            found = f"the observation {observation} in the classes {before[1]} and {label}"
            hint = "An observation is one plant: correct one of its XML files."
            raise InputError(release.where(one.path), found=found, expected="one class", hint=hint)
        if before[3] is None and lat is not None:
            rows[observation] = row
    schema = {"observation_id": pl.String, "label": pl.String, "date": pl.Date, "lat": pl.Float64, "lon": pl.Float64}
    return pl.DataFrame(list(rows.values()), {**schema, "locality": pl.String, "observer": pl.String}, orient="row")


def _refuse_shared(release: Release, told: Sequence[PlantPicture], tested: Sequence[PlantPicture]) -> None:
    learned = {one.observation_id for one in told}
    for one in tested:
        if one.observation_id in learned:
            found = f"the observation {one.observation_id}, which is in train as well"
            hint = "A plant on both sides inflates the score: remove it from one of them."
            raise InputError(release.where(one.path), found=found, expected="other plants in test", hint=hint)


def _taxa(release: Release, pictures: Sequence[PlantPicture]) -> pl.DataFrame:
    """One row per class with its name and ranks: from `classes.csv`, else from the XML, the family from our table."""
    names: dict[str, str | None] = {}
    ranks: dict[str, dict[str, str]] = {}
    for one in pictures:
        label, facts = one.label or "", one.facts or PlantFacts()
        names[label] = names.get(label) or facts.text("scientificname", "species", "taxon")
        for rank in ("genus", "family"):
            if said := facts.text(rank):
                ranks.setdefault(label, {}).setdefault(rank, said)
    labels = sorted(names, key=lambda name: (not name.isdigit(), len(name) if name.isdigit() else 0, name))
    listed = _listed_classes(release)
    rows = []
    for label in labels:
        given = listed.get(label, {})
        name = given.get("scientific_name") or names[label]
        parsed = parse_name(name) if name else None
        genus = given.get("genus") or ranks.get(label, {}).get("genus") or (parsed.genus if parsed else None)
        family = given.get("family") or ranks.get(label, {}).get("family") or family_of(genus)
        rows.append((label, None, family, genus, parsed.species if parsed else None, name, given.get("rare")))
    schema = {"label": pl.String, "poisonous": pl.Boolean, "family": pl.String, "genus": pl.String}
    schema |= {"species": pl.String, "scientific_name": pl.String, "rare": pl.Boolean}
    table = pl.DataFrame(rows, schema, orient="row")
    return table.drop([name for name in ("family", "genus", "species", "rare") if table[name].is_null().all()])


def _listed_classes(release: Release) -> dict[str, dict[str, Any]]:
    path = f"{base_of(release)}{CLASSES_FILE}"
    path = path if release.exists(path) else CLASSES_FILE
    if not release.exists(path):
        return {}
    table = parse_column(_table(release, path, ("label",)), "rare", bool, release.where(path))
    return {row["label"]: row for row in table.iter_rows(named=True)}


def _table(release: Release, path: str, required: Sequence[str]) -> pl.DataFrame:
    """A small table with commas or semicolons; `ClassId` is `label`, and so on."""
    where = release.where(path)
    with release.open(path) as file:
        separator = ";" if b";" in file.readline() else ","
    with release.open(path) as file:
        table = read_csv(file, where, separator=separator)
    plain = {name: name.lower().replace("_", "").replace(" ", "") for name in table.columns}
    columns = ", ".join(table.columns)
    table = table.rename({name: RENAMED.get(said, said) for name, said in plain.items()})
    for name in required:
        if name not in table.columns:
            raise InputError(where, line=1, found=f"the columns {columns}", expected=f"a column {SPELLED[name]}")
    return table


def _remarks(
    pictures: Sequence[PlantPicture], told: Sequence[PlantPicture], tested: Sequence[PlantPicture]
) -> tuple[str, ...]:
    labels = {one.label for one in told}
    photographed = {one.label for one in told if one.domain == FIELD}
    remarks = [f"{len(labels - photographed):,} of {len(labels):,} species have herbarium sheets and no field photo."]
    without = sum(one.facts is None and not one.broken for one in (*told, *tested))
    broken = [one for one in (*pictures, *tested) if one.broken]
    if len(pictures) > len(told):
        remarks.append(
            f"{len(pictures) - len(told):,} picture(s) of {ASSOCIATIONS} do not say whether they are sheets and are "
            f"skipped."
        )
    if without:
        remarks.append(f"{without:,} picture(s) have no XML; each is an observation of its own.")
    if broken:
        remarks.append(f"{len(broken):,} XML file(s) cannot be read: {broken[0].path} ({broken[0].broken}).")
    if not tested:
        remarks.append("There is no folder test.")
    return tuple(remarks)


RECORDS = (
    ReleaseRecord(
        name="plantclef-2020",
        about="PlantCLEF 2020: herbarium sheets to learn from, field photos to recognize",
        open=open_plantclef,
        check="fieldmark.releases.plantclef_check:check_plantclef",
        download="fieldmark.releases.download.manifests.lifeclef_2020:PLANTCLEF_2020",
        world=World(
            "fieldmark_worlds.layouts.plantclef:write",
            "invented plants as PlantCLEF 2020 is released: pressed on sheets, and alive in the field",
        ),
        terms="no license is stated; files are given to those who agree to the rules of the challenge",
        homepage="https://www.lifeclef.org/",
        size=PublishedSize(photos=321_270 + 6_316 + 3_186),
        citation=LIFECLEF_2020,
    ),
    ReleaseRecord(
        name="plantclef-2021",
        about="PlantCLEF 2021: the pictures of 2020",
        open=open_plantclef_2021,
        check="fieldmark.releases.plantclef_check:check_plantclef",
        world=World(
            "fieldmark_worlds.layouts.relaid:WRITE_PLANTS_2021", "the plants of the world of PlantCLEF 2020 as they are"
        ),
        homepage="https://www.imageclef.org/LifeCLEF2021",
        size=PublishedSize(photos=321_270 + 6_316 + 3_186),
        citation=preprint(
            "goeau2021plantclef",
            "Overview of PlantCLEF 2021: cross-domain plant identification",
            "Goëau, Hervé and Bonnet, Pierre and Joly, Alexis",
            2025,
            "2509.18697",
        ),
    ),
)
