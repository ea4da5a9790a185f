"""Ten thousand bad inputs to a field guide in Chromium: each must end in an answer or in a sentence.

Noise, cut and damaged photos and odd pictures are asked of one page, which must answer a good photo after each batch;
guides whose data are damaged at one place are opened each by itself. Finished batches are kept in the cache, so that an
interrupted run goes on.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fieldmark.fitting import fit
from fieldmark.identification.field_guide.export import export_guide
from studies.evidence.field_guide import MODELS, SEED, asked, browser, done, served
from studies.evidence.results import real_data

BAD_INPUTS, BAD_GUIDES, BATCH, AT_ONCE = 9_900, 100, 300, 50
OUTCOMES = ("answered", "told", "silent")


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
    outcome = dict.fromkeys(OUTCOMES, 0)
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
                outcome[outcome_of(asked(page, [photo])[0])] += 1
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


def outcome_of(reply: dict[str, Any]) -> str:
    """Whether a reply is an answer, a sentence, or neither."""
    return "answered" if "answer" in reply else "told" if reply.get("error") else "silent"


def bad_photos(folder: Path, good: list[bytes], chromium: Any) -> dict[str, Any]:
    """Thousands of bad inputs to one page, and whether it answers after each batch."""
    inputs = list(bad_inputs(good, BAD_INPUTS))
    with served(folder) as address:
        page = chromium.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        batches = [
            done(f"bad-{start}", partial(_batch, page, inputs[start : start + BATCH], good[0]))
            for start in range(0, len(inputs), BATCH)
        ]
        page.context.close()
    counts = {one: sum(batch[one] for batch in batches) for one in OUTCOMES}
    return {"photos": counts, "alive": all(batch["alive"] for batch in batches)}


def _batch(page: Any, inputs: list[bytes], good: bytes) -> dict[str, Any]:
    outcome = dict.fromkeys(OUTCOMES, 0)
    for start in range(0, len(inputs), AT_ONCE):
        for reply in asked(page, inputs[start : start + AT_ONCE]):
            outcome[outcome_of(reply)] += 1
    return {**outcome, "alive": "answer" in asked(page, [good])[0]}


def run() -> dict[str, Any] | None:
    """Bad inputs, then bad guides."""
    if real_data(MODELS["snakes"][0]) is None:
        return None
    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        good = small_guide(folder)
        bad = bad_photos(folder / "small-guide", good, chromium)
        guides = done("guides", lambda: bad_guides(folder / "small-guide", good[0], chromium))
    return {"question": "do bad inputs leave the page alive with a sentence?", **bad, "guides": guides}
