import errno
import json
import os
import re
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from scalechannels import cnn
from scalechannels.files import (
    append_line,
    atomic_path,
    cache_root,
    json_lines,
    json_text,
    locked,
    require_writable,
    require_writable_folder,
    scratch_folder,
    write_tensors,
    write_text,
)

RANDOM = "0123456789abcdef" * 2


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "set.npz"
    with atomic_path(target) as temporary:
        temporary.write_text("content")
        assert temporary.parent == target.parent  # a rename is atomic on one file system only
        assert temporary.suffix == ".npz"
        assert not target.exists()
    assert target.read_text() == "content"
    assert names(target.parent) == ["set.npz"]


def test_a_text_replaces_an_older_one(tmp_path: Path) -> None:
    for text in ("old and longer\n", "nëw\n"):
        write_text(tmp_path / "new" / "file.txt", text)
        assert (tmp_path / "new" / "file.txt").read_text(encoding="utf-8") == text
    assert names(tmp_path / "new") == ["file.txt"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def fail_half_way() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        fail_half_way()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_an_output_that_cannot_be_written_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    where = re.escape(f"'{tmp_path / 'x.csv'}' cannot be written: Permission denied; choose another place")
    with pytest.raises(OSError, match=where), atomic_path(tmp_path / "x.csv") as temporary:
        refuse(temporary)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"the folder '.*file/folder' cannot be made: Not a directory"):
        write_text(tmp_path / "file" / "folder" / "x.csv", "")


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path, trouble: int) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def write_half() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise OSError(trouble, "a page\nof details")  # as HDF5 says it, without the file's name

    with pytest.raises(OSError, match=r"file' cannot be written: .*; free some space") as caught:
        write_half()
    assert "\n" not in str(caught.value)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_what_we_write_has_the_users_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_path(tmp_path / "weights.safetensors") as temporary:
            write_tensors(temporary, {"weight": torch.zeros(3)}, {"format": "pt"})
        write_text(tmp_path / "text", "")
        cnn().save_pretrained(tmp_path / "net")
    finally:
        os.umask(before)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert names(tmp_path / "net") == ["README.md", "config.json", "model.safetensors"]
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in written} == dict.fromkeys(
        (path.name for path in written), 0o640
    )
    assert load_file(tmp_path / "weights.safetensors")["weight"].tolist() == [0, 0, 0]


def test_what_can_be_written_is_known_beforehand_and_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    require_writable(tmp_path / "old.csv")
    require_writable(tmp_path / "new.csv")
    require_writable_folder(tmp_path)
    assert names(tmp_path) == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"
    require_writable_folder(tmp_path / "runs" / "mine")
    require_writable(tmp_path / "runs" / "x.csv")
    with pytest.raises(OSError, match="File name too long"):
        require_writable(tmp_path / "runs" / ("x" * 250))
    assert names(tmp_path) == ["old.csv"]
    (tmp_path / "runs").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        require_writable(tmp_path / "runs")
    with pytest.raises(OSError, match=r"the folder '.*old.csv/in' cannot be made: Not a directory"):
        require_writable(tmp_path / "old.csv" / "in" / "x.csv")
    with pytest.raises(FileExistsError):
        require_writable_folder(tmp_path / "old.csv")
    long = "x" * 250
    with pytest.raises(OSError, match=f"{long}' cannot be written: File name too long"):
        require_writable(tmp_path / long)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where even root cannot write")
def test_a_folder_without_permission_is_known_beforehand() -> None:
    with pytest.raises(OSError, match=r"'/proc/self' cannot be written: .*; choose another place"):
        require_writable_folder("/proc/self")
    with pytest.raises(OSError, match=r"'/proc/x\.csv' cannot be written: .*; choose another place"):
        require_writable("/proc/x.csv")


def test_a_block_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing was written"), atomic_path(tmp_path / "file"):
        pass


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "folder") as temporary:
        temporary.mkdir()
        (temporary / "a").write_text("a")
    assert (tmp_path / "folder" / "a").read_text() == "a"


