"""What is asked: items (what an answer is about) and answers (what is given), one module per kind.

A task holds one of each. Generic code calls the two objects and never compares a kind by name; a new kind is one module
here and a benchmark that declares it.
"""
