"""Images in another light are those that the factors say, each by itself, and stay images."""

import pytest
import torch
from helpers.own_folder import write
from helpers.tiny_runs import weights
from PIL import Image, ImageEnhance

from scalechannels.data.pictures import as_picture
from scalechannels.training.augment.colour import Colour, grey_of
from scalechannels.training.config import DataConfig, NetworkConfig, RunConfig, TrainingConfig
from scalechannels.training.fit import fit
from scalechannels.training.runs import Run


def image(colours: int = 3) -> torch.Tensor:
    """(1, 1, C, 9, 12), away from black and white, where a changed image is not clipped."""
    generator = torch.Generator().manual_seed(0)
    return 0.4 + 0.2 * torch.rand(1, 1, colours, 9, 12, generator=generator)


def factors(brightness: float = 1.0, contrast: float = 1.0, saturation: float = 1.0) -> torch.Tensor:
    return torch.tensor([brightness, contrast, saturation]).view(3, 1, 1, 1, 1, 1)


@pytest.mark.parametrize("colours", [1, 3])
def test_factors_of_one_change_nothing(colours: int) -> None:
    torch.testing.assert_close(Colour(0.5).seen(image(colours), factors()), image(colours))
    torch.testing.assert_close(Colour(0.0)(image(colours)), image(colours))


@pytest.mark.parametrize(
    ("enhance", "given"),
    [
        (ImageEnhance.Brightness, {"brightness": 1.3}),
        (ImageEnhance.Contrast, {"contrast": 0.6}),
        (ImageEnhance.Color, {"saturation": 1.6}),
    ],
)
def test_each_factor_does_what_pillow_does(enhance: type, given: dict[str, float]) -> None:
    expected: Image.Image = enhance(as_picture(image()[0, 0])).enhance(*given.values())
    made = as_picture(Colour(0.9).seen(image(), factors(**given))[0, 0])
    apart = [abs(a - b) for a, b in zip(made.tobytes(), expected.tobytes(), strict=True)]
    assert max(apart) <= 2  # of 255: Pillow rounds on the way
    untouched = as_picture(image()[0, 0])
    assert max(abs(a - b) for a, b in zip(untouched.tobytes(), expected.tobytes(), strict=True)) > 5


def test_a_grey_image_has_no_saturation() -> None:
    torch.testing.assert_close(Colour(0.9).seen(image(1), factors(saturation=0.2)), image(1))


def test_contrast_and_saturation_leave_the_mean_grey() -> None:
    made = Colour(0.9).seen(image(), factors(contrast=1.5, saturation=0.5))
    torch.testing.assert_close(grey_of(made).mean(), grey_of(image()).mean())


def test_factors_reach_their_ends_but_not_beyond_and_values_stay_shares_of_white() -> None:
    torch.manual_seed(0)
    flat = torch.full((1, 4000, 1, 1, 1), 0.5)  # one pixel has no contrast: brightness alone is seen
    made = Colour(0.4)(flat)[0].flatten() / 0.5
    assert 0.6 <= float(made.min()) < 0.61
    assert 1.39 < float(made.max()) <= 1.4
    bright = Colour(0.9)(torch.rand(1, 200, 3, 4, 4))
    assert float(bright.min()) >= 0
    assert float(bright.max()) == 1


def test_every_image_of_a_step_has_its_own_light() -> None:
    torch.manual_seed(0)
    first, second = Colour(0.4)(image().expand(1, 2, 3, 9, 12))[0]
    assert not torch.allclose(first, second)


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(ValueError, match="strength must be at least 0 and below 1; got 1"):
        Colour(1.0)
    with pytest.raises(ValueError, match=r"training\.colour must be at least 0 and below 1; got 1"):
        TrainingConfig(colour=1.0)
    digits = RunConfig(DataConfig("mnist"), training=TrainingConfig(colour=0.2))
    with pytest.raises(ValueError, match=r"training\.colour changes the light of photographs, and MNIST"):
        digits.resolve()


@pytest.mark.parametrize("network", ["fovlse", "cnn"])
def test_a_run_on_own_images_learns_from_other_images(tmp_path, network: str) -> None:
    folder = write(tmp_path / "photos", [(20, 20)] * 6, mode="RGB")

    def learnt(name: str, colour: float) -> Run:
        training = TrainingConfig(epochs=2, batch=4, colour=colour)
        config = RunConfig(
            DataConfig("folder", folder=str(folder)), NetworkConfig(network, window=12), training
        )
        (run,) = fit([config], tmp_path / name, device="cpu", sizes=(1.0,))
        return run

    plain, lit = learnt("plain", 0.0), learnt("lit", 0.3)
    assert plain.config.name != lit.config.name
    assert any(not torch.equal(one, weights(lit)[name]) for name, one in weights(plain).items())
