"""What the paper says in words, as checks of our results."""