def test_scratch_is_gone_afterwards(tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with scratch_folder(tmp_path / "set") as scratch:
            (scratch / "archive").write_text("much")
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert names(tmp_path) == []


def test_the_lock_clears_what_a_killed_process_left_and_nothing_else(tmp_path: Path) -> None:
    own = tmp_path / f".partial-{RANDOM}-set"
    of_another = tmp_path / f".partial-{RANDOM}-x-set"
    own.mkdir()
    of_another.write_text("being written by the holder of another lock")
    inside = tmp_path / "set" / f".partial-{RANDOM}-file"
    inside.parent.mkdir()
    inside.write_text("half")
    kept = tmp_path / "set" / "file"
    kept.write_text("whole")
    with locked(tmp_path / "set"):
        assert not own.exists()
        assert not inside.exists()
        assert of_another.exists()
        assert kept.exists()


def test_names_with_brackets_are_no_patterns(tmp_path: Path) -> None:
    left = tmp_path / f".partial-{RANDOM}-[1,4].h5"
    left.write_text("half")
    with locked(tmp_path / "[1,4].h5"):
        assert not left.exists()


def test_the_second_waits_and_says_for_what(tmp_path: Path) -> None:
    with locked(tmp_path / "set"):
        error = pytest.raises(OSError, match=r"another process has been working on .*set")
        with error, locked(tmp_path / "set", timeout=0.1):
            pytest.fail("two held one lock")
        with locked(tmp_path / "other", timeout=0.1):
            pass
    with locked(tmp_path / "set", timeout=0.1):
        pass


def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALECHANNELS_DATA", raising=False)
    assert cache_root().name == "scalechannels"
    monkeypatch.setenv("SCALECHANNELS_DATA", str(tmp_path / "environment"))
    assert cache_root() == tmp_path / "environment"
    assert cache_root(tmp_path / "given") == tmp_path / "given"
    assert cache_root("~/data") == Path.home() / "data"


def test_json_has_a_line_for_each_innermost_object() -> None:
    value = {
        "name": "a",
        "list": [1, [2, 3]],
        "nested": {"flat": {"x": 1.5, "y": []}, "empty": {}, "none": None},
        "entries": [{"size": (1, 2)}, {"size": 0.1}],
        "history": [{"epoch": 1}, {"epoch": 2}],
    }
    text = json_text(value, whole=("history",))
    assert text.splitlines() == [
        "{",
        ' "name": "a",',
        ' "list": [1, [2, 3]],',
        ' "nested": {',
        '  "flat": {"x": 1.5, "y": []},',
        '  "empty": {},',
        '  "none": null',
        " },",
        ' "entries": [',
        '  {"size": [1, 2]},',
        '  {"size": 0.1}',
        " ],",
        ' "history": [{"epoch": 1}, {"epoch": 2}]',
        "}",
    ]
    assert json.loads(text) == json.loads(json.dumps(value))
    assert json_text({"a": 1}) == '{"a": 1}'


def test_lines_are_read_as_they_were_added(tmp_path: Path) -> None:
    path, values = tmp_path / "new" / "lines.jsonl", [{"a": 1}, {"name": "σ"}, [1, 2]]
    assert json_lines(path) == []
    for value in values:
        append_line(path, value)
    assert json_lines(path) == values
    assert path.read_text(encoding="utf-8") == '{"a": 1}\n{"name": "σ"}\n[1, 2]\n'


@pytest.mark.parametrize("cut", [b'{"b": "', '{"b": "σ'.encode()[:-1]])
def test_a_line_that_was_cut_short_is_left_out_and_replaced(tmp_path: Path, cut: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a": 1}\n' + cut)
    assert json_lines(path) == [{"a": 1}]
    append_line(path, {"c": 2})
    assert json_lines(path) == [{"a": 1}, {"c": 2}]


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}')
    assert json_lines(path) == [{"a": 1}]
    append_line(path, {"c": 2})
    assert json_lines(path) == [{"a": 1}, {"c": 2}]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n{"b":\n{"c": 2}\n')
    with pytest.raises(ValueError, match=r"line 2 of .*lines.jsonl is no JSON"):
        json_lines(path)
