"""The paper's tables and figures: its experiments as data, its numbers, and ours beside them."""
