"""Mutated files and the promises they must not break; `make fuzz` runs them."""
