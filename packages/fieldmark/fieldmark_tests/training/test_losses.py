import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fieldmark.errors import MisuseError
from fieldmark.training.losses import LOSSES, SeeSaw, make_loss


def naive_seesaw(logits, labels, counts, p, q):
    """The formula of the paper, one pair of classes after the other."""
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    losses = []
    for z, s, i in zip(logits, softmax, labels, strict=True):
        below = np.exp(z[i])
        for j in range(len(z)):
            if j != i:
                mitigation = 1.0 if counts[i] <= counts[j] else (counts[j] / counts[i]) ** p
                compensation = 1.0 if s[j] <= s[i] else (s[j] / s[i]) ** q
                below += mitigation * compensation * np.exp(z[j])
        losses.append(-np.log(np.exp(z[i]) / below))
    return np.array(losses)


@pytest.mark.parametrize(("p", "q"), [(0.8, 2.0), (0.8, 0.0), (0.0, 2.0)])
def test_seesaw_is_the_formula_of_its_paper(p, q):
    rng = np.random.default_rng(0)
    logits, labels, counts = rng.normal(0, 3, (20, 7)), rng.integers(0, 7, 20), rng.integers(1, 500, 7)
    loss = SeeSaw(torch.tensor(np.log(counts), dtype=torch.float64), p, q)
    found = loss(torch.tensor(logits), torch.tensor(labels)).numpy()
    np.testing.assert_allclose(found, naive_seesaw(logits, labels, counts, p, q), rtol=1e-9)


def test_what_seesaw_prefers_is_not_part_of_the_gradient():
    logits = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    counts, labels = torch.log(torch.tensor([5.0, 50, 500, 5, 5], dtype=torch.float64)), torch.tensor([0, 1, 2])
    SeeSaw(counts)(logits, labels).sum().backward()
    with torch.no_grad():
        own = logits.gather(1, labels[:, None])
        factor = 0.8 * (counts[None] - counts[labels[:, None]]).clamp(max=0) + 2 * (logits - own).clamp(min=0)
        expected = torch.softmax(logits + factor, dim=1)
        expected[torch.arange(3), labels] -= 1
    torch.testing.assert_close(logits.grad, expected)


class Allocated(TorchDispatchMode):
    """Adds up the bytes of everything that is made, freed or not: an upper bound of what is held."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor):
                self.total += tensor.numel() * tensor.element_size()
        return out


@pytest.mark.parametrize("name", ["seesaw", "seesaw-mitigation"])
def test_seesaw_stays_under_100_mb_at_the_size_of_fungitastic(name):
    counts = np.random.default_rng(0).integers(1, 1000, 2829)
    loss = make_loss(name, counts, "cpu", smoothing=0.0, strength=1.0)
    logits, labels = torch.randn(64, 2829, requires_grad=True), torch.randint(0, 2829, (64,))
    with Allocated() as allocated:
        loss(logits, labels).mean().backward()
    assert allocated.total < 100e6


def test_balanced_softmax_is_logit_adjustment_of_strength_one():
    counts, logits, labels = np.array([1, 10, 100]), torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    balanced = make_loss("balanced-softmax", counts, "cpu", smoothing=0.0, strength=9.0)(logits, labels)
    adjusted = make_loss("logit-adjusted", counts, "cpu", smoothing=0.0, strength=1.0)(logits, labels)
    torch.testing.assert_close(balanced, adjusted)
    weighted = torch.exp(logits) * torch.tensor(counts)
    expected = -torch.log(weighted.gather(1, labels[:, None])[:, 0] / weighted.sum(dim=1))
    torch.testing.assert_close(balanced, expected, check_dtype=False)


def test_focal_loss_of_strength_zero_is_cross_entropy():
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    for strength in (0.0, 2.0):
        focal = make_loss("focal", np.ones(3, dtype=np.int64), "cpu", smoothing=0.0, strength=strength)(logits, labels)
        p = torch.softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
        torch.testing.assert_close(focal, -((1 - p) ** strength) * torch.log(p))


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "binary"])
def test_a_class_without_photos_and_one_class_alone_give_finite_losses(name):
    loss = make_loss(name, np.array([5, 0, 3]), "cpu", smoothing=0.0, strength=1.0)
    logits = torch.randn(4, 3, requires_grad=True)
    loss(logits, torch.tensor([0, 1, 2, 0])).sum().backward()
    assert torch.isfinite(logits.grad).all()
    alone = make_loss(name, np.array([5]), "cpu", smoothing=0.0, strength=1.0)
    assert alone(torch.randn(2, 1), torch.tensor([0, 0])).abs().max() < 1e-6


def test_smoothing_is_refused_where_a_loss_has_none():
    with pytest.raises(MisuseError, match="cross-entropy"):
        make_loss("seesaw", np.ones(3, dtype=np.int64), "cpu", smoothing=0.1, strength=1.0)
