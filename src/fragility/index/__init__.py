"""The Fragility Index: ranking errors, their root, and what comes with the number."""
