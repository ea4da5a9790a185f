"""The guide in a real browser: the same answers, without a network, with nothing sent, for everybody."""

import base64
import csv
import datetime
import io
import json
import re
import threading
import time
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.identification import Circumstances, identify
from fieldmark.identification.advice import OTHER_ADVICE
from fieldmark.identification.calibration import calibrate_model
from fieldmark.identification.danger_notices import DangerQuestion, danger_notice
from fieldmark.identification.field_guide.contents import ArrayFile, countries_of, guide_words, plain_step
from fieldmark.identification.field_guide.export import export_guide
from fieldmark.identification.field_guide.npm_packages import NpmError, package_files, pinned, runtime_files
from fieldmark.identification.photo_answers import RankedClaim, UnknownVerdict
from fieldmark.identification.review.session import Review
from fieldmark.models import load_model
from fieldmark.models.guides.dangers import NEVER
from fieldmark.questions.targets import LabelTargets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.steps.base import Lesson
from fieldmark.steps.bias_temperature import BiasTemperature
from fieldmark.steps.costs import costs_by_rule
from fieldmark.steps.group_temperature import GroupTemperature
from fieldmark.steps.min_cost import MinCost
from fieldmark.steps.priors.combination import RULES
from fieldmark.steps.priors.prior import Prior
from fieldmark.steps.temperature import Temperature
from fieldmark.steps.unknown_probability import UnknownProbability
from fieldmark.steps.unknown_score import MaxSoftmax, UnknownScore
from fieldmark.steps.unknown_threshold import UnknownThreshold
from fieldmark.storage.file_cache import cache_root
from fieldmark.tables.labels import Labels
from fieldmark.views.parts import Part
from fieldmark_tests.identification.test_danger_notices import DOG, FACTS, KINDS
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
    if (said["claim"] or {}).get("name") != (expected["claim"] or {}).get("name"):
        found.append("claim")
    # Its probability is one of those above, and may be rounded to the next percent.
    reasons = [
        [re.sub(r"is [\d.]+ %", "", why) for why in (one["danger"] or {}).get("because", [])]
        for one in (said, expected)
    ]
    if reasons[0] != reasons[1]:
        found.append("danger")
    if [one["label"] for one in said["nearest"]] != [one["label"] for one in expected["nearest"]]:
        found.append("nearest")
    return found


def test_the_page_answers_as_identify_does(page, color_model):
    model = load_model(color_model)
    for photo in test_photos(color_model)[:4]:
        assert unlike(page, identify(photo, model, ask_groups=False).to_json(), photo.read_bytes()) == []


WARN = """async ({labels, words, questions}) => {
  const { DangerQuestion, standingAdvice } = await import("./src/dangers.js");
  const book = { labels, words, guide: { danger_line: 0.0099 } };
  const notices = questions.map(({ chances, known, claim }) => {
    const found = new DangerQuestion(book, chances, { known }, claim).notice((groups) => groups);
    return found && [found.group, found.because, found.look_alikes, found.advice, found.brief];
  });
  return { notices, standing: standingAdvice(book) };
}"""


def test_danger_notices_are_those_of_identify_where_no_network_was_asked_for_groups(page):
    labels = [
        {"label": label, "group": group, "species": label, "poisonous": flag, "dangerous": flag is not False}
        for label, (group, flag) in KINDS.items()
    ]
    rng = np.random.default_rng(5)
    claims = [
        DOG,
        RankedClaim("species", "adder", 0.9, ("adder",)),
        RankedClaim("kingdom", "Fungi", 0.9, ("dog",)),
        None,
    ]
    questions = [
        DangerQuestion(FACTS, chances, 0.0099, UnknownVerdict(known), claim)
        for chances in rng.dirichlet(np.full(len(KINDS), 0.15), 100)
        for known, claim in ((True, claims[rng.integers(4)]), (False, None), (None, None))
    ]
    told = [danger_notice(question, tuple) for question in questions]  # the groups stand for their look-alikes
    expected = [one and (one.group, one.because, one.look_alikes, one.advice, one.brief) for one in told]
    asked = [
        {"chances": one.chances.tolist(), "known": one.verdict.known, "claim": one.sure_of and asdict(one.sure_of)}
        for one in questions
    ]
    said = page.evaluate(WARN, {"labels": labels, "words": guide_words(), "questions": asked})
    assert said["standing"] == [OTHER_ADVICE[0], NEVER["snakes"], NEVER["fungi"]]
    assert said["notices"] == json.loads(json.dumps(expected))
    assert {one and one.brief for one in told} == {None, True, False}


def test_several_photos_are_one_specimen_and_what_is_not_used_is_said(page, color_model):
    photos, model = test_photos(color_model)[:2], load_model(color_model)
    expected = identify(photos, model, context=Circumstances(habitat="wood"), ask_groups=False).to_json()
    assert unlike(page, expected, *(photo.read_bytes() for photo in photos), known={"habitat": "wood"}) == []
    assert expected["ignored"] == ["The habitat was given, but the model does not use it."]


