"""Config files as a user, an editor or an attacker may have left them, made from valid ones."""

import copy
import json
from typing import Any

from hypothesis import strategies as st

WORDS = (
    *(
        "class",
        "arguments",
        "foreign",
        "usage",
        "factors",
        "ScaleGrid",
        "ScaleChannelNetwork",
        "LibraryBackbone",
    ),
    *("ConvBackbone", "CifarBackbone", "ResidualBackbone", "ConcatScales", "MaxOverScales", "PlainNetwork"),
    *(
        "SlidingWindowNetwork",
        "everywhere",
        "reflect",
        "constant",
        "joint",
        "each",
        "pretrained",
        "hf-hub:a/b",
    ),
    *("timm", "mnist", "cifar10", "fovmax", "swmax", "cnn", "residual", "bfloat16", "cosine", "folder", "📷"),
)
numbers = (
    st.integers()
    | st.sampled_from((0, 1, 2, 3, 16, 28, 2**20, 2**31, 2**63, 10**9, 10**12, 10**400, -(10**400)))
    | st.floats()
    | st.sampled_from((1e-9, 1e9, 1e30, 1e300, 5e-324))
)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=8) | st.sampled_from(WORDS)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4) | st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def changed(draw: st.DrawFn, valid: dict[str, Any]) -> Any:
    """A valid config in which one to three values are replaced, removed, added, repeated or nested."""
    config: Any = {"": copy.deepcopy(valid)}  # inside something, so that the whole can be replaced too
    for _ in range(draw(st.integers(1, 3))):
        place, key = config, ""
        while isinstance(place[key], dict | list) and place[key] and draw(st.integers(0, 3)):
            place = place[key]
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        how = draw(st.sampled_from(("replace", "replace", "remove", "add", "repeat", "nest", "scale")))
        if how == "remove" and place is not config:
            del place[key]
        elif how == "add" and isinstance(place[key], dict):
            place[key][draw(st.text(max_size=8) | st.sampled_from(WORDS))] = draw(values)
        elif how == "repeat" and isinstance(place[key], list):
            place[key] = place[key] * draw(st.sampled_from((0, 2, 300)))
        elif how == "nest":
            place[key] = draw(
                st.sampled_from(([place[key]], {"class": place[key]}, {"arguments": place[key]}))
            )
        elif how == "scale" and type(place[key]) in (int, float):
            # No float can hold half of a number as long as some above.
            half = 0.5 if abs(place[key]) < 2**53 else 3
            place[key] = place[key] * draw(st.sampled_from((-1, 0, 2, half, 1000, 10**9)))
        else:
            place[key] = draw(values)
    return config[""]


@st.composite
def spoiled(draw: st.DrawFn, text: str) -> bytes:
    """A text as a file: as it is, or cut off, in another encoding, or with other bytes in it."""
    whole = text.encode("utf-8", "surrogatepass")
    how = draw(st.sampled_from(("whole",) * 6 + ("cut", "bytes", "utf-16", "utf-8-sig", "latin-1", "deep")))
    if how == "cut":
        return whole[: draw(st.integers(0, len(whole)))]
    if how == "bytes":
        at = draw(st.integers(0, len(whole)))
        return whole[:at] + draw(st.binary(min_size=1, max_size=4)) + whole[at:]
    if how == "deep":
        return b"a = " + b"[" * 20_000 if draw(st.booleans()) else b"[" * 20_000
    return whole if how == "whole" else text.encode(how, "replace")


def as_json(value: Any) -> str:
    return json.dumps(value)


def as_toml(value: Any) -> str:
    """Any value as TOML, as far as it has one: tables at the top, the rest inline, null as text."""
    if not isinstance(value, dict):
        return f"value = {_inline(value)}\n"
    return "".join(f"{json.dumps(key)} = {_inline(item)}\n" for key, item in value.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False) if value is not None else '"null"'
