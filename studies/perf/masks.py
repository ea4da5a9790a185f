"""Run lengths of masks beside pycocotools: masks as large as photos, encoded and decoded, in one run.

Ours count row by row, as FungiTastic writes them; pycocotools counts column by column, in C, on arrays in its order.
Each is given the array in the order it wants. The masks are blobs such as a fruiting body has, and a noisy one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from fieldmark.masks.coco_runlengths import compress, decompress, runs_by_columns
from fieldmark.masks.runlengths import decode_runs, encode_runs
from studies.perf.timing import fastest

SIZES = ((300, 400), (1500, 2000), (3000, 4000))
SEED = 0


def run() -> dict[str, Any] | None:
    """Seconds of both for each size, and the ratio ours / theirs."""
    try:
        from pycocotools import mask as peer
    except ImportError:
        print("skipped: pycocotools is not installed")
        return None
    rng = np.random.default_rng(SEED)
    found = {}
    for height, width in SIZES:
        for kind, mask in (("blob", _blob(rng, height, width)), ("noisy", _noisy(rng, height, width))):
            theirs = np.asfortranarray(mask.astype(np.uint8))
            runs, rle = encode_runs(mask), peer.encode(theirs)
            text = rle["counts"].decode()
            pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
                "encode": (_call(encode_runs, mask), _call(peer.encode, theirs)),
                "decode": (_call(decode_runs, runs, height, width), _call(peer.decode, rle)),
                "encode to text": (_call(_to_text, mask), _call(peer.encode, theirs)),
                "decode from text": (_call(_from_text, text, height, width), _call(peer.decode, rle)),
            }
            for what, (ours, others) in pairs.items():
                times = fastest({"fieldmark": ours, "pycocotools": others})
                found[f"{what}, {kind} {width} x {height}, {len(runs)} runs"] = {
                    "fieldmark_ms": round(1000 * times["fieldmark"], 3),
                    "pycocotools_ms": round(1000 * times["pycocotools"], 3),
                    "ratio": round(times["fieldmark"] / times["pycocotools"], 2),
                }
    return {"cases": found}


def _call(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _to_text(mask: NDArray[np.bool_]) -> str:
    return compress(runs_by_columns(mask))


def _from_text(text: str, height: int, width: int) -> NDArray[np.bool_]:
    return decode_runs(decompress(text), width, height).T


def _blob(rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
    """A smooth blob of about a quarter of the photo."""
    coarse = ndimage.gaussian_filter(rng.random((60, 80)), 6)
    large = ndimage.zoom(coarse, (height / 60, width / 80), order=1)
    return np.asarray(large > np.quantile(large, 0.75))


def _noisy(rng: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
    """A blob with a ragged edge and holes."""
    return np.asarray(_blob(rng, height, width) ^ (rng.random((height, width)) < 0.01))
