"""A few observations with everything that is known about them."""

from __future__ import annotations

from fieldmark.reports.markup import render
from fieldmark.reports.pages.cards import draw_observations, make_card, outline_colors
from fieldmark.reports.pages.facts import context_columns
from fieldmark.reports.section import Context, Section


class ObservationsSection(Section):
    """What an answer could have been based on."""

    name = "observations"
    title = "Observations with all their data"

    def applies(self, context: Context) -> bool:
        return bool(context.opened.dataset.layers) or bool(context_columns(context.items))

    def render(self, context: Context) -> str:
        drawn = draw_observations(context)
        colors = outline_colors(context, drawn)
        return render(
            "sections/observations.html.j2",
            context=context,
            cards=[make_card(context, observation, colors) for observation in drawn],
            has_layers=bool(context.opened.dataset.layers),
        )


SECTION = ObservationsSection()
