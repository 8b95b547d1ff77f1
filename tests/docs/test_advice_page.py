"""docs/advice.md and the README give the numbers of our runs, and the code for fewer channels runs."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
ADVICE = (ROOT / "docs" / "advice.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Its tables are generated, and tested to be current.
REPRODUCED = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
SAME = {  # how the page calls the rows of table 1
    "FovAvg, our runs": "FovAvg 17ch mean",
    "FovMax, our runs": "FovMax 17ch mean",
    "FovLSE: log-mean-exp pooling, nothing else": "FovLSE 17ch mean (ours)",
    "**FovLSE+**: with the options below": "FovLSE+ 17ch mean (ours)",
    "FovLSE+, five shifted windows in testing (`shifts = 1`)": "FovLSE+, shifts 17ch mean (ours)",
    "**FovLSE+, wide**, five shifted windows": "FovLSE+, wide, shifts 17ch mean (ours)",
    "plain CNN, trained on all sizes from 1/2 to 8": "CNN, all sizes tr[1/2,8] (ours)",
    "plain CNN, averaged over 17 rescaled images": "CNN, averaged mean (ours)",
}


def row(text: str, label: str) -> list[str]:
    (line,) = re.findall(rf"^\| {re.escape(label)} \|(.*)\|$", text, flags=re.MULTILINE)
    return [cell.strip() for cell in line.split("|")]


@pytest.mark.parametrize("label", SAME)
def test_the_table_has_the_numbers_of_our_runs(label: str) -> None:
    _, one_to_four, half_to_four, half_to_eight, _ = row(ADVICE, label)
    _, _, *ours = row(REPRODUCED, SAME[label])  # [1,4], [4,8], [1/2,4], [1/2,8]; then the paper
    ours = [cell.split(" (")[0] for cell in ours]
    assert [one_to_four, half_to_four, half_to_eight] == [ours[0], ours[2], ours[3]]


@pytest.mark.parametrize(
    ("label", "published"), [("FovAvg", "FovAvg 17ch mean"), ("FovMax", "FovMax 17ch mean")]
)
def test_the_table_has_the_published_numbers(label: str, published: str) -> None:
    cells = row(REPRODUCED, published)
    theirs = [cells[place].split("(")[1].split(",")[0] for place in (2, 4, 5)]
    assert row(ADVICE, f"{label}, as published")[1:4] == theirs


def test_the_readme_has_the_same_numbers() -> None:
    for label in ("**FovLSE+**: with the options below", "plain CNN, trained on all sizes from 1/2 to 8"):
        _, one_to_four, _, half_to_eight, _ = (cell.split(" ±")[0] for cell in row(ADVICE, label))
        assert re.search(rf"\*?{one_to_four}\*?\*? \| \*?\*?{half_to_eight}", README)
    wide = row(ADVICE, "**FovLSE+, wide**, five shifted windows")
    assert f"{wide[1].split()[0]} | {wide[3].split()[0]}" in README
    plain = [cell.split()[0] for cell in row(REPRODUCED, "CNN mean")]
    assert f"{plain[2]} and {plain[5]}" in README


def test_every_second_channel_has_the_same_weights() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", ADVICE, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    network, fast = names["network"], names["fast"]
    assert (len(network.grid), len(fast.grid)) == (17, 9)
    images = torch.rand(2, 1, 112, 112)
    with torch.no_grad():
        torch.testing.assert_close(fast.channel_logits(images), network.channel_logits(images)[:, ::2])
