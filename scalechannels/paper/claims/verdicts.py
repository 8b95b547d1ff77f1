"""The paper's qualitative claims, and those that did not hold here, with what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scalechannels.paper.claims import cifar, curves, selection, table
from scalechannels.paper.claims.claim import Claim, Verdict
from scalechannels.paper.results import Results
from scalechannels.training.config.options import read_toml

CLAIMS: tuple[Claim, ...] = (*table.CLAIMS, *curves.CLAIMS, *selection.CLAIMS, *cifar.CLAIMS)


@dataclass(frozen=True)
class Deviation:
    """A claim that does not hold on the committed results."""

    measured: str
    why: str


DEVIATIONS = {
    id: Deviation(known["measured"], known["why"].strip())
    for id, known in read_toml(Path(__file__).with_name("deviations.toml")).items()
}
"""By the claim's id."""


def explained(claim: Claim, verdict: Verdict) -> str:
    """What is known about a claim that does not hold; an explanation is of the numbers it was written for."""
    known = DEVIATIONS.get(claim.id)
    return known.why if known is not None and known.measured == verdict.measured else "Not explained yet."


def verdicts(results: Results) -> list[tuple[Claim, Verdict]]:
    """Every claim with how it does."""
    return [(claim, claim.verdict(results)) for claim in CLAIMS]


def failed(results: Results) -> list[tuple[Claim, str, str]]:
    """The claims that do not hold, with what was measured and what is known about it."""
    return [
        (claim, verdict.measured, explained(claim, verdict))
        for claim, verdict in verdicts(results)
        if verdict.state == "does not hold"
    ]
