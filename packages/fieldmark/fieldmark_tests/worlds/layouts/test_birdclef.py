from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import soundfile

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark.views.score_run import write_truth
from fieldmark_worlds.birds.birds_kingdom import BIRDS, name_birds
from fieldmark_worlds.birds.birdsong import HIGHEST_HZ, LOWEST_HZ, RATE_HZ, sing, voice_of
from fieldmark_worlds.birds.outdoors import noise, travel
from fieldmark_worlds.birds.recordings import MOST_AT_ONCE, RecordingJob, Singer, record
from fieldmark_worlds.layouts import birdclef
from fieldmark_worlds.nature.taxa import grow_tree


@pytest.fixture
def world(bird_world: Path) -> tuple[Path, dict[str, object]]:
    return bird_world, json.loads((bird_world / "WORLD.json").read_text())


@pytest.fixture(scope="session")
def birds() -> birdclef.Birds:
    return birdclef.grow_birds(birdclef.EXTENTS["small"], np.random.default_rng(3))


def test_the_reader_opens_the_world_as_what_was_written(world):
    root, mark = world
    dataset = open_dataset("birdclef-2020", root)
    assert dataset.simulated and mark["simulated"] and "do not exist" in mark["note"]
    for part, counts in mark["counts"].items():
        assert dataset.media.filter(pl.col("parts").list.contains(part)).height == counts["recordings"]
    assert dataset.events.height == mark["counts"]["val"]["events"] + mark["counts"]["test"]["events"]
    assert dataset.taxa["species"].null_count() == 0 and dataset.remarks == ()
    sites = dataset.observations.filter(pl.col("label").is_null())["site"]
    assert set(sites) == set(birdclef.SITES)


def test_every_song_lies_within_an_event_of_its_species(world):
    root, _ = world
    events = open_dataset("birdclef-2020", root).events
    sung = pl.read_parquet(root / "renditions.parquet").filter(~pl.col("file").str.starts_with("train"))
    sung = sung.with_columns(media_id=pl.col("file").str.extract(r"/([A-Z0-9]+)_"))
    pairs = sung.join(events, on=["media_id", "label"], suffix="_event")
    inside = (pl.col("start_s") >= pl.col("start_s_event") - 0.51) & (pl.col("end_s") <= pl.col("end_s_event") + 0.51)
    assert pairs.filter(inside).unique(sung.columns).height == sung.height


def test_the_song_is_where_the_label_says(world):
    """In the middle of the nearest song its pitch stands out from the seconds in which nothing is labeled."""
    root, _ = world
    sung = pl.read_parquet(root / "renditions.parquet").filter(~pl.col("file").str.starts_with("train"))
    nearest = sung.sort("distance_m").row(0, named=True)
    samples, rate = soundfile.read(root / nearest["file"])
    song = samples[int(nearest["start_s"] * rate) : int(nearest["end_s"] * rate)]
    quiet = noise(len(song) / rate, birdclef.SITES[Path(nearest["file"]).name[:3]].place, np.random.default_rng(0))
    assert np.abs(np.fft.rfft(song)).max() > 3 * np.abs(np.fft.rfft(quiet)[int(700 * len(song) / rate) :]).max()


def test_a_world_is_the_same_for_the_same_seed_whoever_records(tmp_path, world):
    root, _ = world
    jobs = birdclef.EXTENTS["tiny"]
    rng = birdclef.finding_rng(1)
    birds = birdclef.grow_birds(jobs, rng)
    first = birdclef.plan_focal(birds, jobs, 1, rng)[0]
    samples, _ = record(first.job)
    soundfile.write(tmp_path / "again.ogg", samples, RATE_HZ)
    assert np.array_equal(soundfile.read(tmp_path / "again.ogg")[0], soundfile.read(root / first.job.file)[0])


def test_focal_metadata_have_the_keys_of_xeno_canto(world):
    root, _ = world
    about = json.loads(next((root / "train/metadata").rglob("*.json")).read_text())
    assert set(about) >= {"id", "gen", "sp", "en", "cnt", "loc", "lat", "lng", "date", "time", "also", "q", "type"}


