"""What every command writes: checked before its work, and lost by nobody when the disk is full."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import TINY, run

from scalechannels import Detector, ScaleGrid, fovavg


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("scalechannels.saving.saved_network.SavedNetwork.open", "predict net a.png --out file/x.csv"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "evaluate net --out file/x.json"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "detect a.png --json file/x.json"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "detect a.png --overlay file/x.png"),
        ("torch.onnx.export", "export digit-detector --onnx file/x.onnx"),
        ("scalechannels.paper.results.known_results", "report --out file/x.html"),
        ("scalechannels.paper.results.known_results", "report --document file/x.md"),
        ("scalechannels.paper.results.known_results", "figure 5 --out file/x"),
        ("scalechannels.data.show.show_strokes", "data show strokes --out file/x.png"),
        ("scalechannels.data.scenes.scene", "data scene file/x.png"),
        (
            "scalechannels.data.mnist_large_scale.MnistLargeScale",
            "data generate mnist-large-scale --out file/x",
        ),
        ("scalechannels.training.fit.fit", "train --out file/x"),
        ("scalechannels.training.sweep.sweep", "sweep run.toml --out file/x"),
        ("scalechannels.paper.reproduce.reproduce", "reproduce table1 --out file/x"),
        ("scalechannels.paper.reproduce.reproduce", "reproduce table1 --results file/x"),
        ("scalechannels.training.fit.fit", "quickstart --out file/x"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "predict net a.png --draw file/x"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "detect a.png --coco file/x.json"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "detect a.png --csv file/x.csv"),
        ("scalechannels.saving.saved_network.SavedNetwork.open", "detect pictures --overlay file/x"),
        ("scalechannels.compare.missing.complete", "compare --train --plot file/x.png"),
        ("scalechannels.compare.missing.complete", "compare --train --out file/x"),
        ("scalechannels.data.emoji_drawings.prepare", "data generate emoji --out file/x"),
        ("scalechannels.report.boxes_run.train_on_boxes", "train --data boxes.json --out file/x"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    work: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("pictures").mkdir()
    for image in ("a.png", "pictures/a.png"):
        Path(image).write_text("")  # detect asks for it first
    Path("run.toml").write_text(TINY)
    Path("boxes.json").write_text('{"images": [], "annotations": [], "categories": []}')
    monkeypatch.setattr(work, lambda *_, **__: pytest.fail("this is the work"))
    assert run(*words.split()) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "file" in said
    assert "cannot be made: Not a directory" in said or "already exists and is not a folder" in said


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder where even root cannot write")
def test_a_detector_is_not_converted_where_its_file_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Detector(fovavg(ScaleGrid.of(1, 2)), background=3).save_pretrained(tmp_path)
    monkeypatch.setattr("torch.onnx.export", lambda *_, **__: pytest.fail("this is the work"))
    assert run("export", tmp_path, "--onnx", "/proc/x.onnx", "--size", 40, 40) == 1
    assert capsys.readouterr().err.startswith("error: '/proc/x.onnx' cannot be written: ")


def test_where_files_cannot_become_large_training_ends_in_one_line(tmp_path: Path) -> None:
    """As on a full disk; nothing but the files of a new run is there afterwards."""
    (tmp_path / "run.toml").write_text(TINY)
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from scalechannels.cli import main
main(["train", "--config", "run.toml", "--sizes", "1"])
"""
    pytest.importorskip("resource")
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1
    (line,) = [line for line in said.stderr.splitlines() if line.startswith("error: ")]
    assert "checkpoint.safetensors' cannot be written: File too large; free some space" in line
    assert "Traceback" not in said.stderr
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert [path.name for path in folder.iterdir()] == ["config.toml"]
