"""What the page asks for, and the answers: each depends only on its request.

A digit travels as 784 bytes in base64. The page keeps it, the server nothing: any number of users may ask.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import torch
from torch import Tensor

from scalechannels.data.decoding import UnreadableImageError
from scalechannels.demo.digit import SIDE, NoDigitError, digit_from_picture, digit_from_strokes
from scalechannels.demo.looks import FURTHEST, LARGEST, SMALLEST, Looks, example, in_base64
from scalechannels.demo.scene import Finder, dropped_picture, made_scene
from scalechannels.network import NotFiniteError

WORKERS = 2
MAX_STROKES, MAX_POINTS = 64, 4000


class BadRequestError(Exception):
    """A request that cannot be answered: the status and what to do."""

    def __init__(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Body:
    """What came with a request: an image file, or JSON."""

    content: bytes
    is_file: bool

    def json(self) -> dict[str, Any]:
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError):
            raise BadRequestError("the body must be JSON") from None
        if not isinstance(value, dict):
            raise BadRequestError("the body must be a JSON object, such as {}")
        return value


class Demo:
    """The two networks and the detector, and what they answer."""

    def __init__(self, looks: Looks, finder: Finder | None = None) -> None:
        self.looks, self.finder = looks, finder
        self.answers: dict[str, Callable[[Body], dict[str, Any]]] = {
            "/api/drawing": lambda body: {"digit": in_base64(digit_from_strokes(_strokes(body.json())))},
            "/api/picture": lambda body: {"digit": in_base64(digit_from_picture(body.content))},
            "/api/look": self._look,
            "/api/sizes": self._sizes,
            "/api/scene": self._scene,
        }
        # Digits are small: threads inside one answer would cost more than they bring, so that users share the
        # cores instead. Few workers, because every thread that computes keeps its own memory.
        self.workers = ThreadPoolExecutor(WORKERS, "demo", initializer=partial(torch.set_num_threads, 1))

    def settings(self) -> dict[str, Any]:
        return {**self.looks.settings(), "detector": self.finder and self.finder.settings()}

    def answer(self, path: str, body: Body) -> dict[str, Any]:
        """The answer to a POST; raises BadRequestError."""
        try:
            return self.workers.submit(self.answers[path], body).result()
        except (UnreadableImageError, NoDigitError, NotFiniteError) as error:
            raise BadRequestError(str(error), HTTPStatus.UNPROCESSABLE_ENTITY) from None

    def close(self) -> None:
        self.workers.shutdown(cancel_futures=True)

    def _look(self, body: Body) -> dict[str, Any]:
        given = body.json()
        return self.looks.at(_digit(given), _number(given, "size", SMALLEST, LARGEST), _off(given))

    def _sizes(self, body: Body) -> dict[str, Any]:
        given = body.json()
        return self.looks.at_all_sizes(_digit(given), _off(given))

    def _scene(self, body: Body) -> dict[str, Any]:
        if self.finder is None:
            raise BadRequestError("this demo was started without a detector", HTTPStatus.NOT_FOUND)
        if body.is_file:
            return dropped_picture(self.finder, body.content)
        if not self.finder.of_digits:
            wanted = "this demo's detector is not for scenes of digits; send a picture"
            raise BadRequestError(wanted, HTTPStatus.NOT_FOUND)
        given = body.json()
        background, seed = given.get("background", "plain"), _number(given, "seed", 0, 2**30 - 1)
        try:
            return made_scene(self.finder, int(seed), background)
        except ValueError as error:
            raise BadRequestError(str(error)) from None


def _digit(given: dict[str, Any]) -> Tensor:
    try:
        content = base64.b64decode(given["digit"], validate=True)
    except (KeyError, TypeError, ValueError):
        content = b""
    if len(content) != SIDE * SIDE:
        raise BadRequestError(f"digit must be {SIDE}x{SIDE} bytes in base64")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).view(SIDE, SIDE)


def _number(given: dict[str, Any], name: str, low: float, high: float) -> float:
    value: Any = given.get(name)
    if not _is_within(value, low, high):
        raise BadRequestError(f"{name} must be a number from {low:g} to {high:g}")
    return float(value)


def _off(given: dict[str, Any]) -> tuple[int, int]:
    """By how many rows and columns the digit is off the centre; not at all where nothing is said."""
    rows, columns = (
        _number({name: given.get(name, 0)}, name, -FURTHEST, FURTHEST) for name in ("down", "right")
    )
    return round(rows), round(columns)


def _is_within(value: Any, low: float, high: float) -> bool:
    """Whether JSON gave a number in a range, in which not-a-number is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _strokes(given: dict[str, Any]) -> list[list[tuple[float, float]]]:
    strokes = given.get("strokes")
    if not isinstance(strokes, list) or len(strokes) > MAX_STROKES:
        raise BadRequestError(f"strokes must be a list of at most {MAX_STROKES} strokes")
    if not all(isinstance(stroke, list) for stroke in strokes) or sum(map(len, strokes)) > MAX_POINTS:
        raise BadRequestError(f"a stroke must be a list of points, at most {MAX_POINTS} in all")
    return [[_point(point) for point in stroke] for stroke in strokes if stroke]


def _point(given: Any) -> tuple[float, float]:
    pair = isinstance(given, list) and len(given) == 2
    if not pair or not all(_is_within(side, -1e5, 1e5) for side in given):
        raise BadRequestError("a point must be [x, y], two numbers")
    return float(given[0]), float(given[1])


def example_asked_for(query: str) -> dict[str, Any]:
    try:
        named = parse_qs(query, max_num_fields=4)
        number = int(named["number"][0])
        label = int(named["digit"][0]) if "digit" in named else None
        return example(number, label)
    except (KeyError, ValueError) as error:
        raise BadRequestError(f"give number=0 and, for one class, digit=7 ({error})") from None
