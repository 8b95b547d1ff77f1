from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def quick(one_thread: None) -> Callable[..., Any]:
    """A classifier that is trained in a fraction of a second, on one thread; of these options."""
    pytest.importorskip("sklearn", reason="the extra scalechannels[sklearn] is not installed")
    from scalechannels import ScaleInvariantClassifier

    def made(**given: Any) -> Any:
        few = {"network": {"window": 12, "ratio": 4.0}, "data": {"images": "crops"}}
        usual = {"sizes": (1.0, 1.0), "epochs": 2, "random_state": 0, "options": few}
        return ScaleInvariantClassifier(**{**usual, **given})

    return made
