"""The numbers in a document, and what accounts for each of them.

Law: a number that could be a measurement is accounted for by exactly one of
- a claim: a piece of the document in which {an expression} stands for the number; what the expression gives,
  computed from committed files, must be what the document says;
- an allowance: a piece of the document, and the reason why its numbers are no measurements of ours;
- a generated part, which has its own test.

Limit: numbers in words ("twelve") are found by nobody; a claim may have them all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalechannels.training.config.options import read_toml

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "tests" / "docs" / "numbers"
EVERYWHERE = "everywhere"
"""The allowances of all documents, as patterns."""
GENERATED = re.compile(
    r"<!-- [^>]*\bgenerated\b.*?-->.*?(?:<!-- end of the generated part -->|\Z)", re.DOTALL
)
CODE = (
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"(?:(?<=\n\n)|\A)(?:(?: {4}|\t).*\n|\n(?= {4}))+"),  # an indented block
    re.compile(r"(?<=\n\n)(?: {6}.*\n|\n(?= {6}))+"),  # one within a list
    re.compile(r"`[^`]*`"),
    re.compile(r"\]\([^)]*\)"),  # where links and pictures point to
    re.compile(r"https?://\S+"),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"\{[{%].*?[%}]\}", re.DOTALL),  # what a template computes
    re.compile(r"\A---\n.*?\n---\n", re.DOTALL),  # the head of a model card
)
NOTATION = (
    re.compile(r"\[[\d/√]+, ?[\d/√]+\]"),  # a range of sizes
    re.compile(r"\d?/?√\d"),
    re.compile(r"(?<![\d.])\d/√?\d+(?![\d.])"),  # a size such as 1/2
    re.compile(r"\b2\^\([^)]*\)"),  # a ratio of sizes
    re.compile(r"\b[a-z]?\d+e-\d"),  # 3e-4, an option
    re.compile(r"\|[^\n]*\|\n(?=\| --- )"),  # the head of a table
    re.compile(r"^\s*\d+\. ", re.MULTILINE),  # an entry of a list
    re.compile(r"\b[Tt]able \d\b|\b[Ff]igure \d+"),
)
NUMBER = re.compile(r"(?<![\w^.])\d+(?:,\d{3})*(?:\.\d+)?(?:(?=(?:ms|µs|s|x|k|M|MB|GB|GiB)\b)|(?![\w^]))")
FIELD = re.compile(r"\{(=?)(.*?)(?::([^:'\"()\[\]{}]*))?\}", re.DOTALL)


@dataclass(frozen=True)
class Number:
    """One number, where it stands."""

    text: str
    start: int
    end: int


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def numbers(text: str) -> list[Number]:
    """All that could be measurements: in prose, tables and what stands for a picture."""
    for pattern in (*CODE, *NOTATION):
        text = pattern.sub(_blank, text)
    return [Number(one[0], one.start(), one.end()) for one in NUMBER.finditer(text)]


@dataclass(frozen=True)
class Part:
    """A part of a document whose numbers are accounted for."""

    start: int
    end: int
    kind: str
    by: str


@dataclass
class Checked:
    """What is wrong with a document, and what accounts for its numbers."""

    faults: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Of numbers: found, claim, allowance and generated."""


def read(document: str) -> str:
    """The text of a document; of a file of data, its sentences."""
    path = ROOT / document
    if path.suffix == ".toml":
        return "\n\n".join(entry["why"] for entry in read_toml(path).values())
    return path.read_text(encoding="utf-8")


def accounts(document: str) -> Path:
    """The file that accounts for a document's numbers: README.toml, advice.toml, results-README.toml."""
    parts = Path(document).with_suffix("").parts
    return CLAIMS / ("-".join(part for part in parts if part not in ("docs", "scalechannels")) + ".toml")


def spec(document: str) -> tuple[list[str], dict[str, list[str]]]:
    """A document's claims and allowances."""
    path = accounts(document)
    entries = read_toml(path) if path.exists() else {}
    if unknown := set(entries) - {"claims", "allowed"}:
        raise ValueError(f"{path.name} has claims and [allowed], not {', '.join(sorted(unknown))}")
    return entries.get("claims", []), entries.get("allowed", {})


def _literal(text: str) -> str:
    """A pattern for the text, however its lines break."""
    words = [re.escape(word) for word in text.split()]
    inner = r"\s+".join(words)
    before = r"\s+" if text[:1].isspace() and words else ""
    after = r"\s+" if text[-1:].isspace() else ""
    return before + inner + after


def written(value: Any, form: str) -> str:
    """A value as a document writes it: with a true minus."""
    return re.sub(r"-(?=\d)", "−", format(value, form))


def _shown(claim: str, most: int = 120) -> str:
    text = re.sub(r"\s+", " ", claim).strip()
    return text if len(text) <= most else text[:most] + " …"


