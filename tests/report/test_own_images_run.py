"""What `scalechannels train --data FOLDER` says before it trains."""

from pathlib import Path

from helpers.own_folder import chosen, write

from scalechannels.report.own_images_run import described


def test_the_size_of_objects_is_told_before_and_after_they_are_shrunk(tmp_path: Path) -> None:
    said = described(chosen(write(tmp_path / "large", [(240, 240)] * 4)))
    assert "grey images, objects of 240 pixels, shrunk to 120 (factor 2)\n" in said
    assert "grey images, objects of 40 pixels\n" in described(
        chosen(write(tmp_path / "small", [(40, 40)] * 4))
    )
