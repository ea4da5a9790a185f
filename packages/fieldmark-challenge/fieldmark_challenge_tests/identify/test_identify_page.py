"""The identify page: answers, refusals in a sentence, and nothing kept that nobody agreed to."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import ExifTags, Image
from starlette.testclient import TestClient

from fieldmark.audio.samples import Recording
from fieldmark.web import identify_answers, identify_pages
from fieldmark.web import rates as local_rates
from fieldmark.web.identify_answers import MOST_MB, PageAnswers, PageLimits
from fieldmark.web.local_app import make_local_app
from fieldmark.web.refusals import TooOftenError
from fieldmark.web.security import POLICY_WITH_SCRIPT
from fieldmark.web.world_outline import LANDS, place_on_map
from fieldmark_challenge.people import classrooms, rates
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import Platform
from fieldmark_tests.fixtures import COLORS
from fieldmark_tests.recordings import FORMATS, encode


@pytest.fixture(scope="module")
def answering(color_model: Path) -> PageAnswers:
    """The model, read once."""
    return PageAnswers(str(color_model))


@pytest.fixture
def client(answering: PageAnswers, tmp_path: Path) -> Iterator[TestClient]:
    app = make_local_app(identify_pages.router, "/identify", upload_mb=MOST_MB)
    app.state.namer, answering.keep_in = answering, tmp_path / "kept"
    with TestClient(app) as made:
        yield made


def csrf_of(client: TestClient) -> str:
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/identify").text)[1]


def photo(kind: str = "JPEG", mode: str = "RGB", size: tuple[int, int] = (48, 40), **options: object) -> bytes:
    buffer = io.BytesIO()
    picture = Image.new(mode, size, COLORS["Rubra vera"] if mode == "RGB" else 0)
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def with_notes() -> bytes:
    exif = Image.Exif()
    exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.DateTimeOriginal] = "2021:09:30 06:15:00"
    place = {ExifTags.GPS.GPSLatitude: (47.0, 30.0, 0.0), ExifTags.GPS.GPSLongitude: (8.0, 30.0, 0.0)}
    exif.get_ifd(ExifTags.IFD.GPSInfo).update(place)
    return photo(exif=exif)


def ask(client: TestClient, *files: tuple[str, bytes], **fields: str):
    form = {"csrf": csrf_of(client), **fields}
    return client.post("/identify", data=form, files=[("files", file) for file in files])


def test_a_photo_is_answered_and_nothing_calls_it_edible(client):
    answer = ask(client, ("a.jpg", photo()), ("b.jpg", photo()))
    assert answer.status_code == 200 and "Rubra vera" in answer.text
    assert "not advice on eating" in answer.text and "The photos were not kept." in answer.text
    assert answer.headers["content-security-policy"] == POLICY_WITH_SCRIPT
    bare = re.sub(r"data:[a-z/]+;base64,[A-Za-z0-9+/=]+", "", answer.text)
    assert not re.search(r"<script(?![^>]*\bsrc=\"/static/)|\son\w+=|\sstyle=|<style|https?://(?!www\.w3\.org)", bare)


def test_notes_of_the_camera_are_read_only_where_the_person_agrees(client):
    assert "2021-09-30" not in ask(client, ("a.jpg", with_notes())).text
    told = ask(client, ("a.jpg", with_notes()), exif="yes").text
    assert "2021-09-30" in told and "47.5" in told


def test_what_is_kept_tells_neither_place_nor_date(client, tmp_path):
    ask(client, ("a.jpg", with_notes()), exif="yes")
    assert not (tmp_path / "kept").exists()
    answer = ask(client, ("a.jpg", with_notes()), exif="yes", keep="yes", lat="47.5", lon="8.5")
    assert "are kept" in answer.text
    (folder,) = (tmp_path / "kept").iterdir()
    with Image.open(folder / "photo-1.jpg") as kept:
        assert not kept.getexif() and "exif" not in kept.info
    assert set(json.loads((folder / "answer.json").read_text())) == {"names", "simulated"}


def test_pictures_on_the_page_carry_no_notes(client):
    answer = ask(client, ("a.jpg", with_notes())).text
    pictures = [base64.b64decode(one) for one in re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", answer)]
    assert pictures and not any(b"Exif" in one for one in pictures)


def test_features_of_what_was_asked_do_not_stay(client):
    ask(client, ("a.jpg", photo()))
    store = client.app.state.namer.loaded.store
    assert list(store.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("bomb.png", photo("PNG", "1", (20_000, 20_000)), "more pixels"),
        ("a.gif", photo("GIF", save_all=True, append_images=[Image.new("RGB", (48, 40), "red")]), "an animation"),
        ("a.pdf", b"%PDF-1.4 nothing", "neither a photo nor a recording"),
        ("a.heic", b"\0\0\0\x18ftypheic" + b"\0" * 50, "neither a photo nor a recording"),
        ("empty.jpg", b"", "is empty"),
        ("byte.jpg", b"\xff", "neither a photo nor a recording"),
        ("cut.jpg", photo(size=(400, 400))[:-200], "cut.jpg: found a truncated photo"),
        ("a.wav", b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 20, "not a recording"),
    ],
)
def test_a_hostile_file_gets_a_sentence_and_the_server_goes_on(client, name, data, words):
    refused = ask(client, (name, data))
    assert refused.status_code == 400
    assert words in re.search(r'role="alert"><p>(.*?)</p>', refused.text)[1]
    assert ask(client, ("a.jpg", photo())).status_code == 200


@pytest.mark.parametrize(
    "data", [photo("PNG", "RGB", (1, 1)), photo("JPEG", "CMYK"), photo("PNG", "I;16"), photo("WEBP"), photo("PNG", "P")]
)
def test_unusual_photos_are_answered(client, data):
    assert ask(client, ("odd.jpg", data)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lat": "95", "lon": "8"}, "lies between"),
        ({"lat": "47"}, "go together"),
        ({"lat": "north", "lon": "8"}, "no latitude"),
        ({"date": "yesterday"}, "no date"),
    ],
)
def test_what_cannot_be_is_refused_and_the_form_keeps_it(client, fields, words):
    refused = ask(client, ("a.jpg", photo()), **fields)
    assert refused.status_code == 400 and words in refused.text
    assert f'value="{next(iter(fields.values()))}"' in refused.text


def test_too_many_and_too_much_are_refused(client):
    assert "At most 6" in ask(client, *[("a.jpg", photo())] * 7).text
    assert "at least one photo" in ask(client, ("", b"")).text
    assert "not both" in ask(client, ("a.jpg", photo()), ("a.wav", b"RIFF\0\0\0\0WAVE")).text
    assert ask(client, ("a.jpg", bytes(MOST_MB + 2 << 20))).status_code == 413


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_that_the_page_names_is_heard_and_drawn(client, ending):
    rate = 24_000
    seconds = np.arange(4 * rate) / rate
    song = (0.3 * np.sin(2 * np.pi * (3000 + 800 * np.sin(20 * seconds)) * seconds)).astype(np.float32)
    answer = ask(client, (f"voice.{ending}", encode(song, rate, ending)))
    assert answer.status_code == 200 and "The recording was not kept." in answer.text
    assert "data:image/jpeg;base64," in answer.text


def silence(minutes: int, *, told: bool = True) -> bytes:
    """A recording in FLAC, which needs little room for silence; its header may leave out how long it is."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros(minutes * 60 * 2000, np.int16), 2000, format="FLAC")
    data = bytearray(buffer.getvalue())
    if not told:
        data[21], data[22:26] = data[21] & 0xF0, bytes(4)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (silence(60), "dawn.flac: found 60 minutes of sound, expected at most 10 minutes."),
        (silence(60, told=False), "dawn.flac: found more than 10 minutes of sound, expected at most 10 minutes."),
    ],
)
def test_a_recording_that_is_too_long_gets_a_sentence_before_it_is_listened_to(client, data, words, monkeypatch):
    decoded = []
    blocks = Recording.blocks
    monkeypatch.setattr(Recording, "blocks", lambda *given: (decoded.append(len(one)) or one for one in blocks(*given)))
    refused = ask(client, ("dawn.flac", data))
    assert refused.status_code == 400 and words in refused.text and "one piece at a time" in refused.text
    assert "up to 10 minutes" in refused.text
    assert 600 < sum(decoded) / 2000 <= 610


