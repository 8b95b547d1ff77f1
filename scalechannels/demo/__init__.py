"""The demo: a small server for this machine only, and one page that shows what every scale channel sees."""
