"""How near our table 1 is to the paper's."""

from pathlib import Path

from helpers.made_up import made_up, write
from helpers.worlds import as_published, results

from scalechannels.paper.claims.table import deviations
from scalechannels.paper.recipes import main, seeded
from scalechannels.paper.results import Results


def test_numbers_far_from_the_paper_are_listed(tmp_path: Path) -> None:
    found = results(tmp_path, as_published)
    assert list(deviations(found)) == []
    for seed_run in main("fovavg", "tr1"), main("cnn", "tr2"):
        for seed in range(3):
            run = seeded(seed_run, seed)
            write(tmp_path, made_up(run, lambda size, run=run: as_published(run, size) - 1))
    listed = [(row.network, row.train, column) for row, column in deviations(Results(tmp_path))]
    assert listed == [("fovavg", "tr1", "[1,4]"), ("fovavg", "tr1", "[1/2,4]"), ("fovavg", "tr1", "[1/2,8]")]
