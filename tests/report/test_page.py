"""Pages escape what they are given, get all that they name, and load nothing."""

import base64
import io
import math
from pathlib import Path

import jinja2
import numpy as np
import pytest
import torch
from PIL import Image

import scalechannels.report
from scalechannels.report import page

PAGES = Path(scalechannels.report.__file__).parent / "templates"


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch):
    """Renders a text as if it were a template beside the others."""

    def render(text: str, **values: object) -> str:
        beside = jinja2.ChoiceLoader([jinja2.DictLoader({"made_up": text}), jinja2.FileSystemLoader(PAGES)])
        monkeypatch.setattr(jinja2, "PackageLoader", lambda _: beside)
        return page.render("made_up", **values)

    return render


def test_text_on_a_page_is_escaped(template) -> None:
    made = template(
        '{% extends "page.html" %}{% import "parts.html" as parts %}'
        "{% block title %}{{ title }}{% endblock %}"
        "{% block body %}{{ script }}<p>{{ sum }}</p>{{ parts.table(heads, rows) }}{% endblock %}",
        title="a < b",
        script="<script>",
        sum="1 & 2",
        heads=["<h>"],
        rows=[["<td>"]],
    )
    assert "<script>" not in made
    assert "<title>a &lt; b</title>" in made
    assert "<h1>a &lt; b</h1>" in made
    assert "1 &amp; 2" in made
    assert "<td>&lt;td&gt;</td>" in made
    assert made.startswith("<!doctype html>")


def test_a_name_that_a_template_does_not_get_is_an_error(template) -> None:
    with pytest.raises(jinja2.UndefinedError, match="'missing' is undefined"):
        template("{{ missing }}")


def test_an_image_becomes_a_data_address_with_its_pixels(template) -> None:
    for shape in ((4, 6), (3, 4, 6)):
        image = torch.linspace(-0.1, 1.1, math.prod(shape)).view(shape)
        kind, data = template("{{ image|png }}", image=image).split(",")
        assert kind == "data:image/png;base64"
        with Image.open(io.BytesIO(base64.b64decode(data))) as opened:
            found = np.asarray(opened) / 255
        wanted = image.clamp(0, 1) if image.ndim == 2 else image.clamp(0, 1).movedim(0, -1)
        assert np.allclose(found, wanted.numpy(), atol=0.5 / 255)
