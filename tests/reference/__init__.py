"""Slow, literal transcriptions of the definitions. They import nothing from the library."""
