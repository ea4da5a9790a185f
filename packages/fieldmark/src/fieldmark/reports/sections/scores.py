"""Every run with every metric and its interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fieldmark.questions.targets import Shape
from fieldmark.reports.charts.estimates import Axis
from fieldmark.reports.markup import SEES, render
from fieldmark.reports.section import Context, ScoredRun, Section
from fieldmark.scoring import cautions


class Scores(Section):
    """The table of scores, best first by the primary metric."""

    name = "scores"
    title = "Scores"
    shapes: ClassVar[tuple[Shape, ...]] = ("codes", "pairs", "masks")

    def applies(self, context: Context) -> bool:
        return True

    def render(self, context: Context) -> str:
        primary = context.task.metrics[0]
        ordered = sorted(
            context.runs,
            key=lambda scored: scored.scorecard.metrics[primary.name].value,
            reverse=primary.higher_is_better,
        )
        card = context.first.scorecard
        return render(
            "sections/scores.html.j2",
            context=context,
            runs=[(scored, setup(scored)) for scored in ordered],
            primary=primary.name,
            axis=Axis.around(scored.scorecard.metrics[primary.name] for scored in ordered),
            card=card,
            cautions=cautions(scored.scorecard.metrics for scored in ordered) if len(ordered) > 1 else {},
            leaks=[(scored.title, leak) for scored in ordered for leak in scored.run.leaks],
            tied=[scored.title for scored in ordered if scored.scorecard.rests_on_ties],
            shares={metric.name for metric in context.task.metrics if metric.is_share},
        )


def setup(scored: ScoredRun) -> dict[str, Any]:
    """What a reader must know of a run before comparing it: what it learned from, what it sees, its network."""
    run = scored.run
    return {
        "trained on": " + ".join(run.trained_on),
        "sees": SEES.get(run.sees, run.sees),
        "network": backbone(run.features) if run.features else trained_network(run.options),
    }


def trained_network(options: Mapping[str, Any]) -> str:
    """The network that a method trains itself, in a few words.

    >>> trained_network({"network": "resnet50", "weights": "pretrained", "size": 224}), trained_network({"k": 5})
    ('resnet50 (pre-trained, fine-tuned, 224 px)', 'no backbone')
    """
    if "network" not in options:
        return "no backbone"
    details = ["pre-trained, fine-tuned"] if options.get("weights") == "pretrained" else ["trained here"]
    details += [f"{options['size']} px"] if "size" in options else []
    return f"{options['network']} ({', '.join(details)})"


def backbone(features: dict[str, Any] | None) -> str:
    """The backbone behind the features in a few words.

    >>> backbone({"backbone": "efficientnet_lite0", "weights": "pretrained", "size": 160})
    'efficientnet_lite0 (pretrained, 160 px)'
    >>> backbone({"backbone": "efficientnet_lite0", "size": 160, "output": "second-order"})
    'efficientnet_lite0 (160 px, second-order)'
    >>> backbone({"backbone": "resnet50", "weights": "fine-tuned", "fine_tuned": {"trained": {"benchmark": "folder"}}})
    'resnet50 (fine-tuned on folder)'
    """
    if not features:
        return "none"
    where = f" on {features['fine_tuned']['trained']['benchmark']}" if "fine_tuned" in features else ""
    details = [f"{features['weights']}{where}"] if "weights" in features else []
    details += [f"{features['size']} px"] if "size" in features else []
    details += [features["output"]] if features.get("output", "features") != "features" else []
    return str(features.get("backbone", "unnamed")) + (f" ({', '.join(details)})" if details else "")


SECTION = Scores()
