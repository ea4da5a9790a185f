"""Small networks on the features of several modalities, any of which may be missing from an item.

Each modality m becomes z_m = norm(gelu(A_m x_m)) of one common width; where it is missing, a learned vector stands in.

    gated:    h = sum over m of s_m z_m,  s = softmax over m of scores of (z_1, ..., z_M), one for each number of z
              (gated multimodal units: Arevalo et al. 2017)
    dynamic:  c = gelu(C (z_2, ..., z_M));  u = P z_1;  twice: u = gelu(norm(W(c) u)), with the matrix W(c) linear in c;
              h = z_1 + Q u  (Yang et al., "Dynamic MLP for fine-grained image classification", 2022)

The logits are linear in h. Arrays of NumPy come in and go out; nothing here knows of tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import nn

Mixing = Literal["gated", "dynamic"]
MIXINGS: tuple[Mixing, ...] = ("gated", "dynamic")
# Through how many numbers all modalities decide about the gates of each.
GATE_WIDTH = 64
# The side of the matrices that the context of a dynamic network writes, and how many there are.
DYNAMIC_WIDTH, DYNAMIC_LAYERS = 32, 2
Tensor = Any


class ModalNetwork(nn.Module):  # type: ignore[misc]
    """Features of each modality to logits.

    Args:
        widths: How many features each modality has; the first is the main one of a dynamic network.
        n_labels: How many labels there are.
        width: The common width of all modalities.
        mixing: How they are put together.
        dropout: The share of h that is left out in training.
    """

    def __init__(
        self, widths: Sequence[int], n_labels: int, *, width: int, mixing: Mixing, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.entries = nn.ModuleList(
            nn.Sequential(nn.Linear(own, width), nn.GELU(), nn.LayerNorm(width)) for own in widths
        )
        self.absent = nn.Parameter(torch.zeros(len(widths), width))
        self.mixer = _Alone() if len(widths) == 1 else _MIXERS[mixing](len(widths), width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, n_labels)

    def forward(self, features: Sequence[Tensor], there: Tensor) -> Tensor:
        """The logits.

        Args:
            features: For each modality one row per item.
            there: (items, modalities) whether an item has it.
        """
        entered = [
            torch.where(there[:, m, None], entry(own), self.absent[m])
            for m, (entry, own) in enumerate(zip(self.entries, features, strict=True))
        ]
        return self.head(self.dropout(self.mixer(torch.stack(entered, dim=1))))


class _Alone(nn.Module):  # type: ignore[misc]
    """One modality, nothing to mix."""

    def forward(self, entered: Tensor) -> Tensor:
        return entered[:, 0]


class _Gates(nn.Module):  # type: ignore[misc]
    """A weighted sum, with weights that depend on all modalities."""

    def __init__(self, modalities: int, width: int) -> None:
        super().__init__()
        everything = modalities * width
        self.scores = nn.Sequential(nn.Linear(everything, GATE_WIDTH), nn.GELU(), nn.Linear(GATE_WIDTH, everything))

    def forward(self, entered: Tensor) -> Tensor:
        shares = self.scores(entered.flatten(1)).view_as(entered).softmax(dim=1)
        return (shares * entered).sum(dim=1)


class _Dynamic(nn.Module):  # type: ignore[misc]
    """The first modality, changed by matrices that the others write."""

    def __init__(self, modalities: int, width: int) -> None:
        super().__init__()
        self.context = nn.Sequential(nn.Linear((modalities - 1) * width, width), nn.GELU())
        self.narrow = nn.Linear(width, DYNAMIC_WIDTH)
        self.writers = nn.ModuleList(nn.Linear(width, DYNAMIC_WIDTH**2) for _ in range(DYNAMIC_LAYERS))
        self.norms = nn.ModuleList(nn.LayerNorm(DYNAMIC_WIDTH) for _ in range(DYNAMIC_LAYERS))
        self.widen = nn.Linear(DYNAMIC_WIDTH, width)

    def forward(self, entered: Tensor) -> Tensor:
        main, context = entered[:, 0], self.context(entered[:, 1:].flatten(1))
        changed = self.narrow(main)
        for writer, norm in zip(self.writers, self.norms, strict=True):
            written = writer(context).view(-1, DYNAMIC_WIDTH, DYNAMIC_WIDTH) / DYNAMIC_WIDTH**0.5
            changed = nn.functional.gelu(norm(torch.bmm(written, changed[:, :, None])[:, :, 0]))
        return main + self.widen(changed)


_MIXERS: dict[str, Any] = {"gated": _Gates, "dynamic": _Dynamic}
