"""The pages of the reference, of every public name. Without mkdocs, so that a fast test can look at them."""

from __future__ import annotations

import scalechannels

REFERENCE = {
    "windows": ("Scales and windows", "scales sampling"),
    "networks": ("Networks", "network constructors plain backbones.zoo"),
    "pooling": ("Pooling", "pooling"),
    "decided": ("What decided", "selection invariance"),
    "detection": ("Dense maps and detection", "dense detection.detector"),
    "saved": ("Saved networks", "saving.saved_network predictor"),
    "estimator": ("A classifier of scikit-learn's kind", "estimator.classifier"),
}
"""The pages of the reference: the title of each, and the modules whose public names it shows, in order."""


def reference_names(page: str) -> list[str]:
    """The public names that a page of the reference shows."""
    return [name for home in REFERENCE[page][1].split() for name in scalechannels._HOMES[home].split()]


def reference(page: str) -> str:
    """The Markdown of a page of the reference, which mkdocstrings fills in."""
    entries = [f"::: scalechannels.{name}\n" for name in reference_names(page)]
    if page == "saved":
        entries.append(
            "## `__version__` {: #scalechannels.__version__ }\n\nThe installed version, as text.\n"
        )
    return "\n".join([f"# {REFERENCE[page][0]}\n", *entries])
