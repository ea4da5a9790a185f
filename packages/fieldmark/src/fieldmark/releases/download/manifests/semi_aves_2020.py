"""Semi-Aves 2020, as the README of `cvl-umass/semi-inat-2020` gives it (the second version, since 2020-03-25).

    ROOT/anno_{l_train,val,test,u_train_in,u_train_out}.json
    ROOT/solution.csv
    ROOT/trainval_images/<class id>/*.jpg, u_train_in/*.jpg, u_train_out/*.jpg, test/*.jpg

* No checksum is published for any file; the rounded sizes are from the README. The solution is pinned to a commit.
* The archives lie in a shared drive: the README gives the number of each, its addresses for programs are derived from
  that number. The drive does not say what an archive is called; the names here are those under which they circulate.
* Whether the annotations unpack into a folder is not documented, so both places count.
"""

from __future__ import annotations

from fieldmark.releases.download.manifest import Manifest, ReleaseFile

REPOSITORY = "https://raw.githubusercontent.com/cvl-umass/semi-inat-2020/f280b63e3dff90dcdfd3ba46bddbaa89e827c5e8"
MEGABYTE = 10**6


def _drive(number: str) -> tuple[str, ...]:
    return (
        f"https://drive.usercontent.google.com/download?id={number}&export=download&confirm=t",
        f"https://drive.google.com/uc?export=download&id={number}",
    )


SEMI_AVES_2020 = Manifest(
    name="semi-aves-2020",
    by_hand=(
        "The links in https://github.com/cvl-umass/semi-inat-2020 open in a browser; the files are also at "
        "https://www.kaggle.com/c/semi-inat-2020 (a free account is needed)."
    ),
    files=(
        ReleaseFile(
            name="annotation.tar.gz",
            mirrors=_drive("1nX-ob0rk_WpylgiZyf7vxOrgJJXHraPi"),
            about=2 * MEGABYTE,
            unpack="tar.gz",
            tags=("annotations",),
            creates=("anno_l_train.json", "annotation/anno_l_train.json"),
        ),
        ReleaseFile(
            name="solution.csv",
            mirrors=(f"{REPOSITORY}/solution.csv",),
            tags=("labels", "test"),
        ),
        ReleaseFile(
            name="trainval_images.tar.gz",
            mirrors=_drive("1xsgOcEWKG9CszNNT_EXN3YB1OLPYNbf8"),
            about=533 * MEGABYTE,
            unpack="tar.gz",
            tags=("photos", "labeled", "train", "val"),
            creates=("trainval_images",),
            aliases=("l_train_val.tar.gz", "train_val.tar.gz", "trainval.tar.gz"),
        ),
        ReleaseFile(
            name="test.tar.gz",
            mirrors=_drive("1OVEA2lNJnYM5zxh3W_o_Q6K5lsNmJ9Hy"),
            about=722 * MEGABYTE,
            unpack="tar.gz",
            tags=("photos", "test"),
            creates=("test",),
            aliases=("test.tgz",),
        ),
        ReleaseFile(
            name="u_train_in.tar.gz",
            mirrors=_drive("1BiEkIp8yuqB5Vau_ZAFAhwp8CNoqVjRk"),
            about=2_300 * MEGABYTE,
            unpack="tar.gz",
            tags=("photos", "unlabeled", "in-class"),
            creates=("u_train_in",),
            aliases=("u_train_in.tgz",),
        ),
        ReleaseFile(
            name="u_train_out.tar.gz",
            mirrors=_drive("18gZhCEKJkxKkUbG49syAuWPdfL0Lm9tp"),
            about=11_000 * MEGABYTE,
            unpack="tar.gz",
            tags=("photos", "unlabeled", "out-of-class"),
            creates=("u_train_out",),
            aliases=("u_train_out.tgz",),
        ),
    ),
)
