"""The paper's claims as checks that can fail, and those that did not hold here, with what was measured.

Law: a claim holds, does not hold, or there are not enough runs to decide; it says what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from scalechannels.paper.claims import curves, selection, table
from scalechannels.paper.claims.claim import Checked
from scalechannels.paper.recipes import NETWORKS
from scalechannels.paper.results import NotEnoughRunsError, Results
from scalechannels.training.config.options import read_toml

State = Literal["holds", "does not hold", "not enough runs"]
CHECKS = {"curves": curves, "selection": selection, "table": table}


@dataclass(frozen=True)
class Verdict:
    """How a claim does on results."""

    state: State
    measured: str


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, where it stands, and its check."""

    id: str
    statement: str
    place: str
    check: Callable[[Results], Checked]

    def verdict(self, results: Results) -> Verdict:
        try:
            holds, measured = self.check(results)
        except NotEnoughRunsError as error:
            return Verdict("not enough runs", str(error))
        return Verdict("holds" if holds else "does not hold", measured)


def _read() -> Iterator[Claim]:
    for id, entry in read_toml(Path(__file__).with_name("claims.toml")).items():
        statement, place = entry.pop("statement"), entry.pop("place")
        module, name = entry.pop("check").split(".")
        check = getattr(CHECKS[module], name)
        networks = entry.pop("networks", ())
        if not networks:
            yield Claim(id, statement.format(**entry), place, partial(check, **entry))
        for network in networks:
            said = statement.format(network=NETWORKS[network], **entry)
            yield Claim(f"{id}-{network}", said, place, partial(check, network=network, **entry))


CLAIMS = tuple(_read())
DEVIATIONS: dict[str, dict[str, str]] = read_toml(Path(__file__).with_name("deviations.toml"))
"""By the id of a claim that does not hold on the committed results: what was measured, and why."""


def explained(claim: Claim, verdict: Verdict) -> str:
    """What is known about a claim that does not hold; an explanation is of the numbers it was written for."""
    known = DEVIATIONS.get(claim.id, {})
    return known["why"].strip() if known.get("measured") == verdict.measured else "Not explained yet."


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
