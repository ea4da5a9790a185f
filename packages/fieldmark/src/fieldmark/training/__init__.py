"""The fine-tuning engine: one loop for photos, spectrograms and patches.

`loop.train` takes a network, an objective, two sources of examples and a transform, and knows nothing of what they
show. Nothing here knows tables or benchmarks: sources hold arrays and functions that return bytes, so that the engine
runs on a bare GPU machine.

Randomness is a function of the seed, the epoch and the example (`draws`), never the state of a generator: a training
that was killed goes on exactly where it stopped, and several processes see what one would have seen.
"""
