"""The paper's numbers agree with each other: means are means, and the rankings follow from table 1."""

import pytest

from scalechannels.data.sizes import RANGES
from scalechannels.paper.experiments import experiment
from scalechannels.paper.published import RANKINGS, TABLE1
from scalechannels.paper.recipes import NETWORKS, SINGLE, TRAINED, main
from scalechannels.training.build import build_network

CHANNELS = {"fovavg": (17, 17), "fovmax": (17, 17), "fovconc": (3, 17), "swmax": (17, 17), "cnn": (1, 1)}
"""How many channels for single sizes, and for tr14."""


def test_all_rows_are_there():
    assert list(TABLE1) == [(network, train) for network in NETWORKS for train in (*TRAINED, "mean")]
    assert all(list(row) == list(RANGES) and len(row) == 5 for row in TABLE1.values())


@pytest.mark.parametrize("network", NETWORKS)
def test_the_rows_of_means_are_means(network):
    for column in RANGES:
        values = [TABLE1[network, train][column] for train in SINGLE]
        assert TABLE1[network, "mean"][column] == pytest.approx(sum(values) / 3, abs=0.0151)


def test_ranges_that_overlap_agree():
    """[1/2,4] has the 5 sizes of [1/2,1] and the 9 of [1,4], one of them in both; [1/2,8] has all 17."""
    for row in TABLE1.values():
        small, middle, large, wide, all_ = row.values()
        at_1 = 5 * small + 9 * middle - 13 * wide
        at_4 = 13 * wide + 5 * large - 17 * all_
        assert -0.4 < at_1 < 100.4, row
        assert -0.4 < at_4 < 100.4, row


@pytest.mark.parametrize("id", RANKINGS)
def test_the_rankings_follow_from_table_1(id):
    train = "mean" if id in ("table2", "table4") else "tr14"
    values = {network: TABLE1[network, train][experiment(id).over] for network in NETWORKS}
    assert RANKINGS[id] == values
    figures = list(RANKINGS[id].values())
    assert figures == sorted(figures, reverse=True)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_networks_have_the_channels_of_table_1(network):
    for train, count in zip(("tr2", "tr14"), CHANNELS[network], strict=True):
        built = build_network(main(network, train))
        assert len(getattr(built, "grid", [1])) == count
