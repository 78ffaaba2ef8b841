"""Figures of models, each written once: on atoms, whatever the scores came from."""
