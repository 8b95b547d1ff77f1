"""Every measured number in the documents is what the committed results give.

tests/docs/numbers has a file for each document, with the sentences that have measured numbers, and an
expression in place of each; and with pieces whose numbers are not measured, under their reason:

    claims = ['''reaches {table("FovLSE+")["[1,4]"]:.2f} on [1,4]''']
    [allowed]
    "an option" = ["batches of 64"]

In a claim, {=64} is a number that is not measured. What may be named: tests/helpers/number_{sources,rows}.py.
How many numbers each document has, and what is wrong: python tests/docs/test_numbers.py
"""

import json
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.document_numbers import (
    CLAIMS,
    EVERYWHERE,
    GENERATED,
    ROOT,
    Checked,
    Claim,
    accounts,
    check,
    numbers,
    read,
    spec,
)
from helpers.number_rows import computer

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/*.md",
        "results/*.md",
        "scalechannels/weights/*/*.md",
        "scalechannels/report/templates/*.md",
        "scalechannels/paper/claims/deviations.toml",
    )
    for path in ROOT.glob(pattern)
)
"""What people read, and the words that generated parts are made of."""
CURRENT = {
    "docs/commands.md": "tests/docs/test_commands_page.py",
    "docs/evidence.md": "tests/paper/test_document.py",
    "docs/notebook.md": "tests/paper/test_document.py",
    "docs/reproduce.md": "tests/paper/test_document.py",
}
"""Which test keeps the generated part of a document current."""
COMPUTE = computer(ROOT)


def checked(document: str, text: str | None = None, compute=COMPUTE) -> Checked:
    claims, allowed = spec(document)
    _, everywhere = spec(EVERYWHERE)
    return check(document, read(document) if text is None else text, claims, allowed, everywhere, compute)


