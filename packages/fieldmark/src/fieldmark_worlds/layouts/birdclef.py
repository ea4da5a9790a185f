"""A small world in the layout of BirdCLEF 2020: focal recordings to learn from, soundscapes of four sites.

```
ROOT/
  train/audio/<code>/XC9000001.ogg    focal recordings, one bird close by
  train/metadata/<code>/XC9000001.json  with the keys of xeno-canto
  train/species_names_to_codes.txt    name,code
  val/PER01_20190116.flac, .json      soundscapes of two of the four sites
  val/ground_truth.csv                MediaId;ClassId;hh:mm:ss-hh:mm:ss
  test/...                            soundscapes of all four sites
  renditions.parquet                  every song with its exact time and distance, never read by a method
  WORLD.json                          what this is, how it was made, and how much there is
```

Sites have species, noises and echoes of their own. Peru is the fullest, with up to eight species at once; the Sierra is
quiet. Songs come nearest in focal recordings, and from anywhere within a hundred meters in soundscapes.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fieldmark.storage.files import appearing_folder, write_json
from fieldmark.tables.timecodes import clock
from fieldmark.work.blocks import Executor
from fieldmark_worlds.birds.birds_kingdom import BIRDS, name_birds
from fieldmark_worlds.birds.outdoors import Surroundings
from fieldmark_worlds.birds.recordings import RecordingJob, Rendition, Singer, make_recordings
from fieldmark_worlds.layouts.release_files import Size, extent_of, finding_rng, world_mark
from fieldmark_worlds.nature.kingdom import Floats, Specimen, Traits
from fieldmark_worlds.nature.taxa import GrownTaxonomy, grow_tree

# Counts up whenever the same size and seed would give other files than before.
GENERATOR_VERSION = 1
NOTE = (
    "Simulated. These birds do not exist; nothing measured here says how well a method does on real recordings. "
    "Times of events are rounded to seconds, as people write them; renditions.parquet has the exact ones."
)
# Songs of a bird with less silence than this between them are one event.
SAME_EVENT_S = 1.5
SEASON_SPREAD_DAYS = 45.0
OFF_SEASON = 0.12


@dataclass(frozen=True)
class Site:
    """One recording site: where it is, how it sounds, and how many birds are within earshot."""

    country: str
    locality: str
    lat: float
    lon: float
    elevation_m: float
    timezone: str
    peak_day: float
    richness: float
    birds: float
    place: Surroundings


SITES = {
    "GER": Site("Germany", "Spreewald", 51.9, 14.0, 55, "UTC+1", 135, 0.25, 5.0,
                Surroundings(slope=1.5, wind=0.35, water=0.1, insects=0.1, machines=0.25, hiss=0.2, echo_s=0.6)),
    "PER": Site("Peru", "Madre de Dios", -12.5, -69.1, 193, "UTC-5", 300, 0.4, 9.0,
                Surroundings(slope=1.1, wind=0.05, water=0.15, insects=0.9, machines=0.0, hiss=0.2, echo_s=1.1)),
    "HSN": Site("United States", "High Sierra Nevada, California", 37.4, -118.8, 3100, "UTC-8", 185, 0.2, 3.0,
                Surroundings(slope=1.3, wind=0.6, water=0.5, insects=0.0, machines=0.0, hiss=0.35, echo_s=0.4)),
    "SSW": Site("United States", "Sapsucker Woods, Ithaca, NY", 42.48, -76.46, 330, "UTC-5", 145, 0.3, 5.0,
                Surroundings(slope=1.5, wind=0.25, water=0.0, insects=0.25, machines=0.5, hiss=0.2, echo_s=0.7)),
}  # fmt: skip
VAL_SITES = ("PER", "SSW")


@dataclass(frozen=True)
class BirdClefExtent:
    """How much of a world is written: species, focal recordings for each, and soundscapes for each site."""

    species: int
    genera: int
    focal: tuple[int, int]
    focal_s: tuple[float, float]
    soundscape_s: float
    val_per_site: int
    test_per_site: int


EXTENTS: dict[Size, BirdClefExtent] = {
    "tiny": BirdClefExtent(10, 5, (4, 6), (4.0, 7.0), 40.0, 2, 2),
    "small": BirdClefExtent(24, 9, (8, 18), (6.0, 14.0), 300.0, 2, 4),
    "medium": BirdClefExtent(60, 20, (10, 40), (8.0, 30.0), 600.0, 6, 12),
}


@dataclass(frozen=True)
class Birds:
    """The species of a world: their tree and names, where each lives, how common and when it is."""

    tree: GrownTaxonomy
    names: pl.DataFrame
    at_site: Mapping[str, Floats]
    peak_day: Floats

    def specimen(self, species: int, rng: np.random.Generator) -> Specimen:
        """One bird of a species."""
        tree = self.tree
        latents = tree.means[species] + tree.sds[species] * rng.standard_normal(len(tree.means[species]))
        # The order of syllables belongs to the species: its likeliest.
        options = [int(shares[species].argmax()) for shares in tree.option_probabilities]
        return Traits(BIRDS, latents[None], np.array([options], dtype=np.int64)).specimen(0)

    def present(self, site: str, day: int) -> Floats:
        """How likely a bird at a site is of each species at a day of the year."""
        apart = np.abs(day - self.peak_day)
        apart = np.minimum(apart, 365 - apart)
        shares = self.at_site[site] * (OFF_SEASON + np.exp(-0.5 * (apart / SEASON_SPREAD_DAYS) ** 2))
        return np.asarray(shares / shares.sum())


@dataclass(frozen=True)
class Focal:
    """One focal recording, before it is made."""

    job: RecordingJob
    species: int
    about: dict[str, object]


@dataclass(frozen=True)
class Soundscape:
    """One soundscape, before it is made."""

    job: RecordingJob
    media_id: str
    about: dict[str, object]


def write(
    out: Path, *, size: Size = "tiny", seed: int = 0, overwrite: bool = False, executor: Executor | None = None
) -> dict[str, object]:
    """Writes a world of the given size.

    Args:
        out: The root to be; it appears when complete.
        size: How much: about 13 minutes, two and a half or 18 hours of sound.
        seed: Another seed is another nature.
        overwrite: Whether an existing folder is replaced.
        executor: Who records; all cores unless given.

    Returns:
        The content of `WORLD.json`.
    """
    extent = extent_of(EXTENTS, size)
    rng = finding_rng(seed)
    birds = grow_birds(extent, rng)
    focal = plan_focal(birds, extent, seed, rng)
    scapes = {
        "val": plan_soundscapes("val", VAL_SITES, extent.val_per_site, birds, extent, seed, rng),
        "test": plan_soundscapes("test", tuple(SITES), extent.test_per_site, birds, extent, seed, rng),
    }
    with appearing_folder(Path(out), overwrite=overwrite) as root:
        jobs = [one.job for one in focal] + [one.job for made in scapes.values() for one in made]
        sung = make_recordings(root, jobs, executor)
        _write_focal(root, birds, focal)
        events = {part: _write_soundscapes(root, part, made, sung, birds) for part, made in scapes.items()}
        codes = birds.names["code"]
        pl.DataFrame(sung, schema=Rendition._fields, orient="row").with_columns(
            label=pl.Series([codes[one.species] for one in sung], dtype=pl.String)
        ).write_parquet(root / "renditions.parquet")
        counts = {"train": {"recordings": len(focal), "classes": extent.species}}
        for part, made in scapes.items():
            heard = {label for _, label, _, _ in events[part]}
            counts[part] = {"recordings": len(made), "classes": len(heard), "events": len(events[part])}
        mark = world_mark(
            "birdclef-2020", size=size, seed=seed, generator_version=GENERATOR_VERSION, about={"counts": counts}
        )
        write_json(root / "WORLD.json", {**mark, "note": NOTE})
    return {**mark, "note": NOTE}


def grow_birds(extent: BirdClefExtent, rng: np.random.Generator) -> Birds:
    """The species of a world: at least two at every site, some of them at two sites."""
    tree = grow_tree(rng, BIRDS, species=extent.species, genera=extent.genera)
    names = name_birds(tree.taxa, rng)
    sites = list(SITES)
    richness = np.array([SITES[site].richness for site in sites])
    # Every site has two species before any has many; a few live at two sites.
    home = np.concatenate(
        [np.tile(np.arange(len(sites)), 2), rng.choice(len(sites), extent.species, p=richness / richness.sum())]
    )
    home = rng.permutation(home[: extent.species])
    lives = np.zeros((len(sites), extent.species), dtype=np.bool_)
    lives[home, np.arange(extent.species)] = True
    guests = rng.random(lives.shape) < 0.08
    common = rng.lognormal(0, 0.7, size=lives.shape)
    weights = np.where(lives, common, np.where(guests, 0.4 * common, 0.0))
    peak = np.array([SITES[sites[where]].peak_day for where in home]) + rng.normal(0, 25, extent.species)
    return Birds(tree, names, dict(zip(sites, weights, strict=True)), peak % 365)


def plan_focal(birds: Birds, extent: BirdClefExtent, seed: int, rng: np.random.Generator) -> list[Focal]:
    """Recordings that people made of one bird, some with others behind it."""
    made: list[Focal] = []
    for species, row in enumerate(birds.names.iter_rows(named=True)):
        site = max(SITES, key=lambda name: birds.at_site[name][species])
        for _ in range(int(rng.integers(extent.focal[0], extent.focal[1] + 1))):
            number = 9_000_001 + len(made)
            day = int(birds.peak_day[species] + rng.normal(0, 25)) % 365
            singers = [Singer(species, birds.specimen(species, rng), float(rng.uniform(4, 18)), 1.0)]
            behind: list[int] = []
            if rng.random() < 0.25:
                other = int(rng.choice(extent.species, p=birds.present(site, day)))
                if other != species:
                    behind.append(other)
                    singers.append(Singer(other, birds.specimen(other, rng), float(rng.uniform(40, 80)), 0.6))
            job = RecordingJob(
                file=f"train/audio/{row['code']}/XC{number}.ogg",
                seconds=round(float(rng.uniform(*extent.focal_s)), 1),
                place=_anywhere(SITES[site].place, rng),
                singers=tuple(singers),
                peak=float(rng.uniform(0.25, 0.9)),
                seed=(seed, 1, number),
            )
            about = _xeno_canto(number, row, SITES[site], day, rng)
            about["also"] = birds.names["species"].gather(behind).to_list()
            about["length"] = f"0:{round(job.seconds):02d}"
            made.append(Focal(job, species, about))
    return made


def _anywhere(home: Surroundings, rng: np.random.Generator) -> Surroundings:
    """The surroundings of a recordist, who is somewhere in the region and not at the site."""
    wind, water, insects, machines, hiss = rng.beta(0.7, 2.5, 5)
    return Surroundings(
        slope=home.slope + rng.normal(0, 0.2),
        wind=wind,
        water=water * 0.6,
        insects=0.5 * (insects + home.insects * rng.random()),
        machines=machines,
        hiss=0.1 + hiss,
        echo_s=float(rng.uniform(0.2, 0.9)),
    )


def _xeno_canto(
    number: int, row: Mapping[str, str], site: Site, day: int, rng: np.random.Generator
) -> dict[str, object]:
    genus, epithet = row["species"].split()
    return {
        "id": str(number),
        "gen": genus,
        "sp": epithet,
        "ssp": "",
        "en": row["common_name"],
        "cnt": site.country,
        "loc": site.locality,
        "lat": f"{site.lat + rng.normal(0, 1.5):.4f}",
        "lng": f"{site.lon + rng.normal(0, 1.5):.4f}",
        "alt": str(max(0, round(site.elevation_m + rng.normal(0, 60)))),
        "type": "song, call",
        "q": str(rng.choice(["A", "B", "C"], p=[0.5, 0.35, 0.15])),
        "date": (datetime.date(int(rng.integers(2010, 2020)), 1, 1) + datetime.timedelta(days=day)).isoformat(),
        "time": f"{int(rng.integers(5, 19)):02d}:{int(rng.integers(60)):02d}",
    }


def plan_soundscapes(
    part: str,
    sites: Sequence[str],
    per_site: int,
    birds: Birds,
    extent: BirdClefExtent,
    seed: int,
    rng: np.random.Generator,
) -> list[Soundscape]:
    """Recorders that were left at a site and record whatever sings there."""
    made: list[Soundscape] = []
    first = 1 if part == "val" else extent.val_per_site + 1
    for site, number in ((site, number) for site in sites for number in range(first, first + per_site)):
        where = SITES[site]
        date = datetime.date(2019, 1, 1) + datetime.timedelta(days=int(where.peak_day + rng.uniform(-60, 60)) % 365)
        present = birds.present(site, date.timetuple().tm_yday)
        singers = []
        for _ in range(max(1, int(rng.poisson(where.birds)))):
            species = int(rng.choice(extent.species, p=present))
            distance = float(np.clip(rng.lognormal(np.log(32), 0.5), 8, 100))
            singers.append(Singer(species, birds.specimen(species, rng), distance, float(rng.beta(1.5, 3.5))))
        media_id = f"{site}{number:02d}"
        name = f"{media_id}_{date:%Y%m%d}.flac"
        job = RecordingJob(
            file=f"{part}/{name}",
            seconds=extent.soundscape_s,
            place=where.place,
            singers=tuple(singers),
            peak=None,
            seed=(seed, 2, list(SITES).index(site), number),
        )
        about: dict[str, object] = {
            "MediaId": media_id,
            "FileName": name,
            "Date": date.isoformat(),
            "Time": f"{int(rng.integers(5, 9)):02d}:{int(rng.integers(6)) * 10:02d}",
            "Timezone": where.timezone,
            "Country": where.country,
            "Locality": where.locality,
            "Latitude": where.lat,
            "Longitude": where.lon,
            "Elevation": where.elevation_m,
            "Year": "BirdCLEF2020",
        }
        made.append(Soundscape(job, media_id, about))
    return made


def _write_focal(root: Path, birds: Birds, focal: Sequence[Focal]) -> None:
    for one in focal:
        write_json(root / one.job.file.replace("/audio/", "/metadata/").replace(".ogg", ".json"), one.about)
    lines = [f"{name},{code}\n" for name, code in birds.names.select("common_name", "code").iter_rows()]
    (root / "train" / "species_names_to_codes.txt").write_text("".join(lines), encoding="utf-8")


def _write_soundscapes(
    root: Path, part: str, made: Sequence[Soundscape], sung: Sequence[Rendition], birds: Birds
) -> list[tuple[str, str, int, int]]:
    """Writes metadata and ground truth of a part, and returns its events."""
    codes = birds.names["code"].to_list()
    by_file: dict[str, list[Rendition]] = {}
    for one in sung:
        by_file.setdefault(one.file, []).append(one)
    events: list[tuple[str, str, int, int]] = []
    for scape in made:
        write_json((root / scape.job.file).with_suffix(".json"), scape.about)
        events += [
            (scape.media_id, codes[species], start, end)
            for species, start, end in heard_events(by_file.get(scape.job.file, []), scape.job.seconds)
        ]
    lines = [f"{name};{code};{clock(start)}-{clock(end)}\n" for name, code, start, end in events]
    (root / part / "ground_truth.csv").write_text("".join(lines), encoding="utf-8")
    return events


def heard_events(sung: Sequence[Rendition], seconds: float) -> list[tuple[int, int, int]]:
    """Songs of a species that follow each other closely as one event, to the second."""
    joined: list[list[float]] = []
    open_event: dict[int, list[float]] = {}
    for one in sorted(sung, key=lambda rendition: rendition.start_s):
        current = open_event.get(one.species)
        if current is not None and one.start_s - current[2] < SAME_EVENT_S:
            current[2] = max(current[2], one.end_s)
        else:
            open_event[one.species] = [one.species, one.start_s, one.end_s]
            joined.append(open_event[one.species])
    last = int(np.ceil(seconds))
    rounded = []
    for species, start, end in joined:
        first = min(round(start), last - 1)
        rounded.append((int(species), first, min(max(round(end), first + 1), last)))
    return rounded
