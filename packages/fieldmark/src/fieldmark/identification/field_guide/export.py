"""A fitted model written as a field guide: a folder of static files that any web server can hand out.

```
GUIDE/
  index.html, about.html, guide.css, pages.css, icon.svg, manifest.webmanifest
  src/*.js              what the pages do, as plain modules
  sw.js                 keeps everything on the device, so that it works without a network
  runtime/              onnxruntime-web
  network.onnx          the model as one graph (`exporting.answering_network`)
  guide.json, arrays.bin  what it keeps to answer people (`contents`)
  kept.bin, pictures.bin  training photos: features in 8 bits, and small pictures of some
  about.json            what it knows, what it scored, on what it was trained, what smaller weights cost
  files.json            every file with its digest and size
  *.gz                  the same files, compressed before they are asked for
```
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from PIL import Image

from fieldmark.benchmarks.titles import metric_is_share, metric_title
from fieldmark.errors import MisuseError, did_you_mean
from fieldmark.exporting.answering_network import answering_network
from fieldmark.exporting.weight_precision import PRECISIONS, Precision, with_precision
from fieldmark.features.photos import PhotoError, decode_photo
from fieldmark.identification.field_guide.contents import ArrayFile, guide_contents, quantized_rows
from fieldmark.identification.field_guide.npm_packages import APP, RUNTIME, NpmError, pinned, runtime_files
from fieldmark.identification.field_guide.weight_losses import ValLosses, losses_on_val
from fieldmark.models import Model, load_model
from fieldmark.models.guides.dangers import never_because_of_a_model
from fieldmark.models.guides.living_groups import groups_of
from fieldmark.models.guides.novelty import evenly
from fieldmark.storage.file_cache import cache_root
from fieldmark.storage.files import appearing_folder
from fieldmark.version import __version__

# Where shared looks of pages lie.
LOOKS: Final = Path(__file__).parents[2] / "web" / "static"
# What the app needs of its own folder; the rest is for those who develop it.
OWN_FILES: Final = ("index.html", "about.html", "guide.css", "icon.svg", "src/*.js")
VERSION_LINE: Final = 'const VERSION = "development";'
PICTURE_PX, PICTURE_QUALITY = 96, 60
WORTH_COMPRESSING: Final = 0.95
# A first visit should not take longer than this on a phone.
MOST_FIRST_LOAD: Final = 12_000_000
# What the list of files and the service worker take at most.
SMALL_FILES: Final = 10_000
AUTO: Final = "auto"


@dataclass(frozen=True)
class GuideFile:
    """A file of a guide, compressed once."""

    content: bytes

    @cached_property
    def compressed(self) -> bytes | None:
        """The file as it is sent, None where compressing it gains too little."""
        small = gzip.compress(self.content, 9, mtime=0)
        return small if len(small) < WORTH_COMPRESSING * len(self.content) else None

    @property
    def sent_bytes(self) -> int:
        """How many bytes of it are sent."""
        return len(self.content if self.compressed is None else self.compressed)


@dataclass(frozen=True)
class WrittenGuide:
    """What was written.

    Args:
        folder: Where.
        labels: How many names it knows.
        precision: How weights are stored.
        first_load: How many bytes a first visit takes, files compressed.
        losses: What smaller weights cost on val.
        pictures: How many training photos it shows.
    """

    folder: Path
    labels: int
    precision: Precision
    first_load: int
    losses: ValLosses
    pictures: int

    @property
    def too_large(self) -> bool:
        """Whether first download: more than it should."""
        return self.first_load > MOST_FIRST_LOAD


def export_guide(
    model: str | Path,
    out: Path,
    *,
    weights: str = AUTO,
    title: str = "",
    pictures: int = 600,
    data: str | Path | None = None,
    overwrite: bool = False,
) -> WrittenGuide:
    """Writes a model as a field guide.

    Args:
        model: The folder of a model, or of the run that made it.
        out: The folder to write.
        weights: How weights are stored: single, half or 8-bit; auto takes half where a first visit then takes no more
            than `MOST_FIRST_LOAD`, else 8-bit.
        title: The title of the guide.
        pictures: How many training photos it holds as small pictures, spread evenly over the labels.
        data: Where the photos lie that the model was fitted to, if not where they lay then.
        overwrite: Whether an existing folder is replaced.

    Raises:
        MisuseError: When the model cannot be exported, or the runtime for browsers cannot be fetched.
    """
    if weights not in (AUTO, *PRECISIONS):
        raise MisuseError(f"Weights are not stored as {weights!r}. {did_you_mean(weights, (AUTO, *PRECISIONS))}")
    loaded = load_model(model)
    network = answering_network(loaded)
    arrays = ArrayFile()
    contents = guide_contents(loaded, network, arrays)
    try:
        runtime = runtime_files(cache_root() / "npm")
    except NpmError as error:
        raise MisuseError(str(error)) from error
    losses = losses_on_val(loaded, model, network, data)
    shown, packed = _pictures(loaded, pictures)
    contents["title"] = title or _title(loaded)
    contents["pictures"] = shown
    made = {
        **_app_files(contents["title"]),
        **{f"runtime/{name}": content for name, content in runtime.items()},
        "guide.json": _json(contents),
        "arrays.bin": arrays.bytes(),
        "pictures.bin": packed,
    }
    if loaded.guide is not None and len(loaded.guide.strangers.kept):
        made["kept.bin"] = quantized_rows(loaded.guide.strangers.kept).tobytes()
    files = {name: GuideFile(content) for name, content in made.items()}
    networks = {name: GuideFile(with_precision(network.graph, name).SerializeToString()) for name in PRECISIONS}
    sizes = {name: one.sent_bytes for name, one in networks.items()}
    precision = _chosen(weights, sum(one.sent_bytes for one in files.values()), sizes)
    about = {**_about(loaded), "weights": precision, "sizes": sizes, "losses": asdict(losses)}
    files |= {"network.onnx": networks[precision], "about.json": GuideFile(_json(about))}
    with appearing_folder(out, overwrite=overwrite) as folder:
        first_load = _write(folder, files)
    return WrittenGuide(out, len(loaded.labels), precision, first_load, losses, len(shown))


def _chosen(weights: str, others: int, sizes: Mapping[Precision, int]) -> Precision:
    """The precision that was asked for, or the one that keeps a first visit short."""
    if weights == AUTO:
        return "half" if others + sizes["half"] <= MOST_FIRST_LOAD - SMALL_FILES else "8-bit"
    return next(one for one in PRECISIONS if one == weights)


def _title(model: Model) -> str:
    group = max(groups := groups_of(model.labels, model.taxa), key=groups.count)
    return "Field guide" if group == "other" else f"Field guide to {group}"


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str).encode()


def _app_files(title: str) -> dict[str, bytes]:
    files = {
        str(path.relative_to(APP)): path.read_bytes() for pattern in OWN_FILES for path in sorted(APP.glob(pattern))
    }
    files["pages.css"] = (LOOKS / "pages.css").read_bytes()
    manifest = json.loads((APP / "manifest.webmanifest").read_text(encoding="utf-8"))
    files["manifest.webmanifest"] = _json({**manifest, "name": title, "short_name": title[:24]})
    return files


def _pictures(model: Model, most: int) -> tuple[list[list[int]], bytes]:
    """Small pictures of kept training photos, one after the other, and for each its row, where it begins and ends."""
    if model.guide is None or most <= 0:
        return [], b""
    photos, shown, packed = model.guide.photos, list[list[int]](), io.BytesIO()
    for row in evenly(photos.codes, most):
        file = photos.file(int(row))
        if file is None:
            continue
        try:
            small = decode_photo(file.read_bytes(), at_least_px=2 * PICTURE_PX)
        except (OSError, PhotoError):
            continue
        small.thumbnail((PICTURE_PX * 4 // 3, PICTURE_PX), Image.Resampling.BICUBIC)
        begin = packed.tell()
        small.save(packed, "WEBP", quality=PICTURE_QUALITY)
        shown.append([int(row), begin, packed.tell()])
    return shown, packed.getvalue()


def _about(model: Model) -> dict[str, Any]:
    """What a person should know before trusting it."""
    made, where = model.trained, model.trained["benchmark"]
    scores = {
        part: [
            {"title": metric_title(name, where), "share": metric_is_share(name, where), **one}
            for name, one in values.items()
        ]
        for part, values in made.get("scores", {}).items()
    }
    return {
        "model": model.name,
        "version": __version__,
        "labels": len(model.labels),
        "simulated": model.simulated,
        "benchmark": where,
        "parts": list(made.get("parts", ())),
        "seed": made.get("seed"),
        "license": model.license,
        "external_data": list(made.get("external_data") or ()),
        "never": list(never_because_of_a_model(groups_of(model.labels, model.taxa))),
        "scores": scores,
        "runtime": f"{RUNTIME} {pinned(RUNTIME).version} (MIT)",
    }


def _write(folder: Path, files: Mapping[str, GuideFile]) -> int:
    """Writes all files, compressed ones beside them, and returns how much a first visit takes."""
    digests = {name: hashlib.sha256(file.content).hexdigest() for name, file in sorted(files.items())}
    version = hashlib.sha256("".join(digests.values()).encode()).hexdigest()[:16]
    worker = (APP / "sw.js").read_text(encoding="utf-8")
    if worker.count(VERSION_LINE) != 1:
        raise ValueError("sw.js says its version once")
    listed = {name: {"bytes": len(files[name].content), "sha256": digest} for name, digest in digests.items()}
    whole = {
        **files,
        "sw.js": GuideFile(worker.replace(VERSION_LINE, f'const VERSION = "{version}";').encode()),
        "files.json": GuideFile(_json({"version": version, "files": listed})),
    }
    for name, file in whole.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        if file.compressed is not None:
            path.with_name(f"{path.name}.gz").write_bytes(file.compressed)
    return sum(file.sent_bytes for file in whole.values())
