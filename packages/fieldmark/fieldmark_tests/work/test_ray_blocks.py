from __future__ import annotations

import io
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from fieldmark.errors import InputError, MisuseError
from fieldmark.features import extraction, sounds
from fieldmark.features.embedders import load_embedder
from fieldmark.features.extraction import extract
from fieldmark.features.settings import FeatureSettings
from fieldmark.features.sounds import Clip, extract_sounds
from fieldmark.features.store import FeatureStore
from fieldmark.identification.review.batch import identify_many
from fieldmark.models.supply.sources import load_backbone
from fieldmark.releases import gridded
from fieldmark.releases.gridded import Rasters, raster_paths
from fieldmark.runs.problems import RunError
from fieldmark.storage.release import Release
from fieldmark.tables.inputs import MediaFiles
from fieldmark.tables.media import PHOTO
from fieldmark.views.score_run import score_many
from fieldmark.work import ray_blocks
from fieldmark.work.blocks import map_blocks
from fieldmark.work.engines import cluster, working_on
from fieldmark.work.ray_blocks import ClusterError, RayExecutor
from fieldmark_tests.audio.sounds import encoded, song
from fieldmark_tests.fixtures import save_photo
from fieldmark_tests.ray_clusters import TwoNodes, two_node_cluster
from fieldmark_tests.releases.test_gridded import write_raster

R = TypeVar("R")
ONE_CORE = RayExecutor(1)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[TwoNodes]:
    """A Ray cluster of two nodes, started once for all tests that need one."""
    with two_node_cluster() as cluster:
        yield cluster


@pytest.fixture
def two_nodes(ray_cluster: TwoNodes) -> TwoNodes:
    """The cluster with both its nodes, whatever an earlier test has killed."""
    return ray_cluster.whole()


