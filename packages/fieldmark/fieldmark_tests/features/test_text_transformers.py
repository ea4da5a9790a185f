from __future__ import annotations

import numpy as np
import pytest

from fieldmark.errors import InputError
from fieldmark.features import text_transformers
from fieldmark.features.text_transformers import TransformerTexts

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "red", "brown", "cap", "stem", "with"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny transformer of random weights, written as any other is."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    root = tmp_path_factory.mktemp("transformer")
    (root / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(vocab=str(root / "vocab.txt")).save_pretrained(root)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = transformers.BertModel(transformers.BertConfig(vocab_size=len(WORDS), **small))
    network.save_pretrained(root)
    return root


@pytest.fixture
def texts(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(text_transformers, "default_store", lambda: tmp_path)
    return TransformerTexts.open(str(folder))


def test_each_text_has_an_embedding_of_its_own_whatever_stands_beside_it(texts):
    alone, together = texts(["a red cap"]), texts(["a brown stem with a red cap", None, "a red cap"])
    assert together.shape == (3, 16) and not together[1].any()
    assert together[2] == pytest.approx(alone[0], abs=1e-5) and np.abs(together[0] - together[2]).max() > 1e-3
    assert texts([None, ""]).shape == (2, 16) and not texts([None, ""]).any()


def test_it_comes_again_from_its_arrays_and_from_no_other_folder(texts, tmp_path):
    again = TransformerTexts.of(texts.arrays)
    assert again == texts and (again(["a red cap"]) == texts(["a red cap"])).all()
    with pytest.raises(InputError, match=r"no config.json, expected a transformer of Hugging Face"):
        TransformerTexts.open(str(tmp_path))
    with pytest.raises(InputError, match="found another transformer"):
        TransformerTexts(texts.folder, "texts-of-another")(["a"])
