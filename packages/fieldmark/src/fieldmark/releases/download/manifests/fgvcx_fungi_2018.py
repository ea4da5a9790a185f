"""FGVCx Fungi 2018, as the README of `visipedia/fgvcx_fungi_comp` gives it: addresses and MD5 sums are from there.

    ROOT/train.json, val.json, test.json
    ROOT/images/<taxon id>_<name>/*.JPG     train and val
    ROOT/test/*.JPG

The host of the photos has answered 403 since the end of 2024 (issues 6 and 7 of that repository), and the host before
it is gone. Copies that circulate are welcome here: their MD5 sums tell whether they are the real files.
"""

from __future__ import annotations

from fieldmark.releases.download.manifest import Manifest, ReleaseFile

HOST = "https://labs.gbif.org/fgvcx/2018"
REPOSITORY = "https://raw.githubusercontent.com/visipedia/fgvcx_fungi_comp/master/data"

FGVCX_FUNGI_2018 = Manifest(
    name="fgvcx-fungi-2018",
    by_hand=(
        "The competition page https://www.kaggle.com/c/fungi-challenge-fgvc-2018 and the issues of "
        "https://github.com/visipedia/fgvcx_fungi_comp tell where copies are; a copy counts if its MD5 sum is right."
    ),
    files=(
        ReleaseFile(
            name="train_val_annotations.tgz",
            mirrors=(f"{HOST}/train_val_annotations.tgz",),
            about=2_900_000,
            md5="c3c0f1b8a8d0b60619c43d9c89bdbc7e",
            unpack="tar.gz",
            tags=("annotations", "train", "val"),
            creates=("train.json",),
        ),
        ReleaseFile(
            name="test_information.tgz",
            mirrors=(f"{REPOSITORY}/test_information.tgz",),
            about=90_000,
            md5="8c4bc9c9a0e3d6f1c1fd24ee4141c86f",
            unpack="tar.gz",
            tags=("annotations", "test"),
            creates=("test.json",),
        ),
        ReleaseFile(
            name="fungi_train_val.tgz",
            mirrors=(f"{HOST}/fungi_train_val.tgz",),
            about=13_000_000_000,
            md5="df2b2980835668ed1d9a0e286e4bdadd",
            unpack="tar.gz",
            tags=("photos", "train", "val"),
            creates=("images",),
        ),
        ReleaseFile(
            name="fungi_test.tgz",
            mirrors=(f"{HOST}/fungi_test.tgz",),
            about=1_300_000_000,
            md5="949fc7266f7c6574e4ce359cf2571c85",
            unpack="tar.gz",
            tags=("photos", "test"),
            creates=("test",),
        ),
    ),
)
