"""What is measured: one table of cases, which figures, policies and reports are made of."""
