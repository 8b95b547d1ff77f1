"""Verdicts on invented results: chosen on the validation part, told by the test part."""

import pytest

from scalechannels.report.conditions import conditions
from scalechannels.report.verdict import chosen, verdict

CONDITIONS = conditions(0.5, 2)


def part(size: float, offset: float | None = None, surroundings: float | None = None) -> list[dict]:
    """The same accuracy at all sizes, at all offsets and in all surroundings."""
    values = {
        "size": size,
        "offset": size if offset is None else offset,
        "surroundings": surroundings or size,
    }
    alike = {"confusion": [[9, 1], [1, 9]]}
    return [
        {"group": one.group, "value": one.value, "balanced": values[one.group], **alike} for one in CONDITIONS
    ]


def trial(validation: float, test: float, cost: float | None, spread: float = 0.0, **others: float) -> dict:
    return {
        "validation": part(validation),
        "test": part(test, **others),
        "test_images": [test / 100 + spread * (-1) ** k for k in range(100)],
        "cost": {"parameters": 1} if cost is None else {"parameters": 1, "multiplications": cost},
    }


def result(**trials: dict) -> dict:
    named = {name.replace("_", " "): one for name, one in trials.items()}
    return {"candidates": named, "object_pixels": 28.0, "reduce": 1, "kind": "crops", "classes": ["a", "b"]}


def test_the_choice_is_made_on_validation_and_told_with_test_numbers() -> None:
    said = verdict(result(resized_CNN=trial(90, 80, 4), scale_channels=trial(85, 95, 20)))
    assert said.winner == "resized CNN"
    assert said.text.startswith("Use the resized CNN: 80 % on average over sizes ½ to 2 and small offsets; ")
    assert "scale channels 95 %" in said.text
    assert said.text.endswith("resizing a crop removes the object's size: scale channels are not needed.")
    said = verdict(result(resized_CNN=trial(70, 80, 4), scale_channels=trial(85, 95, 20)))
    assert said.winner == "scale channels"
    assert said.text.endswith(
        "keep their accuracy at both ends of the range better than a plain network does."
    )


@pytest.mark.parametrize(("better", "wins"), [(0.4, "cheap"), (0.6, "dear")])
def test_of_those_that_are_as_good_the_cheapest_is_used(better: float, wins: str) -> None:
    assert chosen({"cheap": trial(90, 1, 1), "dear": trial(90 + better, 1, 9)}, "crops") == wins
    assert chosen({"cheap": trial(90, 1, 1e9), "dear": trial(90 + better, 1, None)}, "crops") == wins


def test_of_tight_crops_the_best_on_all_sizes_is_not_left_for_what_is_cut_off() -> None:
    """Channels lose less where a crop is cut; such crops are not what the images are."""
    resized, channels = trial(100, 100, 4), trial(97, 97, 20)
    for one in resized["validation"]:
        if one["group"] == "offset" and one["value"] > 1 / 14:
            one["balanced"] = 40
    made = result(resized_CNN=resized, scale_channels=channels)
    assert verdict(made).winner == "resized CNN"
    assert verdict({**made, "kind": "frames"}).winner == "scale channels"


def test_what_chance_explains_is_told() -> None:
    one, other = trial(90, 80, 4, spread=0.2), trial(80, 79, 4)
    assert (
        "100 test images cannot tell it from the augmented CNN."
        in verdict(result(resized_CNN=one, augmented_CNN=other)).text
    )
    assert "cannot tell" not in verdict(result(resized_CNN=one, augmented_CNN=trial(80, 60, 4))).text


def test_what_the_winner_does_not_stand_is_told() -> None:
    assert verdict(result(scale_channels=trial(90, 80, 4))).remarks == []
    said = verdict(result(scale_channels=trial(90, 80, 4, offset=60, surroundings=40))).remarks
    assert said == [
        "An object 2 pixels off the centre costs 20 points (objects have 28).",
        "Later crops must be as tight as these: with 1.5 times the side, accuracy is 40 %.",
    ]


def test_far_off_the_centre_is_told_where_near_it_costs_nothing() -> None:
    one = trial(90, 90, 4)
    (far,) = (entry for entry in one["test"] if entry["group"] == "offset" and entry["value"] > 1 / 7)
    far["balanced"] = 30
    assert verdict(result(resized_CNN=one)).remarks == [
        "An object 8 pixels off the centre costs 60 points (objects have 28)."
    ]


def test_a_class_that_is_hardly_recognised_is_named() -> None:
    """The mean hides it: 90, 90, 90 and 40 % are 78 %, and one of the four things is mostly missed."""
    one = trial(78, 78, 4)
    for entry in one["test"]:
        entry["confusion"] = [[9, 1, 0, 0], [0, 9, 0, 1], [0, 0, 9, 1], [1, 0, 5, 4]]
    named = {**result(resized_CNN=one), "classes": ["bag", "boot", "shirt", "blouse"]}
    assert verdict(named).remarks == []  # 40 is more than half of 78
    for entry in one["test"]:
        entry["confusion"][3] = [2, 0, 5, 3]
    assert verdict(named).remarks == ["Of blouse, 30 % are recognised; it is most often taken for shirt."]
