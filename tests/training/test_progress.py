"""On a terminal, progress says how far it is and how long it will take; anywhere else it is silent."""

import io
import re
import sys

import pytest

from scalechannels.training.progress import Progress


class Terminal(io.StringIO):
    """What a terminal was told."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> str:
        """Without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """In the test itself: before a test, pytest puts its own file in the place of stderr."""
    made = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_training_shows_its_epoch_loss_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with Progress("1/2 resized CNN", True) as progress:
        for epoch in range(4):
            progress.epoch(epoch, epochs=5, steps=2, batch=16, rate=3e-3)
            for done in (1, 2):
                progress.step(done)
            progress.finished([0.5, 0.25])
        progress.step(2)
    said = terminal.lines()
    assert re.search(
        r"1/2 resized CNN .*epoch 4/5  loss 0\.3750  rate 3\.0e-03  [\d,]+ images/s 0:00:0\d", said
    )


def test_a_list_of_work_shows_what_was_done_last_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watched(monkeypatch)
    with Progress("timing", True) as progress:
        for name in ("resized CNN", "augmented CNN", "scale channels"):
            progress.advance(name, count=4)
    assert re.search(r"timing .* scale channels 0:00:0\d", terminal.lines())


def test_what_has_begun_is_named_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first candidate may take a minute to be timed."""
    terminal = watched(monkeypatch)
    with Progress("timing", True) as progress:
        progress.begins("resized CNN", count=2)
        assert progress.bar.tasks[0].completed == 0
        progress.begins("scale channels", count=2)
        assert progress.bar.tasks[0].completed == 1
    assert re.search(r"timing .* scale channels", terminal.lines())


def test_it_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("timing", True) as progress:
        progress.advance("resized CNN", count=1)
    assert capsys.readouterr() == ("", "")
