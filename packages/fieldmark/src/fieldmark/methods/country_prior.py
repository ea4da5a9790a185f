"""A classifier whose answers are weighed by what lives in the country of the photo."""

from __future__ import annotations

from dataclasses import dataclass

from fieldmark.methods.headed import Headed
from fieldmark.settings import setting_of
from fieldmark.steps.base import Step
from fieldmark.steps.priors.counts import CROSS_VALIDATED
from fieldmark.steps.priors.presence_tables import DEFAULT_FLOOR
from fieldmark.steps.priors.prior import CountryPrior
from fieldmark.steps.temperature import Temperature


@dataclass(frozen=True)
class CountryWeighted(Headed):
    """A classifier with the step `country-prior` after it, calibrated before and after.

    The idea is the step (`steps.priors`); this method is the chain around it: the classifier's logits, a temperature,
    the product with the prior, renormalized, and another temperature, which makes up for what photo and country say
    both.

    Args:
        rule: df20 (counts enter as P(country | label) / P(country)) or product.
        file: A table of presence; smoothed counts of train where none is given.
        floor: How likely a label is, relative to before, where the table says that it does not live.
        strength, borrow: How counts are smoothed.
        back_off: What a country says of which little or nothing is known: `continent`, then the world; or `world`.
        exponent: How much the prior counts: a number, or val: found there.
    """

    rule: str = setting_of(CountryPrior, "rule")
    file: str = ""
    floor: float = DEFAULT_FLOOR
    strength: str = CROSS_VALIDATED
    borrow: str = ""
    back_off: str = setting_of(CountryPrior, "back_off")
    exponent: str = setting_of(CountryPrior, "exponent")

    def default_steps(self) -> tuple[Step, ...]:
        return (Temperature(), self._prior(), Temperature())

    def _prior(self) -> CountryPrior:
        return CountryPrior(
            rule=self.rule,
            file=self.file,
            floor=self.floor,
            strength=self.strength,
            borrow=self.borrow,
            back_off=self.back_off,
            exponent=self.exponent,
        )
