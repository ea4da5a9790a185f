"""The guide in a real browser: the same answers, without a network, with nothing sent, for everybody."""

import base64
import csv
import io
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fieldmark.identification import Circumstances, identify
from fieldmark.identification.field_guide.export import export_guide
from fieldmark.identification.field_guide.npm_packages import NpmError, package_files, pinned, runtime_files
from fieldmark.identification.review.session import Review
from fieldmark.models import load_model
from fieldmark.storage.file_cache import cache_root
from fieldmark_tests.system_programs import CHROMIUM, absent

pytest.importorskip("uvicorn")

ASK = """async ({photos, known}) => {
  window.asking ??= new Worker("src/worker.js?threads=1", { type: "module" });
  const buffers = photos.map((text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer);
  return new Promise((resolve) => {
    window.asking.onmessage = (event) => resolve(event.data);
    window.asking.postMessage({ id: 1, question: { photos: buffers, known } });
  });
}"""


class Served:
    """A guide handed out on a port of its own."""

    def __init__(self, folder: Path) -> None:
        import uvicorn

        from fieldmark.web.guide_server import guide_app

        self.server = uvicorn.Server(uvicorn.Config(guide_app(folder), port=0, log_level="warning"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture(scope="module")
def guide(color_model, tmp_path_factory):
    """The guide of a small model."""
    try:
        runtime_files(cache_root() / "npm")
    except NpmError as error:
        absent(str(error))
    folder = tmp_path_factory.mktemp("guide") / "guide"
    written = export_guide(color_model, folder, weights="single")
    assert written.pictures == 18 and [one.precision for one in written.losses.losses] == ["single", "half", "8-bit"]
    return folder


@pytest.fixture(scope="module")
def served(guide):
    running = Served(guide)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def page(browser, served):
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.asked = []
    page.faults = []
    context.on("request", lambda request: page.asked.append(request.url))
    page.on("console", lambda said: page.faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.goto(served.url)
    page.wait_for_selector("html[data-ready=yes]")
    yield page
    context.close()


def as_text(*photos: bytes) -> list[str]:
    return [base64.b64encode(photo).decode() for photo in photos]


def test_photos(color_model) -> list[Path]:
    return sorted((color_model.parent / "photos" / "test").rglob("*.jpg"))


test_photos.__test__ = False  # a helper


def unlike(page, expected, *photos, known=None):
    """Where the answer of the page differs from that of `identify`."""
    said = page.evaluate(ASK, {"photos": as_text(*photos), "known": known or {}})["answer"]
    for one in expected["names"]:
        one.pop("common_names")
    found = []
    lists = {"names": (said["names"], expected["names"])}
    if expected["short_list"] is not None:
        lists["short_list"] = (said["short_list"]["names"], expected["short_list"]["names"])
    for key, (ours, theirs) in lists.items():
        if [one["label"] for one in ours] != [one["label"] for one in theirs]:
            found.append(key)
        elif any(abs(a["probability"] - b["probability"]) > 0.01 for a, b in zip(ours, theirs, strict=True)):
            found.append(f"{key}: probabilities")
    for key in ("group", "next_photos", "ignored", "missing", "threatened", "microscopic", "knows"):
        if said[key] != expected[key]:
            found.append(key)
    if said["verdict"]["known"] != expected["verdict"]["known"]:
        found.append("verdict")
    for key in ("claim", "danger"):
        if (said[key] or {}).get("because" if key == "danger" else "name") != (expected[key] or {}).get(
            "because" if key == "danger" else "name"
        ):
            found.append(key)
    if [one["label"] for one in said["nearest"]] != [one["label"] for one in expected["nearest"]]:
        found.append("nearest")
    return found


def test_the_page_answers_as_identify_does(page, color_model):
    model = load_model(color_model)
    for photo in test_photos(color_model)[:4]:
        assert unlike(page, identify(photo, model).to_json(), photo.read_bytes()) == []


def test_several_photos_are_one_specimen_and_what_is_not_used_is_said(page, color_model):
    photos, model = test_photos(color_model)[:2], load_model(color_model)
    expected = identify(photos, model, context=Circumstances(habitat="wood")).to_json()
    assert unlike(page, expected, *(photo.read_bytes() for photo in photos), known={"habitat": "wood"}) == []
    assert expected["ignored"] == ["The habitat was given, and the model does not use it."]


def large_photo(kind: str, orientation: int = 1) -> bytes:
    rng = np.random.default_rng(3)
    small = Image.fromarray(rng.integers(0, 256, (30, 41, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    written = io.BytesIO()
    small.resize((613, 447), Image.Resampling.BICUBIC).save(written, kind, exif=exif)
    return written.getvalue()


@pytest.mark.parametrize(("kind", "orientation"), [("PNG", 1), ("JPEG", 1), ("JPEG", 6)])
def test_large_and_turned_photos_are_read_as_pillow_does(kind, orientation, page, color_model, tmp_path):
    photo = tmp_path / f"large.{kind.lower()}"
    photo.write_bytes(large_photo(kind, orientation))
    assert unlike(page, identify(photo, load_model(color_model)).to_json(), photo.read_bytes()) == []


def test_resizing_gives_the_pixels_of_pillow(page):
    resize = """async ({width, height, data, size}) => {
      const { resized } = await import("./src/resampling.js");
      return Array.from(resized({ width, height, data: Uint8Array.from(data) }, size, { gap: true }).data);
    }"""
    rng = np.random.default_rng(0)
    for (width, height), size in (((40, 30), (21, 16)), ((15, 46), (10, 31)), ((9, 7), (20, 16)), ((97, 61), (11, 7))):
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        expected = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0))
        asked = {"width": width, "height": height, "data": pixels.ravel().tolist(), "size": list(size)}
        assert page.evaluate(resize, asked) == expected.ravel().tolist(), (width, height, size)


def test_what_is_no_photo_gets_a_sentence_and_the_page_goes_on(page, color_model):
    good = test_photos(color_model)[0].read_bytes()
    rng = np.random.default_rng(1)
    bad = [b"", b"%PDF-1.7", good[:200], b"\xff\xd8" + rng.bytes(500), rng.bytes(2000), b"<svg xmlns='x'/>"]
    for _ in range(30):
        broken = bytearray(good)
        for place in rng.integers(0, 300, 20):
            broken[place] = int(rng.integers(0, 256))
        bad.append(bytes(broken))
    told = [page.evaluate(ASK, {"photos": as_text(one), "known": {}}) for one in bad]
    assert all("answer" in one or one["error"].endswith(".") for one in told)
    assert sum("error" in one for one in told) >= 6
    assert "answer" in page.evaluate(ASK, {"photos": as_text(good), "known": {}})


def ask_by_hand(page, *photos):
    page.get_by_role("button", name="Start over").click()
    page.set_input_files("#gallery", [str(photo) for photo in photos])
    page.get_by_role("button", name="What is it?").click()
    page.wait_for_selector("#answer:not([hidden])")


def test_a_person_asks_keeps_corrects_and_saves_finds_that_review_and_calibrate_read(page, color_model, tmp_path):
    from fieldmark.identification.calibration import _read
    from fieldmark.identification.name_lists import NameFinder

    photo = test_photos(color_model)[0]
    page.locator("summary").click()
    page.get_by_label("Latitude").fill("47.5")
    page.get_by_label("Longitude").fill("8,25")
    page.get_by_label("Date", exact=True).fill("2026-09-02")
    ask_by_hand(page, photo)
    page.get_by_role("button", name="Keep it among my finds").click()
    page.get_by_text("Kept on this device.", exact=True).wait_for()
    page.get_by_label("I say it is").fill("rubra VERA")
    page.locator("#finds-list").get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    with page.expect_download() as started:
        page.get_by_role("button", name="Save all with photos").click()
    with zipfile.ZipFile(started.value.path()) as saved:
        assert saved.testzip() is None
        saved.extractall(tmp_path)
    row = next(csv.DictReader((tmp_path / "darwin-core.csv").open()))
    assert row["identificationVerificationStatus"] == "unverified" and row["scientificName"] == "Rubra vera"
    assert (row["decimalLatitude"], row["decimalLongitude"], row["eventDate"]) == ("47.5", "8.25", "2026-09-02")
    entry = next(Review(tmp_path).answers.entries())
    assert (tmp_path / entry.files[0]).read_bytes() == photo.read_bytes() and entry.lat == 47.5
    checked, left_out = _read(tmp_path / "checked.csv", NameFinder(load_model(color_model), {}))
    assert left_out == 0 and len(checked) == 1 and str(checked[0].known["date"]) == "2026-09-02"
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete all finds").click()
    page.get_by_text("Nothing is kept yet.").wait_for()


def test_nothing_leaves_the_origin_and_nothing_is_refused_by_the_policy(page, served):
    assert len(page.asked) > 10 and all(url.startswith((served.url, "blob:")) for url in page.asked)
    assert page.faults == []


def test_pages_are_for_everybody_and_fit_a_phone(page, served, color_model):
    try:
        axe = package_files(pinned("axe-core"), ["axe.min.js"], cache_root() / "npm")["axe.min.js"].decode()
    except NpmError as error:
        absent(str(error))
    ask_by_hand(page, test_photos(color_model)[1])
    page.get_by_role("button", name="Keep it among my finds").click()
    page.get_by_text("Kept on this device.", exact=True).wait_for()
    about = page.context.new_page()
    about.goto(served.url + "about.html")
    about.wait_for_selector("#losses tr")
    for shown in (page, about):
        shown.evaluate(axe)
        for scheme in ("light", "dark"):
            shown.emulate_media(color_scheme=scheme)
            found = shown.evaluate(
                "axe.run().then((said) => said.violations.map((one) => [one.id, one.nodes[0].html]))"
            )
            assert found == [], scheme
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360


def test_it_answers_with_the_server_stopped_and_the_browser_started_anew(browser, guide, color_model, tmp_path):
    running, photo = Served(guide), test_photos(color_model)[0]
    options = {"executable_path": CHROMIUM, "args": ["--no-sandbox", "--disable-gpu"]}
    first = browser.browser_type.launch_persistent_context(tmp_path / "profile", **options)
    page = first.new_page()
    page.goto(running.url)
    page.get_by_text("Kept on this device: it works without a network.").wait_for()
    first.close()
    running.stop()
    again = browser.browser_type.launch_persistent_context(tmp_path / "profile", **options)
    page = again.new_page()
    page.goto(running.url)
    page.wait_for_selector("html[data-ready=yes]")
    ask_by_hand(page, photo)
    assert page.get_by_role("heading", level=2).first.inner_text()
    assert page.evaluate("crossOriginIsolated")  # so that there are threads, whatever server it came from
    again.close()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("guide.json", "{"),
        ("guide.json", "[]"),
        ("guide.json", '{"fieldmark_guide_app": 9}'),
        ("arrays.bin", ""),
        ("network.onnx", "none"),
    ],
)
def test_a_damaged_guide_is_told_in_a_sentence(name, content, browser, served):
    context = browser.new_context(service_workers="block")
    context.route(f"**/{name}", lambda route: route.fulfill(body=content))
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector("#problem:not([hidden])")
    assert page.inner_text("#problem").endswith("export the guide again.")
    context.close()
