"""The kingdom of the invented snakes: told apart by color, pattern, and the shape of body and head."""

from __future__ import annotations

from fieldmark_worlds.nature.kingdom import Categorical, Continuous, Kingdom

PATTERNS = ("plain", "bands", "rings", "stripes", "blotches", "zigzag")
# What a mimic takes over from its model. The rest (head, body) stays its own, and is all that gives it away.
WARNING_TRAITS = (
    "body_hue",
    "body_saturation",
    "body_lightness",
    "pattern_hue",
    "pattern_lightness",
    "pattern_contrast",
    "pattern_count",
    "pattern_width",
    "belly_paleness",
)
# What may differ between males and females, and between young and old.
SEX_TRAITS = ("body_hue", "body_saturation", "body_lightness", "pattern_contrast")
AGE_TRAITS = ("body_lightness", "body_saturation", "pattern_contrast", "pattern_lightness")

SNAKES = Kingdom(
    name="Serpentes",
    suffixes={"phylum": "ophidia", "class": "ophes", "order": "oidea", "family": "idae"},
    habitats=("forest", "grassland", "desert", "wetland", "rocks", "farmland"),
    substrates=("ground", "branch", "water", "rock"),
    continuous=(
        Continuous("body_hue", drift=1.3, within=0.6),
        Continuous("body_saturation", mean=0.1),
        Continuous("body_lightness", drift=1.2),
        Continuous("pattern_hue", drift=1.2, within=0.7),
        Continuous("pattern_lightness", mean=-0.4, drift=1.1),
        Continuous("pattern_contrast", mean=0.6, drift=0.8),
        Continuous("pattern_count", drift=1.1, within=0.8),
        Continuous("pattern_width", drift=0.9),
        Continuous("belly_paleness", mean=0.3, drift=0.8, within=1.2),
        Continuous("body_thickness", drift=1.2, within=0.8),
        Continuous("tail_taper", drift=0.8, within=1.1),
        Continuous("head_width", drift=1.2, within=0.8),
        Continuous("head_length", drift=0.8, within=1.1),
        Continuous("gloss", drift=0.7, within=1.2),
        Continuous("scale_size", drift=0.7, within=1.1),
    ),
    categorical=(Categorical("pattern", PATTERNS, (0.2, 0.2, 0.12, 0.16, 0.2, 0.12)),),
    peak_day=170.0,
    peak_spread_days=40.0,
)
