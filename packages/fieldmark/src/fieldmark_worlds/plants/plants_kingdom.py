"""The kingdom of the invented plants: leafy branches with flowers, told apart by leaves, their order, and petals."""

from __future__ import annotations

from fieldmark_worlds.nature.kingdom import Categorical, Continuous, Kingdom

PLANTS = Kingdom(
    name="Plantae",
    suffixes={"phylum": "phyta", "class": "opsida", "order": "ales", "family": "aceae"},
    habitats=("rainforest", "forest edge", "savanna", "riverside", "inselberg", "coast", "roadside", "swamp"),
    substrates=("soil", "rock", "bark", "water", "sand", "litter"),
    # Outlines, veins and order survive the press; color and gloss mostly do not.
    continuous=(
        Continuous("leaf_breadth", drift=1.4),
        Continuous("leaf_widest", drift=1.1),
        Continuous("leaf_tip", drift=1.2),
        Continuous("leaf_base", drift=1.0),
        Continuous("leaf_size", drift=1.1),
        Continuous("tooth_depth", mean=-0.3, drift=1.0),
        Continuous("tooth_number", drift=1.0),
        Continuous("vein_number", drift=1.2),
        Continuous("vein_contrast", drift=0.9),
        Continuous("leaf_angle", drift=1.0, within=1.2),
        Continuous("internode", drift=1.1),
        Continuous("stem_width", mean=-0.3, drift=0.9),
        Continuous("petal_length", drift=1.1),
        Continuous("petal_breadth", drift=1.2),
        Continuous("flower_number", drift=0.9, within=1.2),
        Continuous("leaf_hue", drift=0.9),
        Continuous("leaf_lightness", drift=1.0),
        Continuous("petal_hue", drift=1.6, within=0.6),
        Continuous("petal_lightness", mean=0.4, drift=0.9),
        Continuous("leaf_gloss", drift=0.7, within=1.2),
    ),
    categorical=(
        Categorical("leaf_form", ("simple", "lobed", "pinnate", "palmate"), (0.5, 0.16, 0.22, 0.12)),
        Categorical("arrangement", ("alternate", "opposite", "whorled"), (0.5, 0.36, 0.14)),
        Categorical("margin", ("entire", "toothed"), (0.6, 0.4)),
        Categorical("petals", ("3", "4", "5", "6", "many"), (0.14, 0.16, 0.44, 0.16, 0.1)),
        Categorical("inflorescence", ("solitary", "spike", "umbel"), (0.4, 0.34, 0.26)),
    ),
    peak_day=180.0,
    peak_spread_days=80.0,
)
