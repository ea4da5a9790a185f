from __future__ import annotations

import json

import pytest

import fieldmark
from fieldmark.errors import InputError, MisuseError
from fieldmark.fitting import Chain
from fieldmark.fitting.chains import chain_of, parse_chain, read_chain


@pytest.mark.parametrize(
    "chain",
    [
        Chain("linear", {"size": "160", "views": "flips"}, ("temperature",)),
        Chain("knn", {"k": "5"}),
        Chain("ensemble", {"weights": "0.5,0.5"}, ("temperature", "prior:column=month")),
    ],
)
def test_a_chain_survives_its_text_and_its_file(chain, tmp_path):
    assert parse_chain(chain.text) == chain
    chain.write(tmp_path / "chain.json")
    read = read_chain(tmp_path / "chain.json")
    assert (read.method, read.settings, read.steps, read.name) == (
        chain.method,
        chain.settings,
        chain.steps,
        chain.text,
    )


def test_a_file_may_be_toml(tmp_path):
    path = tmp_path / "frogs.toml"
    path.write_text('name = "frogs"\nmethod = "knn"\nsteps = ["temperature"]\n[settings]\nk = 3\n')
    assert read_chain(path) == Chain("knn", {"k": 3}, ("temperature",), "frogs")


@pytest.mark.parametrize(
    ("text", "found"),
    [("{", "Expecting"), ('{"steps": []}', "no method"), ('{"method": "knn", "head": 1}', "head"), ("[]", "no table")],
)
def test_a_file_that_is_no_chain_is_refused_by_name(text, found, tmp_path):
    path = tmp_path / "chain.json"
    path.write_text(text)
    with pytest.raises(InputError, match=found) as refused:
        read_chain(path)
    assert "chain.json" in str(refused.value)


def test_what_is_given_beside_a_chain_counts_before_its_own():
    chain = chain_of("knn:k=5 > temperature", {"k": "7"}, ["group-temperature:column=site"])
    assert chain == Chain("knn", {"k": "7"}, ("group-temperature:column=site",))
    assert chain_of("knn", {}, None) is None


def test_a_method_that_there_is_not_gets_advice():
    with pytest.raises(MisuseError, match="linear"):
        parse_chain("linaer:size=160")


def test_a_fit_takes_a_chain_and_its_model_records_it(make_release, tmp_path):
    root = make_release(flat=True)
    chain = Chain("frequent", {}, ("temperature",), "what is common")
    result = fieldmark.fit("folder", root, chain, tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "model" / "model.json").read_text())["trained"]["chain"]
    assert recorded == {"name": "what is common", "method": "frequent", "settings": {}, "steps": ["temperature"]}
    plain = fieldmark.fit("folder", root, "frequent", tmp_path / "plain", steps=["temperature"])
    assert result.scorecard.metrics == plain.scorecard.metrics
