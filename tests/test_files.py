import errno
import json
import os
import re
from pathlib import Path

import pytest

from scalechannels.files import (
    atomic_path,
    cache_root,
    json_text,
    locked,
    scratch_folder,
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
