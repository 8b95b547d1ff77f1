"""Which candidate to use, and why: chosen on the validation part, told with the numbers of the test part."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalechannels.data.survey import Images
from scalechannels.report.candidates import AUGMENTED, CENTRE, EVERYWHERE, RESIZED
from scalechannels.report.conditions import LOOSE, OFFSETS, SURROUNDINGS, Condition
from scalechannels.report.theme import fraction

AS_GOOD = 0.5
"""Points of accuracy; of candidates that are no further below the best one, the cheapest is used."""
COSTLY = 5.0
"""Points that are worth a remark."""
WHY = {
    RESIZED: "These images are crops, and resizing a crop removes the object's size: scale channels are not "
    "needed.",
    AUGMENTED: "Training on images rescaled to the expected sizes is enough here: scale channels are not "
    "needed.",
    CENTRE: "Scale channels keep their accuracy at both ends of the range better than a plain network does.",
    EVERYWHERE: "Scale channels that look everywhere do not need the object at the centre.",
}


@dataclass(frozen=True)
class Verdict:
    """What to use."""

    winner: str
    text: str
    """One sentence with the numbers, and one that says why."""
    remarks: list[str]
    """What the winner does not stand."""
    means: dict[str, float]
    """The mean test accuracy of each candidate over the scored conditions, in per cent."""


def verdict(result: Mapping[str, Any]) -> Verdict:
    """The verdict on a result, which has for each candidate what `trial.tried` gives."""
    trials = result["candidates"]
    winner = chosen(trials, result["kind"])
    means = {name: mean_accuracy(trial["test"], result["kind"]) for name, trial in trials.items()}
    others = sorted((name for name in trials if name != winner), key=means.__getitem__, reverse=True)
    sizes = [entry["value"] for entry in trials[winner]["test"] if entry["group"] == "size"]
    over = f"over sizes {fraction(min(sizes))} to {fraction(max(sizes))} and small offsets"
    measure = "accuracy" if result.get("balanced", True) else "balanced accuracy"
    if not others:
        has = "have" if winner.startswith(CENTRE) else "has"  # channels, or a network
        text = f"The {winner} {has} {means[winner]:.0f} % {measure} {over}, on images kept for the test."
        return Verdict(winner, text, remarks(trials[winner]["test"], result), means)
    compared = ", ".join(f"{name} {means[name]:.0f} %" for name in others)
    named = "" if measure == "accuracy" else f" {measure}"
    text = f"Use the {winner}: {means[winner]:.0f} %{named} on average {over}; {compared}. "
    text += WHY.get(winner, "")
    images = len(trials[winner]["test_images"])
    alike = [name for name in others if _alike(trials[winner], trials[name])]
    if alike:
        text = f"{text.strip()} {images} test images cannot tell it from the {' or the '.join(alike)}."
    return Verdict(winner, text.strip(), remarks(trials[winner]["test"], result), means)


def chosen(trials: Mapping[str, Mapping[str, Any]], images: Images) -> str:
    """The cheapest of those that are within half a point of the best on the validation part."""
    scores = {name: mean_accuracy(trial["validation"], images) for name, trial in trials.items()}
    good = [name for name in trials if scores[name] >= max(scores.values()) - AS_GOOD]
    return min(good, key=lambda name: trials[name]["cost"].get("multiplications", math.inf))


def mean_accuracy(entries: Sequence[Mapping[str, Any]], images: Images) -> float:
    """The mean of the balanced accuracies under the conditions that count."""
    return statistics.fmean(
        entry["balanced"] for entry in entries if Condition(entry["group"], entry["value"]).scored(images)
    )


def remarks(entries: Sequence[Mapping[str, Any]], result: Mapping[str, Any]) -> list[str]:
    """Where the winner's accuracy drops, in the test part."""
    found = {(entry["group"], round(entry["value"], 6)): entry["balanced"] for entry in entries}
    said: list[str] = []
    pixels = result["object_pixels"] * result["reduce"]
    own = found.get(("size", 1.0))
    if own is None:
        return said
    for offset in OFFSETS:
        lost = own - found["offset", round(offset, 6)]
        if lost > COSTLY:
            far = max(1, round(offset * result["object_pixels"])) * result["reduce"]
            where = f"moved by {far} pixels" if result.get("off_centre") else f"{far} pixels off the centre"
            said.append(f"An object {where} costs {lost:.0f} points (objects have {pixels:.0f}).")
            break
    loose = found["surroundings", 0.0]
    if result["kind"] == "crops" and own - loose > COSTLY:
        said.append(
            f"Later crops must be as tight as these: with {LOOSE:g} times the side, accuracy is "
            f"{loose:.0f} %."
        )
    lost = loose - found["surroundings", float(SURROUNDINGS.index("clouds"))]
    if lost > COSTLY:
        said.append(f"Lively surroundings, which training did not show, cost {lost:.0f} points.")
    worst, size = min((found["size", size], size) for group, size in found if group == "size")
    if own - worst > COSTLY:
        said.append(
            f"At size {fraction(size)} accuracy is {worst:.0f} %, at the images' own size {own:.0f} %."
        )
    return said + _weak_class(entries, result)


def _weak_class(entries: Sequence[Mapping[str, Any]], result: Mapping[str, Any]) -> list[str]:
    """A class that is recognised at less than half the mean rate, and what it is taken for."""
    own = next(entry for entry in entries if entry["group"] == "size" and entry["value"] == 1)
    rows = [(row[place] / sum(row), place) for place, row in enumerate(own["confusion"]) if sum(row)]
    share, place = min(rows)
    if 100 * share >= own["balanced"] / 2:
        return []
    others = [0 if other == place else count for other, count in enumerate(own["confusion"][place])]
    names = result["classes"]
    return [
        f"Of {names[place]}, {100 * share:.0f} % are recognised; it is most often taken for "
        f"{names[others.index(max(others))]}."
    ]


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether chance explains the difference: images are compared one by one, at twice the standard error."""
    pairs = zip(one["test_images"], other["test_images"], strict=True)
    differences = [first - second for first, second in pairs]
    if len(differences) < 2:
        return True
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return abs(statistics.fmean(differences)) <= 2 * error
