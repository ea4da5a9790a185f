"""Semi-iNat 2021, as the README of `cvl-umass/semi-inat-2021` gives it.

    ROOT/l_train/<class id>/*.jpg, val/<class id>/*.jpg, u_train/*.jpg, test/*.jpg
    ROOT/annotation_v2.json          the first version was withdrawn
    ROOT/labels/*                    what was hidden during the challenge, from `cvl-umass/ssl-evaluation`

* No checksum is published for any file; the rounded sizes are from the README. The labels are pinned to a commit.
* The README writes the addresses with http; the same host answers https, which others use.
"""

from __future__ import annotations

from fieldmark.releases.download.manifest import Manifest, ReleaseFile

HOST = "https://vis-www.cs.umass.edu/semi-inat-2021"
RELEASED_LABELS = (
    "https://raw.githubusercontent.com/cvl-umass/ssl-evaluation/472f904276532c4a28fb03b014aca0314726fe0d/data/semi_inat"
)
MEGABYTE = 10**6


def _photos(split: str, about: int, *tags: str) -> ReleaseFile:
    return ReleaseFile(
        name=f"{split}.tar.gz",
        mirrors=(f"{HOST}/{split}.tar.gz",),
        about=about,
        unpack="tar.gz",
        tags=("photos", *tags),
        creates=(split,),
    )


def _label(name: str) -> ReleaseFile:
    return ReleaseFile(name=name, mirrors=(f"{RELEASED_LABELS}/{name}",), into="labels", tags=("labels",))


SEMI_INAT_2021 = Manifest(
    name="semi-inat-2021",
    by_hand="The files are also at https://www.kaggle.com/c/semi-inat-2021 (a free account is needed).",
    files=(
        ReleaseFile(
            name="annotation_v2.json",
            mirrors=(f"{HOST}/annotation_v2.json",),
            about=31 * MEGABYTE,
            tags=("annotations",),
        ),
        _label("all_taxa_info.json"),
        _label("label2taxaid.json"),
        _label("l_train.txt"),
        _label("val.txt"),
        _label("test.txt"),
        _label("u_train_in.txt"),
        _label("u_train_out.txt"),
        _photos("l_train", 164 * MEGABYTE, "labeled", "train"),
        _photos("val", 67 * MEGABYTE, "labeled", "val"),
        _photos("test", 271 * MEGABYTE, "test"),
        _photos("u_train", 5_200 * MEGABYTE, "unlabeled"),
    ),
)
