"""Own images: candidates trained within a budget, compared, and the best one saved with a report.

    runs/photos-1f2e3d4c/
      plan.json              what was asked for and what is trained, fixed before the training begins
      candidates/…/          a run for each candidate, and its trial.json; and of the network that is kept
      config.toml, model.safetensors, config.json, README.md, result.json   its files
      report.html, report.json, accuracy.png

Every step is skipped where its files are there: killed at any moment, the same command resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from scalechannels.data.folder import ImageFolder
from scalechannels.data.survey import Survey, survey
from scalechannels.files import atomic_path, locked, make_folder, write_text
from scalechannels.report import candidates as offered
from scalechannels.report.candidates import Planned, named
from scalechannels.report.conditions import Condition, conditions
from scalechannels.report.kept import KEPT, can_learn_more, trained_on_both
from scalechannels.report.looked import looked
from scalechannels.report.none_of_these import false_alarms
from scalechannels.report.own_images import described, gathered, table, uncertainty, write_report
from scalechannels.report.trial import tested, tried
from scalechannels.report.verdict import Verdict, mean_accuracy, remarks, verdict
from scalechannels.saving.saved_network import CONFIG, WEIGHTS, load
from scalechannels.training.build import require_network
from scalechannels.training.config import ResolvedRun, RunConfig
from scalechannels.training.config.network import NetworkConfig
from scalechannels.training.config.options import changed
from scalechannels.training.config.own_images import factors, in_parts, open_folder
from scalechannels.training.datasets import open_data
from scalechannels.training.fit import fit
from scalechannels.training.own_images import FolderData
from scalechannels.training.progress import Progress
from scalechannels.training.runs import CONFIG as RUN_CONFIG
from scalechannels.training.runs import RESULT, Run

PLAN, TRIAL, CANDIDATES = "plan.json", "trial.json", "candidates"
OF_WINNER = (RUN_CONFIG, WEIGHTS, CONFIG, "README.md", RESULT)


@dataclass(frozen=True)
class Asked:
    """What the command was asked for beside the configuration."""

    out: Path
    device: str
    compare: bool = True
    """Train all candidates and the best of them again, or only the network of the configuration."""
    budget: str | None = None
    recommended: bool = True
    """Fill in what is open of the training as `with_recipe` does."""
    sizes: Sequence[float] | None = None
    fit: dict[str, Any] | None = None
    """Further options of `fit`."""


def train_own_images(config: RunConfig, asked: Asked) -> Path:
    """Survey, plan, train, compare, report; the report's path."""
    require_network(config.network)
    # The file of a network that was kept says so; here the choice comes first.
    config = replace(config, data=replace(config.data, validation_too=False))
    if asked.budget is not None and config.training.epochs is not None:
        raise ValueError("--budget sets the epochs; remove it or --training.epochs")
    seconds = offered.budget_seconds(asked.budget or offered.USUAL_BUDGET)
    writes = int(os.environ.get("RANK", 0)) == 0  # of several processes, one speaks and writes
    say = print if writes else lambda *_, **__: None
    with Progress("reading", writes) as progress:
        images = open_folder(config.data, watch=progress.advance)
    with Progress("looking", writes) as progress:
        seen = survey(images, watch=progress.advance)
    say("\n".join([str(images.root), *(f"  {line}" for line in seen.lines())]), flush=True)
    base = _resolved(config, asked, (images, seen))
    parts = in_parts(images, base.data)
    say(
        f"  {len(parts[0]):,} images to train on, {len(parts[1]):,} to choose by, {len(parts[2]):,} for the "
        f"report\n{described(base)}",
        flush=True,
    )
    folder = asked.out / run_name(config, base, asked)
    make_folder(asked.out)
    # Of several processes, the others are gone by then.
    again = asked.compare and can_learn_more(images, base) and int(os.environ.get("WORLD_SIZE", 1)) == 1
    with locked(folder, timeout=1) if writes else nullcontext():
        plans, left_out = _plan(config, base, asked, folder, (seconds, again), len(parts[0]), say)
        for name, why in left_out.items():
            say(f"left out: {name}; {why}", flush=True)
        _warn_of_averages(plans, len(parts[0]))
        runs = {}
        for number, plan in enumerate(plans, start=1):
            runs[plan.name] = _trained(plan, f"{number}/{len(plans)}", asked, folder, say)
        if not writes:
            return folder / "report.html"
        wanted = conditions(*factors(base.data), asked.sizes)
        trials = {name: _tried(name, run, wanted, asked, say) for name, run in runs.items()}
        result = gathered(base, seen, parts, trials, runs, left_out, asked.budget or offered.USUAL_BUDGET)
        best, kept = verdict(result), None
        if again:
            kept, result["again"] = _again(runs[best.winner], trials[best.winner], images, wanted, asked, say)
            best = _of_kept(best, result)
        _keep(kept or runs[best.winner], folder)
        data = open_data(base.data)
        assert isinstance(data, FolderData)
        write_report(result, best, folder, data, looked(load(folder).to(asked.device), data))
    say(f"\n{table(result)}\n\n{uncertainty(result)}\n{best.text}")
    for remark in (*best.remarks, *filter(None, [false_alarms(result)])):
        say(f"note: {remark}")
    say(f"\nThe report: {folder / 'report.html'}\nClassify:   scalechannels predict {folder} IMAGES")
    if len(base.data.deploy_pixel_sizes or ()) == 1:
        print(
            "note: with one known pixel size you do not need scale channels: resample each image and use "
            "a plain network",
            file=sys.stderr,
        )
    return folder / "report.html"


