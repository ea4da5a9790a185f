"""Metrics with their conventions fixed, as benchmarks declare them; one module per family, with its own `__all__`."""

from fieldmark.benchmarks.measures.classification import *
from fieldmark.benchmarks.measures.costs import *
from fieldmark.benchmarks.measures.individuals import *
from fieldmark.benchmarks.measures.label_sets import *
from fieldmark.benchmarks.measures.masks import *
from fieldmark.benchmarks.measures.open_set import *
from fieldmark.benchmarks.measures.presence import *
from fieldmark.benchmarks.measures.ranking import *
from fieldmark.benchmarks.measures.soundscapes import *
from fieldmark.benchmarks.measures.species_lists import *
from fieldmark.benchmarks.measures.taxonomy import *
