from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
import torch
from torch.nn import functional

from fieldmark.errors import MisuseError
from fieldmark.metrics.segmentation import label_map_counts
from fieldmark.training.consistency import Consistency
from fieldmark.training.draws import Draws, example_seeds
from fieldmark.training.loop import train
from fieldmark.training.losses import UNKNOWN_PIXEL, MaskLoss, cross_entropy
from fieldmark.training.objectives import (
    MaskObjective,
    Prepared,
    SeveralLabels,
    SingleLabel,
    StrongView,
    pixels_of_classes,
)
from fieldmark.training.recipe import Training
from fieldmark.training.samplers import UNLABELED, epoch_order, followed_order
from fieldmark.training.sources import Batch, WeakAndStrong
from fieldmark_tests.training.examples import (
    CLASSES,
    EXAMPLES,
    HOW,
    PartlyLabeled,
    Squares,
    Stripes,
    network,
    plain,
    train_partly_labeled,
)

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 4, 40).astype(np.int32)
SEVERAL = (RNG.random((40, 4)) < 0.4).astype(np.int32)
PLAIN = {"single": (SingleLabel(4), CODES, "cross-entropy"), "several": (SeveralLabels(4), SEVERAL, "binary")}

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def draws(number):
    return Draws(example_seeds(0, 0, np.arange(number)))


def naive_loss(logits, target):
    """Of one example: -log softmax of the class, or the binary cross-entropies of all classes, summed."""
    if np.ndim(target) == 0:
        return np.log(np.exp(logits).sum()) - logits[target]
    sure = 1 / (1 + np.exp(-logits))
    return -np.sum(target * np.log(sure) + (1 - target) * np.log(1 - sure))


# One label and several


@pytest.mark.parametrize("kind", PLAIN)
def test_labels_have_the_losses_that_torch_gives_them(kind):
    objective, labels, name = PLAIN[kind]
    how, inputs = Training(loss=name), torch.randn(40, 4)
    targets = objective.targets(torch.from_numpy(labels))
    batch = Prepared(inputs, targets, draws(40))
    found = objective.batch_loss(lambda x: x, batch, objective.make_loss(labels, how, "cpu"), how)
    if kind == "single":
        expected = functional.cross_entropy(inputs, torch.from_numpy(labels).long(), reduction="none").mean()
    else:
        whole = functional.binary_cross_entropy_with_logits(inputs, torch.from_numpy(labels).float(), reduction="none")
        expected = whole.sum(dim=1).mean()
    assert found == expected
    assert found.item() == pytest.approx(np.mean(list(map(naive_loss, inputs.numpy(), labels))), rel=1e-5)


@pytest.mark.parametrize("kind", PLAIN)
def test_mixup_mixes_each_example_and_its_loss_with_the_one_before(kind):
    objective, labels, name = PLAIN[kind]
    how, inputs, lots = Training(loss=name, mixup=0.4), torch.randn(40, 4), draws(40)
    batch = Prepared(inputs, objective.targets(torch.from_numpy(labels)), lots)
    found = objective.batch_loss(lambda x: x, batch, objective.make_loss(labels, how, "cpu"), how)
    expected = []
    for i, share in enumerate(lots.beta("mixup", 0.4)):
        mixed = share * inputs[i].numpy() + (1 - share) * inputs[i - 1].numpy()
        expected.append(share * naive_loss(mixed, labels[i]) + (1 - share) * naive_loss(mixed, labels[i - 1]))
    assert found.item() == pytest.approx(np.mean(expected), rel=1e-5)


def test_classes_are_counted_and_drawn_by_the_label_or_the_first_of_several():
    assert SingleLabel(6).counts(CODES).tolist() == [*np.bincount(CODES), 0, 0]
    assert SeveralLabels(4).counts(SEVERAL).tolist() == SEVERAL.sum(axis=0).tolist()
    how = Training(sampler="class-balanced", seed=3)
    for (objective, labels, _), by in zip(PLAIN.values(), (CODES, SEVERAL.argmax(axis=1)), strict=True):
        expected = epoch_order(by, None, sampler="class-balanced", per_group=0, seed=3, epoch=2)
        np.testing.assert_array_equal(objective.order(labels, None, how, 0, 2), expected)


