"""How it is solved: one file per method."""
