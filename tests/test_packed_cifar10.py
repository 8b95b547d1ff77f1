"""CIFAR-10 in small files comes back to the byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import packed_cifar10
from benchmarks.packed_cifar10 import RECORD, main, packed


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(packed_cifar10, "TOGETHER", 2)
    made = np.random.default_rng(0).integers(
        0, 256, (7, RECORD), np.uint8
    )  # the hardest: no pixel is expected
    path = tmp_path / "cifar10.bin"
    path.write_bytes(made.tobytes())
    return path


def test_the_same_bytes_come_back_from_parts_in_any_order(records: Path, tmp_path: Path) -> None:
    main(["pack", str(records), str(tmp_path / "parts"), "--files", "3"])
    parts = sorted((tmp_path / "parts").iterdir(), reverse=True)
    assert len(parts) == 3
    main(["unpack", str(tmp_path / "again" / "cifar10.bin"), *map(str, parts)])
    assert (tmp_path / "again" / "cifar10.bin").read_bytes() == records.read_bytes()


def test_missing_mixed_and_damaged_parts_are_named(records: Path, tmp_path: Path) -> None:
    main(["pack", str(records), str(tmp_path), "--files", "2"])
    first, second = (str(tmp_path / f"part-{number}.xz") for number in range(2))
    target = tmp_path / "new.bin"
    with pytest.raises(ValueError, match="2 blocks are missing: give all parts"):
        main(["unpack", str(target), first])
    records.write_bytes(records.read_bytes()[:RECORD])
    main(["pack", str(records), str(tmp_path / "other"), "--files", "1"])
    with pytest.raises(ValueError, match="parts of 2 different files"):
        main(["unpack", str(target), first, str(tmp_path / "other" / "part-0.xz")])
    other = np.zeros((2, RECORD), np.uint8)
    content = Path(second).read_bytes()
    length, block = int.from_bytes(content[40:44], "little"), packed(other)
    damaged = content[:40] + len(block).to_bytes(4, "little") + block + content[44 + length :]
    Path(second).write_bytes(damaged)
    with pytest.raises(ValueError, match="the parts are damaged"):
        main(["unpack", str(target), first, second])
    assert not target.exists()


def test_smooth_images_become_small() -> None:
    ramp = np.broadcast_to(np.arange(32, dtype=np.uint8) * 4, (2, 3, 32, 32)).reshape(2, -1)
    labels = np.zeros((2, 1), np.uint8)
    assert len(packed(np.concatenate([labels, ramp], 1))) < 2 * RECORD / 20
