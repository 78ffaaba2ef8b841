"""Scores of many cases as exact sums that merge."""

#: Scores (cases times columns) that a state holds, unless told otherwise; and the most that one
#: calibration map of several classes is fitted to.
HOLD = 2**20
