"""What the package says of its versions agrees: classifiers, citation, hosted tests, installation hints."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import scalechannels

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def classified() -> list[str]:
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in PROJECT["classifiers"]
    )
    return [one[1] for one in found if one]


def test_the_citation_has_the_version_of_the_package():
    assert read(ROOT / "CITATION.cff")["version"] == scalechannels.__version__


def test_every_python_of_the_classifiers_is_tested_and_no_other():
    jobs = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == classified()
    assert PROJECT["requires-python"] == f">={classified()[0]}"
    assert [(row["os"].split("-")[0], row["python"] in classified()) for row in matrix["include"]] == [
        ("macos", True)
    ]


def test_the_hosted_tests_run_targets_of_the_makefile():
    jobs = read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    run = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    assert run == {"make test", "make lint", "make docs"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_an_issue_template_is_what_the_host_takes(path: Path):
    template = read(path)
    assert {"name", "description", "body"} <= set(template)
    fields = template["body"]
    assert all(field["type"] == "textarea" and field["attributes"]["label"] for field in fields)
    ids = [field["id"] for field in fields]
    assert len(set(ids)) == len(ids)
    assert fields[0]["validations"]["required"]


def test_there_is_a_template_for_each_sort_of_issue():
    assert [path.stem for path in TEMPLATES] == ["bug", "question", "wrong_result"]


def test_every_installation_hint_names_an_extra_in_quotes_that_all_shells_know():
    """cmd.exe takes double quotes only; zsh takes no brackets without quotes."""
    hints = [
        (path.name, hint)
        for path in (ROOT / "scalechannels").rglob("*.py")
        for hint in re.findall(r"pip install \S*scalechannels\S*", path.read_text(encoding="utf-8"))
    ]
    assert len(hints) >= 8
    for file, hint in hints:
        found = re.match(r'pip install "scalechannels\[(\w+)\]"', hint)
        assert found, f"{file}: {hint}"
        assert found[1] in PROJECT["optional-dependencies"], f"{file}: {hint}"


def test_the_page_of_the_package_has_no_link_that_only_a_clone_can_follow():
    page = (ROOT / PROJECT["readme"]).read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https://)([^)]*)\)", page) == []
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["logits"].shape == (2, 5)
