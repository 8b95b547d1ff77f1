"""The paper's qualitative claims, and those that did not hold here, with what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from scalechannels.paper.claims import cifar, curves, selection, table
from scalechannels.paper.claims.claim import Claim, Verdict
from scalechannels.paper.results import Results

CLAIMS: tuple[Claim, ...] = (*table.CLAIMS, *curves.CLAIMS, *selection.CLAIMS, *cifar.CLAIMS)


@dataclass(frozen=True)
class Deviation:
    """A claim that does not hold on the committed results."""

    measured: str
    """As the check says it: a test sees to it that this is what the results give."""
    why: str
    """What is known about it, as a fair sentence."""


DEVIATIONS: dict[str, Deviation] = {
    "near-fovmax": Deviation(
        "outside: tr1 [1/2,8] -0.86",
        "The runs scatter widely where digits leave the image: on [4,8] seeds 0, 1 and 2 have 97.03, 84.93 "
        "and 91.20. Seed 1 alone moves the mean of [1/2,8] from 97.69 to 96.77 (paper: 97.63). The same "
        "three runs, trained before among others, had 98.48, 95.57 and 97.14, mean 97.06 (results/earlier)."
        " Six more seeds have 95.37 to 98.36 on validation images, mean 96.94 (results/deviations): they"
        " scatter as widely. Their standard deviation is 1.17, so a mean of three runs has one of 0.7, not "
        "much less than what is missing. On [1,4] and [1/2,4] all figures are within what was expected.",
    ),
    "near-swmax": Deviation(
        "outside: tr1 [1,4] -2.70",
        "The seeds scatter: 97.53, 90.82 and 96.34 on [1,4]; the other three training sets are within 0.9 "
        "points of the paper. What the paper leaves open may matter as much. On the validation set (sizes "
        "1, √2, 2, 2√2 and 4, seed 0), trained on size 1: dropout at every place by itself 89.8, of whole "
        "features 92.9, with a window at every channel's centre 96.4, and with 8 pixels of border around "
        "each rescaled image 97.7. Without the border the channel of an object that fills the image has one"
        " window and no room to shift. Other first weights (He's 92.3, Glorot's 92.6 where PyTorch's had "
        "92.9; one draw each) change little. Runs: results/deviations.",
    ),
    "ranking-table5": Deviation(
        "FovMax 99.27, FovAvg 99.26, FovConc 97.31, SWMax 97.30, CNN 93.92; SWMax is not above FovConc",
        "Both scatter by almost a point over three seeds (FovConc 97.31 ± 0.81, SWMax 97.30 ± 0.90), and "
        "our FovConc does better than the paper's on sizes in [1/2,1], 94.1 against 89.7, with no training "
        "image there.",
    ),
    "few-fovconc": Deviation(
        "-2.54 points over all sizes of the training set",
        "From 1,000 samples on FovConc is above the CNN (95.6 against 95.3, 97.5 against 97.2, 98.3 against"
        " 98.1 at 1,000, 3,000 and 10,000); with 100 and 300 it is below (54.7 against 63.1, 83.4 against "
        "88.6). That its mixing layer has 1,710 weights to learn from so few may be why; this was not "
        "tested. One seed each; the paper gives no figures.",
    ),
    "cifar-fovavg": Deviation(
        "61.8 at 1/2, 51.4 at 2 (ratio 2^(1/4))",
        "Two things that the paper does not tell bring it close to its figures: training images that are "
        "mirrored and shifted by up to 4 pixels at random, and test images rescaled without anti-aliasing "
        "(ours: bicubic, anti-aliased below 1). On validation images (40,000 others learnt in 30 epochs, "
        "ratio √2, one seed) FovAvg then has 69.7 at 1/2, 85.7 at 1 and 50.7 at 2; with mirrored and shifted"
        " images alone 66.4 at 1/2, without anti-aliasing alone 61.7, with neither 60.3 and 49.2 at 2. The "
        "range of the channels (ours: [1/2,2]) matters too: [1/4,2] 62.7 and 52.4 at 1/2 and 2, [1/4,4] 63.3 "
        "and 55.4, [1/4,1] 57.7 and 44.9; without anti-aliasing 66.2 at 1/2 for [1/4,2], 66.5 for [1/4,4]. "
        "Pixels normalised by their mean and spread change little: 60.4 and 51.4. Runs on [1/4,4], [1/4,1], "
        "with mirrored and shifted images and with normalised pixels: results/deviations; the others, and "
        "what was found with images rescaled in other ways, were not kept.",
    ),
    "cifar-fovmax": Deviation(
        "53.8 at 1/2, 43.7 at 2 (ratio 2^(1/4))",
        "What FovMax lacks most is training images that are mirrored and shifted by up to 4 pixels at "
        "random. On validation images (as for FovAvg), at 1/2, 1 and 2: 52.2, 74.8 and 41.2 without, 57.8, "
        "84.6 and 51.6 with them, so what the paper reports at 2. It mentions none, but without them the "
        "loss ends near 0. At 1/2 it has 64.5 with them and test images rescaled without anti-aliasing. No "
        "range of channels brings FovMax near 70 there (1/2 and 2, without them): [1/2,√2] 44.4 and 34.5, "
        "[1/2,1] 46.6 and 22.1, [1/4,1] 45.6 and 24.5, [1/4,2] 52.4 and 38.7, [1/4,4] 39.9 and 40.3, where "
        "the coarsest channel wins for two of three images of size 1. Rescaled without anti-aliasing 56.2 at "
        "1/2, bilinear 52.4, bilinear with anti-aliasing 46.5; normalised pixels 52.6 and 37.4. Not run: all "
        "of it with the ratio 2^(1/4) and 103 epochs. Runs but for [1/2,√2] and [1/4,2]: results/deviations.",
    ),
    "cifar-fovconc-channels": Deviation(
        "ratio √2 54.18, 2^(1/4) 56.86",
        "One seed each, of networks that know their training images by heart; 3 channels have 53.20. It is "
        "above the CNN for large sizes (32.0 against 25.6 at 2) and below it for small ones and at its peak"
        " (38.7 against 43.4 at 1/2, 76.5 against 79.6 at 1). With images that are mirrored and shifted in "
        "training (validation, as for FovAvg) it is above the CNN at both ends, 51.2 against 48.2 at 1/2 and "
        "31.0 against 26.3 at 2, and 63.7 against 62.7 over all nine sizes.",
    ),
}


def explained(claim: Claim, verdict: Verdict) -> str:
    """What is known about a claim that does not hold; an explanation is of the numbers it was written for."""
    known = DEVIATIONS.get(claim.id)
    return known.why if known is not None and known.measured == verdict.measured else "Not explained yet."


def verdicts(results: Results) -> list[tuple[Claim, Verdict]]:
    """Every claim with how it does."""
    return [(claim, claim.verdict(results)) for claim in CLAIMS]


def failed(results: Results) -> list[tuple[Claim, str, str]]:
    """The claims that do not hold, with what was measured and what is known about it."""
    return [
        (claim, verdict.measured, explained(claim, verdict))
        for claim, verdict in verdicts(results)
        if verdict.state == "does not hold"
    ]