@cache
def current(document: str) -> Checked:
    return checked(document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_number_is_accounted_for_and_as_computed(document: str) -> None:
    faults = current(document).faults
    assert not faults, "\n" + "\n".join(faults)


def test_numbers_are_found_in_prose_tables_and_what_stands_for_pictures() -> None:
    text = """# The 3.14 release
![a curve that drops to 26 %](images/26.png)
It takes 233 s, 12 % less, for 68,870 parameters and 69 runs.
5 points are 5 at size 2, on [1/2,8] and CIFAR-10; 3x in 12ms, at 112x112 pixels 99.4/98.2 (s = 1/σ).

| network | 8 |
| --- | --- |
| FovAvg, tr1 | **99.40** ± 0.02 | 1 | `0.5` | [a](b.md#2) | 2^(1/4), 1/√2 |

    scalechannels train --training.rate 0.004

```python
rate = 0.1
```
"""
    found = [one.text for one in numbers(text)]
    assert found == [
        *("3.14", "26", "233", "12", "68,870", "69", "5", "5", "2", "10"),
        *("3", "12", "99.4", "98.2", "1", "99.40", "0.02", "1"),
    ]


def test_what_a_template_computes_and_entries_of_lists_are_no_numbers() -> None:
    text = "1. Table 2 has {{ one.mean(7) }} points.\n\n{% if lacking > 8 %}\n2. It takes 9 s.\n{% endif %}\n"
    assert [one.text for one in numbers(text)] == ["9"]


def test_each_document_has_a_file_of_its_own() -> None:
    files = [accounts(document) for document in DOCUMENTS]
    assert len(set(files)) == len(files)
    kept = {path for path in CLAIMS.glob("*.toml") if path.stem != EVERYWHERE}
    assert kept <= set(files), "an account of no document"


def test_of_a_file_of_data_the_sentences_are_read() -> None:
    text = read("scalechannels/paper/claims/deviations.toml")
    assert "The six seeds scatter" in text
    assert "measured =" not in text


def test_generated_parts_have_their_own_tests() -> None:
    """A comment alone must not keep numbers from being looked at."""
    texts = {document: read(document) for document in DOCUMENTS}
    assert {document for document, text in texts.items() if GENERATED.search(text)} <= set(CURRENT)
    for document, test in CURRENT.items():
        assert not (ROOT / document).exists() or Path(document).stem in (ROOT / test).read_text()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_change_to_any_computed_number_is_seen(document: str) -> None:
    """Each digit of each claim, one at a time."""
    text = read(document)
    for entry in spec(document)[0]:
        claim = Claim(entry)
        values = claim.values(COMPUTE)
        pattern = claim.pattern(values)
        (found,) = pattern.finditer(text)
        first, last = found.span()
        for place, (literal, *_) in enumerate(claim.fields):
            start, end = found.span(place + 1)
            for at in range(start, end):
                if text[at].isdigit() and not literal:
                    other = str((int(text[at]) + 1) % 10)
                    told = text[max(0, first - 9) : at] + other + text[at + 1 : last + 9]
                    assert not pattern.search(told), f"{told} passes for {entry}"


def test_a_changed_document_says_where_and_what_it_should_be() -> None:
    text = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    wrong = text.replace("17 take 19.6 ms", "17 take 19.7 ms")
    assert wrong != text
    (fault,) = checked("docs/cost.md", wrong).faults
    line = text[: text.index("19.6 ms")].count("\n") + 1
    assert fault.startswith(f"docs/cost.md:{line}: says '19.7', but")
    assert "is '19.6'" in fault


def test_a_sentence_that_is_gone_is_missed() -> None:
    text = (ROOT / "docs/cost.md").read_text(encoding="utf-8")
    (fault,) = checked("docs/cost.md", text.replace("ms for launching", "ms to launch")).faults[:1]
    assert "the sentence of a claim is not found" in fault


def test_a_new_number_needs_a_claim_or_a_reason() -> None:
    text = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    (fault,) = checked("docs/theory.md", text + "\nIt takes 12.5 s.\n").faults
    assert fault.startswith(f"docs/theory.md:{text.count(chr(10)) + 2}: nothing accounts for 12.5 in")
    assert "tests/docs/numbers/theory.toml" in fault
    assert "tests/helpers/number_{sources,rows}.py" in fault


def test_one_number_has_one_reason_and_no_reason_is_left_over() -> None:
    def faults(*, claims: tuple[str, ...] = (), **allowed: list[str]) -> list[str]:
        return check("docs/a.md", "It takes 12.5 s.\n", claims, allowed, {}, eval).faults

    assert not faults(claims=("takes {25 / 2} s",))
    assert not faults(an_option=["takes 12.5 s"])
    assert not faults(claims=("takes {=12.5} s",))
    assert "two account for 12.5" in faults(claims=("takes {25 / 2} s",), an_option=["12.5 s"])[0]
    assert "two account for 12.5" in faults(a=["12.5"], b=["12.5 s"])[0]
    assert "is not found" in faults(a=["12.5"], b=["13.5"])[0]
    assert "has no number to allow" in faults(a=["12.5"], b=["takes"])[0]
    assert "cannot be computed" in faults(claims=("takes {unknown} s",))[0]
    assert faults(claims=("takes {2.5} s",))  # the end of a longer number is no number
    assert faults(claims=("takes 1{2.5} s",))


def halved(run: dict) -> None:
    for entry in run["evaluation"]["sizes"]:
        entry["accuracy"], entry["errors"] = entry["accuracy"] / 2, None


def slower(cost: dict) -> None:
    cost["channels"][0]["seconds"] *= 2


@pytest.mark.parametrize(
    ("document", "file", "change", "fault"),
    [
        ("docs/is_this_for_me.md", "results/runs/cnn-mnist-tr2-seed0-*.json", halved, "says '99', but table"),
        ("docs/notebook.md", "results/averages.jsonl", halved, "says '99.38', but kept"),
        ("docs/cost.md", "benchmarks/results/cost_cpu.json", slower, "says '1.9', but cost"),
    ],
)
def test_a_changed_result_is_seen(
    tmp_path: Path, document: str, file: str, change: Callable[[dict], None], fault: str
) -> None:
    """In a copy of the committed files."""
    for folder in ("results", "benchmarks/results"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert not checked(document, compute=computer(tmp_path)).faults
    for path in tmp_path.glob(file):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        values = json.loads(lines[0])
        change(values)
        path.write_text("\n".join([json.dumps(values), *lines[1:]]))
    assert any(fault in one for one in checked(document, compute=computer(tmp_path)).faults)


def main() -> None:
    total: dict[str, int] = {}
    for document in DOCUMENTS:
        found = current(document)
        print(f"{document:28}", ", ".join(f"{name} {count}" for name, count in found.counts.items()))
        for fault in found.faults:
            print("  ", fault.split(". Measured: add")[0])
        for name, count in found.counts.items():
            total[name] = total.get(name, 0) + count
    print(f"{'all':28}", ", ".join(f"{name} {count}" for name, count in total.items()))


if __name__ == "__main__":
    main()
