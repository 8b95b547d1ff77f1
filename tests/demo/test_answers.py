"""What is answered without a server: refusals that depend on how the demo was started."""

import pytest

from scalechannels.demo import answers
from scalechannels.demo.answers import Demo
from scalechannels.demo.looks import Looks


def test_without_a_detector_the_scene_says_so(looks: Looks):
    demo = Demo(looks)
    assert demo.settings()["detector"] is None
    with pytest.raises(answers.BadRequestError, match="without a detector"):
        demo.answer("/api/scene", answers.Body(b"{}", False))
    demo.close()
