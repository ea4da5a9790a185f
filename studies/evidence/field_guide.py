"""Whether a field guide in a browser answers as `fieldmark identify` does (real photos, real Chromium).

Four models on frozen features of EfficientNet-Lite0, one per release and each of another method; from the test part of
each, 75 photos drawn with a fixed seed are asked of the exported guide (single precision, one thread) and `identify`.
Nothing was set by looking at them. A guide carries no second network that tells fungi and snakes, so that `identify` is
asked under the same rule (`ask_groups=False`); how often danger notices differ from those of a plain `identify` is
counted as well. Beside it: what a first visit takes, what smaller weights cost on val, how long an
answer takes beside ONNX Runtime for Python (same graph, one thread, on whatever machine this runs). Finished parts are
kept in the cache, so that an interrupted run goes on.
"""

from __future__ import annotations

import base64
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

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.exporting.answering_network import answering_network
from fieldmark.exporting.weight_precision import PRECISIONS, with_precision
from fieldmark.fitting import fit
from fieldmark.identification import identify
from fieldmark.identification.field_guide.export import GuideFile, export_guide
from fieldmark.identification.field_guide.weight_losses import squares_of
from fieldmark.models import Model, load_model
from fieldmark.registry import require
from fieldmark.storage.file_cache import cache_root
from fieldmark.storage.files import write_json
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark.web.guide_server import guide_app
from studies.evidence.results import real_data

PHOTOS_EACH, SEED, THREADS, TIMED = 75, 0, (1, 2), 21
MODELS = {
    "birds": ("birds_cub_odd", "prototypes"),
    "fungi": ("fungi_genera", "lda"),
    "snakes": ("snakes_philippines", "linear"),
    "plants": ("plants_sheets_and_field/train/photo", "ridge"),
}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ASK = """async ([photos, threads]) => {
  window.asking ??= {};
  const worker = window.asking[threads] ??= new Worker(`src/worker.js?threads=${threads}`, { type: "module" });
  const replies = [];
  for (const text of photos) {
    const photo = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer;
    replies.push(await new Promise((resolve) => {
      worker.onmessage = (event) => resolve(event.data);
      worker.postMessage({ id: 1, question: { photos: [photo], known: {} } });
    }));
  }
  return replies;
}"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a guide that is handed out meanwhile."""
    uvicorn: Any = require("uvicorn", "Serving a guide")
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


def asked(page: Any, photos: list[bytes], threads: int = 1) -> list[dict[str, Any]]:
    """What the guide replies to photos, each a question of its own."""
    texts = [base64.b64encode(photo).decode() for photo in photos]
    replies: list[dict[str, Any]] = page.evaluate(ASK, [texts, threads])
    return replies


def by_threads(page: Any, photos: list[bytes]) -> dict[str, float]:
    """Median seconds of the network in Chromium by threads, photo by photo in turn; more need an isolated page."""
    assert page.evaluate("crossOriginIsolated")
    seconds: dict[int, list[float]] = {threads: [] for threads in THREADS}
    for number, photo in enumerate(photos):
        for threads in THREADS:
            took = asked(page, [photo], threads)[0]["network_milliseconds"] / 1000
            if number:  # the first starts the session
                seconds[threads].append(took)
    return {str(threads): round(float(np.median(own)), 4) for threads, own in seconds.items()}


def test_photos(model: Model, root: Path) -> list[Path]:
    """Some photos of the test part, drawn with a fixed seed."""
    declared = BENCHMARKS["folder"]
    opened = open_benchmark(declared, open_release(declared, root), seed=model.trained["seed"])
    assert opened.view.test is not None
    paths = opened.dataset.media_paths
    media = [ids[0] for ids in opened.view.test.items["media_ids"].to_list()]
    drawn = np.random.default_rng(SEED).permutation(len(media))[:PHOTOS_EACH]
    return [root / paths[media[number]] for number in sorted(drawn)]


def notice_level(answer: dict[str, Any]) -> int:
    """0 without a danger notice, 1 with one line, 2 with the whole notice."""
    return 0 if answer["danger"] is None else 2 - answer["danger"]["brief"]


def notices_beside(guide: list[int], plain: list[int]) -> dict[str, int]:
    """How the levels of a guide's notices compare with those of an `identify` that asks for groups."""
    pairs = list(zip(guide, plain, strict=True))
    return {
        "same": sum(one == other for one, other in pairs),
        "louder": sum(one > other for one, other in pairs),
        "quieter": sum(one < other for one, other in pairs),
        "silent": sum(one == 0 < other for one, other in pairs),
    }


def compared(said: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Where one answer is the same as that of `identify`."""
    first, other = said["names"][0], expected["names"][0]
    lists = [[one["label"] for one in (value["short_list"] or {"names": []})["names"]] for value in (said, expected)]
    claims = [(value["claim"] or {}).get("name") for value in (said, expected)]
    return {
        "name": first["label"] == other["label"],
        "difference": abs(first["probability"] - other["probability"]),
        "verdict": said["verdict"]["known"] == expected["verdict"]["known"],
        "danger": notice_level(said) == notice_level(expected),
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
    networks = {one: GuideFile(with_precision(graph, one).SerializeToString()).sent_bytes for one in PRECISIONS}
    sizes = {one: written.first_load - networks["single"] + networks[one] for one in PRECISIONS}
    photos = test_photos(model, root)
    with served(folder / f"{name}-guide") as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        asked(page, [photos[0].read_bytes()])  # starts the session
        replies = asked(page, [photo.read_bytes() for photo in photos])
        threads = by_threads(page, [photo.read_bytes() for photo in photos[:TIMED]])
        page.context.close()
    said = [one["answer"] for one in replies]
    rows = [
        compared(one, identify(path, model, ask_groups=False).to_json()) for one, path in zip(said, photos, strict=True)
    ]
    plain = [notice_level(identify(path, model).to_json()) for path in photos]
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
        "beside_plain_identify": notices_beside([notice_level(one) for one in said], plain),
        "within_0_01": sum(row["difference"] <= 0.01 for row in rows),
        "largest_difference": round(max(row["difference"] for row in rows), 6),
        "first_load_mb": {key: round(value / 1e6, 2) for key, value in sizes.items()},
        "val_observations": losses.observations,
        "val_learned_from": "val" in model.trained["parts"],
        "losses": {one.precision: {"right": one.right, "less": one.less, "same": one.same} for one in losses.losses},
        "median": {key: round(float(np.median(values)), 4) for key, values in medians.items()},
        "seconds_by_threads": threads,
    }


SAME = ("name", "verdict", "danger", "claim", "short_list", "nearest")


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
    """All releases."""
    if any(real_data(place) is None for place, _ in MODELS.values()):
        return None
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        releases = {one: done(one, partial(one_release, one, folder, chromium)) for one in MODELS}
    total = sum(one["photos"] for one in releases.values())
    return {
        "question": "does a field guide in Chromium answer as identify does?",
        "photos": total,
        "same": {key: sum(one["same"][key] for one in releases.values()) for key in SAME},
        "beside_plain_identify": {
            key: sum(one["beside_plain_identify"][key] for one in releases.values())
            for key in ("same", "louder", "quieter", "silent")
        },
        "within_0_01": sum(one["within_0_01"] for one in releases.values()),
        "releases": releases,
    }
