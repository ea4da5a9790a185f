"""The table of classes, the confusion matrix and the comparison: what they count is what was answered."""

from __future__ import annotations

import csv
import io
import re
from base64 import b64decode

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as reference_matrix
from sklearn.metrics import precision_recall_fscore_support

import fieldmark
from fieldmark.reports.pages.page import render_page
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections import classes
from fieldmark.reports.sections.classes import class_rows, class_table, confusion_matrix, confusion_table
from fieldmark_tests.reports.by_hand import noisy, perfect


@pytest.fixture
def context(fungi, make_run):
    return load_context([make_run(fungi, noisy), make_run(fungi, perfect, name="perfect")])


def test_rows_agree_with_scikit_learn(context):
    rows = {row.code: row for row in class_rows(context)}
    codes = sorted(rows)
    precision, recall, f1, items = precision_recall_fscore_support(
        context.truth, context.predicted, labels=codes, zero_division=np.nan
    )
    for place, code in enumerate(codes):
        row = rows[code]
        assert row.items == items[place]
        for found, expected in ((row.precision, precision[place]), (row.recall, recall[place])):
            assert np.isnan(expected) if found is None else found.value == pytest.approx(expected)
        assert row.f1 == pytest.approx(np.nan_to_num(f1[place]))


def test_the_matrix_agrees_with_scikit_learn_and_the_file_holds_all_of_it(context):
    matrix = confusion_matrix(context)
    names = [context.title(name) for name in context.labels.names]
    codes = [names.index(name) for name in matrix.names]
    assert (matrix.counts == reference_matrix(context.truth, context.predicted, labels=codes)).all()
    assert confusion_table(context)["items"].sum() == len(context.truth)


def test_of_many_classes_those_with_errors_are_shown_and_nothing_is_lost(context, monkeypatch):
    monkeypatch.setattr(classes, "MOST_CLASSES", 2)
    matrix = confusion_matrix(context)
    assert len(matrix.names) == 3 and matrix.names[-1] == "all others" and matrix.left_out > 0
    assert matrix.counts.sum() == len(context.truth)


def test_the_page_offers_the_tables_as_files_and_compares_its_runs(context):
    page = render_page(context)
    downloads = dict(re.findall(r'download="(\w+\.csv)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', page))
    rows = list(csv.DictReader(io.StringIO(b64decode(downloads["classes.csv"]).decode())))
    assert [row["label"] for row in rows] == class_table(class_rows(context))["label"].to_list()
    assert set(csv.DictReader(io.StringIO(b64decode(downloads["confusions.csv"]).decode())).fieldnames or ()) == {
        "true",
        "answered",
        "items",
    }
    compared = fieldmark.compare({scored.title: scored.scorecard for scored in context.runs})
    behind = compared.rows()[1]["behind the best by"]
    assert 'id="comparison"' in page and behind in page and 'class="compact sortable"' in page


def test_one_run_alone_is_compared_with_nothing(fungi, make_run):
    assert 'id="comparison"' not in render_page(load_context([make_run(fungi, noisy)]))
