"""Each claim can hold and can fail on made-up results; on the committed ones it holds or is documented."""

from pathlib import Path

import pytest
from helpers.worlds import against, as_published, as_told, flat, follows, results, upside_down

from scalechannels.paper.claims.verdicts import CLAIMS, DEVIATIONS, Verdict, explained
from scalechannels.paper.results import Results

COMMITTED = Path(__file__).parents[3] / "results" / "runs"


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """For each world, claim → state."""
    worlds = {
        "published": (as_published, follows),
        "told": (as_told, follows),
        "flat": (flat, against),
        "upside down": (upside_down, against),
    }
    return {
        name: {
            claim.id: claim.verdict(found).state
            for found in [results(tmp_path_factory.mktemp("world"), *world)]
            for claim in CLAIMS
        }
        for name, world in worlds.items()
    }


OF_TABLES = ("near-", "ranking-", "spread-", "multi-", "improved-")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_holds_in_the_papers_world_and_fails_in_another(claim, states) -> None:
    world = "published" if claim.id.startswith(OF_TABLES) else "told"
    assert states[world][claim.id] == "holds"
    assert "does not hold" in (states["flat"][claim.id], states["upside down"][claim.id])


def test_without_runs_nothing_is_claimed(tmp_path: Path) -> None:
    for claim in CLAIMS:
        verdict = claim.verdict(Results(tmp_path))
        assert verdict.state == "not enough runs", claim.id
        assert verdict.measured


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_committed_results_hold_what_the_paper_says_or_the_deviation_is_documented(claim) -> None:
    verdict = claim.verdict(Results(COMMITTED))
    if verdict.state == "does not hold":
        assert claim.id in DEVIATIONS, f"{claim.statement}: {verdict.measured}"
        assert verdict.measured == DEVIATIONS[claim.id]["measured"]
    else:
        assert claim.id not in DEVIATIONS, f"{claim.id} holds by now: {verdict.measured}"


def test_ids_are_unique_and_deviations_name_claims() -> None:
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert set(DEVIATIONS) <= set(ids)


def test_an_explanation_is_given_for_the_figures_it_was_written_for_alone() -> None:
    claims = {claim.id: claim for claim in CLAIMS}
    for id, deviation in DEVIATIONS.items():
        assert (
            explained(claims[id], Verdict("does not hold", deviation["measured"])) == deviation["why"].strip()
        )
        assert explained(claims[id], Verdict("does not hold", "other figures")) == "Not explained yet."
