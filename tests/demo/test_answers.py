"""What is answered without a server: refusals that depend on how the demo was started and is used."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from scalechannels.demo import answers
from scalechannels.demo.answers import Demo
from scalechannels.demo.looks import Looks


def test_without_a_detector_the_scene_says_so(looks: Looks):
    demo = Demo(looks)
    assert demo.settings()["detector"] is False
    with pytest.raises(answers.BadRequestError, match="without a detector"):
        demo.answer("/api/scene", answers.Body(b"{}", False))
    demo.close()


def test_more_than_can_wait_are_told_to_come_back(looks: Looks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answers, "WAITING", 1)
    demo = Demo(looks)
    held, go = threading.Event(), threading.Event()

    def slow(body: answers.Body) -> dict:
        held.set()
        go.wait(20)
        return {}

    demo.answers["/api/look"] = slow
    with ThreadPoolExecutor(1) as user:
        first = user.submit(demo.answer, "/api/look", answers.Body(b"", False))
        held.wait(20)
        with pytest.raises(answers.BadRequestError, match="too many requests"):
            demo.answer("/api/look", answers.Body(b"", False))
        go.set()
        assert first.result() == {}
    assert demo.answer("/api/look", answers.Body(b"", False)) == {}
    demo.close()