class Claim:
    """A piece of a document with {expressions}, {expressions:.2f} and {=what is not measured} in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[str] = []
        self.fields: list[tuple[bool, str, str]] = []
        end = 0
        for found in FIELD.finditer(text):
            self.pieces.append(text[end : found.start()])
            whole = found[2] if found[3] is None else f"{found[2]}:{found[3]}"
            literal = bool(found[1])
            self.fields.append((literal, whole if literal else found[2], "" if literal else found[3] or ""))
            end = found.end()
        self.pieces.append(text[end:])

    def values(self, compute: Callable[[str], Any]) -> list[str]:
        """What stands in each field."""
        return [what if literal else written(compute(what), form) for literal, what, form in self.fields]

    def pattern(self, values: Sequence[str]) -> re.Pattern[str]:
        """With these values in the fields. No number passes for a part of a longer one."""
        return self._pattern([rf"(?<![\d.])({_literal(value)})(?!\d|[.,]\d)" for value in values])

    def nearest(self, text: str, values: Sequence[str]) -> re.Match[str] | None:
        """The shortest piece of the text that has other numbers in the fields, or else anything."""
        alike = [re.sub(r"(?:\d|\\\.|,)+", r"[\\d.,]+", _literal(value)) for value in values]
        for fields in ([f"({one})" for one in alike], ["(.{1,300}?)"] * len(values)):
            pattern = re.compile(rf"(?=({self._pattern(fields).pattern}))", re.DOTALL)
            if found := min(pattern.finditer(text), key=lambda found: len(found[1]), default=None):
                return found
        return None

    def _pattern(self, fields: Sequence[str]) -> re.Pattern[str]:
        pieces = [_literal(piece) for piece in self.pieces]
        return re.compile(
            pieces[0] + "".join(a + b for a, b in zip(fields, pieces[1:], strict=True)), re.DOTALL
        )


def check(
    document: str,
    text: str,
    claims: Iterable[str],
    allowed: Mapping[str, Iterable[str]],
    everywhere: Mapping[str, Iterable[str]],
    compute: Callable[[str], Any],
) -> Checked:
    """Every number of a document against what accounts for it."""
    result = Checked()
    file = f"tests/docs/numbers/{accounts(document).name}"

    def line(place: int) -> str:
        return f"{document}:{text.count(chr(10), 0, place) + 1}"

    for entry in claims:
        claim = Claim(entry)
        try:
            values = claim.values(compute)
        except Exception as error:
            result.faults.append(
                f"{document}: a claim cannot be computed ({type(error).__name__}: {error}): {_shown(entry)}"
            )
            continue
        found = list(claim.pattern(values).finditer(text))
        if len(found) == 1:
            for place, (literal, what, _) in enumerate(claim.fields):
                start, end = found[0].span(place + 1)
                result.parts.append(Part(start, end, "allowance" if literal else "claim", what))
            continue
        if found:
            result.faults.append(
                f"{line(found[1].start())}: a claim fits in {len(found)} places: {_shown(entry)}"
            )
            continue
        said = claim.nearest(text, values)
        if said is None:
            result.faults.append(f"{document}: the sentence of a claim is not found: {_shown(entry)}")
            continue
        for place, value in enumerate(values):
            result.parts.append(
                Part(*said.span(place + 2), "claim", claim.fields[place][1])
            )  # one fault is enough
            told = re.sub(r"\s+", " ", said[place + 2])
            if told != re.sub(r"\s+", " ", value):
                what, where = claim.fields[place][1], line(said.start(place + 2))
                result.faults.append(f"{where}: says {told!r}, but {what} is {value!r}: {_shown(entry)}")
    for found in GENERATED.finditer(text):
        result.parts.append(Part(*found.span(), "generated", "its own test"))
    places = numbers(text)
    for reason, pieces in allowed.items():
        for piece in pieces:
            spans = [found.span() for found in re.finditer(_literal(piece), text)]
            used = [s for s in spans if any(s[0] <= one.start and one.end <= s[1] for one in places)]
            if not used:
                what = "has no number to allow" if spans else "is not found"
                result.faults.append(f"{document}: {piece!r} in [allowed] of {file} {what}")
            result.parts += [Part(*span, "allowance", reason) for span in used]
    for reason, patterns in everywhere.items():
        for pattern in patterns:
            for found in re.finditer(pattern, text):
                result.parts.append(Part(*found.span(), "everywhere", reason))
    result.counts = {"found": len(places), "claim": 0, "allowance": 0, "generated": 0}
    for one in places:
        parts = [part for part in result.parts if part.start <= one.start and one.end <= part.end]
        own = [part for part in parts if part.kind != "everywhere"] or parts[:1]
        if any(part.kind == "generated" for part in own):
            own = [part for part in own if part.kind == "generated"]
        around = re.sub(r"\s+", " ", text[max(0, one.start - 50) : one.end + 40])
        if not own:
            result.faults.append(
                f"{line(one.start)}: nothing accounts for {one.text} in “…{around}…”. Measured: add this "
                f"sentence to `claims` of {file}, with {{an expression}} for the number, of what is in "
                f"tests/helpers/number_{{sources,rows}}.py. Not measured: add a piece of it to [allowed] "
                f"there, under its reason."
            )
        elif len({(part.kind, part.by) for part in own}) > 1:
            by = "; ".join(f"{part.kind}: {part.by}" for part in own)
            result.faults.append(f"{line(one.start)}: two account for {one.text} in “…{around}…”: {by}")
        if own:
            result.counts["allowance" if own[0].kind == "everywhere" else own[0].kind] += 1
    return result
