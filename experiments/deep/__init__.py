"""Deep networks of the experiments: what is trained, and how."""