def large_photo(kind: str, orientation: int = 1) -> bytes:
    rng = np.random.default_rng(3)
    small = Image.fromarray(rng.integers(0, 256, (30, 41, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    written = io.BytesIO()
    small.resize((613, 447), Image.Resampling.BICUBIC).save(written, kind, exif=exif)
    return written.getvalue()


@pytest.mark.parametrize(("kind", "orientation"), [("PNG", 1), ("JPEG", 6)])
def test_large_and_turned_photos_are_read_as_pillow_does(kind, orientation, page, color_model, tmp_path):
    photo = tmp_path / f"large.{kind.lower()}"
    photo.write_bytes(large_photo(kind, orientation))
    assert unlike(page, identify(photo, load_model(color_model), ask_groups=False).to_json(), photo.read_bytes()) == []


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


APPLY = """async ({step, arrays, scores, unknown, known, countries}) => {
  const { applied, chancesOf } = await import("./src/steps.js");
  const { resolved } = await import("./src/book.js");
  const buffer = Uint8Array.from(atob(arrays), (sign) => sign.charCodeAt(0)).buffer;
  const raw = { columns: Float64Array.from(scores), labels: scores.length, scale: "logit", unknown, decision: null };
  const said = applied([resolved(step, buffer)], raw, known, countries);
  return { chances: Array.from(chancesOf(said)), unknown: said.unknown, decision: said.decision };
}"""
LABELS = Labels(("a", "b", "c"))
KNOWN = {"date": "2026-09-02", "lat": 47.37, "lon": 8.54, "country": "Denmark", "habitat": " wood "}


def lessons() -> Part:
    """Observations of three labels in different months, places, countries and habitats."""
    rng, number = np.random.default_rng(2), 60
    items = pl.DataFrame(
        {
            "item_id": [f"i{one}" for one in range(number)],
            "observation_id": [f"o{one}" for one in range(number)],
            "media_ids": [[f"m{one}"] for one in range(number)],
            "date": [datetime.date(2025, int(month), 3) for month in rng.integers(6, 12, number)],
            "lat": 47.3 + rng.random(number) / 5,
            "lon": 8.5 + rng.random(number) / 5,
            "country": rng.choice(["DK", "Sweden", "Brazil", "Atlantis"], number),
            "habitat": rng.choice(["wood", "meadow"], number),
        }
    )
    return Part(items, LabelTargets(rng.integers(0, 3, number).astype(np.int32)))


def prior(context: str, rule: str) -> Prior:
    part = lessons()
    lesson = Lesson(BENCHMARKS["folder"].task, LABELS, pl.DataFrame({"label": LABELS.names}), part, part)
    val = LabelScores(part.item_ids, LABELS, np.zeros((len(part), 3), np.float32), "logit")
    return Prior(context, rule, strength="3", exponent="0.7").fit(val, lesson)


STEPS = {
    "temperature": Temperature(1.7),
    "bias": BiasTemperature(0.8, (0.1, -0.4, 0.3)),
    "month temperature": GroupTemperature(temperature=2.0, temperatures={"09": 0.5}),
    "max-softmax": MaxSoftmax(),
    **{score: UnknownScore(score) for score in ("max-logit", "energy", "entropy")},
    "unknown-probability": UnknownProbability(2.0, -1.0),
    "unknown": UnknownThreshold(threshold=0.2),
    "known": UnknownThreshold(threshold=0.5),
    "cheap": MinCost(costs=costs_by_rule("poison", LABELS, np.array([False, True, False])).to_data()),
    **{f"{name}, {rule}": prior(name, rule) for name in ("habitat/month", "place", "country") for rule in RULES},
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_those_of_the_model(name, page, color_model):
    step, arrays = STEPS[name], ArrayFile()
    scores, strange = np.array([[1.5, 0.2, -0.7]], dtype=np.float32), np.array([0.3], dtype=np.float32)
    items = pl.DataFrame({"item_id": ["x"], **{key: [value] for key, value in KNOWN.items()}})
    items = items.with_columns(pl.col("date").str.to_date())
    expected = step.apply(LabelScores(("x",), LABELS, scores, "logit", unknown=strange), items)
    data = plain_step(step, load_model(color_model), arrays)
    asked = {"step": json.loads(json.dumps(data)), "scores": scores[0].tolist(), "unknown": float(strange[0])}
    asked |= {"arrays": as_text(arrays.bytes())[0], "known": KNOWN, "countries": countries_of((step,))}
    said = page.evaluate(APPLY, asked)
    assert said["chances"] == pytest.approx(expected.chances()[0].tolist(), abs=1e-5)
    assert said["unknown"] == pytest.approx(float(expected.unknown[0]), abs=1e-5)
    assert said["decision"] == (None if expected.decisions is None else int(expected.decisions.codes[0]))


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
    photo = test_photos(color_model)[0]
    page.locator("summary").click()
    page.get_by_label("Latitude").fill("47.5")
    page.get_by_label("Longitude").fill("8,25")
    page.get_by_label("Date", exact=True).fill("2026-09-02")
    ask_by_hand(page, photo)
    assert page.inner_text("#danger")  # the model knows a poisonous name: something is said, whatever the answer
    page.get_by_role("button", name="Save to my finds").click()
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
    with pytest.raises(MisuseError, match="has 1 observations that count, and a calibration needs 20"):
        calibrate_model(color_model, tmp_path / "checked.csv", tmp_path / "ours")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete all finds").click()
    page.get_by_text("No finds yet.").wait_for()


def test_nothing_leaves_the_origin_and_nothing_is_refused_by_the_policy(page, served):
    assert len(page.asked) > 10 and all(url.startswith((served.url, "blob:")) for url in page.asked)
    assert page.faults == []


def test_pages_are_for_everybody_and_fit_a_phone(page, served, color_model):
    try:
        axe = package_files(pinned("axe-core"), ["axe.min.js"], cache_root() / "npm")["axe.min.js"].decode()
    except NpmError as error:
        absent(str(error))
    ask_by_hand(page, test_photos(color_model)[1])
    page.get_by_role("button", name="Save to my finds").click()
    page.get_by_text("Kept on this device.", exact=True).wait_for()
    about = page.context.new_page()
    about.goto(served.url + "about.html")
    about.wait_for_selector("#losses tr")
    assert "Warnings follow from the names in this guide alone." in about.inner_text("#facts")
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
    page.get_by_text("Stored on this device: it works offline.").wait_for()
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
