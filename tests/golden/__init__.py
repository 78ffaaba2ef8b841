"""Answers of the library as it was before it was rebuilt, and tests that compare with them.

`ask.py` holds every library call; `record.py` writes the banks; `compare.py` lists differences.
"""
