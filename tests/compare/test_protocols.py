"""Protocols and methods as data: the package's own, whose options come first, and what is refused."""

from pathlib import Path

import pytest
from helpers.tiny_comparison import TINY

from scalechannels.compare.protocols import PACKAGED, chosen, own_method, read_protocols


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def test_the_packages_protocols_can_be_run_or_wait_for_their_data() -> None:
    protocols, tuning = read_protocols()
    for protocol in protocols:
        assert not protocol.fault or "data." in protocol.fault, protocol.fault
        assert protocol.reference in protocol.methods
        assert protocol.seeds == 3
    assert len(tuning.rates) == 3
    assert set(tuning.tuned) <= {protocol.id for protocol in protocols}


def test_all_methods_of_a_protocol_see_as_many_images_as_often() -> None:
    protocols, _ = read_protocols()
    for protocol in protocols:
        if protocol.fault:
            continue
        runs = [protocol.run(method).resolve() for method in protocol.methods]
        budgets = {(run.data.samples, run.training.epochs, run.training.images) for run in runs}
        assert len(budgets) == 1, protocol.id
        assert len({run.name for run in runs}) == len(runs), "two methods are the same run"


def test_a_method_goes_before_its_protocol_and_what_it_says_of_one_before_both(tiny) -> None:
    few = read_protocols(tiny)[0][0]
    run = few.run(few.methods[1], seed=1)
    assert (run.training.rate, run.training.smoothing, run.training.epochs) == (1e-3, 0.1, 1)
    assert (run.training.seed, run.data.samples) == (1, 40)
    assert [one.training.seed for one in few.runs(few.methods[0])] == [0, 1]


def test_inside_are_the_sizes_that_were_trained_on(tiny) -> None:
    few = read_protocols(tiny)[0][0]
    assert few.inside(1.0)
    assert not few.inside(0.8)


def test_data_that_this_version_lacks_are_a_fault_and_no_error(tiny) -> None:
    later = read_protocols(tiny)[0][1]
    assert "got 'stereo'" in later.fault


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"fovavg", "cnn"]', '"fovavg", "cn"]', "no method 'cn'; there are fovavg, cnn"),
        ('title = "Few', 'tilte = "Few', "protocols.few has no tilte; it may have title,"),
        ('network = { name = "cnn" }', "network = { width = 2 }", "methods.cnn needs network.name"),
        ("rate = [", "rates = [", "tuning has no rates"),
    ],
)
def test_a_mistake_in_the_file_is_named(tiny, before: str, after: str, message: str) -> None:
    tiny.write_text(TINY.replace(before, after))
    with pytest.raises(ValueError, match=message):
        read_protocols(tiny)


def test_unknown_protocols_and_methods_are_named() -> None:
    with pytest.raises(ValueError, match="there is no protocol 'mnits'; choose from strokes, mnist"):
        chosen(read_protocols()[0], ["mnits"])
    with pytest.raises(ValueError, match="--method must be path/to/file"):
        own_method("my_method")
    assert PACKAGED.exists()
