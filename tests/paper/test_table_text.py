"""Tables as text: signs, dashes, and the paper's values beside ours."""

from pathlib import Path

from scalechannels.paper.recipes import NETWORKS, TRAINED
from scalechannels.paper.results import Results
from scalechannels.paper.table_text import main_text, signed
from scalechannels.paper.tables import main_table

COMMITTED = Path(__file__).parents[2] / "results" / "runs"


def test_a_difference_that_rounds_to_nothing_has_no_sign() -> None:
    assert [signed(value) for value in (0.004, -0.004, 0.01, -1.5, None)] == [
        "0.00",
        "0.00",
        "+0.01",
        "−1.50",
        "–",
    ]


def test_table_1_of_the_committed_results_has_the_paper_beside_it() -> None:
    text = main_text(main_table(Results(COMMITTED)))
    (line,) = (line for line in text.splitlines() if line.startswith("FovAvg 17ch tr2"))
    assert "99.36 ± 0.06  99.36   0.00" in line
    of_the_paper = [line for line in text.splitlines() if not line.endswith("(ours)")]
    assert len([line for line in of_the_paper if line.startswith(tuple(NETWORKS.values()))]) == 25
    assert len(TRAINED) == 4
