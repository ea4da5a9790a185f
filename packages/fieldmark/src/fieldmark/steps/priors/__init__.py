"""Priors: what the context of an item (month, habitat, country, place, site) says about its labels.

| module | holds |
|---|---|
| `base` | what a source of a prior and a step with a prior are |
| `contexts`, `countries` | the values of a context, and the wider values that each backs off to |
| `smoothing`, `counts` | how often each label occurs in each context, learned from train |
| `presence_tables` | a table of which label lives where |
| `combining` | the rules, and exponents of lowest log loss on val |
| `prior` | the steps `prior`, `month-prior` and `country-prior` |
| `groups`, `places` | the steps `site-prior`, `season-prior` and `place-prior` of soundscapes |
"""

from __future__ import annotations
