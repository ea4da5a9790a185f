"""Whether a field guide in a browser answers as `fieldmark identify` does (real photos, real Chromium).

Four models on frozen features of EfficientNet-Lite0, one per release and each of another method; from the test part of
each, 75 photos drawn with a fixed seed are asked of the exported guide (single precision, one thread) and `identify`.
Nothing was set by looking at them. Beside it: what a first visit takes, what smaller weights cost on val, how long an
answer takes beside ONNX Runtime for Python (same graph, one thread, on whatever machine this runs), and ten thousand
inputs that are no photo, or a broken one, or a guide whose data are damaged: each must end in an answer or a sentence.
Finished parts are kept in the cache, so that an interrupted run goes on.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.exporting.answering_network import answering_network
from fieldmark.exporting.weight_precision import PRECISIONS, with_precision
from fieldmark.fitting import fit
from fieldmark.identification import identify
from fieldmark.identification.field_guide.export import export_guide, sent_bytes
from fieldmark.identification.field_guide.weight_losses import squares_of
from fieldmark.models import Model, load_model
from fieldmark.registry import require
from fieldmark.storage.file_cache import cache_root
from fieldmark.storage.files import write_json
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.web.guide_server import guide_app
from studies.evidence.results import real_data

PHOTOS_EACH, SEED = 75, 0
MODELS = {
    "birds": ("birds_cub_odd", "prototypes"),
    "fungi": ("fungi_genera", "lda"),
    "snakes": ("snakes_philippines", "linear"),
    "plants": ("plants_sheets_and_field/train/photo", "ridge"),
}
BAD_INPUTS, BAD_GUIDES, AT_ONCE = 9_900, 100, 50
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ASK = """async (photos) => {
  window.asking ??= new Worker("src/worker.js?threads=1", { type: "module" });
  const replies = [];
  for (const text of photos) {
    const photo = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer;
    replies.push(await new Promise((resolve) => {
      window.asking.onmessage = (event) => resolve(event.data);
      window.asking.postMessage({ id: 1, question: { photos: [photo], known: {} } });
    }));
  }
  return replies;
}"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a guide that is handed out meanwhile."""
    uvicorn: Any = require("uvicorn", "Handing out a guide")
    server = uvicorn.Server(uvicorn.Config(guide_app(folder), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium."""
    api: Any = require("playwright.sync_api", "A browser")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def asked(page: Any, photos: list[bytes]) -> list[dict[str, Any]]:
    """What the guide replies to photos, each a question of its own."""
    replies: list[dict[str, Any]] = page.evaluate(ASK, [base64.b64encode(photo).decode() for photo in photos])
    return replies


def test_photos(model: Model, root: Path) -> list[Path]:
    """Some photos of the test part, drawn with a fixed seed."""
    declared = BENCHMARKS["folder"]
    opened = open_benchmark(declared, open_release(declared, root), seed=model.trained["seed"])
    assert opened.view.test is not None
    paths = opened.dataset.media_paths
    media = [ids[0] for ids in opened.view.test.items["media_ids"].to_list()]
    drawn = np.random.default_rng(SEED).permutation(len(media))[:PHOTOS_EACH]
    return [root / paths[media[number]] for number in sorted(drawn)]


def compared(said: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Where one answer is the same as that of `identify`."""
    first, other = said["names"][0], expected["names"][0]
    lists = [[one["label"] for one in (value["short_list"] or {"names": []})["names"]] for value in (said, expected)]
    claims = [(value["claim"] or {}).get("name") for value in (said, expected)]
    notices = [None if value["danger"] is None else value["danger"]["brief"] for value in (said, expected)]
    return {
        "name": first["label"] == other["label"],
        "difference": abs(first["probability"] - other["probability"]),
        "verdict": said["verdict"]["known"] == expected["verdict"]["known"],
        "danger": notices[0] == notices[1],
        "claim": claims[0] == claims[1],
        "short_list": lists[0] == lists[1],
        "nearest": said["nearest"][0]["label"] == expected["nearest"][0]["label"],
        "unknown": expected["verdict"]["known"] is False,
        "warned": expected["danger"] is not None,
    }


def python_seconds(model: Model, photos: list[Path]) -> tuple[list[float], list[float]]:
    """How long ONNX Runtime for Python takes for each photo on one thread: with decoding, and the network alone."""
    network = answering_network(model)
    runtime: Any = require("onnxruntime", "A comparison")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(network.graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    whole, alone = [], []
    for photo in photos:
        began = time.perf_counter()
        squares = squares_of(photo.read_bytes(), network.views)
        between = time.perf_counter()
        session.run(None, {"squares": squares})
        alone.append(time.perf_counter() - between)
        whole.append(time.perf_counter() - began)
    return whole, alone


def one_release(name: str, folder: Path, chromium: Any) -> dict[str, Any]:
    """A model of one release, exported and asked."""
    place, method = MODELS[name]
    root = real_data(place)
    assert root is not None
    fit("folder", root, method, folder / name)
    model = load_model(folder / name)
    written = export_guide(folder / name, folder / f"{name}-guide", weights="single")
    losses, graph = written.losses, answering_network(model).graph
    networks = {one: sent_bytes(with_precision(graph, one).SerializeToString()) for one in PRECISIONS}
    sizes = {one: written.first_load - networks["single"] + networks[one] for one in PRECISIONS}
    photos = test_photos(model, root)
    with served(folder / f"{name}-guide") as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        asked(page, [photos[0].read_bytes()])  # starts the session
        replies = asked(page, [photo.read_bytes() for photo in photos])
        page.context.close()
    rows = [compared(one["answer"], identify(path, model).to_json()) for one, path in zip(replies, photos, strict=True)]
    whole, alone = python_seconds(model, photos)
    ours = [one["milliseconds"] / 1000 for one in replies], [one["network_milliseconds"] / 1000 for one in replies]
    medians = {"browser_s": ours[0], "browser_network_s": ours[1], "python_s": whole, "python_network_s": alone}
    return {
        "release": place,
        "method": method,
        "photos": len(rows),
        "same": {key: sum(row[key] for row in rows) for key in SAME},
        "unknown": sum(row["unknown"] for row in rows),
        "warned": sum(row["warned"] for row in rows),
        "within_0_01": sum(row["difference"] <= 0.01 for row in rows),
        "largest_difference": round(max(row["difference"] for row in rows), 6),
        "first_load_mb": {key: round(value / 1e6, 2) for key, value in sizes.items()},
        "val_observations": losses.observations,
        "val_learned_from": "val" in model.trained["parts"],
        "losses": {one.precision: {"right": one.right, "less": one.less, "same": one.same} for one in losses.losses},
        "median": {key: round(float(np.median(values)), 4) for key, values in medians.items()},
    }


SAME = ("name", "verdict", "danger", "claim", "short_list", "nearest")


def bad_inputs(good: list[bytes], number: int) -> Iterator[bytes]:
    """Bytes that are no photo, photos that are broken, and odd pictures."""
    rng = np.random.default_rng(SEED)
    kinds = ("noise", "cut", "flipped", "spliced", "odd", "header")
    for count in range(number):
        kind, photo = kinds[count % len(kinds)], good[int(rng.integers(len(good)))]
        if kind == "noise":
            yield rng.bytes(int(rng.integers(0, 4000)))
        elif kind == "cut":
            yield photo[: int(rng.integers(0, len(photo)))]
        elif kind == "header":
            yield photo[: int(rng.integers(2, 40))] + rng.bytes(200)
        elif kind == "odd":
            yield _odd(rng)
        else:
            broken = bytearray(photo)
            for place in rng.integers(0, len(broken) if kind == "spliced" else 700, 30):
                broken[place % len(broken)] = int(rng.integers(256))
            yield bytes(broken)


def _odd(rng: np.random.Generator) -> bytes:
    """A picture that decodes and is hardly a photo: one pixel, one line, gray, with holes, of a palette."""
    shape = (int(rng.choice([1, 2, 3, 400])), int(rng.choice([1, 2, 5, 300])))
    mode, kind = [("RGB", "PNG"), ("L", "PNG"), ("RGBA", "PNG"), ("P", "GIF"), ("CMYK", "JPEG"), ("L", "BMP")][
        int(rng.integers(6))
    ]
    picture = Image.fromarray(rng.integers(0, 256, (*shape, 3), dtype=np.uint8)).convert(mode)
    written = io.BytesIO()
    picture.save(written, kind)
    return written.getvalue()


def damaged(data: Any, rng: np.random.Generator) -> Any:
    """The data of a guide with one value of some depth taken away or exchanged."""
    copy = json.loads(json.dumps(data))
    at: Any = copy
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[int(rng.integers(len(keys)))]
        below = at[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.4:
            at[key] = [None, "x", -1, [], {}][int(rng.integers(5))]
            return copy
        at = below


def bad_guides(folder: Path, photo: bytes, chromium: Any) -> dict[str, int]:
    """Guides whose data are damaged at one place: the page must answer, or say a sentence."""
    data, rng = json.loads((folder / "guide.json").read_text(encoding="utf-8")), np.random.default_rng(SEED)
    outcome = {"answered": 0, "told": 0, "silent": 0}
    with served(folder) as address:
        for _ in range(BAD_GUIDES):
            context, text = chromium.new_context(service_workers="block"), json.dumps(damaged(data, rng))
            context.route("**/guide.json", partial(_fulfill, text))
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector("html[data-ready=yes], #problem:not([hidden])")
            if page.is_visible("#problem"):
                outcome["told"] += 1
            else:
                reply = asked(page, [photo])[0]
                outcome["answered" if "answer" in reply else "told" if reply.get("error") else "silent"] += 1
            context.close()
    return outcome


def _fulfill(text: str, route: Any) -> None:
    route.fulfill(body=text)


def small_guide(folder: Path) -> list[bytes]:
    """Writes a guide of a small network, and returns some good photos."""
    root = real_data(MODELS["snakes"][0])
    assert root is not None
    fit("folder", root, "centroid", folder / "small", settings={"size": 32})
    export_guide(folder / "small", folder / "small-guide", pictures=60)
    return [path.read_bytes() for path in sorted((root / "test").rglob("*.jpg"))[:40]]


def bad_photos(folder: Path, good: list[bytes], chromium: Any) -> dict[str, Any]:
    """Thousands of bad inputs to one page, and whether it answers afterwards."""
    outcome = {"answered": 0, "told": 0, "silent": 0}
    with served(folder) as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        inputs = list(bad_inputs(good, BAD_INPUTS))
        for start in range(0, len(inputs), AT_ONCE):
            for reply in asked(page, inputs[start : start + AT_ONCE]):
                outcome["answered" if "answer" in reply else "told" if reply.get("error") else "silent"] += 1
        alive = "answer" in asked(page, [good[0]])[0]
        page.context.close()
    return {"photos": outcome, "alive": alive}


def done(part: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A part of the study: as an interrupted run left it, or made now and kept."""
    kept = cache_root() / "studies" / f"field_guide-{part}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_json(kept, make())
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    print(part, json.dumps(found), flush=True)
    return found


def run() -> dict[str, Any] | None:
    """All releases, then the bad inputs."""
    if any(real_data(place) is None for place, _ in MODELS.values()):
        return None
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        releases = {one: done(one, partial(one_release, one, folder, chromium)) for one in MODELS}
        good = small_guide(folder)
        guides = done("guides", lambda: bad_guides(folder / "small-guide", good[0], chromium))
        bad = {**done("bad", lambda: bad_photos(folder / "small-guide", good, chromium)), "guides": guides}
    total = sum(one["photos"] for one in releases.values())
    return {
        "question": "does a field guide in Chromium answer as identify does?",
        "photos": total,
        "same": {key: sum(one["same"][key] for one in releases.values()) for key in SAME},
        "within_0_01": sum(one["within_0_01"] for one in releases.values()),
        "releases": releases,
        "bad_inputs": bad,
    }