def test_a_genus_sings_more_alike_than_birds_at_large():
    tree = grow_tree(np.random.default_rng(5), BIRDS, species=120, genera=24)
    pitch = tree.means[:, [trait.name for trait in BIRDS.continuous].index("pitch")]
    within = np.mean([pitch[tree.genus_of == genus].var() for genus in range(24)])
    assert within < 0.6 * pitch.var()


def test_songs_stay_within_what_a_bird_can_sing_and_what_the_rate_can_hold(birds):
    rng = np.random.default_rng(0)
    for species in range(0, 24, 4):
        voice = voice_of(birds.specimen(species, rng))
        song = sing(voice, "song", rng)
        power = np.abs(np.fft.rfft(song)) ** 2
        frequency = np.fft.rfftfreq(len(song), 1 / RATE_HZ)
        assert power[(frequency < 0.5 * LOWEST_HZ)].sum() < 0.02 * power.sum()
        assert power[np.argmax(power)] and LOWEST_HZ * 0.9 < frequency[np.argmax(power)] < 2 * HIGHEST_HZ
        assert not np.array_equal(song, sing(voice, "song", rng))  # never twice the same


def test_distance_makes_a_song_weaker_and_duller(birds):
    place = birdclef.SITES["GER"].place
    song = np.random.default_rng(1).standard_normal(32_000).astype(np.float32)
    near, far = (travel(song, meters, place, np.random.default_rng(2)) for meters in (5.0, 80.0))
    assert np.abs(far).max() < 0.2 * np.abs(near).max()

    def brightness(wave):
        power = np.abs(np.fft.rfft(wave)) ** 2
        return (power * np.fft.rfftfreq(len(wave), 1 / RATE_HZ)).sum() / power.sum()

    assert brightness(far) < 0.85 * brightness(near)


def test_never_more_than_eight_species_at_once(birds):
    rng = np.random.default_rng(4)
    singers = tuple(Singer(species, birds.specimen(species, rng), 20.0, 1.0) for species in range(14))
    place = birdclef.SITES["HSN"].place
    samples, sung = record(RecordingJob("x.flac", 8.0, place, singers, None, (7,)))
    at_once = [len({s.species for s in sung if s.start_s <= t < s.end_s}) for t in np.arange(0, 8, 0.05)]
    assert max(at_once) == MOST_AT_ONCE
    assert samples.dtype == np.float32 and np.abs(samples).max() <= 1


def test_codes_cannot_be_taken_for_those_of_ebird():
    tree = grow_tree(np.random.default_rng(5), BIRDS, species=120, genera=24)
    names = name_birds(tree.taxa, np.random.default_rng(6))
    assert names["code"].n_unique() == names["common_name"].n_unique() == 120
    assert names["code"].str.ends_with("0").all()


def test_fit_predict_truth_and_score_agree_on_soundscapes(world, tmp_path):
    root, _ = world
    result = fieldmark.fit("birdclef-2020", root, "frequent", tmp_path / "run")
    assert result.run.trained_on == ["train"] and result.run.simulated
    assert set(result.scorecard.groups["site"]) == set(birdclef.SITES)
    again = fieldmark.score("birdclef-2020", tmp_path / "run" / "run.csv", data=root)
    assert again.metrics == result.scorecard.metrics
    stored = fieldmark.score("birdclef-2020", tmp_path / "run" / "predictions" / "test.parquet", data=root)
    assert stored.metrics == result.scorecard.metrics
    fieldmark.predict(tmp_path / "run", root, out=tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "run" / "run.csv").read_bytes()
    write_truth("birdclef-2020", root, tmp_path / "truth")
    tables = {name: tmp_path / "truth" / f"{name}.csv" for name in ("truth", "media", "classes")}
    assert fieldmark.score("birdclef-2020", tmp_path / "run" / "run.csv", **tables).metrics == again.metrics


def test_focal_recordings_are_nearer_than_soundscapes(world):
    root, _ = world
    sung = pl.read_parquet(root / "renditions.parquet").with_columns(focal=pl.col("file").str.starts_with("train"))
    nearer = sung.group_by("focal").agg(pl.col("distance_m").median()).sort("focal")["distance_m"]
    assert nearer[1] < nearer[0]
    opened = open_benchmark(BENCHMARKS["birdclef-2020"], open_dataset("birdclef-2020", root))
    assert 0 < opened.view.val.targets.holds(len(opened.view.labels)).sum(axis=1).mean() <= MOST_AT_ONCE
