"""Networks that read unlabeled photos: they learn, answer, and say what they read."""

from __future__ import annotations

import numpy as np
import pytest

from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.fitting.configuration import configured_method
from fieldmark.fitting.fit_part import shown_to
from fieldmark.releases import open_dataset
from fieldmark.views.open_benchmark import open_benchmark
from fieldmark_tests.releases.test_semi import inat as release  # noqa: F401  a release of seven photos

LITTLE = {"network": "resnet10t", "weights": "random", "size": 32, "epochs": 1, "batch": 2, "pack": "none"}


@pytest.fixture
def opened(release):  # noqa: F811
    return open_benchmark(BENCHMARKS["semi-inat-2021"], open_dataset("semi-inat-2021", release))


@pytest.mark.parametrize("name", ["fixmatch-network", "ccssl"])
def test_two_views_of_unlabeled_photos_are_learned_from(opened, name):
    objective = {"fixmatch-network": "consistency", "ccssl": "class-aware-contrast"}[name]
    method = configured_method(name, {**LITTLE, "objective": f"{objective}:unlabeled_each=1,threshold=0"}).method
    fitted = method.fit(shown_to(method, opened.view, opened.hidden))
    scores = fitted.predict(opened.view.test, opened.view.labels).scores
    assert scores.shape == (1, 2) and np.isfinite(scores).all()
    with pytest.raises(MisuseError, match="no unlabeled photos"):
        method.fit(shown_to(configured_method("finetune", LITTLE).method, opened.view))


CHOICES = "unlabeled_each=1,thresholds=freematch,align=true,keep=0.9,within=true,coarse=0.5"


@pytest.mark.parametrize(
    ("name", "settings", "learned_from"),
    [
        ("coarse-network", {"objective": "consistency:weight=0,coarse=1,unlabeled_each=1"}, ("coarse",)),
        ("fixmatch-network", {"objective": f"consistency:{CHOICES}"}, ("coarse",)),
        ("ccssl", {"objective": f"class-aware-contrast:{CHOICES}"}, ("coarse",)),
        ("distillation", {"objective": "distillation:unlabeled_each=1", "teacher_epochs": 2}, ()),
        ("moco", {"contrast_epochs": 2, "dimensions": 8}, ()),
    ],
)
def test_each_network_learns_from_unlabeled_photos_and_says_so(opened, name, settings, learned_from):
    method = configured_method(name, {**LITTLE, "mixup": 0.0, **settings}).method
    assert method.learns_from == ("train", "unlabeled", *learned_from)
    fitted = method.fit(shown_to(method, opened.view, opened.hidden))
    scores = fitted.predict(opened.view.test, opened.view.labels).scores
    assert scores.shape == (1, 2) and np.isfinite(scores).all()
    with pytest.raises(MisuseError, match="no unlabeled photos"):
        method.fit(shown_to(configured_method("finetune", LITTLE).method, opened.view))


def test_the_oracle_says_what_it_read(opened):
    method = configured_method("finetune-oracle", {**LITTLE, "mixup": 0.0}).method
    fitted = method.fit(shown_to(method, opened.view, opened.hidden))
    assert "hidden labels of 1 in-class unlabeled items; 1 out-of-class" in fitted.remarks[0]
