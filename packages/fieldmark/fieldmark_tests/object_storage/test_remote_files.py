"""Files at an address: few requests, copies on the local disk, pieces of long files, tries after a lost connection."""

from __future__ import annotations

import os
import pickle

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from fieldmark.errors import InputError, MisuseError
from fieldmark.storage import remote_files
from fieldmark.storage.file_cache import FileCache, cache_root, default_file_cache
from fieldmark.storage.release import Release
from fieldmark_tests.object_storage.buckets import in_memory

PHOTOS = 130


@pytest.fixture
def many(tmp_path):
    """A folder of many small files, and folders beside each other."""
    for number in range(PHOTOS):
        path = tmp_path / "release" / "photos" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"photo %d" % number)
    for number in range(30):
        path = tmp_path / "release" / "classes" / f"c{number}" / "a.jpg"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"class %d" % number)
    return tmp_path / "release"


def test_a_thousand_photos_cost_a_thousand_requests_and_one_for_each_page_of_names(many, bucket):
    release = Release(bucket.fill(many, "many"))
    paths = [f"photos/{number}.jpg" for number in range(PHOTOS)]
    with bucket.counted() as requests:
        assert list(release.read_many(paths)) == [b"photo %d" % number for number in range(PHOTOS)]
    assert len(requests) == PHOTOS + 2  # the server of the tests has pages of 100 names
    with bucket.counted() as requests:
        assert list(Release(release.root).read_many(paths))[-1] == b"photo 129"
        assert len(release.sizes(paths)) == PHOTOS and release.exists("photos/5.jpg")
    assert len(requests) == 1 + 2  # the root and the names: the photos are on this disk


def test_folders_beside_each_other_are_listed_together(many, bucket):
    release = Release(bucket.fill(many, "many"))
    with bucket.counted() as requests:
        names = {folder: release.files(f"classes/{folder}") for folder in release.folders("classes")}
        assert not release.exists("classes/c3/b.jpg") and release.files("classes/none") == []
    assert names == {f"c{number}": ["a.jpg"] for number in range(30)}
    assert len(requests) == 1 + remote_files.LISTED_SINGLY + 1


def test_a_few_files_of_a_large_folder_are_asked_for_by_themselves(many, bucket):
    release = Release(bucket.fill(many, "few"))
    with bucket.counted() as requests:
        assert release.size("photos/7.jpg") == 7 and release.read("photos/8.jpg") == b"photo 8"
    assert ["HEAD" in request for request in requests] == [True, True, False]


def test_a_file_that_was_replaced_is_fetched_again(tmp_path, bucket):
    (tmp_path / "a.csv").write_text("old")
    address = bucket.fill(tmp_path, "replaced")
    assert Release(address).read("a.csv") == b"old"
    (tmp_path / "a.csv").write_text("new")
    bucket.fill(tmp_path, "replaced")
    assert Release(address).read("a.csv") == b"new"


def test_nothing_is_kept_where_nothing_is_wanted(many, monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE_GB", "0")
    address = in_memory(many, "kept-nothing")
    before = sorted((cache_root() / "files").glob("??/*"))
    release = Release(address)
    assert release.read("photos/1.jpg") == b"photo 1" and release.open("photos/2.jpg").read() == b"photo 2"
    with release.local_copy("photos/3.jpg") as path:
        assert path.read_bytes() == b"photo 3"
    assert not path.exists() and sorted((cache_root() / "files").glob("??/*")) == before


@pytest.mark.parametrize(("name", "value"), [("FIELDMARK_CACHE_GB", "much"), ("FIELDMARK_CACHE_GB", "-1")])
def test_a_size_that_is_none_is_refused(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(MisuseError, match="it takes a number of gigabytes, and 0 keeps nothing"):
        default_file_cache()


def test_the_cache_itself_is_on_a_local_disk(monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE", "s3://bucket/cache")
    with pytest.raises(MisuseError, match="FIELDMARK_CACHE is written to a local disk, not to s3://bucket/cache"):
        cache_root()


def test_the_least_recently_used_copies_make_room(tmp_path):
    cache = FileCache(tmp_path, 100)
    paths = {name: cache.add(name, 20, "1", lambda partial: partial.write_bytes(bytes(20))) for name in "abcde"}
    for age, name in enumerate("abcde"):
        os.utime(paths[name], (age, age))
    assert cache.find("a", 20, "1") == paths["a"] and cache.find("a", 20, "2") is None
    cache.add("f", 20, "1", lambda partial: partial.write_bytes(bytes(20)))
    assert sorted(name for name in "abcdef" if cache.find(name, 20, "1")) == ["a", "d", "e", "f"]
    assert cache.takes(25) and not cache.takes(26)


def test_a_copy_that_broke_off_does_not_count(tmp_path):
    cache = FileCache(tmp_path, 1000)

    def breaks(partial):
        partial.write_bytes(b"half")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        cache.add("a", 8, "1", breaks)
    assert cache.find("a", 8, "1") is None and not list(tmp_path.glob("??/*"))


@pytest.mark.parametrize("kept", ["0", "1"])
def test_long_files_are_read_in_pieces(kept, tmp_path, bucket, monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE_GB", kept)
    monkeypatch.setattr(remote_files, "PIECE_BYTES", 1000)
    data = os.urandom(4500)
    (tmp_path / "long.bin").write_bytes(data)
    release = Release(bucket.fill(tmp_path, f"long-{kept}"))
    with bucket.counted() as requests, release.open("long.bin") as file:
        file.seek(-100, os.SEEK_END)
        assert file.read() == data[-100:] and file.seek(2990) == 2990 and file.read(20) == data[2990:3010]
    # Without copies on this disk, only the pieces that are wanted are fetched.
    assert sum("GET" in request for request in requests) == (2 if kept == "0" else 5)
    with release.open("long.bin") as file:
        assert file.read() == data


def test_a_release_goes_to_another_process(many):
    release = pickle.loads(pickle.dumps(Release(in_memory(many, "pickled"))))
    assert release.read("photos/4.jpg") == b"photo 4"
    assert list(release.read_many(["photos/5.jpg", "photos/6.jpg"])) == [b"photo 5", b"photo 6"]


class Flaky(MemoryFileSystem):
    """A file system whose connection is lost twice in a row."""

    protocol = "flaky"
    failures = 0

    def cat_file(self, path, start=None, end=None, **options):
        if Flaky.failures:
            Flaky.failures -= 1
            raise ConnectionResetError("reset by peer")
        return super().cat_file(path, start, end, **options)


@pytest.fixture
def flaky(monkeypatch):
    monkeypatch.setenv("FIELDMARK_CACHE_GB", "0")
    monkeypatch.setattr("fieldmark.storage.addresses.WAITS_S", (0.001,) * 3)
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    Flaky().pipe({"flaky://flaky/a.csv": b"a table"})
    return Release("flaky://flaky")


def test_a_lost_connection_is_tried_again(flaky, monkeypatch):
    monkeypatch.setattr(Flaky, "failures", 2)
    assert flaky.read("a.csv") == b"a table"


def test_a_connection_that_stays_lost_is_one_sentence(flaky, monkeypatch):
    monkeypatch.setattr(Flaky, "failures", 99)
    sentence = r"flaky://flaky/a.csv: found no connection, in several tries \(reset by peer\), expected a server that"
    with pytest.raises(InputError, match=sentence):
        flaky.read("a.csv")
