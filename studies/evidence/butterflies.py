"""Masks of real butterflies: drawn without training, and chosen on other species than those they are tested on.

The Leeds butterflies: species 001 to 003 (236 photos) choose every setting, species 004 and 005 (178 photos) are the
test, answered once. Within the first three, settings are chosen on two species and scored on the third, in turn
(leave one species out); the setting that is best on all three is then taken to the test. Families: an ellipse in the
middle, GrabCut from a box, what stands out (U²-Netp) in the photo and its mirror image, the same with its boundary
moved by GrabCut, MobileSAM shown what stands out, the mean of both (`blend`), that refined by GrabCut, a U-Net that has
learned from other species (`butterflies_unet`), and its mean with what stands out, also refined. `cutout` multiplies
what stands out by how likely each place is the organism, which a ridge regression on maps of EfficientNet-Lite0 has
learned from the masks of all three species (of the other two, for photos of the three); it shows MobileSAM the product
and takes the mean, refined by GrabCut close to the edge. It was chosen and tested on every second photo of each part
(118 and 89), and each part of it on 61 of the 118: what SAM is shown, its own estimate as the choice among its masks,
how far edges move. Where saliency fails there, it takes the flower with the butterfly, or misses part of a wing.
The ten other families had answered the test before `cutout` was made. On the same 89 photos `blend` has 92.7
(`cutout`, refined, against it: -0.5 [-2.5, +1.5]), refined 93.3 (-1.2 [-3.3, +0.9]), mirrored saliency refined 93.4
(-1.3 [-3.2, +0.6]). Pictures seen after the answer show why nothing is gained there: the map, learned from three
species of high contrast, misses parts of the brown wings of 004, which saliency alone covers. IoU is the mean over
photos; intervals leave out one photo at a time, differences to plain saliency are paired. Another draw of species
would vary more than the intervals say: there are two.

Networks look at each photo once; what they saw is kept (`~/.cache/fieldmark/evidence/butterflies`), so that a study
that was stopped goes on. A family whose looks are not complete is left out and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from fieldmark.features.saliency import SMALL, Saliency
from fieldmark.features.segment_anything import SegmentAnything
from fieldmark.methods.cutout import ORGANISM, REACH, SHOWN, Cutout, CutoutTools, mean_of
from fieldmark.methods.ellipse import SHARES, ellipse
from fieldmark.methods.grabcut import MARGINS, PERHAPS, PERHAPS_NOT, SURELY, SURELY_NOT, along_edges, refined
from fieldmark.methods.mask_drawings import overlap
from fieldmark.methods.organism_maps import moments_of, sum_of
from fieldmark.methods.salient_masks import HARDLY, SURE, enlarged, spread
from fieldmark.methods.sam import PROMPTS, STANDS_OUT, prompt_of
from fieldmark.metrics.classification import mean_without_each_unit
from fieldmark.stats.comparison import compare
from fieldmark.stats.intervals import interval, pseudo_values
from studies.evidence.butterflies_unet import SIZES_PX, kind_of, look_by_unets, unet_shares
from studies.evidence.results import read_result, real_data

LEARNED, TESTED = ("001", "002", "003"), ("004", "005")
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
WEIGHTS = (0.25, 0.5, 0.75)
ROUNDS = 3
# What U-Nets are tested by where networks that leave a species out are not there to choose.
UNCHOSEN: dict[str, tuple[Any, ...]] = {
    "unet": (SIZES_PX[0], 0.5),
    "unet and saliency": (SIZES_PX[0], 0.5, 0.5),
}
# Looks are kept as whole numbers: shares in 255 steps, logits of SAM in steps of 1/8.
BYTE, LOGIT_STEP = 255, 8
Values = NDArray[np.float32]
Mask = NDArray[np.bool_]
Setting = tuple[Any, ...]
Scores = tuple[list[Setting], NDArray[np.float64]]


def run(limit_s: float = 3600.0) -> dict[str, Any] | None:
    """Looks at all photos, scores every setting of every family, chooses, and tests."""
    data = real_data("butterflies_leeds")
    if data is None:
        return None
    photos = [path for path in sorted((data / "images").glob("*.jpg")) if path.stem[:3] in (*LEARNED, *TESTED)]
    folder = Path.home() / ".cache/fieldmark/evidence/butterflies"
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + limit_s
    tested = [path for path in photos if path.stem[:3] in TESTED]
    found: dict[str, Scores | None] = {}
    look_at(photos, folder, "saliency", saliency_looks, until)
    look_at(photos, folder, "sam", sam_looks, until)
    look_by_unets(data, photos, folder, LEARNED, until)
    shown = [*[path for path in photos if path.stem[:3] in LEARNED][::2], *tested[::2]]
    look_by_cutouts(photos, shown, folder, until)
    unets = tuple(kind_of(size_px) for size_px in SIZES_PX)
    for kinds, families in (
        (("saliency",), families_of_saliency()),
        (("sam",), families_of_sam()),
        (unets, families_of_unet()),
    ):
        complete = _looked_at(photos, folder, kinds)
        for name, settings in families.items():
            found[name] = score_family(folder, photos, name, settings, until) if complete else None
    for name, settings in families_of_cutout().items():
        complete = _looked_at(shown, folder, ("cutout",))
        scores = score_family(folder, shown, name, settings, until) if complete else None
        found[name] = _of_some(photos, shown, scores)
    if found["unet"] is None and _looked_at(tested, folder, unets):
        for name, setting in UNCHOSEN.items():
            found[name] = _of_some(photos, tested, score_family(folder, tested, name, [setting], until))
    done = {name: scores for name, scores in found.items() if scores is not None}
    if "saliency" not in done:
        print("stopped before the photos were looked at; run it again to go on")
        return None
    species = np.array([path.stem[:3] for path in photos])
    before = (read_result("butterflies") or {"families": {}})["families"]
    families = before | {name: _summary(scores, species, done["saliency"]) for name, scores in done.items()}
    return {
        "simulated": False,
        "about": " ".join(str(__doc__).split("\n\n")[1].split()),
        "photos": {name: int((species == name).sum()) for name in (*LEARNED, *TESTED)},
        "left_out": [name for name in found if name not in families],
        "families": {name: families[name] for name in found if name in families},
    }


def _looked_at(photos: Iterable[Path], folder: Path, kinds: Iterable[str]) -> bool:
    return all((folder / f"{path.stem}.{kind}.npz").exists() for path in photos for kind in kinds)


def _of_some(photos: list[Path], some: list[Path], scores: Scores | None) -> Scores | None:
    """Scores of some photos as those of all photos, with none for the others."""
    if scores is None:
        return None
    settings, own = scores
    table = np.full((len(photos), len(settings)), np.nan)
    table[[photos.index(path) for path in some]] = own
    return settings, table


def look_at(
    photos: Iterable[Path], folder: Path, kind: str, looker: Callable[[], Callable[..., dict[str, Any]]], until: float
) -> None:
    """Looks at photos that were not looked at yet, until the time is up."""
    waiting = [path for path in photos if not (folder / f"{path.stem}.{kind}.npz").exists()]
    if not waiting or time.monotonic() > until:
        return
    look = looker()
    for path in waiting:
        if time.monotonic() > until:
            print(f"{kind}: time is up", flush=True)
            return
        with Image.open(path) as photo:
            found = look(photo.convert("RGB"), folder / f"{path.stem}.saliency.npz")
        partial = folder / f"{path.stem}.{kind}.partial.npz"
        np.savez_compressed(partial, **found)
        partial.rename(folder / f"{path.stem}.{kind}.npz")


def saliency_looks() -> Callable[..., dict[str, Any]]:
    """Looks for what stands out in a photo and its mirror image."""
    saliency = Saliency()

    def look(photo: Image.Image, _: Path) -> dict[str, Any]:
        maps = (saliency.map(photo), saliency.map(ImageOps.mirror(photo))[:, ::-1])
        plain, mirrored = (np.round(values * BYTE).astype(np.uint8) for values in maps)
        return {"plain": plain, "mirrored": mirrored}

    return look


def sam_looks() -> Callable[..., dict[str, Any]]:
    """Looks by MobileSAM, shown each prompt."""
    network = SegmentAnything()

    def look(photo: Image.Image, seen: Path) -> dict[str, Any]:
        values, answers = salient(seen, mirrored=True), network.look(photo)
        found = {}
        for prompt in PROMPTS:
            offered = answers.draw(*prompt_of(prompt, values))
            found[prompt] = np.stack([np.clip(one.logits * LOGIT_STEP, -127, 127) for one in offered]).astype(np.int8)
        return found

    return look


def look_by_cutouts(photos: list[Path], shown: list[Path], folder: Path, until: float) -> None:
    """Looks as `cutout` does: photos of a learned species by what the masks of the other two have taught."""
    if _looked_at(shown, folder, ("cutout",)) or time.monotonic() > until:
        return
    method = Cutout(saliency=SMALL)
    tools = method.start({})
    moments = {}
    for species in LEARNED:
        mine = [path for path in photos if path.stem[:3] == species]
        moments[species] = sum_of(moments_of(tools.maps.look(seen), true) for seen, true in map(_opened, mine))
    for held in (*LEARNED, ""):
        arrays = {ORGANISM: sum_of(own for species, own in moments.items() if species != held).weights()}
        mine = [path for path in shown if (path.stem[:3] == held if held else path.stem[:3] in TESTED)]
        look_at(mine, folder, "cutout", partial(cutout_looks, method, tools, arrays), until)


def cutout_looks(method: Cutout, tools: CutoutTools, arrays: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """Looks for where the organism is, and by MobileSAM shown that."""

    def look(photo: Image.Image, _: Path) -> dict[str, Any]:
        place, outlined = method.looks(tools, arrays, photo, SHOWN)
        logits = {prompt: np.clip(one * LOGIT_STEP, -127, 127).astype(np.int8) for prompt, one in outlined.items()}
        return {"place": np.round(place * BYTE).astype(np.uint8), **logits}

    return look


def _opened(path: Path) -> tuple[Image.Image, Mask]:
    """A photo and its true mask."""
    with Image.open(path) as photo, Image.open(path.parents[1] / "masks" / f"{path.stem}_seg0.png") as mask:
        return photo.convert("RGB"), np.asarray(mask.convert("L")) > 127


def salient(path: Path, *, mirrored: bool) -> Values:
    """How much each place stands out, from 0 to 1, as it was kept."""
    with np.load(path) as kept:
        values = kept["plain"].astype(np.float32)
        return spread(values + kept["mirrored"] if mirrored else values)


def families_of_saliency() -> dict[str, list[Setting]]:
    """The settings of each family that needs no more than a look for what stands out."""
    return {
        "ellipse": [(width, height) for width in SHARES for height in SHARES],
        "saliency": [(limit,) for limit in THRESHOLDS],
        "saliency, mirrored": [(limit,) for limit in THRESHOLDS],
        "saliency, mirrored, refined": [(limit,) for limit in (0.5, 0.6, 0.7)],
        "grabcut": [(margin,) for margin in MARGINS],
    }


def families_of_sam() -> dict[str, list[Setting]]:
    """The settings of each family that needs MobileSAM."""
    shown = list(PROMPTS)[1:]
    return {
        "sam": [(prompt,) for prompt in PROMPTS],
        "blend": [(prompt, weight, limit) for prompt in shown for weight in WEIGHTS for limit in THRESHOLDS],
        "blend, refined": [
            (prompt, 0.5, limit) for prompt in ("saliency-box", "saliency") for limit in (0.4, 0.5, 0.6)
        ],
    }


def families_of_unet() -> dict[str, list[Setting]]:
    """The settings of each family that needs U-Nets."""
    mixed = [(size_px, 0.5, limit) for size_px in SIZES_PX for limit in (0.4, 0.5, 0.6)]
    return {
        "unet": [(size_px, limit) for size_px in SIZES_PX for limit in THRESHOLDS],
        "unet and saliency": [
            (size_px, weight, limit) for size_px in SIZES_PX for weight in WEIGHTS for limit in THRESHOLDS
        ],
        "unet and saliency, refined": mixed,
    }


def families_of_cutout() -> dict[str, list[Setting]]:
    """The settings of `cutout`: what MobileSAM is shown, share of the map, threshold, how far edges move."""
    return {
        "cutout": [(prompt, share, limit) for prompt in SHOWN for share in WEIGHTS for limit in (0.2, 0.3, 0.4, 0.5)],
        "cutout, refined": [("saliency-box", share, limit, REACH) for share in (0.5, 0.75) for limit in (0.2, 0.3)],
    }


def score_family(folder: Path, photos: list[Path], name: str, settings: list[Setting], until: float) -> Scores | None:
    """The IoU of each photo (rows) by each setting (columns), kept photo by photo; None where the time was up."""
    kept = folder / f"scores-{name.replace(', ', '-')}-{crc32(repr(settings).encode()):08x}.npz"
    done: dict[str, NDArray[np.float64]] = {}
    if kept.exists():
        with np.load(kept) as file:
            done = {stem: file[stem] for stem in file.files}
    for path in photos:
        if path.stem in done:
            continue
        if time.monotonic() > until or not (folder / f"{path.stem}.saliency.npz").exists():
            break
        photo, true = _opened(path)
        masks = drawn(name, settings, photo, folder / path.stem)
        done[path.stem] = np.array([overlap(one, true) for one in masks])
    np.savez_compressed(kept, **done)  # type: ignore[arg-type]
    if len(done) < len(photos):
        return None
    return settings, np.stack([done[path.stem] for path in photos])


def drawn(name: str, settings: list[Setting], photo: Image.Image, looks: Path) -> list[Mask]:
    """The mask of a photo by each setting of a family."""
    shape = (photo.height, photo.width)
    if name == "ellipse":
        return [ellipse(shape, *setting) for setting in settings]
    if name == "grabcut":
        return [_cut(photo, *setting) for setting in settings]
    if name.startswith("cutout"):
        return [_cut_out(photo, looks, *setting) for setting in settings]
    values = enlarged(salient(looks.with_name(f"{looks.name}.saliency.npz"), mirrored=name != "saliency"), photo.size)
    if name.startswith("saliency"):
        return [_cut_or_refined(name, photo, values, limit) for (limit,) in settings]
    if name.startswith("unet"):
        shares = {size_px: enlarged(unet_shares(looks, size_px), photo.size) for size_px in SIZES_PX}
        if name == "unet":
            return [shares[size_px] >= limit for size_px, limit in settings]
        return [
            _cut_or_refined(name, photo, weight * values + (1 - weight) * shares[size_px], limit)
            for size_px, weight, limit in settings
        ]
    with np.load(looks.with_name(f"{looks.name}.sam.npz")) as kept:
        logits = {prompt: kept[prompt].astype(np.float32) / LOGIT_STEP for prompt in PROMPTS}
    stands_out = values >= STANDS_OUT
    best = {prompt: _agreeing(prompt, offered, stands_out) for prompt, offered in logits.items()}
    if name == "sam":
        return [best[prompt] > 0 for (prompt,) in settings]
    masks = []
    for prompt, weight, limit in settings:
        mixed = (weight * values + (1 - weight) / (1 + np.exp(-best[prompt]))).astype(np.float32)
        masks.append(_cut_or_refined(name, photo, mixed, limit))
    return masks


def _agreeing(prompt: str, offered: Values, stands_out: Mask) -> Values:
    """The offered mask that the method draws, as logits."""
    if prompt == "center":
        return np.asarray(offered[0])
    return np.asarray(max(offered, key=lambda one: overlap(one > 0, stands_out)))


def _cut_out(photo: Image.Image, looks: Path, prompt: str, share: float, limit: float, reach: float = 0) -> Mask:
    with np.load(looks.with_name(f"{looks.name}.cutout.npz")) as kept:
        place, logits = kept["place"].astype(np.float32) / BYTE, kept[prompt].astype(np.float32) / LOGIT_STEP
    mask = mean_of(place, logits, share, photo.size) >= limit
    return along_edges(photo, mask, reach) if reach else mask


def _cut(photo: Image.Image, margin: float) -> Mask:
    left, top = max(1, round(margin * photo.width)), max(1, round(margin * photo.height))
    start = np.full((photo.height, photo.width), SURELY_NOT, dtype=np.uint8)
    start[top : photo.height - top, left : photo.width - left] = PERHAPS
    return refined(np.asarray(photo)[:, :, ::-1].copy(), start, rounds=5)


def _cut_or_refined(name: str, photo: Image.Image, values: Values, limit: float) -> Mask:
    return _refine(photo, values, limit) if "refined" in name else values >= limit


def _refine(photo: Image.Image, values: Values, limit: float) -> Mask:
    start = np.where(values >= limit, PERHAPS, PERHAPS_NOT).astype(np.uint8)
    start[values >= SURE], start[values < HARDLY] = SURELY, SURELY_NOT
    return refined(np.asarray(photo)[:, :, ::-1].copy(), start, rounds=ROUNDS)


def _summary(found: Scores, species: NDArray[np.str_], plain: Scores) -> dict[str, Any]:
    settings, table = found
    left_out = {}
    answered = ~np.isnan(table[:, 0])
    chose = bool(answered[np.isin(species, LEARNED)].any())  # else there is one setting, which nobody chose
    for held in LEARNED if chose else ():
        chosen = _best(table, species, [name for name in LEARNED if name != held])
        left_out[held] = round(float(np.nanmean(table[species == held, chosen])), 4)
    chosen, tested = _best(table, species, LEARNED) if chose else 0, np.isin(species, TESTED) & answered
    reference = plain[1][tested, _best(plain[1], species, LEARNED)]
    own = table[tested, chosen]
    value, each = _measured(own)
    bounds = interval(value, each)
    apart = compare(np.array([value, float(reference.mean())]), np.stack([each, _measured(reference)[1]])).differences[
        0
    ]
    return {
        "settings_tried": len(settings),
        "tested": int(tested.sum()),
        "setting": list(settings[chosen]),
        "left_out_species": left_out | {"mean": round(float(np.mean(list(left_out.values()))), 4)} if chose else None,
        "test": [round(number, 4) for number in (value, bounds.low or 0.0, bounds.high or 1.0)],
        "test_by_species": {name: round(float(np.nanmean(table[species == name, chosen])), 4) for name in TESTED},
        "against_saliency": [
            None if number is None else round(number, 4)
            for number in (apart.value, apart.interval.low, apart.interval.high)
        ],
        "below_half": int((own < 0.5).sum()),
    }


def _best(table: NDArray[np.float64], species: NDArray[np.str_], names: Iterable[str]) -> int:
    """The setting with the highest mean over species, each with the same weight."""
    return int(np.mean([np.nanmean(table[species == name], axis=0) for name in names], axis=0).argmax())


def _measured(values: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    value = float(values.mean())
    units = np.arange(len(values), dtype=np.int32)
    return value, pseudo_values(value, mean_without_each_unit(values, units))
