"""FungiTastic, as its makers' download script (`dataset/download.py`) names the files.

    ROOT/metadata/FungiTastic[-Mini|-FewShot]/*.csv
    ROOT/FungiTastic[-Mini|-FewShot]/{train,val,test,dna-test}/{300p,500p,720p,fullsize}/*.JPG
    ROOT/masks, ROOT/climaticData, ROOT/captions, satellite images

* No checksum and no exact size is published for any file; the metadata were replaced at least once (December 2025).
  The rounded sizes are what users report.
* The server was reported to refuse `climatic.zip` (403) and to lack the full-size photos of Mini (404) in September
  2026; the addresses stay, because they are the published ones.
* There is no archive of captions: they come as files in the Kaggle copy, and as a column in the newer metadata. The
  name `captions.zip` is ours.
* The sizes offered differ: Mini has 720p and full size, the other two do not.
* What `masks.zip`, `climatic.zip` and the satellite archives hold inside is not documented, so several places count.
"""

from __future__ import annotations

from fieldmark.releases.download.manifest import Manifest, ReleaseFile

SERVER = "https://cmp.felk.cvut.cz/datagrid/FungiTastic/shared/download"
KAGGLE = "https://www.kaggle.com/datasets/picekl/fungitastic (a free account is needed; photos at 500p only)"

SUBSETS = {"full": "FungiTastic", "mini": "FungiTastic-Mini", "few-shot": "FungiTastic-FewShot"}
SIZES = {"full": ("300p", "500p"), "mini": ("300p", "500p", "720p", "fullsize"), "few-shot": ("300p", "500p")}
SPLITS = {
    "full": ("train", "val", "test", "dna-test"),
    "mini": ("train", "val", "test", "dna-test"),
    "few-shot": ("train", "val", "test"),
}
MEGABYTE = 10**6
REPORTED_SIZES = {
    "metadata.zip": 327_493_894,
    "FungiTastic-train-300p.zip": 9_600 * MEGABYTE,
    "FungiTastic-Mini-train-300p.zip": 975 * MEGABYTE,
    "FungiTastic-Mini-val-300p.zip": 228 * MEGABYTE,
    "FungiTastic-Mini-test-300p.zip": 280 * MEGABYTE,
    "masks.zip": 700 * MEGABYTE,
    "satellite_RGB.zip": 4_100 * MEGABYTE,
    "satellite_NIR.zip": 3_600 * MEGABYTE,
}


def _zip(name: str, *tags: str, creates: tuple[str, ...], into: str = ".") -> ReleaseFile:
    return ReleaseFile(
        name=name,
        mirrors=(f"{SERVER}/{name}",),
        about=REPORTED_SIZES.get(name),
        unpack="zip",
        into=into,
        tags=tags,
        creates=creates,
    )


FUNGITASTIC = Manifest(
    name="fungitastic",
    by_hand=f"The makers also publish the release at {KAGGLE}; unpack it into the root.",
    usual=("metadata", "masks", "photos,mini,300p"),
    files=(
        _zip("metadata.zip", "metadata", into="metadata", creates=("metadata/FungiTastic/FungiTastic-Train.csv",)),
        *(
            _zip(f"{folder}-{split}-{size}.zip", "photos", subset, split, size, creates=(f"{folder}/{split}/{size}",))
            for subset, folder in SUBSETS.items()
            for size in SIZES[subset]
            for split in SPLITS[subset]
        ),
        _zip(
            "masks.zip",
            "masks",
            creates=("masks/FungiTastic-Mini-TrainMasks.parquet", "FungiTastic-Mini-TrainMasks.parquet"),
        ),
        _zip("climatic.zip", "climate", creates=("climaticData/FungiTastic-Climatic-Timeseries.csv",)),
        _zip("satellite_RGB.zip", "satellite", creates=("satellite_RGB",)),
        _zip("satellite_NIR.zip", "satellite", creates=("satellite_NIR",)),
        ReleaseFile(
            name="captions.zip",
            unpack="zip",
            tags=("captions",),
            creates=("captions/train", "captions/val", "captions/test"),
            by_hand=(
                "No archive of captions is published: take the folder captions/ from "
                "https://www.kaggle.com/competitions/fungi-clef-2025/data (a free account is needed), "
                "or read the column `captions` of the newer metadata."
            ),
        ),
    ),
)
