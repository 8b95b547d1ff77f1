"""The paper's numbers agree with each other: means are means, and the rankings follow from table 1."""

import pytest

from scalechannels.paper.experiments import experiment
from scalechannels.paper.published import CHANNELS, COLUMNS, RANKINGS, TABLE1, TABLE1_MEANS
from scalechannels.paper.recipes import NETWORKS, SINGLE, TRAINED, main
from scalechannels.training.build import build_network


def test_all_rows_are_there():
    assert list(TABLE1) == [(network, train) for network in NETWORKS for train in TRAINED]
    assert list(TABLE1_MEANS) == list(NETWORKS)
    assert all(len(row) == len(COLUMNS) == 5 for row in (*TABLE1.values(), *TABLE1_MEANS.values()))


@pytest.mark.parametrize("network", NETWORKS)
def test_the_rows_of_means_are_means(network):
    for column in range(len(COLUMNS)):
        values = [TABLE1[network, train][column] for train in SINGLE]
        assert TABLE1_MEANS[network][column] == pytest.approx(sum(values) / 3, abs=0.0151)


def test_ranges_that_overlap_agree():
    """[1/2,4] has the 5 sizes of [1/2,1] and the 9 of [1,4], one of them in both; [1/2,8] has all 17."""
    for row in (*TABLE1.values(), *TABLE1_MEANS.values()):
        small, middle, large, wide, all_ = row
        at_1 = 5 * small + 9 * middle - 13 * wide
        at_4 = 13 * wide + 5 * large - 17 * all_
        assert -0.4 < at_1 < 100.4, row
        assert -0.4 < at_4 < 100.4, row


@pytest.mark.parametrize("id", RANKINGS)
def test_the_rankings_follow_from_table_1(id):
    single, column = id in ("table2", "table4"), COLUMNS.index(experiment(id).over)
    values = {
        network: (TABLE1_MEANS[network] if single else TABLE1[network, "tr14"])[column]
        for network in NETWORKS
    }
    assert dict(RANKINGS[id]) == values
    figures = [value for _, value in RANKINGS[id]]
    assert figures == sorted(figures, reverse=True)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_networks_have_the_channels_of_table_1(network):
    for train, count in zip(("tr2", "tr14"), CHANNELS[network], strict=True):
        built = build_network(main(network, train))
        assert len(getattr(built, "grid", [1])) == count
