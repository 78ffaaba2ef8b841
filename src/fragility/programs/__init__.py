"""What is solved, as data."""
