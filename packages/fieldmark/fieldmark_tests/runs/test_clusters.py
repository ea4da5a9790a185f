"""Run files of clusters and of yes and no."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.runs.clusters import ClusterNames
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.decisions import YesOrNo
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.problems import RunError
from fieldmark.tables.labels import Labels

CLUSTERS = ClusterNames(columns=("image_id", "cluster"), prefix="cluster_")
BIRDS = Labels(("akiapo", "brant"))
SEGMENTS = ("soundscape_1/0", "soundscape_1/5")


def test_clusters_are_read_by_the_names_a_run_gives_them(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("image_id,cluster\nb,cluster_lynx_7\na,cluster_lynx_0\nc,cluster_lynx_7\n")
    read = CLUSTERS.read(path, ("a", "b", "c"), Labels(("individual",)))
    assert read.labels.decode(read.top(1)[:, 0]) == ["cluster_lynx_0", "cluster_lynx_7", "cluster_lynx_7"]
    CLUSTERS.write(tmp_path / "again.csv", read)
    assert (tmp_path / "again.csv").read_text().splitlines()[1] == "a,cluster_lynx_0"


def test_a_cluster_without_its_prefix_is_refused(tmp_path):
    (tmp_path / "run.csv").write_text("image_id,cluster\na,lynx_7\n")
    with pytest.raises(RunError, match="line 2: found 'lynx_7', expected a name that begins with 'cluster_'"):
        CLUSTERS.read(tmp_path / "run.csv", ("a",), Labels(()))


def test_yes_and_no_are_written_for_every_pair_and_read_again(tmp_path):
    path, lists = tmp_path / "run.csv", CodeSets.of_lists([[1], []])
    YesOrNo().write(path, LabelScores.listed(SEGMENTS, BIRDS, lists, np.ones(1)))
    assert path.read_text().splitlines() == [
        "row_id,target",
        "soundscape_1_akiapo_5,False",
        "soundscape_1_brant_5,True",
        "soundscape_1_akiapo_10,False",
        "soundscape_1_brant_10,False",
    ]
    assert YesOrNo().read(path, SEGMENTS, BIRDS).lists.codes.tolist() == [1]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("soundscape_1_crow_5,True", "found the id 'soundscape_1_crow_5'"),
        ("soundscape_1_brant_7,True", "found the id 'soundscape_1_brant_7'"),
        ("soundscape_1_brant_5,maybe", "found 'maybe', expected True or False"),
    ],
)
def test_a_line_that_cannot_be_is_refused(line, sentence, tmp_path):
    (tmp_path / "run.csv").write_text(f"row_id,target\n{line}\n")
    with pytest.raises(RunError, match=f"line 2: {sentence}"):
        YesOrNo().read(tmp_path / "run.csv", SEGMENTS, BIRDS)