class Unpacked:
    """A function that counts, in a folder, how often it is unpacked in a worker."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, held: dict[str, Path]) -> None:
        self.__dict__.update(held)
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()

    def __call__(self, number: int) -> tuple[int, int]:
        return number * number, os.getpid()


def test_results_come_in_the_order_of_the_blocks_and_a_worker_unpacks_the_function_once(two_nodes, tmp_path):
    results = list(map_blocks(Unpacked(tmp_path), range(40), ONE_CORE))
    assert [square for square, _ in results] == [number * number for number in range(40)]
    unpacked = [int(path.name.partition("-")[0]) for path in tmp_path.iterdir()]
    assert len(unpacked) == len(set(unpacked)) and set(unpacked) == {worker for _, worker in results}


def test_only_a_few_blocks_are_in_flight(two_nodes):
    taken: list[int] = []
    results = map_blocks(abs, (taken.append(n) or n for n in range(100)), ONE_CORE)
    assert next(results) == 0
    assert len(taken) == 2 * 2  # twice the cores of the cluster
    results.close()


def fails_once(folder: Path, number: int) -> int:
    (folder / f"{number}-{time.monotonic_ns()}").touch()
    if number == 3:
        raise InputError("run.csv", line=4, found="2 columns", expected="3 columns")
    return number


def test_a_block_that_fails_says_the_same_sentence_as_here_and_is_not_tried_again(two_nodes, tmp_path):
    with pytest.raises(InputError, match=r"^run\.csv, line 4: found 2 columns, expected 3 columns\.$") as caught:
        list(map_blocks(lambda number: fails_once(tmp_path, number), range(6), ONE_CORE))
    assert caught.value.line == 4
    assert len(list(tmp_path.glob("3-*"))) == 1


def until(happened: Callable[[], bool]) -> None:
    """Waits for something that must happen; nobody waits for ever for a test that fails."""
    last = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < last, "it has not happened within 60 s"
        time.sleep(0.02)


def wait_for(folder: Path, number: int) -> int:
    (folder / f"begun-{number}-{os.getpid()}").touch()
    until((folder / "go").exists)
    (folder / f"ended-{number}").touch()
    return number


def meet(folder: Path, number: int) -> int:
    """A block that ends when two have begun; returns the node that it was worked on."""
    (folder / f"begun-{number}").touch()
    until(lambda: len(list(folder.glob("begun-*"))) == 2)
    return os.getppid()


def test_blocks_are_spread_over_all_nodes(two_nodes: TwoNodes, tmp_path):
    def nodes_of_two_blocks() -> set[int]:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        # Each takes a quarter of a core: one node alone has room for both, and gets both by Ray's default.
        return set(map_blocks(lambda number: meet(folder, number), range(2), RayExecutor(0.25)))

    # Ray spreads over nodes that it knows to be free; it may not have noticed yet that an earlier test has ended.
    until(lambda: len(nodes_of_two_blocks()) == 2)


def test_an_interrupted_job_ends_its_blocks(two_nodes, tmp_path):
    results = map_blocks(lambda number: number if number == 0 else wait_for(tmp_path, number), range(9), ONE_CORE)
    assert next(results) == 0
    until(lambda: bool(list(tmp_path.glob("begun-*"))))
    results.close()  # as an interrupt between two results does
    assert list(map_blocks(abs, range(4), ONE_CORE)) == [0, 1, 2, 3]  # the cores are free again
    assert not list(tmp_path.glob("ended-*"))


def test_a_block_that_no_node_can_take_is_refused(two_nodes):
    with pytest.raises(ClusterError, match="has 64 CPU for a block"):
        list(map_blocks(abs, [1], RayExecutor(64)))


def test_an_engine_holds_inside_its_block_only(two_nodes):
    assert cluster() is None
    with working_on("ray:cpus=0.5,retries=5"):
        assert cluster() == RayExecutor(0.5, retries=5)
        with working_on(None):
            assert cluster() is not None
        with working_on("local"):
            assert cluster() is None
    assert cluster() is None


class KillsSecondNode(FeatureStore):
    """A store that loses the second node of the cluster after a few blocks."""

    def __init__(self, root: Path, nodes: TwoNodes) -> None:
        super().__init__(root, "x")
        self.nodes, self.blocks = nodes, 0

    def add_new(self, keys: Sequence[bytes], outputs: Mapping[str, Any]) -> None:
        super().add_new(keys, outputs)
        self.blocks += 1
        if self.blocks == 3:
            self.nodes.kill_second()


@pytest.fixture
def photos(tmp_path) -> MediaFiles:
    for number in range(24):
        save_photo(tmp_path / "photos" / f"{number}.jpg", (10 * number, 90, 200), number)
    shutil.copy(tmp_path / "photos" / "3.jpg", tmp_path / "photos" / "same.jpg")
    names = sorted(path.name for path in (tmp_path / "photos").iterdir())
    return MediaFiles(PHOTO, Release(tmp_path / "photos"), dict(zip(names, names, strict=True)))


def test_extraction_ends_with_every_photo_once_and_equal_after_a_node_was_lost(
    two_nodes: TwoNodes, photos: MediaFiles, tmp_path, monkeypatch
):
    monkeypatch.setattr(extraction, "BLOCK_PHOTOS", 2)
    network = load_backbone(FeatureSettings(backbone="efficientnet_lite0", size=64))
    here = extract(list(photos.ids), photos.read, network, FeatureStore(tmp_path / "here", "x"))
    with working_on("ray"):
        there = extract(list(photos.ids), photos.read, network, KillsSecondNode(tmp_path / "there", two_nodes))
    np.testing.assert_array_equal(there, here)
    stored = np.concatenate([np.load(path) for path in (tmp_path / "there" / "x").glob("*.keys.npy")])
    assert len(stored) == len(np.unique(stored, axis=0)) == 24  # 25 photos, two of them the same


def test_a_photo_that_cannot_be_read_is_told_as_here_and_the_others_are_kept(
    two_nodes: TwoNodes, photos: MediaFiles, tmp_path
):
    (tmp_path / "photos" / "7.jpg").write_bytes(b"no photo")
    network = load_backbone(FeatureSettings(backbone="efficientnet_lite0", size=64))
    sentences = []
    for engine in ("local", "ray"):
        store = FeatureStore(tmp_path / engine, "x")
        with working_on(engine), pytest.raises(InputError) as caught:
            extract(list(photos.ids), photos.read, network, store, where=photos.where)
        sentences.append(str(caught.value))
        assert len(store) == 23
    assert sentences[0] == sentences[1] and "7.jpg" in sentences[0]


def here_and_there(work: Callable[[str], R]) -> tuple[R, R]:
    """What some work gives on this machine and on the cluster."""
    results = []
    for engine in ("local", "ray"):
        with working_on(engine):
            results.append(work(engine))
    return results[0], results[1]


def test_features_of_recordings_are_those_of_one_machine(two_nodes: TwoNodes, tmp_path, monkeypatch):
    monkeypatch.setattr(sounds, "BLOCK_WINDOWS", 4)
    recordings = {f"{number}": encoded(song(3, 22_050, hz=500 * number + 500), 22_050) for number in range(5)}
    recordings["broken"] = b"no sound"
    clips = [Clip(name, start, start + 1.0) for name in recordings for start in (0.0, 1.0, 2.0)]
    embedder = load_embedder(FeatureSettings(backbone="logmel"))

    def listen(engine: str) -> np.ndarray:
        store = FeatureStore(tmp_path / engine, "x")
        with pytest.raises(InputError, match=r"^broken: found"):
            extract_sounds(clips, lambda name: io.BytesIO(recordings[name]), embedder, store)
        return extract_sounds(clips[:-3], lambda name: io.BytesIO(recordings[name]), embedder, store)

    here, there = here_and_there(listen)
    np.testing.assert_array_equal(here, there)


def test_rasters_say_the_same_as_on_one_machine(two_nodes: TwoNodes, tmp_path, monkeypatch):
    monkeypatch.setattr(gridded, "BLOCK_PLACES", 50)
    rng = np.random.default_rng(0)
    for name, bands in (("a", 1), ("b", 2)):
        values = rng.integers(0, 99, (bands, 40, 32)).astype(np.int16)
        write_raster(tmp_path / f"rasters/{name}.tif", values, tiled=True, blockxsize=16, blockysize=16)
    layer = Rasters(Release(tmp_path), raster_paths(Release(tmp_path)), {})
    lat, lon = rng.uniform([[37.0], [7.0]], [[59.0], [25.0]], (2, 300))
    lat[7] = np.nan
    here, there = here_and_there(lambda engine: (layer.at(lat, lon), layer.at(lat, lon, 5)))
    np.testing.assert_array_equal(here[0], there[0])
    np.testing.assert_array_equal(here[1], there[1])
    assert there[1].shape == (300, 3, 5, 5) and 0.5 < np.isfinite(there[0]).mean() < 1


def test_many_observations_are_named_as_on_one_machine(
    two_nodes: TwoNodes, photos: MediaFiles, color_model: Path, tmp_path, monkeypatch
):
    monkeypatch.setitem(vars(PHOTO), "block", 10)
    (tmp_path / "photos" / "7.jpg").write_bytes(b"no photo")
    done = here_and_there(lambda engine: identify_many(tmp_path / "photos", color_model, tmp_path / engine))
    here, there = (one.answers.table for one in done)
    assert here.equals(there) and there["problem"].is_not_null().sum() == 1


def test_many_runs_are_scored_as_on_one_machine(two_nodes: TwoNodes, color_model: Path, tmp_path):
    runs = [tmp_path / "a.csv", tmp_path / "b.csv", color_model]
    for run in runs[:2]:
        shutil.copy(color_model / "run.csv", run)
    here, there = here_and_there(lambda engine: score_many("folder", runs, data=color_model.parent / "photos"))
    assert list(there) == [str(run) for run in runs]
    assert {run: card.to_json() for run, card in here.items()} == {run: card.to_json() for run, card in there.items()}


def test_a_run_at_fault_is_refused_with_its_lines(two_nodes: TwoNodes, color_model: Path, tmp_path):
    (tmp_path / "bad.csv").write_text("id,predicted\n1,2,3\n")
    with pytest.raises(InputError, match=r"bad\.csv, line 2: found"):
        score_many("folder", [color_model, tmp_path / "bad.csv"], data=color_model.parent / "photos", engine="ray")


def test_blocks_of_a_lost_node_are_worked_on_again(two_nodes: TwoNodes, tmp_path):
    results = map_blocks(lambda number: number if number == 0 else wait_for(tmp_path, number), range(5), ONE_CORE)
    assert next(results) == 0
    until(lambda: len(list(tmp_path.glob("begun-*"))) == 2)  # one on each node
    two_nodes.kill_second()
    (tmp_path / "go").touch()
    assert list(results) == [1, 2, 3, 4]
    assert len(list(tmp_path.glob("begun-*"))) == 5  # one of them twice


def test_results_that_lay_on_a_lost_node_are_computed_again(two_nodes: TwoNodes, tmp_path):
    def large(number: int) -> np.ndarray:
        return np.full(1 << 17, number if number == 0 else wait_for(tmp_path, number))  # Ray sends small ones at once

    results = map_blocks(large, range(3), ONE_CORE)
    assert not next(results).any()
    until(lambda: len(list(tmp_path.glob("begun-*"))) == 2)  # one on each node
    (tmp_path / "go").touch()
    until(lambda: len(list(tmp_path.glob("ended-*"))) == 2)
    two_nodes.kill_second()
    assert [one.tolist() for one in results] == [[1] * (1 << 17), [2] * (1 << 17)]


def test_work_ends_with_a_sentence_when_no_node_is_left_for_it(two_nodes: TwoNodes, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_blocks, "LOOK_S", 0.2)
    monkeypatch.setattr(ray_blocks, "GONE_S", 1.0)
    on_second = RayExecutor(0, gpus=1)
    results = map_blocks(lambda number: number if number == 0 else wait_for(tmp_path, number), range(9), on_second)
    assert next(results) == 0
    until(lambda: bool(list(tmp_path.glob("begun-*"))))
    two_nodes.kill_second()
    sentence = r"^The Ray cluster is gone: no node with 1 GPU is left \(for 1 s\)\. Finished work is kept"
    with pytest.raises(ClusterError, match=sentence):
        next(results)


@pytest.mark.parametrize(
    ("engine", "address", "sentence"),
    [
        ("rays", None, "no engine called 'rays'. Did you mean ray"),
        ("local", "auto", "An address goes with engine=ray"),
        ("ray:cpus", None, "expected settings such as ray:cpus=2,gpus=0.25"),
        ("ray:cpus=0", None, "cpus and gpus are both 0"),
        ("ray:cores=2", None, "cpus"),
    ],
)
def test_an_engine_that_does_not_exist_is_refused(engine, address, sentence):
    with pytest.raises(MisuseError, match=sentence), working_on(engine, address):
        pass


def test_without_ray_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    sentence = r"needs ray, which is not installed: pip install 'fieldmark\[ray\]'"
    with pytest.raises(MisuseError, match=sentence), working_on("ray"):
        pass


def test_errors_of_other_processes_keep_their_sentence_and_their_parts():
    problem = RunError("run.csv", [(2, "found x, expected y")], 3)
    again = pickle.loads(pickle.dumps(problem))
    assert (str(again), again.problems, again.total, again.where) == (str(problem), problem.problems, 3, "run.csv")
