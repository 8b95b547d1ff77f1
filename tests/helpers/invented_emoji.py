"""Emoji that nobody drew: four things in the library's five designs, simple enough to be known exactly."""

from functools import partial
from pathlib import Path

import pytest

from scalechannels.data import backgrounds, emoji, emoji_drawings

BODIES = {
    "ball": '<circle cx="{c}" cy="{c}" r="{r}" fill="{colour}"/>',
    "box": '<rect x="{r}" y="{r}" width="{r}" height="{r}" fill="{colour}"/>',
    "bar": '<rect x="{r}" y="{c}" width="{c}" height="{r}" fill="{colour}"/>',
    "sign": '<path d="M{c} {r} L{w} {w} L{r} {w} Z" fill="{colour}"/>',
}
COLOURS = ("red", "lime", "blue", "yellow", "aqua")
GROUPS = {"Objects": [*BODIES, "hidden", "clock-oclock", "twin"], "People & Body": ["person"]}


def designs() -> dict[str, emoji_drawings.Icons]:
    """Each design has its own canvas and colour; beside the four there is what must not become a class."""
    made = {}
    for number, design in enumerate(emoji_drawings.DESIGNS):
        side = 32 * (number + 1)
        drawn = {"c": side / 2, "r": side / 4, "w": side * 3 / 4, "colour": COLOURS[number]}
        icons = {name: {"body": body.format(**drawn)} for name, body in BODIES.items()}
        icons |= {"hidden": {"body": "<g/>", "hidden": True}, "person": {"body": "<g/>"}}
        icons |= {"clock-oclock": {"body": "<g/>"}}
        if number != 2:
            icons["only-some"] = {"body": "<g/>"}
        made[design] = {"icons": icons, "aliases": {"orb": {"parent": "ball"}}, "width": side, "height": side}
    # A name of its own with the drawing of another, in one design alone.
    for number, icons in enumerate(made.values()):
        same = number == 1
        body = icons["icons"]["ball"]["body"] if same else f'<rect width="{number + 3}" height="5"/>'
        icons["icons"]["twin"] = {"body": body}
    return made


@pytest.fixture(scope="session")
def emoji_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the prepared file of these four, found where 100 classes are looked for."""
    root = tmp_path_factory.mktemp("emoji")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emoji_drawings, "_fetched", lambda root: (designs(), GROUPS))
        emoji_drawings.prepare(None, 4, folder=root)
    return root


@pytest.fixture
def few_textures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textures that are made fast."""
    monkeypatch.setattr(emoji, "Backgrounds", partial(backgrounds.Backgrounds, bank=1))
    monkeypatch.setattr(backgrounds, "textures", partial(backgrounds.textures, leaves=50))
