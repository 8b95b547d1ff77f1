"""How near our table 1 is to the paper's."""

from pathlib import Path

from helpers.made_up import made_up, write
from helpers.worlds import as_published, results

from scalechannels.paper.claims.verdicts import verdicts
from scalechannels.paper.recipes import main, seeded
from scalechannels.paper.results import Results


def outside(found: Results) -> dict[str, str]:
    """Claim → the numbers that are further from the paper than it says."""
    near = {claim.id: verdict for claim, verdict in verdicts(found) if claim.id.startswith("near-")}
    for verdict in near.values():
        assert (verdict.state == "does not hold") == verdict.measured.startswith("outside: ")
    return {id: verdict.measured.partition("outside: ")[2] for id, verdict in near.items()}


def test_numbers_far_from_the_paper_are_listed(tmp_path: Path) -> None:
    near = outside(results(tmp_path, as_published))
    assert len(near) == 5
    assert not any(near.values())
    for seed_run in main("fovavg", "tr1"), main("cnn", "tr2"):
        for seed in range(3):
            run = seeded(seed_run, seed)
            write(tmp_path, made_up(run, lambda size, run=run: as_published(run, size) - 1))
    far = outside(Results(tmp_path))
    assert far.pop("near-fovavg") == "tr1 [1,4] -1.00, tr1 [1/2,4] -1.00, tr1 [1/2,8] -1.00"
    assert not any(far.values())
