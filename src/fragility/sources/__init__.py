"""Rows wherever they are, on one machine or many, as Arrow batches that fill states."""
