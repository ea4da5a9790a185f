"""The kingdom of the invented fungi: caps on stems, told apart by color, shape, surface and what is under the cap."""

from __future__ import annotations

from fieldmark.worlds.kingdom import Categorical, Continuous, Kingdom

FUNGI = Kingdom(
    name="Fungi",
    suffixes={"phylum": "mycota", "class": "mycetes", "order": "ales", "family": "aceae"},
    habitats=(
        "deciduous woodland",
        "mixed woodland",
        "coniferous woodland",
        "grassland",
        "heath",
        "dunes",
        "park or garden",
        "bog",
    ),
    substrates=("soil", "dead wood", "living wood", "leaf litter", "dung", "moss"),
    continuous=(
        Continuous("cap_hue", drift=1.5, within=0.7),
        Continuous("cap_saturation", mean=0.3),
        Continuous("cap_lightness"),
        Continuous("cap_convexity", drift=1.2),
        Continuous("cap_width"),
        Continuous("cap_umbo", mean=-0.2),
        Continuous("cap_center_darkness"),
        Continuous("cap_margin_paleness", mean=-0.2),
        Continuous("cap_waviness", mean=-0.6),
        Continuous("cap_gloss"),
        Continuous("texture_density"),
        Continuous("texture_contrast", mean=0.2),
        Continuous("underside_color", mean=-0.5, drift=1.3, within=0.8),
        Continuous("underside_spacing"),
        Continuous("stem_length", drift=1.2),
        Continuous("stem_width", drift=1.2),
        Continuous("stem_taper"),
        Continuous("stem_tint", mean=-0.5),
        Continuous("stem_lightness", mean=0.3),
    ),
    categorical=(
        Categorical("underside", ("gills", "pores", "teeth", "ridges"), (0.6, 0.22, 0.08, 0.1)),
        Categorical("texture", ("smooth", "scaly", "spotted", "striate"), (0.4, 0.22, 0.16, 0.22)),
        Categorical("ring", ("absent", "present"), (0.68, 0.32)),
        Categorical("base", ("plain", "bulb", "volva"), (0.6, 0.25, 0.15)),
    ),
    peak_day=268.0,
    peak_spread_days=42.0,
)
