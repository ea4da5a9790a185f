"""Sound: reading recordings of any length, cutting them, spectrograms, and what is done to them in training.

Nothing here knows tables or benchmarks: it takes open files and gives arrays.
"""
