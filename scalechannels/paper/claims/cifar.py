"""Claims about rescaled CIFAR-10. "About" is taken as within 8 points."""

from __future__ import annotations

from statistics import fmean

from scalechannels.paper.claims.claim import FOVEATED, Checked, Claim, for_each, need
from scalechannels.paper.recipes import ROOT2, ROOT4, cifar
from scalechannels.paper.results import Results
from scalechannels.training.config import NetworkName

ABOUT = 8.0


def _mean(results: Results, name: NetworkName, ratio: float) -> float:
    return fmean(need(results, cifar(name, ratio)).accuracies.values())


def _ends(results: Results, name: NetworkName, ratio: float = ROOT4) -> tuple[float, float]:
    found = need(results, cifar(name, ratio)).accuracies
    return found[0.5], found[2.0]


def _cnn(results: Results) -> Checked:
    half, double = _ends(results, "cnn")
    holds = abs(half - 40) < ABOUT and abs(double - 30) < ABOUT
    return holds, f"{half:.1f} at 1/2, {double:.1f} at 2"


def _foveated(results: Results, network: NetworkName) -> Checked:
    half, double = _ends(results, network)
    holds = half > 70 and abs(double - 50) < ABOUT
    return holds, f"{half:.1f} at 1/2, {double:.1f} at 2 (ratio 2^(1/4))"


def _finer(results: Results) -> Checked:
    coarse, fine = (_mean(results, "fovmax", ratio) for ratio in (ROOT2, ROOT4))
    return fine > coarse, f"mean over the nine sizes {coarse:.2f}, with 2^(1/4) {fine:.2f}"


def _peak(results: Results) -> Checked:
    avg, best = (
        max(max(need(results, cifar(name, ratio)).accuracies.values()) for ratio in (ROOT2, ROOT4))
        for name in FOVEATED
    )
    return avg > best, f"FovAvg {avg:.2f}, FovMax {best:.2f}"


def _conc_beats(results: Results) -> Checked:
    conc, plain = (_mean(results, name, ROOT4) for name in ("fovconc", "cnn"))
    return conc > plain, f"mean over the nine sizes {conc:.2f}, CNN {plain:.2f}"


def _conc_gains_not(results: Results) -> Checked:
    few, many = (_mean(results, "fovconc", ratio) for ratio in (ROOT2, ROOT4))
    return many - few < 1, f"ratio √2 {few:.2f}, 2^(1/4) {many:.2f}"


PLACE = "Section 7.3"
CLAIMS: tuple[Claim, ...] = (
    Claim("cifar-cnn", "CIFAR-10: the CNN has about 40 % at 1/2 and about 30 % at 2", PLACE, _cnn),
    *for_each(FOVEATED, "cifar", "CIFAR-10: {} has above 70 % at 1/2 and about 50 % at 2", PLACE, _foveated),
    Claim("cifar-finer", "CIFAR-10: FovMax gains from the ratio 2^(1/4)", PLACE, _finer),
    Claim("cifar-peak", "CIFAR-10: FovAvg has a higher peak than FovMax", PLACE, _peak),
    Claim("cifar-fovconc", "CIFAR-10: FovConc beats the CNN", PLACE, _conc_beats),
    Claim(
        "cifar-fovconc-channels",
        "CIFAR-10: FovConc does not gain from more channels (less than a point)",
        PLACE,
        _conc_gains_not,
    ),
)
