"""The paper's figures, drawn from our results."""