@pytest.mark.parametrize("kind", PLAIN)
def test_the_place_of_the_best_true_class_counts_on_val(kind):
    objective, labels, name = PLAIN[kind]
    labels = labels[(labels > 0).any(axis=1)] if kind == "several" else labels
    logits = np.random.default_rng(3).integers(0, 3, (len(labels), 4)).astype(np.float32)  # with many ties
    loss = objective.make_loss(labels, Training(loss=name), "cpu")
    found = objective.outcomes(torch.from_numpy(logits), objective.targets(torch.from_numpy(labels)), loss).numpy()
    assert found.shape == (len(labels), 3)
    for row, z, label in zip(found, logits, labels, strict=True):
        true = [label] if kind == "single" else np.flatnonzero(label)
        ranking = sorted(range(4), key=lambda code, z=z: (-z[code], code))
        assert row[0] == pytest.approx(naive_loss(z, label), rel=1e-5)
        assert (row[1], row[2]) == (ranking[0], min(ranking.index(code) for code in true))
    values = objective.metrics(found, labels)
    assert values["loss"] == pytest.approx(found[:, 0].mean())
    assert values["top_3"] == np.mean(found[:, 2] < 3)
    assert ("macro_f1_all" in values) == (kind == "single")


def test_a_checkpoint_knows_labels_by_the_checksum_it_always_had():
    for objective, labels, _ in PLAIN.values():
        expected = {"train labels": crc32(labels.tobytes()), "val labels": crc32(b""), "number of classes": 4}
        assert objective.fingerprint({"train": labels, "val": labels[:0]}) == expected


# Masks


def naive_mask_loss(logits, mask, dice):
    """Of one example, pixel by pixel."""
    classes, known = len(logits), mask != UNKNOWN_PIXEL
    if not known.any():
        return 0.0
    pixels = [(logits[:, y, x], mask[y, x]) for y, x in zip(*np.nonzero(known), strict=True)]
    softmax = [np.exp(z) / np.exp(z).sum() for z, _ in pixels]
    of_pixels = np.mean([-np.log(p[code]) for p, (_, code) in zip(softmax, pixels, strict=True)])
    missed = []
    for code in range(classes):
        size = sum(own == code for _, own in pixels)
        if size:
            both = sum(p[code] for p, (_, own) in zip(softmax, pixels, strict=True) if own == code)
            missed.append(1 - 2 * both / (sum(p[code] for p in softmax) + size))
    return of_pixels + dice * np.mean(missed)


def some_masks():
    masks = np.random.default_rng(1).integers(0, 3, (5, 6, 7))
    masks[1, :2], masks[2], masks[3][masks[3] == 2] = UNKNOWN_PIXEL, UNKNOWN_PIXEL, 0
    return masks.astype(np.uint8)


