"""Who decides: the model below and above two cuts of its score, and a human between them."""
