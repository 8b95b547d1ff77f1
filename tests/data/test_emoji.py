"""Emoji: what becomes a class, what is rendered, and which design is in which split."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.invented_emoji import BODIES, COLOURS, GROUPS, designs

from scalechannels.data import emoji_drawings
from scalechannels.data.backgrounds import Backgrounds, textures
from scalechannels.data.emoji import IMAGE, SIDE, SIZES, Emoji, designs_of, nearest_pixels, placed
from scalechannels.data.emoji_drawings import DESIGNS, chosen, open_drawings, prepare, prepared_path

RGB = {
    "red": (255, 0, 0),
    "lime": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "aqua": (0, 255, 255),
}


def test_what_all_designs_draw_once_becomes_a_class() -> None:
    """No alias, nothing hidden, no clock face, no person, and of two with one drawing the first."""
    assert set(chosen(designs(), GROUPS, 4)) <= {*BODIES, "twin"}
    assert len({"ball", "twin"} & set(chosen(designs(), GROUPS, 4))) == 1
    with pytest.raises(ValueError, match="classes must be from 2 to 4, as many as there are; got 5"):
        chosen(designs(), GROUPS, 5)
    assert set(chosen(designs(), GROUPS, 2)) < set(chosen(designs(), GROUPS, 3))  # fewer are among more


def test_a_drawing_fills_the_square_of_its_size(emoji_root: Path) -> None:
    drawings = open_drawings(emoji_root, 4)
    for number, design in enumerate(DESIGNS):
        for pixels in (16, 22, 64):
            rendered = drawings.rendered(design, pixels)
            assert rendered.shape == (4, pixels, pixels, 4)
            box = rendered[drawings.classes.index("box")]
            assert (box[1:-1, 1:-1] == (*RGB[COLOURS[number]], 255)).all()
            bar = rendered[drawings.classes.index("bar")][..., 3] > 127
            assert (bar.any(0).sum(), bar.any(1).sum()) == (pixels, pixels // 2)  # longer side; not stretched


def test_detail_belongs_to_the_size_and_is_not_resampled(emoji_root: Path) -> None:
    """A slanting edge is as sharp at 512 pixels as at 64: the share of mixed pixels falls with the size."""
    drawings = open_drawings(emoji_root, 4)
    sign = drawings.classes.index("sign")
    mixed = {}
    for pixels in (64, 512):
        opaque = drawings.rendered("noto", pixels)[sign, ..., 3]
        mixed[pixels] = ((opaque > 0) & (opaque < 255)).mean() * pixels
    assert 0.7 < mixed[512] / mixed[64] < 1.4  # an enlarged one of 64 pixels would have eight times as many


def test_the_prepared_file_is_made_once_and_again_if_it_is_damaged(
    tmp_path: Path, emoji_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prepared_path(tmp_path, 4)
    path.parent.mkdir()
    whole = prepared_path(emoji_root, 4).read_bytes()
    path.write_bytes(whole)
    calls = []
    monkeypatch.setattr(emoji_drawings, "_fetched", lambda root: calls.append(1) or (designs(), GROUPS))
    monkeypatch.setattr(
        emoji_drawings, "_at_all_sizes", lambda *_: (np.zeros((p, p, 4)) for p in emoji_drawings.PIXELS)
    )
    assert prepare(None, 4, folder=tmp_path) == path
    assert not calls
    place = whole.index(b"emojione-512") + 100
    path.write_bytes(
        whole[:place] + bytes(255 - byte for byte in whole[place : place + 8]) + whole[place + 8 :]
    )
    damaged = open_drawings(tmp_path, 4)
    with pytest.raises(OSError, match=r"is damaged .*data generate emoji"):
        damaged.rendered("emojione", 512)
    assert prepare(None, 4, folder=tmp_path) == path
    assert calls


def test_a_missing_file_says_how_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALECHANNELS_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"scalechannels data generate emoji, here or on a machine"):
        Emoji()
    with pytest.raises(FileNotFoundError, match=r"emoji --classes 7, here"):
        Emoji(tmp_path / "none", classes=7)


def test_a_file_of_other_packages_is_refused(emoji_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = {**DESIGNS, "noto": {**DESIGNS["noto"], "package": "@iconify-json/noto@9.9.9"}}
    monkeypatch.setattr(emoji_drawings, "DESIGNS", newer)
    with pytest.raises(OSError, match="rendered by another version"):
        open_drawings(emoji_root, 4)


def test_no_design_is_in_two_splits() -> None:
    assert designs_of("test") == ("twemoji",)
    assert designs_of("validation", hold_out=True) == ("emojione",)
    assert designs_of("train", hold_out=True) == ("noto", "openmoji", "fluent-emoji-flat")
    assert designs_of("train") == ("noto", "openmoji", "fluent-emoji-flat", "emojione")
    with pytest.raises(ValueError, match="hold_out=True"):
        designs_of("validation")


def test_every_design_names_its_licence_and_a_package_with_checksums() -> None:
    for about in DESIGNS.values():
        assert about["licence"] in ("Apache-2.0", "CC-BY-SA-4.0", "CC-BY-4.0", "MIT")
        assert about["package"].startswith("@iconify-json/")
        assert all(len(checksum) == 64 for checksum in about["checksums"].values())
    assert "://" not in json.dumps(DESIGNS)


def test_each_drawing_is_shown_on_plain_and_textured_backgrounds(
    emoji_root: Path, few_textures: None
) -> None:
    maker = Emoji(emoji_root, classes=4)
    made = maker.make("test", 2.0, seed=3)
    assert made.images.shape == (8, 3, IMAGE, IMAGE)
    assert made.labels.tolist() == [0, 1, 2, 3] * 2
    assert made.scales.tolist() == [2.0] * 8
    assert 0 <= made.images.min() <= made.images.max() <= 1
    corner = made.images[..., : IMAGE // 4, : IMAGE // 4].flatten(2).std(-1).amax(1)  # beside the object
    assert (corner[:4] < 1e-6).all()
    assert (corner[4:] > 0.01).all()
    box = maker.classes.index("box")
    inside = made.images[[box, box + 4], :, 256 - 60 : 256 + 60, 256 - 60 : 256 + 60]
    assert inside.equal(torch.tensor(RGB["aqua"]).view(1, 3, 1, 1).expand_as(inside) / 255)
    outside = maker.make("test", 1.0, seed=3).images[..., : IMAGE // 4, : IMAGE // 4]
    assert outside.equal(made.images[..., : IMAGE // 4, : IMAGE // 4])  # the size does not change it
    assert not maker.make("test", 2.0, seed=4).images.equal(made.images)


def test_sizes_are_drawn_among_the_rendered_ones(emoji_root: Path, few_textures: None) -> None:
    made = Emoji(emoji_root, classes=4).make("train", (0.5, 2.0), views=("plain",))
    assert len(made) == 16
    assert set(made.scales.tolist()) <= {size for size in SIZES if 0.5 <= size <= 2}
    assert len(made.scales.unique()) > 2
    assert nearest_pixels(2**-1.5, 1, torch.Generator()).tolist() == [22]
    with pytest.raises(ValueError, match=r"emoji are rendered at the sizes 0.25, .*got 3"):
        nearest_pixels(3.0, 1, torch.Generator())


def test_a_drawing_lies_at_the_centre_of_the_image() -> None:
    drawing = torch.full((1, 4, SIDE, SIDE), 255, dtype=torch.uint8)
    image = placed(drawing, torch.zeros(1, 3, 96, 96))[0, 0]
    assert image.equal(image.flip(0))
    assert image.equal(image.flip(1))
    assert image.sum() == SIDE**2
    with pytest.raises(ValueError, match="no centre in an image of 95 x 95"):
        placed(drawing, torch.zeros(1, 3, 95, 95))


def test_textures_are_the_same_for_a_seed_and_look_the_same_at_every_size() -> None:
    one = textures(1, 5, side=192)
    assert one.equal(textures(1, 5, side=192))
    assert not one.equal(textures(1, 6, side=192))
    fine = one.float().mean(1)
    coarse = torch.nn.functional.avg_pool2d(fine[:, None], 2)[:, 0]
    steps = [(image[:, 1:] - image[:, :-1]).abs().mean() for image in (fine, coarse)]
    assert 0.6 < steps[0] / steps[1] < 1.1  # white noise would give 2, a smooth image 1/2


def test_backgrounds_that_do_not_exist_are_refused() -> None:
    behind = Backgrounds(0, bank=1)
    with pytest.raises(ValueError, match="kind must be one of plain, textured; got 'photo'"):
        behind.draw("photo", 1, 64, torch.Generator())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="textures have up to 768 pixels; got 800"):
        behind.draw("textured", 1, 800, torch.Generator())


@pytest.mark.parametrize("about", [b"[]", b"3", b"{}", b'{"format": 1, "packages": {}, "classes": 7}'])
def test_a_prepared_file_that_says_something_else_is_named(about: bytes, tmp_path: Path) -> None:
    path = prepared_path(tmp_path, 4)
    path.parent.mkdir(parents=True)
    np.savez(path, about=np.frombuffer(about, np.uint8))
    with pytest.raises(
        OSError, match=r"drawings-4\.npz' is damaged .*; remove it and run scalechannels data"
    ):
        open_drawings(tmp_path, 4)
