"""Scores of many cases as exact sums that merge."""
