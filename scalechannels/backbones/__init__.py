"""The networks inside a scale channel. They know nothing of scales."""
