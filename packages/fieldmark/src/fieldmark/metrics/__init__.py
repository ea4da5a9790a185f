"""Metrics as pure functions of arrays.

One module per family. Nothing here reads a file, knows a benchmark or imports anything else of Fieldmark. Each metric
comes as a pair: the value, and the values that remain when each independent unit is left out in turn
(`..._without_each_unit`), from which `fieldmark.stats` makes intervals.
"""
