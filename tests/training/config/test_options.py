"""Options as files: what is written is what is read, and what cannot be read is named."""

import dataclasses

import pytest
from helpers.any_run import configs
from helpers.fuzzing import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from scalechannels.files import write_text
from scalechannels.training.config import DataConfig, NetworkConfig, ResolvedRun, RunConfig, TrainingConfig
from scalechannels.training.config.options import changed, read_toml, to_toml


def run(data: str = "mnist", network: str = "fovavg", **training) -> RunConfig:
    return RunConfig(DataConfig(data), NetworkConfig(network), TrainingConfig(**training))


@settings(max_examples=60, deadline=None)
@given(config=configs)
def test_every_run_survives_its_file(tmp_path_factory, config) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    for version in (config, config.resolve()):
        path.write_text(version.to_toml(), encoding="utf-8")
        assert type(version).from_toml(path) == version
        assert RunConfig.from_toml(path).name == version.name
        assert type(version).from_dict(version.as_dict()) == version


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[training]\nepoch = 3\n", r"unknown option training\.epoch; .*epochs"),
        ("[trainig]\nepochs = 3\n", r"unknown table \[trainig\]; .*training"),
        ("epochs = 3\n", "unknown option epochs outside a table; .*: data, network, training"),
        ('"a\\nb" = 3\n', r"unknown option 'a\\nb' outside a table"),
        ("training = 3\n", r"\[training\] must be a table"),
        ('[training]\nepochs = "3"\n', r"training\.epochs must be a whole number; got '3'"),
        ("[training]\nepochs = 3.5\n", r"training\.epochs must be a whole number; got 3\.5"),
        ("[training]\nepochs = true\n", r"training\.epochs must be a whole number; got True"),
        ("[training]\nrate = true\n", r"training\.rate must be a number; got True"),
        ('[data]\nsizes = ["1"]\n', r"data\.sizes must be a number; got '1'"),
        ("[data]\nsizes = [true]\n", r"data\.sizes must be a number; got True"),
        ("[data]\nsizes = 1.0\n", r"data\.sizes must be a list of numbers; got 1\.0"),
        (
            '[network]\nbackbone = "papers"\n',
            r"network\.backbone must be one of paper, residual, efficientnet-lite0; got 'papers'",
        ),
        ('[network]\nantialias = "no"\n', r"network\.antialias must be true or false; got 'no'"),
        ("[network\n", "not valid TOML"),
    ],
)
def test_a_file_that_says_something_else(tmp_path, text, says) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says) as caught:
        RunConfig.from_toml(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_text_is_named(tmp_path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG")
    with pytest.raises(ValueError, match=r"picture\.png' is not valid TOML: it is not text"):
        RunConfig.from_toml(path)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.toml' does not exist; give a TOML"):
        RunConfig.from_toml(tmp_path / "nowhere.toml")


@examples(200)
@given(text=st.text(st.characters(exclude_categories=())))
def test_any_text_comes_back_from_toml_or_is_refused(tmp_path_factory, text: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):  # which UTF-8 cannot hold
        with pytest.raises(ValueError, match="is no valid UTF-8"):
            to_toml({"data": {"folder": text}})
        return
    path = tmp_path_factory.getbasetemp() / "any.toml"
    write_text(path, to_toml({"data": {"folder": text}}))
    assert read_toml(path) == {"data": {"folder": text}}


@pytest.mark.parametrize("text", ["📷", "\x7f", "\x00\x1f\x80", 'a"b\\c\n\r\t', "\u2028", "\U0010ffff", "é"])
def test_awkward_text_comes_back_from_toml(tmp_path, text: str) -> None:
    write_text(tmp_path / "a.toml", to_toml({"a": {"b": text, "c": [text]}}))
    assert read_toml(tmp_path / "a.toml") == {"a": {"b": text, "c": [text]}}


def test_a_folder_whose_name_is_no_text_is_named_before_it_is_read() -> None:
    with pytest.raises(ValueError, match=r"'caf\\udce9' is no valid UTF-8, so .* rename it"):
        DataConfig("folder", folder="caf\udce9")


def test_only_what_differs_from_the_defaults_names_a_run() -> None:
    """A field that a later version adds, at its default, must not rename the results that exist."""

    @dataclasses.dataclass(frozen=True)
    class Later(TrainingConfig):
        added: int = 0

    plain = RunConfig(training=TrainingConfig(seed=3))
    later = RunConfig(training=Later(seed=3))
    assert changed(later) == changed(plain)
    assert changed(plain)["training"] == {"seed": 3}
    assert changed(RunConfig(training=Later(added=1)))["training"] == {"added": 1}


def test_retired_options_are_read_at_their_neutral_values_alone() -> None:
    plain = run()
    values = plain.as_dict()
    values["training"].update(phases=1, beyond=0)
    assert RunConfig.from_dict(values) == plain
    assert RunConfig.from_dict(values).name == plain.name
    for option in ({"phases": 2}, {"beyond": 1}):
        changed_values = {**values, "training": {**values["training"], **option}}
        with pytest.raises(ValueError, match=rf"training\.{next(iter(option))} .* 19eb71c"):
            RunConfig.from_dict(changed_values)


@pytest.mark.parametrize("option", ["epochs", "rate", "precision"])
def test_what_is_trained_has_nothing_open(option) -> None:
    values = run().resolve().as_dict()
    assert ResolvedRun.from_dict(values) == run().resolve()
    del values["training"][option]
    with pytest.raises(ValueError, match=rf"training\.{option} is missing; a trained run always has it"):
        ResolvedRun.from_dict(values)
    assert RunConfig.from_dict(values).resolve() == run().resolve()


@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_whole_number_too_large_for_a_float_is_refused(number) -> None:
    with pytest.raises(ValueError, match=r"network\.high"):
        RunConfig.from_dict({"network": {"high": number}})
