"""What the page of the paper says; the whole page is in tests/commands/test_report.py."""

from helpers.made_up import made_up

from scalechannels.paper.recipes import better
from scalechannels.paper.report import costs


def test_networks_of_different_width_have_costs_of_their_own() -> None:
    narrow, wide = made_up(better("tr2")), made_up(better("tr2", width=2))
    wide.values["parameters"] = 272_386
    wide.values["seconds"]["training"] *= 3
    assert costs([narrow, wide, narrow]) == [
        ["FovLSE", "mnist", "17", "2", "68,870", "12.0"],  # (2 + 20) / 2 and 1
        ["FovLSE", "mnist", "17", "1", "272,386", "32.0"],
    ]
