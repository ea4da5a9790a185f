from __future__ import annotations

import gzip
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldmark.errors import InputError
from fieldmark.runs import ranked_tables
from fieldmark.runs.code_sets import CodeSets
from fieldmark.runs.label_scores import LabelScores
from fieldmark.runs.lines import TableRun
from fieldmark.runs.problems import RunError
from fieldmark.runs.ranked import Ranked
from fieldmark.tables.labels import Labels

LABELS = Labels(("0", "1", "2"))
FORMAT = Ranked(at_most=2)


def read(tmp_path, content: str | bytes, items=("a", "b")):
    path = tmp_path / "run.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return FORMAT.read(path, items, LABELS)


@pytest.mark.parametrize(
    "content",
    [
        "id,predicted\na,1 2\nb,0\n",
        "\ufeffid,predicted\r\na,1 2\r\nb,0\r\n",
        'id,predicted\n"a","1 2"\nb, 0\n',
        "id, predicted\nb,0\na,1  2\n\n",
        gzip.compress(b"id,predicted\na,1 2\nb,0\n", mtime=0),
    ],
)
def test_what_cannot_be_misunderstood_is_accepted(tmp_path, content):
    run = read(tmp_path, content)
    assert run.items == ("a", "b")
    assert run.top(2).tolist() == [[1, 2], [0, -2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\na,1\n", "line 1: found the header 'id,label', expected the header 'id,predicted'"),
        ("id;predicted\na;1\n", "line 1: found the header 'id;predicted'"),
        ("", "line 1: found an empty file"),
        ("id,predicted\na,1\n", r"found no line for 1 of 2 ids \(b\)"),
        ("id,predicted\na,1\nb,1\nc,1\n", "line 4: found the id 'c', expected an id of the benchmark"),
        ("id,predicted\na,1\nb,1\na,2\n", r"line 4: found the id 'a' again \(first in line 2\)"),
        ("id,predicted\na,9\nb,1\n", "line 2: found the label '9', expected a label of the benchmark"),
        ("id,predicted\na,0 1 2\nb,1\n", "line 2: found 3 labels, expected between 1 and 2"),
        ("id,predicted\na,1 1\nb,1\n", "line 2: found a label twice"),
        ("id,predicted\na,\nb,1\n", "line 2: found no label"),
        ("id,predicted\na,1,2\nb,1\n", "line 2: found 3 fields, expected 2"),
        (b"id,predicted\na,\xff\nb,1\n", "line 2: found the label '\ufffd'"),
        (gzip.compress(b"id,predicted\na,1\nb,1\n", mtime=0)[:-9], "something unreadable"),
    ],
)
def test_everything_else_is_refused_with_line_found_and_expected(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, content)