def run_name(config: RunConfig, base: ResolvedRun, asked: Asked) -> str:
    """The folder's name, and a digest of the images and of what was asked for: not of the machine's speed."""
    identity = {
        "asked": changed(config),
        "images": base.data.checksum,
        "precision": base.training.precision,
        "compare": asked.compare,
        "recommended": asked.recommended,
        "budget": None if config.training.epochs else asked.budget or offered.USUAL_BUDGET,
    }
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", Path(base.data.folder or "").name).strip("-.") or "images"
    return f"{name}-{digest}"


def _resolved(config: RunConfig, asked: Asked, surveyed: tuple[Any, Survey]) -> ResolvedRun:
    """What was asked for with everything chosen."""
    kind, said = torch.device(asked.device).type, config.training.class_weights
    if asked.recommended and config.data.checksum is None and said is None and not surveyed[1].balanced:
        config = replace(config, training=replace(config.training, class_weights="balanced"))
    base = config.resolve(kind, surveyed)
    network = config.network
    channels_open = (network.low, network.high, network.ratio) == (None, None, NetworkConfig().ratio)
    if not asked.compare and network.look == "everywhere" and channels_open:  # as the candidate has them
        return replace(base, network=offered.everywhere(base))
    return base


def _plan(
    config: RunConfig,
    base: ResolvedRun,
    asked: Asked,
    folder: Path,
    limit: tuple[float, bool],
    images: int,
    say: Any,
) -> tuple[list[Planned], dict[str, str]]:
    """The plan that was made before, or a new one, written before anything is trained.

    limit      the budget in seconds, and whether the winner is trained again within it
    """
    path = folder / PLAN
    if path.exists():
        return _read_plan(path)
    as_said = config.data.checksum is not None  # a run's own file says all of it
    said = config.training if asked.recommended and not as_said else None
    if asked.compare:
        found, left_out = offered.candidates(base, said)
        for name in list(found):
            try:
                found[name].resolve()
            except ValueError as error:  # an option that this candidate cannot take
                left_out[name] = str(error)
                del found[name]
    else:
        found, left_out = {offered.named(base): offered.with_recipe(base, said)}, {}
    if config.training.epochs is not None or int(os.environ.get("WORLD_SIZE", 1)) > 1:
        epochs = base.training.epochs
        plans = [
            Planned(name, one if as_said else offered.with_epochs(one, epochs, images, said), None)
            for name, one in found.items()
        ]
    else:
        many = f"{len(found)} {'candidate' if len(found) == 1 else 'candidates'}"
        say(f"budget {asked.budget or offered.USUAL_BUDGET}: timing {many} …", flush=True)
        root = (asked.fit or {}).get("root")
        with Progress("timing", True) as progress:
            timed = partial(progress.begins, count=len(found))
            budget, again = limit
            plans, slow = offered.planned(found, images, budget, asked.device, said, root, timed, again)
        left_out |= slow
        each = [plan.seconds or 0 for plan in plans]
        if sum(each) > 1.01 * budget:
            say("the budget is too short, and the fastest candidate gets the fewest steps that make sense")
        more = f"the best once more, for {_minutes(max(each))} at most, " if again else ""
        say(f"training will take about {_minutes(sum(each))}, {more}and the tests some more", flush=True)
    if int(os.environ.get("RANK", 0)) == 0:
        write_text(path, json.dumps(_as_json(plans, left_out), indent=1) + "\n")
    return plans, left_out


def _as_json(plans: Sequence[Planned], left_out: dict[str, str]) -> dict[str, Any]:
    listed = [{"name": p.name, "config": p.config.as_dict(), "seconds": p.seconds} for p in plans]
    return {"candidates": listed, "left_out": left_out}


