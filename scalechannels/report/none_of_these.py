"""Images of none of the classes, in a subfolder `none-of-these`: how often they are given a class.

The network learns them as one more class. Two rates say how well: false alarms, images of no class that were
given one, and missed objects, images of a class that were taken for none. Limit: this is about images such as
those in the subfolder; about what looks different, nobody was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scalechannels.data.survey import NONE
from scalechannels.report.kept import test_of_kept, tests


class Rejected(NamedTuple):
    """What became of the images of none of the classes, and what of the others."""

    alarms: int
    """Of no class, but given one."""
    nothing: int
    """Images of no class."""
    missed: int
    """Of a class, but taken for none."""
    objects: int
    """Images of a class."""

    @property
    def false_alarms(self) -> str:
        return f"{100 * self.alarms / max(1, self.nothing):.1f} % ({self.alarms:,} of {self.nothing:,})"

    @property
    def missed_objects(self) -> str:
        return f"{100 * self.missed / max(1, self.objects):.1f} % ({self.missed:,} of {self.objects:,})"


def rejected(confusion: Sequence[Sequence[int]], classes: Sequence[str]) -> Rejected | None:
    """By a confusion matrix, whose rows are the true classes; None without such a class or images of it."""
    if NONE not in classes:
        return None
    place = classes.index(NONE)
    nothing, objects = sum(confusion[place]), sum(map(sum, confusion)) - sum(confusion[place])
    alarms = nothing - confusion[place][place]
    missed = sum(row[place] for row in confusion) - confusion[place][place]
    return Rejected(alarms, nothing, missed, objects) if nothing else None


def false_alarms(result: Mapping[str, Any]) -> str | None:
    """What the network that is kept does with images of no class, in a sentence; None without them."""
    own = [entry for entry in test_of_kept(result) if entry["group"] == "size" and entry["value"] == 1]
    found = rejected(own[0]["confusion"], result["classes"]) if own else None
    if found is None:
        return None
    return (
        f"False alarms: {found.false_alarms} of the test images in '{NONE}' are given a class; missed: "
        f"{found.missed_objects} of the others are taken for none."
    )


def by_size(result: Mapping[str, Any]) -> list[list[str]]:
    """For each size what each network gives: false alarms and missed objects; empty without such images."""
    rows = []
    for row in zip(*tests(result).values(), strict=True):
        if row[0]["group"] == "size":
            found = [rejected(entry["confusion"], result["classes"]) for entry in row]
            told = [f"{one.false_alarms}; {one.missed_objects}" for one in found if one is not None]
            rows += [[f"{row[0]['value']:.3g}", *told]] if told else []
    return rows
