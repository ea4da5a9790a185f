"""Triplets and auxiliary ranks, by hand and in the loop; objectives by name."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fieldmark.errors import MisuseError
from fieldmark.training.auxiliary_ranks import AuxiliaryRanks, RankLoss, rank_labels
from fieldmark.training.consistency import Consistency
from fieldmark.training.loop import train
from fieldmark.training.losses import cross_entropy
from fieldmark.training.metric_learning import Triplet, batch_hard, retrieval_top_1, same_label
from fieldmark.training.objective_names import OBJECTIVES, make_objective
from fieldmark.training.objectives import MaskObjective, SeveralLabels, SingleLabel
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import classes_order
from fieldmark_tests.training.examples import CLASSES, HOW, Stripes, network, plain


def at_angles(*degrees: float) -> torch.Tensor:
    angles = torch.deg2rad(torch.tensor(degrees, dtype=torch.float64))
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def chord(degrees: float) -> float:
    return float(2 * np.sin(np.radians(degrees) / 2))


# Triplets


def test_the_loss_of_triplets_is_that_of_the_farthest_partner_and_the_nearest_opponent():
    embedding = at_angles(0, 30, 50, 110) * torch.tensor([[1.0], [5.0], [0.1], [2.0]])  # lengths do not matter
    same = same_label(torch.tensor([0, 0, 1, 1]))
    anchors = [(30, 50), (30, 20), (60, 20), (60, 80)]  # degrees to partner and to nearest opponent
    expected = np.mean([max(0.0, 0.2 + chord(own) - chord(other)) for own, other in anchors])
    assert float(batch_hard(embedding, same, 0.2)) == pytest.approx(expected)


def test_anchors_without_a_partner_or_an_opponent_do_not_count():
    alone = batch_hard(at_angles(0, 30, 50), same_label(torch.tensor([0, 0, 1])), 0.2)
    both = [max(0.0, 0.2 + chord(30) - chord(50)), max(0.0, 0.2 + chord(30) - chord(20))]
    assert float(alone) == pytest.approx(np.mean(both))
    assert float(batch_hard(at_angles(0, 30), same_label(torch.tensor([0, 0])), 0.2)) == 0


def test_gradients_of_triplets_are_those_of_differences_and_finite_for_equal_examples():
    torch.manual_seed(0)
    embedding = torch.randn(8, 5, dtype=torch.float64, requires_grad=True)
    same = same_label(torch.arange(8) // 2)
    assert torch.autograd.gradcheck(lambda values: batch_hard(values, same, 0.5), [embedding])
    equal = torch.ones(4, 3, requires_grad=True)
    batch_hard(equal, same_label(torch.tensor([0, 0, 1, 1])), 0.2).backward()
    assert torch.isfinite(equal.grad).all()


def test_examples_with_several_labels_are_partners_if_they_share_one():
    marks = torch.tensor([[1.0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert same_label(marks).int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_batches_hold_so_many_of_each_class_and_all_examples_have_their_turn():
    labels = np.repeat(np.arange(4), [9, 5, 1, 4]).astype(np.int32)
    orders = [classes_order(labels, None, each=4, per_group=0, seed=3, epoch=epoch) for epoch in range(12)]
    assert {len(order) for order in orders} == {4 * (2 + 1 + 1 + 1)}
    for order in orders:
        assert all(len(set(block)) == 1 for block in labels[order].reshape(-1, 4).tolist())
    assert set(np.concatenate(orders).tolist()) == set(range(len(labels)))
    groups = np.arange(len(labels)) // 2
    few = classes_order(labels, groups, each=2, per_group=1, seed=3, epoch=0)
    assert len(set(groups[few])) == len(set(few.tolist()))


def test_retrieval_looks_past_photos_of_the_same_observation():
    unit = at_angles(0, 1, 10, 90, 100, 12).numpy().astype(np.float32)
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert retrieval_top_1(unit, labels) == pytest.approx(4 / 6)
    assert retrieval_top_1(unit, labels, np.array([0, 0, 1, 2, 3, 4])) == pytest.approx(2 / 6)
    assert retrieval_top_1(unit, np.eye(2, dtype=np.int32)[labels]) == pytest.approx(4 / 6)
    assert retrieval_top_1(unit[:1], labels[:1]) == 0


class WithEmbedding(torch.nn.Module):
    """The small network, which answers with what goes into its head as well."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network(0.2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        embedding = self.layers[:-1](inputs)
        return torch.cat([self.layers[-1](embedding), embedding], dim=1)


def train_triplets(folder, how=HOW, transform=plain, objective=None):
    objective = objective or Triplet(CLASSES, each=4)
    parts = Stripes(64), Stripes(30)
    return train(WithEmbedding(), *parts, transform, how, objective=objective, scratch=folder)


def test_triplets_alone_bring_classes_together_without_a_head(tmp_path):
    how = replace(HOW, epochs=10, lr=0.02, best_by="retrieval_top_1")
    trained = train_triplets(tmp_path, how, objective=Triplet(CLASSES, labels=0.0))
    measured = [line["val"]["retrieval_top_1"] for line in trained.epochs]
    assert trained.epochs[-1]["train_loss"] < 0.8 * trained.epochs[0]["train_loss"]
    assert max(measured) > 0.9 and measured[trained.best_epoch - 1] == max(measured)


def ranked_stripes(count: int, unknown: int = 0) -> Stripes:
    """Stripes of four species in two genera; some species of the second genus are not known."""
    part = Stripes(count)
    labels = rank_labels(part.labels, {"genus": np.array([0, 0, 1, 1], dtype=np.int32)})
    labels[:unknown, 0] = -1
    object.__setattr__(part, "labels", labels)
    return part


