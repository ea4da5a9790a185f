"""Encoders: what they learn, which photos they name, and that photos they have seen do not pass silently."""

from __future__ import annotations

import csv

import numpy as np
import pytest
import torch

import fieldmark
from fieldmark.benchmarks import BENCHMARKS
from fieldmark.errors import MisuseError
from fieldmark.features.store import content_key
from fieldmark.fitting import Auto, encoders
from fieldmark.fitting.auto import AutoSearch
from fieldmark.fitting.candidates import candidates_for
from fieldmark.fitting.encoders import PHOTOS_FILE, encoders_at_hand, train_encoder
from fieldmark.methods.base import SEEN_PHOTOS
from fieldmark.models import load_model
from fieldmark.training.encoders import AnchoredNetwork, SupervisedContrast, between
from fieldmark.training.objectives import Prepared, StrongView
from fieldmark.views.open_benchmark import open_benchmark, open_release
from fieldmark_tests.fixtures import write_release

TINY = {"network": "resnet10t", "weights": "random", "size": 32, "epochs": 1, "batch": 8, "each": 2}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder of photos and a tiny encoder of all of them."""
    root = write_release(tmp_path_factory.mktemp("release") / "photos", flat=True)
    return root, train_encoder([root], tmp_path_factory.mktemp("encoders") / "mine", settings=TINY)


def test_an_encoder_names_every_photo_it_has_learned_from(encoder):
    root, made = encoder
    with (made.folder / PHOTOS_FILE).open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == made.photos and {row["folder"] for row in rows} == {root.name}
    digests = {content_key((root / row["file"]).read_bytes()).hex() for row in rows}
    assert digests == {row["digest"] for row in rows}
    seen = load_model(made.folder).fitted.arrays[SEEN_PHOTOS]
    assert {row.tobytes().hex() for row in seen} == digests


def test_few_classes_are_called_few(encoder):
    assert any("fewer than 20" in remark for remark in encoder[1].remarks)


def test_a_fit_on_photos_that_the_encoder_has_seen_says_so(encoder, tmp_path):
    root, made = encoder
    result = fieldmark.fit("folder", root, "centroid", tmp_path / "run", settings={"backbone": str(made.folder)})
    assert any("LEAKAGE: the backbone has learned from" in remark for remark in result.run.remarks)


def test_one_class_is_refused(tmp_path, make_release):
    root = make_release(flat=True)
    for folder in sorted(path for path in root.iterdir() if path.is_dir())[1:]:
        for photo in folder.iterdir():
            photo.unlink()
    with pytest.raises(MisuseError, match="two classes"):
        train_encoder([root], tmp_path / "encoder", settings=TINY)


def test_weights_lie_between_start_and_end_but_for_the_classifier():
    start, end = ({"a": torch.full((2,), value), "fc.weight": torch.full((2,), value)} for value in (0.0, 4.0))
    kept = between(start, end, 0.25, "fc")
    assert kept["a"].tolist() == [1.0, 1.0] and kept["fc.weight"].tolist() == [4.0, 4.0]


class _Constant(torch.nn.Module):
    """Answers with given logits, features and start features."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, inputs):
        return self.answer


def test_the_loss_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    logits, own, start = (torch.tensor(rng.normal(size=(8, width))).float() for width in (3, 5, 5))
    targets = torch.tensor([[0, 0], [0, 0], [1, 0], [2, -1]])
    batch = Prepared(torch.zeros(4, 1), targets, None, StrongView(torch.zeros(4, 1), torch.arange(4)))
    objective = SupervisedContrast(3, contrast=0.7, temperature=0.2, pull=2.0, relatives=0.3, each=2)
    plain = lambda given, right: torch.nn.functional.cross_entropy(given, right, reduction="none")  # noqa: E731
    loss = objective.batch_loss(_Constant(torch.cat([logits, own, start], dim=1)), batch, plain, None)
    unit, labels = torch.nn.functional.normalize(own).numpy(), [0, 0, 1, 2] * 2
    genera, terms = [0, 0, 0, -1] * 2, []
    for i in range(8):
        others = [j for j in range(8) if j != i]
        total = np.log(sum(np.exp(unit[i] @ unit[j] / 0.2) for j in others))
        weights = {
            j: 1.0 if labels[i] == labels[j] else 0.3 * (genera[i] == genera[j] and genera[i] >= 0) for j in others
        }
        terms.append(-sum(w * (unit[i] @ unit[j] / 0.2 - total) for j, w in weights.items()) / sum(weights.values()))
    cosine = torch.nn.functional.cosine_similarity(own, start).mean()
    expected = plain(logits, torch.tensor(labels)).mean() + 0.7 * np.mean(terms) + 2.0 * (1 - cosine)
    assert float(loss) == pytest.approx(float(expected), abs=1e-5)


def test_the_copy_stays_as_it_was_while_the_network_learns():
    timm = pytest.importorskip("timm")
    network = AnchoredNetwork(timm.create_model("resnet10t", num_classes=2)).train()
    before = {name: tensor.clone() for name, tensor in network.start.state_dict().items()}
    network(torch.randn(4, 3, 32, 32)).sum().backward()
    assert all(torch.equal(before[name], tensor) for name, tensor in network.start.state_dict().items())
    assert all(tensor.grad is None for tensor in network.start.parameters())


def test_auto_tries_encoders_that_have_not_seen_the_photos(encoder, make_release, monkeypatch):
    root, made = encoder
    others = make_release(flat=True, name="others")
    for photo in others.rglob("*.jpg"):
        photo.write_bytes(photo.read_bytes() + b"\0")
    monkeypatch.chdir(made.folder.parent.parent)
    monkeypatch.setattr(encoders, "FOLDER", made.folder.parent.relative_to(made.folder.parent.parent))
    name = made.folder.relative_to(made.folder.parent.parent).as_posix()
    benchmark = BENCHMARKS["folder"]
    opened = [open_benchmark(benchmark, open_release(benchmark, one)) for one in (root, others)]
    assert [encoders_at_hand(one)[name] > 0 for one in opened] == [True, False]
    told: list[str] = []
    asked = [AutoSearch(Auto(tell=told.append), one, None, None).there for one in opened]
    chains = [{one.chain.text for one in candidates_for(there)} for there in asked]
    assert [f"lda:backbone={name}" in texts for texts in chains] == [False, True]
    assert len(told) == 1 and f"{name} is not tried: it has learned from {made.photos} photos" in told[0]
