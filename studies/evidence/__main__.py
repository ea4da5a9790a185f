"""`python -m studies.evidence [study ...]`: runs studies and renews the tables made from their results."""

from __future__ import annotations

import argparse
from importlib import import_module

from studies.evidence.results import write_result
from studies.evidence.tables import write_tables

STUDIES = {
    "few_units": "do the 95 % intervals cover with few units of the kind on which a metric rests?",
    "suite_ranks": "do rank intervals over units and cells hold, and are equal models separated? (simulated)",
    "suites": "the project's own table: packaged backbones and heads on all sets of photos and clips (real)",
    "coverage": "do the 95 % intervals of the closed-set metrics cover?",
    "challenges": "do the 95 % intervals of the other challenges cover?",
    "editions": "do the 95 % intervals of the editions of 2021 to 2026 cover?",
    "ensembles": "an ensemble of three against its best member: snakes, plants, birds, places (real)",
    "place_weights": "weights of an ensemble for places: equal, from val, from blocks of train (real)",
    "later_baselines": "lists for surveys, tiles of plots, clusters of individuals, from releases on disk (real)",
    "ladder": "can the public board be climbed by guessing past the Ladder? (simulated)",
    "ladder_remedies": "would another Ladder hold against withheld answers, and what would it cost? (simulated)",
    "baselines": "the baselines on five worlds, beside the best that can be known from the traits (simulated)",
    "auto": "auto against linear with its defaults on six real sets, five seeds: sums up cells that are there (real)",
    "auto_places": "auto for places against every single method, five real sets: sums up cells that are there (real)",
    "birds": "the baselines on birds_cub_odd with its official split (real photos)",
    "chipnotes": "twenty species of birds by ear, real clips, split by source recording",
    "soundscapes": "methods and steps on five worlds of soundscapes (simulated)",
    "scratch": "a small network from scratch on a small world, beside linear on random features (simulated)",
    "fewshot": "one to eight photos per class of real birds and fungi, ten draws each",
    "semi": "few labels and many unlabeled photos of real birds, frozen features, ten draws",
    "semi_worlds": "the same on five worlds of Semi-iNat (simulated)",
    "crops": "the box around what stands out against whole photos, real birds, snakes and fungi",
    "openset": "the open-set score chosen on val against max softmax, worlds (simulated) and real birds",
    "openset_draws": "the open-set score without unknown species in val, five sets of real photos, five draws",
    "butterflies": "masks of real butterflies, settings chosen on other species than those tested",
    "foreground": "does a classifier look at the butterfly? (real photos)",
    "world_masks": "a U-Net from a pre-trained Lite0 against the ellipse in the middle (simulated)",
    "costs": "least expected cost against the likeliest label, worlds (simulated) and real genera",
    "oracles": "100 random cases of every benchmark beside naive programs, with each unit left out as well",
    "fuzzing": "21,000 damaged files: each is scored or refused in a sentence",
    "endings": "500 runs each of six commands, one of them a server that is told to end: their exit codes (simulated)",
    "mutations": "60 random changes of one token of the scorer: do the tests notice?",
    "faults": "killed workers, a restarted database, no disk, midnight, a wrong clock, hidden labels (simulated)",
    "side_by_side": "the shipped units under one account, honest and hostile programs for ten minutes (simulated)",
    "ray_cluster": "features on two nodes of Ray, one of them killed half-way: lost, doubled, changed? (real photos)",
    "interface": "drawn questions to the REST interface: is one of them answered with a fault? (simulated)",
    "search": "settings by cross-validation on train against the defaults (real photos)",
    "regions": "presences teach, surveyed sites test: two regions of disdat (real tables)",
    "site_thresholds": "do thresholds of detectors keep their promise, and do estimates by clips cover? (simulated)",
    "site_recordings": "BirdNET on annotated recordings, promises and words on answers to photos (real)",
    "tool_readers": "tables of other tools beside the tools' own readers, and sed_eval as a second scorer",
    "board_forecast": "how far does a public board foretell the private one? (real scores)",
    "site_units": "intervals by site and by blocks of land, two regions of disdat (real tables)",
    "breeding_routes": "breeding birds by blocks of routes, and persistence for 2016 (real tables)",
    "land_worlds": "methods for places on five worlds of GeoLifeCLEF 2020 (simulated)",
    "priors": "what month and country alone tell, by each way to smooth counts (real tables)",
    "prior_shift": "a long-tailed test of real birds, before and after each estimator of frequencies",
    "camera_traps": "frequencies and labels from the hard answers of a published network (real records)",
    "mushroom_stream": "how far month and recent weeks predict the next name (real names)",
    "temporal": "prior-online and the season against a static classifier in time order, five worlds (simulated)",
    "pooling": "photos of a specimen pooled by mean, max and attention (real photos of Amanita)",
    "modalities": "priors, fusion and a joint network beside the exact posterior, five worlds (simulated)",
    "amanita": "photos, host trees, date and place of Amanita, alone and fused, by site (real photos)",
    "snake_countries": "what the country alone tells about snakes, by each way to make a prior (real tables)",
    "snakes": "the country prior against none on five worlds of snakes (simulated)",
    "plants": "from herbarium sheets to field photos, species left out in turn (real photos)",
    "plant_worlds": "sheets and field photos in five tiny worlds (simulated)",
    "label_noise": "planted wrong labels that out-of-fold models doubt, real photos and worlds",
    "copies": "copies of photos that the check and fit find, and what else they take for one (real photos)",
    "review": "looks until a list of real birds is 95 % right by the audit's lower bound, least certain first or not",
    "identify": "unknown, danger, short lists and rolled-up answers, worlds (simulated) and real photos",
    "field_guide": "does a field guide in Chromium answer as identify does? (real photos)",
    "field_guide_faults": "10,000 bad inputs to a field guide: each is answered, or told in a sentence",
    "field_guide_large": "the same for photos as large as those of phones (real photos, enlarged)",
    "packaged_photos": "wrong species-level claims of the packaged photo model (real photos)",
    "living_groups": "groups that the packaged network tells, false and missed notices of danger (real photos)",
    "drawn_fungi": "benchmarks like FungiTastic drawn from real records, fitted and scored (real records)",
    "fungi": "the baselines on fungi_genera over five drawn splits (real photos)",
}


def main() -> None:
    """Runs the named studies, or all."""
    parser = argparse.ArgumentParser(prog="python -m studies.evidence", description=__doc__)
    parser.add_argument(
        "studies", nargs="*", choices=[*STUDIES, []], help="which studies; all of them if none is named"
    )
    for name in parser.parse_args().studies or STUDIES:
        print(f"== {name}: {STUDIES[name]}", flush=True)
        result = import_module(f"studies.evidence.{name}").run()
        if result is not None:
            print("written to", write_result(name, result))
    print("written to", write_tables())


if __name__ == "__main__":
    main()
