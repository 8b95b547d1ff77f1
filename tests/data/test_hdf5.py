from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from scalechannels.data import hdf5
from scalechannels.data.hdf5 import file_name, make_files, read, write
from scalechannels.data.image_set import ImageSet, Split
from scalechannels.data.mnist_large_scale import TRAINING_SCALES, MnistLargeScale
from scalechannels.data.sizes import MNIST_SIZES
from scalechannels.data.sources import TrainAndTest


def small_mnist(train: int = 120, test: int = 100) -> TrainAndTest:
    random = torch.Generator().manual_seed(0)
    images = torch.zeros(train + test, 28, 28, dtype=torch.uint8)
    images[:, 6:22, 6:22] = torch.randint(0, 256, (train + test, 16, 16), generator=random, dtype=torch.uint8)
    labels = torch.arange(train + test) % 10
    return TrainAndTest(images[:train], labels[:train], images[train:], labels[train:])


def image_set(count: int = 3, size: int = 16, seed: int = 0) -> ImageSet:
    random = torch.Generator().manual_seed(seed)
    return ImageSet(
        torch.rand(count, 1, size, size, generator=random),
        torch.randint(0, 10, (count,), generator=random),
        torch.ones(count, dtype=torch.float64),
    )


def test_the_published_names() -> None:
    start = "mnist_large_scale_tr50000_vl10000_te10000_outsize112-112"
    counts: dict[Split, int] = {"train": 50_000, "validation": 10_000, "test": 10_000}
    assert [file_name(scale, counts) for scale in (1.0, 2.0, 4.0, (1.0, 4.0))] == [
        f"{start}_sctr{scale}_scte{scale}.h5" for scale in ("1p000", "2p000", "4p000", "1p000-4p000")
    ]
    published = ["0p500", "0p595", "0p707", "0p841", "1p000", "1p189", "1p414", "1p682", "2p000", "2p378"]
    published += ["2p828", "3p364", "4p000", "4p757", "5p657", "6p727", "8p000"]
    assert [file_name(scale, {"test": 10_000}) for scale in MNIST_SIZES] == [
        f"mnist_large_scale_te10000_outsize112-112_scte{scale}.h5" for scale in published
    ]


def test_a_hundred_images_of_all_sets_load_back_equal(tmp_path: Path) -> None:
    maker = MnistLargeScale(mnist=small_mnist())
    reported: list[Path] = []
    paths = make_files(maker, tmp_path, report=reported.append)
    assert reported == paths
    names = [file_name(scale, {"train": 100, "validation": 20, "test": 100}) for scale in TRAINING_SCALES]
    names += [file_name(scale, {"test": 100}) for scale in MNIST_SIZES]
    assert [path.name for path in paths] == names
    for path, scale in zip(paths, [*TRAINING_SCALES, *MNIST_SIZES], strict=True):
        test = maker.make("test", scale)
        found = read(path)
        assert found["test"].images.equal(test.images)
        assert found["test"].labels.equal(test.labels)
    for path in (paths[0], paths[3]):
        scale = TRAINING_SCALES[paths.index(path)]
        for split in ("train", "validation"):
            assert read(path)[split].images.equal(maker.make(split, scale).images)
    with h5py.File(paths[0]) as file:
        assert sorted(file) == ["x_test", "x_train", "x_val", "y_test", "y_train", "y_val"]
        assert file["x_train"].shape == (100, 112, 112, 1)
        assert file["y_train"].shape == (100,)
    with h5py.File(paths[-1]) as file:
        assert file["x_train"].shape == file["x_val"].shape == (112, 112, 1)  # as published
        assert file["x_test"].shape == (100, 112, 112, 1)
    assert paths[6].stat().st_size < 100 * 112 * 112 * 4 / 10  # compressed


def test_a_published_test_file_with_its_one_sample_trap(tmp_path: Path) -> None:
    """As the published files have it: no sample axis, labels as floats in another shape."""
    path = tmp_path / "published.h5"
    values = np.random.default_rng(0).uniform(-0.76, 0.76, (5, 112, 112, 1))
    with h5py.File(path, "w") as file:
        for name, count in (("train", 1), ("val", 1), ("test", 5)):
            file[f"x_{name}"] = values[0] if count == 1 else values
            file[f"y_{name}"] = np.array(7.0) if count == 1 else np.array([[1.0, 2, 3, 4, 5]])
    found = read(path)
    assert found["train"].images.shape == found["validation"].images.shape == (1, 1, 112, 112)
    assert found["train"].labels.tolist() == [7]
    assert found["test"].labels.tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(found["test"].images[2, 0].numpy(), values[2, :, :, 0].astype(np.float32))
    np.testing.assert_array_equal(found["train"].images[0, 0].numpy(), values[0, :, :, 0].astype(np.float32))
    assert found["test"].scales.isnan().all()
    assert list(read(path, ["test"])) == ["test"]


