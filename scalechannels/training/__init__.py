"""Training: config → runs → fit → evaluate."""
