"""The demo: a small server on this machine alone, and one page that shows what every scale channel sees."""