def test_a_file_that_is_there_is_kept_and_a_damaged_one_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = MnistLargeScale(mnist=small_mnist(60, 10))
    options = {"training_scales": [], "test_scales": [1.0, (1.0, 2.0)], "size": 28}
    paths = make_files(maker, tmp_path, **options)  # type: ignore[arg-type]
    contents = [path.read_bytes() for path in paths]
    paths[0].write_bytes(contents[0][: len(contents[0]) // 2])
    made = []
    monkeypatch.setattr(
        hdf5, "write", lambda path, *rest, write=hdf5.write: (made.append(path), write(path, *rest))
    )
    make_files(maker, tmp_path, **options)  # type: ignore[arg-type]
    assert made == paths[:1]
    assert read(paths[0])["test"].labels.equal(maker.mnist.test_labels)
    with pytest.raises(ValueError, match=r"seed 0, not by .* seed 1"):
        make_files(maker, tmp_path, **options, seed=1)  # type: ignore[arg-type]


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "file.h5"
    write(path, dict.fromkeys(("train", "validation", "test"), image_set()))
    content = path.read_bytes()
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.h5"):
        read(tmp_path / "none.h5")
    path.write_bytes(content[:-200])
    with pytest.raises(OSError, match="truncated, damaged or not an HDF5"):
        read(path)
    path.write_text("no HDF5")
    with pytest.raises(OSError, match="truncated, damaged or not an HDF5"):
        read(path)
    with h5py.File(path, "w") as file:
        file["x_train"] = np.zeros((3, 8, 8, 1))
        file["y_train"] = np.zeros(2)
        file["x_val"] = np.zeros((3, 8, 8))
        file["y_val"] = np.zeros(3)
    with pytest.raises(ValueError, match="3 images of train have 2 labels"):
        read(path, ["train"])
    with pytest.raises(ValueError, match=r"must be \(n, H, W, 1\); got \(3, 8, 8\)"):
        read(path, ["validation"])
    with pytest.raises(ValueError, match="has no /x_test; it has x_train, x_val"):
        read(path, ["test"])


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="test is missing"):
        write(tmp_path / "file.h5", {"train": image_set(), "validation": image_set()})
    assert [path.name for path in tmp_path.iterdir()] in ([], [".file.h5.lock"])


CHILD = """
import json, os, sys, time
import torch
from scalechannels.data.hdf5 import make_files
from scalechannels.data.mnist_large_scale import MnistLargeScale
from scalechannels.data.sources import TrainAndTest
flush = os.fsync
os.fsync = lambda descriptor: (time.sleep(0.05), flush(descriptor))
images = torch.arange(12 * 784).remainder(251).to(torch.uint8).view(12, 28, 28)
maker = MnistLargeScale(mnist=TrainAndTest(images, torch.arange(12), images[:5], torch.arange(5)))
print("ready", flush=True)
make_files(maker, sys.argv[1], training_scales=[1.0, 2.0], test_scales=[1.0, 2.0, 4.0])
print("done", flush=True)
"""


def start_child(folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.slow
def test_a_generation_killed_at_several_moments_is_completed_by_the_next(tmp_path: Path) -> None:
    complete = []
    for moment in (0.03, 0.12, 0.3, 0.45):
        child = start_child(tmp_path)
        time.sleep(moment)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        complete.append(len(list(tmp_path.glob("[!.]*"))))
        for path in tmp_path.glob("[!.]*"):
            assert len(read(path)["test"]) == 5  # what has its name is whole
    assert complete == sorted(complete)
    assert complete[0] < 5, json.dumps(complete)
    child = start_child(tmp_path)
    assert child.communicate()[0] == "done\n"
    assert len(list(tmp_path.glob("[!.]*"))) == 5
    assert not list(tmp_path.glob(".partial-*"))
