"""Requests as nobody should send them: hypothesis strategies of their bytes, from nearly right to noise."""

import base64
import io
import json
from typing import Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image

GOOD_DIGIT = base64.b64encode(bytes(range(196)) * 4).decode()
FORMATS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "GIF": ("L", "P", "RGB"),
    "BMP": ("1", "L", "P", "RGB"),
    "TIFF": ("1", "L", "RGB", "RGBA", "CMYK", "I;16", "I", "F"),
    "WEBP": ("RGB", "RGBA"),
}

any_text = st.text(st.characters(codec=None), max_size=20)  # halves of characters too
any_number = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, -1, 10**400, -(10**400), 2**63, 1e308, 5e-324, float("nan"), float("inf")]),
)
any_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | any_number | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


def rarely(wrong: st.SearchStrategy[Any], right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    # One in six: hypothesis looks more often at the ends of a range than inside it.
    return st.integers(0, 5).flatmap(lambda draw: wrong if draw == 3 else right)


def strokes_of(coordinate: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    point = st.lists(coordinate, min_size=2, max_size=2)
    return st.lists(rarely(st.just([]), st.lists(point, min_size=2, max_size=6)), min_size=1, max_size=4)


strokes = st.one_of(
    strokes_of(st.floats(0, 1)),
    strokes_of(st.floats(-1e5, 1e5)),
    strokes_of(st.sampled_from([0, 5e-324, 1e-308])),
    strokes_of(st.sampled_from([1e5, -1e5, 99999.99999999999])),
)
digit = st.sampled_from([GOOD_DIGIT, GOOD_DIGIT[:-4], "=" * 1048, "é" * 1048]) | st.binary(
    min_size=784, max_size=784
).map(lambda content: base64.b64encode(content).decode())


def asked(**right: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What a path takes, with some of it wrong or missing."""
    values = {name: rarely(any_value, value) for name, value in right.items()}
    return rarely(st.fixed_dictionaries({}, optional=values), st.fixed_dictionaries(values))


GETS = ("/", "/style.css", "/api/settings", "/api/example", "/api/look")
POSTS = {
    "/api/drawing": asked(strokes=strokes),
    "/api/picture": asked(),
    "/api/look": asked(digit=digit, size=st.floats(0.5, 8)),
    "/api/sizes": asked(digit=digit),
    "/api/scene": asked(
        seed=st.integers(0, 2**30 - 1), background=st.sampled_from(["plain", "noisy", "textured"])
    ),
}
no_json = st.one_of(
    any_value.map(lambda value: json.dumps(value).encode()),
    any_value.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    st.builds(
        lambda piece, times: piece * times,
        st.sampled_from([b"[", b'{"a":', b'{"strokes":[', b"9", b'"\\ud800']),
        st.integers(1, 20_000),
    ),
    st.sampled_from([b"", b"{}", b"nul", b"1e999999", b"NaN", b"\xff\xfe", b'{"size":1,"size":[]}']),
    st.binary(max_size=300),
)


@st.composite
def picture(draw: st.DrawFn) -> bytes:
    """An image file, perhaps with a few bytes changed."""
    kind = draw(st.sampled_from(sorted(FORMATS)))
    mode = draw(st.sampled_from(FORMATS[kind]))
    width, height = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    noise = np.random.default_rng(draw(st.integers(0, 9))).integers(
        0, 256, (height, width, 3), dtype=np.uint8
    )
    image = Image.fromarray(noise)
    # Pillow has no way from colours to 16 bits.
    image = Image.fromarray(noise[..., 0].astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
    buffer = io.BytesIO()
    image.save(buffer, kind)
    content = bytearray(buffer.getvalue())
    for _ in range(draw(rarely(st.integers(1, 3), st.just(0)))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.integers(1, len(content)))] if draw(st.integers(0, 5)) == 3 else content)


def encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


header = st.one_of(
    st.sampled_from(
        [
            "Origin: http://HERE",
            "Origin: null",
            "Host: HERE",
            "Host: evil.example",
            "Sec-Fetch-Site: cross-site",
            "Transfer-Encoding: chunked",
            "Expect: 100-continue",
            "Connection: close",
            "Connection: keep-alive",
            "Content-Length: 0",
            "Content-Length: -1",
            "Content-Length: 99999999999",
            "Content-Type: multipart/mixed; boundary=a",
            "From a mail",
            " folded",
            ": nameless",
        ]
    ),
    st.tuples(any_text, any_text).map(": ".join),
)


@st.composite
def request(draw: st.DrawFn) -> bytes:
    method = draw(
        rarely(
            st.sampled_from(["PUT", "TRACE", "OPTIONS", "PRI", "", "get"]) | any_text,
            st.sampled_from(["POST", "POST", "GET", "POST", "HEAD", "POST"]),
        )
    )
    has_body = method not in ("GET", "HEAD")
    path = draw(rarely(any_text, st.sampled_from(sorted(POSTS) if has_body else GETS)))
    query = draw(rarely(any_text.map("?{}".format), st.sampled_from(["", "?number=3", "?number=3&digit=8"])))
    version = draw(
        rarely(st.sampled_from(["HTTP/0.9", "HTTP/1.0", "HTTP/2.0", "HTTP/1.", ""]), st.just("HTTP/1.1"))
    )
    is_file = path == "/api/picture" or (path == "/api/scene" and draw(st.booleans()))
    right = picture() if is_file else POSTS.get(path, asked()).map(encoded)
    body = draw(rarely(no_json, right)) if has_body else draw(rarely(no_json, st.just(b"")))
    lines = [f"{method} {path}{query} {version}", "Host: HERE"]
    if body or has_body:
        lines += [
            "Content-Type: application/octet-stream" if is_file else "Content-Type: application/json",
            f"Content-Length: {draw(rarely(st.integers(0, 2 * len(body) + 1), st.just(len(body))))}",
        ]
    for extra in draw(rarely(st.lists(header, max_size=4), st.just([]))):
        lines.insert(draw(st.integers(1, len(lines))), extra)
    return "\r\n".join((*lines, "", "")).encode("utf-8", "surrogatepass") + body


@st.composite
def any_bytes(draw: st.DrawFn) -> bytes:
    """Up to three requests one after the other, perhaps cut short, or noise alone or between them."""
    sent = b"".join(draw(st.lists(rarely(st.binary(max_size=200), request()), min_size=1, max_size=3)))
    return sent[: draw(st.integers(0, len(sent)))] if draw(st.integers(0, 5)) == 3 else sent