def test_all_problems_are_counted_and_the_first_twenty_shown(tmp_path):
    with pytest.raises(RunError) as caught:
        read(tmp_path, "id,predicted\n" + "".join(f"x{n},1\n" for n in range(50)))
    assert caught.value.total == 51
    assert len(str(caught.value).splitlines()) == 21
    assert "and 31 more problems" in str(caught.value)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_what_is_written_reads_back_to_the_same_ranking(seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    labels = Labels(("Amanita muscaria", 'quoted "name"', "comma, name"))
    scores = rng.integers(0, 3, (5, 3)).astype(np.float32)  # with ties
    made = LabelScores(tuple("abcde"), labels, scores, "logit")
    path = tmp_path_factory.mktemp("run") / "run.csv"
    piped = Ranked(at_most=3, separator="|")
    piped.write(path, made)
    assert (piped.read(path, made.items, labels).top(3) == made.top(3)).all()


def test_a_column_may_go_by_several_names(tmp_path):
    fungiclef = Ranked(at_most=1, columns=(("observationID", "observation_id"), "class_id"))
    for name in ("observationID", "observation_id"):
        (tmp_path / "run.csv").write_text(f"{name},class_id\na,1\nb,-1\n")
        read_back = fungiclef.read(tmp_path / "run.csv", ("a", "b"), Labels(("0", "1")), unknown=True)
        assert read_back.top(1)[:, 0].tolist() == [1, -1]


def test_unknown_is_refused_where_the_benchmark_does_not_ask_for_it(tmp_path):
    with pytest.raises(RunError, match="line 3: found the label '-1', expected a label of the benchmark"):
        read(tmp_path, "id,predicted\na,1\nb,-1\n")


def test_unknown_is_written_as_minus_one_wherever_it_ranks(tmp_path):
    lists = CodeSets.of_lists([[-1, 2], [0, -1]])
    made = LabelScores.listed(("a", "b"), LABELS, lists, np.array([0.9, 0.1, 0.8, 0.2]))
    FORMAT.write(tmp_path / "run.csv", made)
    assert (tmp_path / "run.csv").read_text() == "id,predicted\na,-1 2\nb,0 -1\n"
    back = FORMAT.read(tmp_path / "run.csv", ("a", "b"), LABELS, unknown=True)
    assert back.top(2).tolist() == [[-1, 2], [0, -1]]


def test_too_few_labels_are_refused_where_a_challenge_wants_more(tmp_path):
    (tmp_path / "run.csv").write_text("id,predicted\na,1\nb,1 0 2\n")
    with pytest.raises(RunError, match="line 2: found 1 label, expected exactly 3"):
        Ranked(at_most=3, at_least=3).read(tmp_path / "run.csv", ("a", "b"), LABELS)


def test_strangeness_is_read_and_written_and_must_be_a_finite_number(tmp_path):
    open_set, path = Ranked(at_most=2, unknown_score=True), tmp_path / "run.csv"
    path.write_text("id,predicted,unknown_score\na,1 2,0.25\nb,0,-3e2\n")
    run = open_set.read(path, ("a", "b"), LABELS)
    assert run.unknown.tolist() == [0.25, -300]
    open_set.write(tmp_path / "again.csv", run)
    assert open_set.read(tmp_path / "again.csv", ("a", "b"), LABELS).unknown.tolist() == [0.25, -300]
    for wrong in ("nan", "inf", "x", ""):
        path.write_text(f"id,predicted,unknown_score\na,1 2,0.25\nb,0,{wrong}\n")
        with pytest.raises(RunError, match=r"line 3: found .* expected a finite number"):
            open_set.read(path, ("a", "b"), LABELS)


def test_a_header_with_another_separator_is_explained_even_where_columns_go_by_several_names(tmp_path):
    fungiclef = Ranked(at_most=1, columns=(("observationID", "observation_id"), "class_id"))
    (tmp_path / "run.csv").write_text("observation_id;class_id\na;1\n")
    with pytest.raises(InputError, match="The fields are separated by semicolons: write commas between them"):
        fungiclef.read(tmp_path / "run.csv", ("a",), Labels(("0", "1")))


def test_labels_in_a_table_are_separated_as_the_challenge_asks():
    by_semicolon = Ranked(at_most=2, separator=";")
    table = TableRun({"id": ["a"], "predicted": ["1; 2"]})
    assert by_semicolon.read(table, ("a",), LABELS).top(2).tolist() == [[1, 2]]
    with pytest.raises(RunError, match="line 2: found the label '1 2'"):
        by_semicolon.read(TableRun({"id": ["a"], "predicted": ["1 2"]}), ("a",), LABELS)


FIELDS = st.tuples(
    st.permutations(["a", " b", "c ", "d"]),
    st.lists(st.sampled_from(["0", "1 2", "2  0", " 1", "-1 0", "2\t1", "1\u20032"]), min_size=4, max_size=4),
    st.lists(st.sampled_from(["0.5", "1e-3", " 0.25", "+1", "0.1000000000000000055"]), min_size=4, max_size=4),
)
ODD = st.none() | st.tuples(st.integers(0, 3), st.integers(0, 2), st.text("abc012 ,\x1c-e._\n", max_size=5))


@settings(max_examples=150)
@given(fields=FIELDS, odd=ODD, end=st.sampled_from(["", "\n", "\n\n"]), rows_at_once=st.sampled_from([3, 65536]))
def test_a_plain_file_is_read_at_once_exactly_as_line_by_line(tmp_path_factory, fields, odd, end, rows_at_once):
    """A carriage return at the end changes nothing for a reader of CSV, and sends a file to the reader of lines."""
    run, folder = Ranked(at_most=2, unknown_score=True), tmp_path_factory.getbasetemp()
    lines = [list(line) for line in zip(*fields, strict=True)]
    if odd is not None:
        lines[odd[0]][odd[1]] = odd[2]
    content = "\n".join(["id,predicted,unknown_score", *(",".join(line) for line in lines)]) + end
    read = []
    for name, text in (("plain.csv", content), ("lines.csv", content.replace("\n", "\r\n"))):
        (folder / name).write_text(text, encoding="utf-8", newline="")
        try:
            with patch.object(ranked_tables, "ROWS_AT_ONCE", rows_at_once):
                answers = run.read(folder / name, ("a", "b", "c", "d"), LABELS, unknown=True)
            read.append((answers.top(2).tolist(), answers.unknown.tolist()))
        except (RunError, InputError) as error:
            read.append(str(error).replace(name, ""))
    assert read[0] == read[1] and (odd is not None or not isinstance(read[0], str))
