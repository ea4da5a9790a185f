"""Texts as the embeddings of a transformer on disk: the mean over the words of its last layer.

The folder is that of a model of Hugging Face (`config.json`, `model.safetensors`, the files of its tokenizer), as
`huggingface-cli download` leaves it. Nothing is downloaded from here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldmark.errors import InputError
from fieldmark.features.crops import Box
from fieldmark.features.store import FeatureStore, default_store
from fieldmark.registry import require

# What the embeddings of a text depend on.
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
NEEDED = FILES[:2]
MOST_TOKENS, BATCH_TEXTS = 256, 32
VERSION = 1


@dataclass(frozen=True)
class TransformerTexts:
    """Embeddings of texts, kept in the store by the content of each.

    Args:
        folder: Where the transformer lies.
        digest: A fingerprint of its files.
    """

    folder: str
    digest: str

    @classmethod
    def open(cls, folder: str) -> TransformerTexts:
        """The transformer in a folder.

        Raises:
            InputError: When there is none.
        """
        for name in NEEDED:
            if not Path(folder, name).is_file():
                hint = "Give the folder of a transformer that is on this machine: --set caption.transformer=FOLDER."
                raise InputError(folder, found=f"no {name}", expected="a transformer of Hugging Face", hint=hint)
        digest = hashlib.blake2b(repr((VERSION, MOST_TOKENS)).encode(), digest_size=16)
        for name in FILES:
            if Path(folder, name).is_file():
                digest.update(name.encode())
                digest.update(Path(folder, name).read_bytes())
        return cls(folder, f"texts-{digest.hexdigest()}")

    def __call__(self, texts: Iterable[str | None]) -> NDArray[np.float32]:
        """One row per text; zeros where there is none."""
        from fieldmark.features.extraction import extract

        self._refuse_other()
        said = list(texts)
        there = list(dict.fromkeys(text for text in said if text))
        if not there:
            return np.zeros((len(said), self._width), dtype=np.float32)
        store = FeatureStore(default_store(), self.digest)
        made = extract(there, str.encode, _Embedder(self), store, what="texts", expected="a text")
        row_of = {text: row for row, text in enumerate(there)}
        found = np.zeros((len(said), made.shape[1]), dtype=np.float32)
        for row, text in enumerate(said):
            if text:
                found[row] = made[row_of[text]]
        return found

    def _refuse_other(self) -> None:
        """Refuses files that are not those the model was fitted with."""
        if self.open(self.folder).digest != self.digest:
            hint = "Put back the files that the model was fitted with, or fit it again."
            raise InputError(self.folder, found="another transformer", expected="the one of the model", hint=hint)

    @property
    def _width(self) -> int:
        return int(self.embed([" "]).shape[1])

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers: Any = require("transformers", "Reading captions by a transformer")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            network = transformers.AutoModel.from_pretrained(self.folder, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            why = str(error).strip().splitlines()[0]
            raise InputError(self.folder, found=f"something else ({why})", expected="a transformer") from error
        return tokenizer, network.eval()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The embedding of each text."""
        torch: Any = require("torch", "Reading captions by a transformer")
        tokenizer, network = self._loaded
        rows = []
        with torch.no_grad():
            for first in range(0, len(texts), BATCH_TEXTS):
                block = list(texts[first : first + BATCH_TEXTS])
                tokens = tokenizer(block, padding=True, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
                hidden, mask = network(**tokens).last_hidden_state, tokens["attention_mask"][:, :, None]
                rows.append(((hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)).numpy())
        return np.concatenate(rows).astype(np.float32)

    @property
    def external_data(self) -> tuple[str, ...]:
        """What it brings in from outside the release."""
        named = f"{Path(self.folder).name} (digest {self.digest[:16]})"
        return (f"whatever the transformer in {named} was trained on, by its weights",)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Where it lies and what it is; its weights stay where they are."""
        return {name: np.frombuffer(getattr(self, name).encode(), dtype=np.uint8) for name in ("folder", "digest")}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> TransformerTexts:
        """The transformer that these arrays speak of."""
        return cls(*(arrays[name].tobytes().decode() for name in ("folder", "digest")))


@dataclass(frozen=True)
class _Embedder:
    """A transformer as something that the store is filled by."""

    texts: TransformerTexts

    def decode(self, data: bytes, box: Box | None = None) -> str:
        return data.decode()

    def __call__(self, pixels: Sequence[str]) -> dict[str, NDArray[Any]]:
        return {"features": self.texts.embed(pixels)}
