"""The version of the code, written into every run."""

__version__ = "0.1.0"