@pytest.fixture
def quarter_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment in the middle of a window of ten minutes, which does not end while a test counts."""
    for counting in (rates, local_rates):
        monkeypatch.setattr(counting, "utc_now", lambda: dt.datetime(2026, 5, 1, 12, 15, tzinfo=dt.UTC))


@pytest.mark.usefixtures("quarter_past")
def test_one_address_asks_so_often_and_then_waits(color_model):
    app = make_local_app(identify_pages.router, "/identify", upload_mb=MOST_MB)
    app.state.namer = PageAnswers(str(color_model), limits=PageLimits(questions=2))
    with TestClient(app, client=("192.0.2.1", 1)) as client, TestClient(app, client=("192.0.2.2", 1)) as other:
        assert [ask(client, ("a.jpg", photo())).status_code for _ in range(2)] == [200, 200]
        refused = ask(client, ("a.jpg", photo()), country="Chile")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "300")
        assert "Try again in 6 minutes" in refused.text and 'value="Chile"' in refused.text
        assert client.get("/identify").status_code == 200
        assert ask(other, ("a.jpg", photo())).status_code == 200


@pytest.mark.usefixtures("quarter_past")
def test_on_the_platform_questions_are_counted_for_all_servers_and_class_rooms_ask_more(
    small_platform: Platform, color_model
):
    limited = PageAnswers(str(color_model), limits=PageLimits(questions=1))
    apps = [create_app(small_platform.database, small_platform.storage, namer=limited) for _ in range(2)]
    with TestClient(apps[0], client=("192.0.2.3", 1)) as first, TestClient(apps[1], client=("192.0.2.3", 1)) as second:
        assert ask(first, ("a.jpg", photo())).status_code == 200
        refused = ask(second, ("a.jpg", photo()))
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "300")
        classrooms.open_room(small_platform.database, small_platform.admin, "192.0.2.0/24", hours=1)
        assert ask(second, ("a.jpg", photo())).status_code == 200


def test_a_form_from_elsewhere_is_refused(client):
    assert client.post("/identify", data={"csrf": "0" * 64}, files={"files": ("a.jpg", photo())}).status_code == 403
    assert client.get("/identify", headers={"host": "evil.example.org"}).status_code == 400


def test_few_questions_wait_and_the_others_are_sent_away(color_model, monkeypatch):
    monkeypatch.setattr(identify_answers, "WAITING", 1)
    busy, started, go_on = PageAnswers(str(color_model)), threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> None:
        started.set()
        go_on.wait(30)
        raise TooOftenError("done")

    monkeypatch.setattr(identify_answers, "identify", slow)

    def question() -> identify_answers.Question:
        return identify_answers.Question([("a.jpg", io.BytesIO(photo()))], identify_answers.Circumstances())

    def quietly() -> None:
        with pytest.raises(TooOftenError, match="done"):
            busy.ask(question())

    threads = [threading.Thread(target=quietly) for _ in range(2)]
    threads[0].start()
    assert started.wait(30)
    threads[1].start()
    while busy.room:
        pass
    with pytest.raises(TooOftenError, match="Too many"):
        busy.ask(question())
    go_on.set()
    for thread in threads:
        thread.join()
    assert busy.room == 2


def test_the_platform_has_the_page_where_something_answers(small_platform: Platform, answering: PageAnswers):
    answering.keep_in = None
    without = create_app(small_platform.database, small_platform.storage)
    with TestClient(without) as client:
        assert client.get("/identify").status_code == 404 and "Identify" not in client.get("/").text
    app = create_app(small_platform.database, small_platform.storage, namer=answering)
    with TestClient(app) as client:
        assert 'href="/identify"' in client.get("/").text
        assert "Rubra vera" in ask(client, ("a.jpg", photo())).text
        assert "Nothing you send is stored." in client.get("/identify").text


def test_places_lie_on_the_map_where_they_belong():
    def inside(lat: float, lon: float) -> set[str]:
        x, y = place_on_map(lat, lon)
        found = set()
        for land, corners in LANDS.items():
            points = [place_on_map(north, east) for east, north in corners]
            crossed = False
            for (x1, y1), (x2, y2) in zip(points, [*points[1:], points[0]], strict=True):
                if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
                    crossed = not crossed
            found |= {land} if crossed else set()
        return found

    assert (
        inside(47.4, 8.5) == {"Eurasia"} and inside(-1.3, 36.8) == {"Africa"} and inside(-33.0, 147.0) == {"Australia"}
    )
    assert inside(39.7, -105.0) == {"North America"} and inside(-15.8, -47.9) == {"South America"}
    assert inside(0.0, -30.0) == set() and inside(-20.0, 80.0) == set()
