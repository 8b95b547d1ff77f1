"""docs/advice.md: the code for fewer channels runs. Its numbers are tested with those of all documents."""

import re
from pathlib import Path

import torch

ADVICE = (Path(__file__).parents[2] / "docs" / "advice.md").read_text(encoding="utf-8")


def test_every_second_channel_has_the_same_weights() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", ADVICE, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    network, fast = names["network"], names["fast"]
    assert (len(network.grid), len(fast.grid)) == (17, 9)
    images = torch.rand(2, 1, 112, 112)
    with torch.no_grad():
        torch.testing.assert_close(fast.channel_logits(images), network.channel_logits(images)[:, ::2])