def train_ranks(folder, how=HOW, transform=plain, objective=None):
    torch.manual_seed(0)
    layers = network(0.2)
    layers[-1] = torch.nn.Linear(32, CLASSES + 2)
    objective = objective or AuxiliaryRanks(CLASSES, ranks="genus", sizes=(2,))
    parts = ranked_stripes(64, unknown=8), ranked_stripes(30)
    return train(layers, *parts, transform, how, objective=objective, scratch=folder)


@pytest.mark.parametrize("example", [train_triplets, train_ranks])
def test_an_interrupted_training_goes_on_to_the_same_weights(example, tmp_path):
    whole, batches = example(tmp_path / "whole", replace(HOW, epochs=2)), 0

    def breaking(raw, draws):
        nonlocal batches
        batches += draws is not None
        if batches == 6:
            raise RuntimeError("the power is off")
        return plain(raw, draws)

    with pytest.raises(RuntimeError, match="power"):
        example(tmp_path / "broken", replace(HOW, epochs=2), breaking)
    again = example(tmp_path / "broken", replace(HOW, epochs=2))
    assert all(torch.equal(tensor, again.weights[name]) for name, tensor in whole.weights.items())


@pytest.mark.parametrize(
    ("example", "other", "sentence"),
    [
        (train_triplets, Triplet(CLASSES, margin=0.5), r"margin of triplets was 0\.2 and is now 0\.5"),
        (train_ranks, AuxiliaryRanks(CLASSES, ranks="genus", weight=1.0, sizes=(2,)), "weight of ranks was 0.3"),
    ],
)
def test_a_training_does_not_go_on_with_other_settings_of_its_objective(example, other, sentence, tmp_path):
    short = replace(HOW, epochs=1)
    example(tmp_path, short)
    with pytest.raises(MisuseError, match=sentence):
        example(tmp_path, short, objective=other)


# Ranks


def test_the_loss_of_ranks_is_a_weighted_sum_over_what_is_known():
    logits = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    targets = torch.tensor([[2, 1], [-1, 0], [0, -1]])
    losses = RankLoss(cross_entropy, (3, 2), 0.5)(logits, targets)
    log_species, log_genus = (part.log_softmax(dim=1).detach() for part in logits.split((3, 2), dim=1))
    expected = [
        -log_species[0, 2] - 0.5 * log_genus[0, 1],
        -0.5 * log_genus[1, 0],
        -log_species[2, 0],
    ]
    assert losses.tolist() == pytest.approx([float(value) for value in expected])
    losses.sum().backward()
    assert not logits.grad[1, :3].any() and logits.grad[1, 3:].any()  # a genus teaches nothing about its species
    assert not logits.grad[2, 3:].any()


def test_genera_are_learned_and_measured_beside_the_label(tmp_path):
    trained = train_ranks(tmp_path, replace(HOW, epochs=12, lr=0.03))
    last = trained.epochs[-1]["val"]
    assert last["genus_top_1"] > 0.7 and last["top_1"] > 0.6
    objective = AuxiliaryRanks(CLASSES, ranks="genus", sizes=(2,))
    labels = ranked_stripes(30).labels
    assert objective.outputs == 6 and objective.counts(np.vstack([labels, [[-1, 0]]])).sum() == 30


# Names


def test_a_recipe_names_an_objective_and_its_settings():
    assert make_objective("labels", classes=3) == SingleLabel(3)
    assert make_objective("several-labels", classes=3) == SeveralLabels(3)
    assert make_objective("masks:dice=0.5", classes=3) == MaskObjective(3, dice=0.5)
    assert make_objective("consistency:threshold=0.8,unlabeled_each=2", classes=3) == Consistency(3, 0.8, 1.0, 2)
    assert make_objective("triplet:margin=0.3,each=2", classes=3) == Triplet(3, margin=0.3, each=2)
    assert make_objective("auxiliary-rank:ranks=order", classes=3, sizes=(2,)) == AuxiliaryRanks(3, "order", 0.3, (2,))
    assert all(OBJECTIVES.about(name) for name in OBJECTIVES)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("triplets", "no objective called 'triplets'. Did you mean triplet"),
        ("triplet:marjin=1", "no setting called 'marjin'"),
        ("triplet:each=two", "expected a whole number"),
        ("triplet:classes=7", "expected a name and settings"),
        ("triplet:each=1", "each=1: expected a whole number of at least 2"),
        ("auxiliary-rank:weight=-1", "weight=-1.0: expected a number of at least 0"),
    ],
)
def test_names_and_settings_that_there_are_not_are_refused(text, sentence):
    with pytest.raises(MisuseError, match=sentence):
        make_objective(text, classes=3)


@pytest.mark.parametrize(
    ("objective", "change", "sentence"),
    [
        (Triplet(CLASSES), {"mixup": 0.2}, "set mixup=0"),
        (Triplet(CLASSES), {"sampler": "class-balanced"}, "draw batches by class"),
        (Triplet(CLASSES, each=16), {}, "of two classes at least; take a larger multiple of 16"),
        (SingleLabel(CLASSES), {"best_by": "retrieval_top_1"}, "what is measured here is loss"),
        (AuxiliaryRanks(CLASSES), {"loss": "binary"}, "here one class holds"),
    ],
)
def test_recipes_that_do_not_go_with_an_objective_are_refused(objective, change, sentence):
    with pytest.raises(MisuseError, match=sentence):
        objective.check(Training(**{"batch": 16, **change}), 16)
