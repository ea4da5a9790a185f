"""Features of photos: backbones, extraction and the store that never computes anything twice.

Nothing here knows tables or benchmarks: it takes ids, functions that return bytes, and gives arrays.
"""