@pytest.mark.parametrize("dice", [0.0, 0.5])
def test_the_loss_of_masks_is_its_formula(dice):
    masks, logits = some_masks(), np.random.default_rng(2).normal(0, 2, (5, 3, 6, 7))
    found = MaskLoss(cross_entropy, dice)(torch.tensor(logits), torch.tensor(masks).long()).numpy()
    expected = [naive_mask_loss(z, mask, dice) for z, mask in zip(logits, masks, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_unknown_pixels_of_a_mask_have_no_gradient():
    masks = torch.tensor(some_masks())
    logits = torch.randn(5, 3, 6, 7, requires_grad=True)
    MaskLoss(cross_entropy)(logits, masks.long()).sum().backward()
    unknown = (masks == UNKNOWN_PIXEL)[:, None].expand_as(logits)
    assert not logits.grad[unknown].any() and logits.grad[~unknown].abs().min() > 0


def test_in_dice_a_class_of_few_pixels_weighs_as_much_as_one_of_many():
    masks = torch.zeros(1, 10, 10, dtype=torch.long)
    masks[0, 0, 0] = 1
    blind = 50 * functional.one_hot(torch.zeros_like(masks), 2).movedim(-1, 1).float()
    dice = MaskLoss(cross_entropy)(blind, masks) - MaskLoss(cross_entropy, 0.0)(blind, masks)
    assert dice.item() == pytest.approx(0.5, abs=0.01)  # all of one class is missed, and next to nothing of the other


@pytest.mark.parametrize("name", ["cross-entropy", "balanced-softmax", "seesaw", "focal"])
def test_perfect_logits_of_masks_have_an_iou_of_one_and_no_loss(name):
    objective, masks = MaskObjective(3), some_masks()
    targets = objective.targets(torch.from_numpy(masks))
    logits = 50 * functional.one_hot(torch.where(targets == UNKNOWN_PIXEL, 0, targets), 3).movedim(-1, 1).float()
    labels = pixels_of_classes(masks, 3)
    found = objective.outcomes(logits, targets, objective.make_loss(labels, Training(loss=name), "cpu"))
    assert found.shape == (5, 1 + 2 * objective.classes)
    expected = {"loss": pytest.approx(0, abs=1e-6), "miou": 1.0, "pixel_accuracy": 1.0}
    assert objective.metrics(found.numpy(), labels) == expected


def test_iou_and_accuracy_on_val_are_those_of_all_known_pixels():
    objective, masks, logits = MaskObjective(3), some_masks(), torch.randn(5, 3, 6, 7)
    loss = MaskLoss(cross_entropy)
    found = objective.outcomes(logits, objective.targets(torch.from_numpy(masks)), loss).numpy()
    known, answers = masks != UNKNOWN_PIXEL, logits.argmax(dim=1).numpy()
    counts = label_map_counts(masks[known], answers[known], n_parts=3)
    values = objective.metrics(found, pixels_of_classes(masks, 3))
    assert values["miou"] == pytest.approx(np.mean(counts.intersection / counts.union))
    assert values["pixel_accuracy"] == pytest.approx(np.mean(masks[known] == answers[known]))


def test_samplers_go_by_the_rarest_class_of_a_mask():
    labels = np.array([[90, 10, 0], [98, 0, 2], [80, 15, 5], [100, 0, 0]])
    assert MaskObjective(3).drawn_by(labels).tolist() == [1, 2, 2, 0]
    assert MaskObjective(3).counts(labels).tolist() == [368, 25, 7]


def test_a_mask_is_mirrored_with_its_picture():
    batch = Batch(Squares(8), np.arange(8), example_seeds(0, 0, np.arange(8)), MaskObjective(3), device=CPU)
    prepared = batch.prepare(plain, CPU)
    for picture, mask in zip(prepared.inputs[:, 0], prepared.targets, strict=True):
        assert picture[mask == 1].mean() > 0.5 and picture[mask == 2].mean() < -0.5
    still = Squares(8).read_targets(np.arange(8), None)
    assert (prepared.targets.numpy() != still).any() and prepared.targets.dtype == torch.long


# Two views


def test_every_labeled_example_is_followed_by_unlabeled_ones_and_all_are_shown():
    labels = np.full(50, UNLABELED, dtype=np.int32)
    labels[::10] = [0, 1, 2, 0, 1]

    def shown(epoch):
        return followed_order(labels, None, followers=4, sampler="natural", per_group=0, seed=0, epoch=epoch)

    blocks = shown(0).reshape(-1, 5)
    assert len(blocks) == 12  # 45 unlabeled examples, four at a time
    assert (labels[blocks[:, 0]] >= 0).all() and (labels[blocks[:, 1:]] == UNLABELED).all()
    assert set(shown(0)) == set(range(50))
    assert np.bincount(blocks[:, 0])[::10].min() == 2  # five labeled ones, twelve times
    assert (shown(0) == shown(0)).all() and len(shown(1)) == 60 and (shown(0) != shown(1)).any()


def test_few_unlabeled_examples_come_round_again():
    labels = np.array([0, 1] * 10 + [UNLABELED] * 3, dtype=np.int32)
    order = followed_order(labels, None, followers=2, sampler="class-balanced", per_group=0, seed=0, epoch=0)
    assert np.bincount(order)[20:].sum() == 40 and np.ptp(np.bincount(order)[20:]) <= 1


def consistency_loss(weak, strong_logits, targets, **settings):
    """The loss of a batch whose inputs are its logits."""
    objective = Consistency(3, unlabeled_each=1, **settings)
    places = torch.from_numpy(objective.shown_again(targets.numpy()))
    batch = Prepared(weak, targets, draws(len(weak)), StrongView(strong_logits, places))
    how = Training(best_by="top_1")
    labels = targets[targets >= 0].numpy()
    return objective.batch_loss(lambda inputs: inputs, batch, objective.make_loss(labels, how, "cpu"), how)


TARGETS = torch.tensor([2, UNLABELED, 0, UNLABELED])
WEAK = torch.tensor([[0.0, 1, 0], [0, 9, 0], [1, 0, 0], [0.3, 0, 0]])  # sure of the second, not of the fourth


def test_an_unlabeled_example_below_the_threshold_contributes_nothing():
    strong_logits = torch.randn(2, 3, requires_grad=True)
    found = consistency_loss(WEAK, strong_logits, TARGETS)
    of_labeled = functional.cross_entropy(WEAK[[0, 2]], TARGETS[[0, 2]])
    of_sure = functional.cross_entropy(strong_logits[:1], torch.tensor([1]))
    torch.testing.assert_close(found, of_labeled + of_sure / 2)  # the other counts in the mean, with a loss of 0
    found.backward()
    assert strong_logits.grad[0].abs().min() > 0 and not strong_logits.grad[1].any()
    unsure = consistency_loss(WEAK, strong_logits, TARGETS, threshold=1.0)
    torch.testing.assert_close(unsure, of_labeled)


def test_the_strong_view_learns_from_the_weak_one_and_not_the_other_way_round():
    weak = WEAK.clone().requires_grad_()
    consistency_loss(weak, torch.randn(2, 3), TARGETS, threshold=0.0, weight=5.0).backward()
    assert weak.grad[[0, 2]].abs().min() > 0 and not weak.grad[[1, 3]].any()


def test_only_unlabeled_examples_are_shown_twice_with_draws_of_their_own():
    source, objective = PartlyLabeled(16), Consistency(CLASSES)
    rows, seeds = np.array([0, 9, 1, 12]), example_seeds(0, 0, np.arange(4))
    batch = Batch(source, rows, seeds, objective, device=CPU)
    seen = []

    def watched(raw, own):
        seen.append(own)
        return raw[0]

    prepared = batch.prepare(WeakAndStrong(plain, watched), CPU)
    assert prepared.strong.places.tolist() == [1, 3] and len(prepared.strong.inputs) == 2 and len(prepared.inputs) == 4
    assert seen[0].strong and not prepared.draws.strong
    assert not np.isclose(seen[0].uniform("phase"), prepared.draws.uniform("phase")[[1, 3]]).any()
    np.testing.assert_array_equal(seen[0].seeds, Draws(seeds[1:]).of_strong_view(np.array([0, 2])).seeds)
    assert Batch(source, rows, None, objective, device=CPU).prepare(plain, CPU).strong is None


# The whole loop


def train_several(folder, how):
    """Stripes whose labels are one row of 0/1 each."""
    parts = Stripes(64), Stripes(30)
    for part in parts:
        object.__setattr__(part, "labels", np.eye(CLASSES, dtype=np.int32)[part.labels])
    how = replace(how, loss="binary")
    return train(network(0.0), *parts, plain, how, objective=SeveralLabels(CLASSES), scratch=folder)


@pytest.mark.parametrize("example", [*EXAMPLES, "several"])
def test_a_tiny_training_lowers_the_loss_of_each_objective(example, tmp_path):
    trained = (EXAMPLES | {"several": train_several})[example](tmp_path, replace(HOW, epochs=12, lr=0.03))
    first, last = trained.epochs[0], trained.epochs[-1]
    assert last["train_loss"] < 0.8 * first["train_loss"]
    assert last["val"]["loss"] < 0.8 * first["val"]["loss"]
    measure = "miou" if example == "masks" else "top_1"
    values = [line["val"][measure] for line in trained.epochs]
    assert max(values) > 0.6 and trained.best_epoch == values.index(max(values)) + 1


def test_unlabeled_examples_change_what_is_learned(tmp_path):
    quiet = Consistency(CLASSES, threshold=0.3, weight=0.0, unlabeled_each=3)
    with_them, without = train_partly_labeled(tmp_path / "a"), train_partly_labeled(tmp_path / "b", objective=quiet)
    assert with_them.epochs[-1]["val"]["loss"] != without.epochs[-1]["val"]["loss"]


def test_a_training_does_not_go_on_with_another_threshold(tmp_path):
    train_partly_labeled(tmp_path)
    other = Consistency(CLASSES, threshold=0.5, unlabeled_each=3)
    with pytest.raises(MisuseError, match=r"threshold of consistency was 0\.3 and is now 0\.5"):
        train_partly_labeled(tmp_path, objective=other)


@pytest.mark.parametrize(
    ("objective", "change", "sentence"),
    [
        (SingleLabel(CLASSES), {"best_by": "miou"}, "best_by=miou: what is measured here is loss, top_1"),
        (SingleLabel(CLASSES), {"loss": "binary"}, "several labels at once"),
        (MaskObjective(CLASSES), {"best_by": "top_1"}, "best_by=top_1: what is measured here is loss, miou"),
        (Consistency(CLASSES, unlabeled_each=3), {"mixup": 0.2}, "set mixup=0"),
        (Consistency(CLASSES, unlabeled_each=4), {}, "A batch of 16 examples at once .* take a multiple of 5"),
    ],
)
def test_recipes_that_do_not_go_with_an_objective_are_refused(objective, change, sentence):
    with pytest.raises(MisuseError, match=sentence):
        objective.check(replace(HOW, **change), HOW.batch)


def test_consistency_needs_both_kinds_of_examples(tmp_path):
    with pytest.raises(MisuseError, match="examples with a label and examples without one"):
        train(network(0.0), Stripes(64), None, plain, HOW, objective=Consistency(CLASSES), scratch=tmp_path)