def _read_plan(path: Path) -> tuple[list[Planned], dict[str, str]]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        plans = [
            Planned(one["name"], ResolvedRun.from_dict(one["config"]), one["seconds"])
            for one in said["candidates"]
        ]
        return plans, said["left_out"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' is damaged ({error}); remove it to begin again") from error


def _trained(plan: Planned, number: str, asked: Asked, folder: Path, say: Any) -> Run:
    """One candidate, trained or already so; it says so when it begins and when it is done."""
    known = Run(plan.config, folder / CANDIDATES / plan.config.name)
    epochs = plan.config.training.epochs
    planned = f"{epochs} {'epoch' if epochs == 1 else 'epochs'}"
    about = "" if plan.seconds is None else f", about {_minutes(plan.seconds)}"
    done = known.done
    say(f"{number} {plan.name}: " + ("already trained" if done else f"{planned}{about} …"), flush=True)
    options = {"split": "test", "sizes": [1.0], "label": f"{number} {plan.name}", **(asked.fit or {})}
    (run,) = fit([plan.config], folder / CANDIDATES, device=asked.device, **options)
    if not done:
        result = run.result()
        ended = ""
        if "kept_epoch" in result:
            ended = f", {len(result['history'])} of {planned}; epoch {result['kept_epoch']} is kept"
        said = f"{number} {plan.name}: trained in {_minutes(result['seconds']['training'])}{ended}"
        say(said, flush=True)
    return run


def _tried(name: str, run: Run, wanted: Sequence[Condition], asked: Asked, say: Any) -> dict[str, Any]:
    """A candidate's trial, from its file or made now; its network is calibrated by it."""
    path, asked_for = run.folder / TRIAL, [[one.group, one.value] for one in wanted]
    known = _known(path, asked_for)
    if known is not None:
        return known
    say(f"testing {name} …", flush=True)
    network: Any = load(run.folder).to(asked.device)
    data = open_data(run.config.data, asked.device)
    assert isinstance(data, FolderData)
    with Progress(f"testing {name}", True) as progress:
        found = {"conditions": asked_for, **tried(network, data, wanted, progress)}
    _save_measured(network, run, found)
    write_text(path, json.dumps(found) + "\n")
    return found


def _known(path: Path, conditions: Sequence[Any]) -> dict[str, Any] | None:
    """A trial from its file, if it was made under these conditions."""
    if not path.exists():
        return None
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return known if known["conditions"] == conditions else None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' is damaged ({error}); remove it to test again") from error


def _save_measured(network: Any, run: Run, trial: dict[str, Any]) -> None:
    """A network with what was measured of it, in its run's folder."""
    own = run.config.data.own
    measured = {"temperature": trial["temperature"], "object_size": own.object_size}
    if trial["own_scale"] is not None:
        measured["own_scale"] = trial["own_scale"]
    network.cpu().usage = {**(network.usage or {}), **measured}
    network.save_pretrained(run.folder, model_card_kwargs={"reduce": own.reduce} if own.reduce > 1 else {})


def _again(
    winner: Run,
    trial: dict[str, Any],
    images: ImageFolder,
    wanted: Sequence[Condition],
    asked: Asked,
    say: Any,
) -> tuple[Run, dict[str, Any]]:
    """The winner, trained again on the validation images as well, and what the report says of it."""
    config = trained_on_both(winner, images)
    count = len(in_parts(images, config.data)[0])
    folder = winner.folder.parent
    done, name = Run(config, folder / config.name).done, named(winner.config)
    say(f"{name} again, on {count:,} images: {'already trained' if done else 'training …'}", flush=True)
    options = {"split": "test", "sizes": [1.0], "label": f"{name} again", **(asked.fit or {})}
    (run,) = fit([config], folder, device=asked.device, **options)
    path, asked_for = run.folder / TRIAL, [[one.group, one.value] for one in wanted]
    known = _known(path, asked_for)
    if known is None:
        say(f"testing {name} again …", flush=True)
        network: Any = load(run.folder).to(asked.device)
        data = open_data(run.config.data, asked.device)
        assert isinstance(data, FolderData)
        with Progress(f"testing {name} again", True) as progress:
            entries = tested(network, data, wanted, trial["temperature"], progress)
        known = {"conditions": asked_for, "images": count, "folder": str(run.folder), "test": entries}
        _save_measured(network, run, trial)
        write_text(path, json.dumps(known) + "\n")
    return run, known


def _of_kept(best: Verdict, result: dict[str, Any]) -> Verdict:
    """The verdict with what the network that is kept does, which is the winner trained again."""
    again = result["again"]
    mean = mean_accuracy(again["test"], result["kind"])
    said = f"Trained again on {again['images']:,} images, those to choose by among them, it has {mean:.0f} %."
    means = {**best.means, KEPT: mean}
    return replace(best, text=f"{best.text} {said}", remarks=remarks(again["test"], result), means=means)


def _keep(run: Run, folder: Path) -> None:
    """A run's files, where commands look for them; the configuration's goes last."""
    for name in (*OF_WINNER[1:], OF_WINNER[0]):
        with atomic_path(folder / name) as path:
            shutil.copyfile(run.folder / name, path)


def _warn_of_averages(plans: Sequence[Planned], images: int) -> None:
    for plan in plans:
        training = plan.config.training
        steps = training.epochs * max(1, images // training.batch)
        if training.average and 1 / (1 - training.average) > steps / 2:
            print(
                f"warning: training.average {training.average:g} averages over about "
                f"{1 / (1 - training.average):,.0f} steps, and the {plan.name} has only {steps:,}: early "
                "weights count as much as late ones. Give a smaller one, or more epochs",
                file=sys.stderr,
            )


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
