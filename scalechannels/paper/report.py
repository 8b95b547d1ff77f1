"""The page of `scalechannels report`: all tables and figures, the paper's values and ours, from results."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from scalechannels.paper.claims.all_claims import explained, verdicts
from scalechannels.paper.comparisons import (
    CIFAR_OVER,
    CIFAR_TITLE,
    NOTE,
    OVER,
    cifar_comparisons,
    comparison_rows,
    comparisons,
)
from scalechannels.paper.document import duration, progress
from scalechannels.paper.experiments import EXPERIMENTS, experiment
from scalechannels.paper.figures.all_figures import IMAGES, draw_panels, with_pictures
from scalechannels.paper.layout import RANKING_HEADS, curve_text, plus_minus, ranking_rows, signed
from scalechannels.paper.published import COLUMNS, RANKINGS
from scalechannels.paper.recipes import NETWORKS, OURS, Experiment
from scalechannels.paper.results import Result, Results
from scalechannels.paper.tables import TableRow, channels, curve_tables, main_table, ranking
from scalechannels.report import page as html
from scalechannels.report.page import Markup
from scalechannels.report.theme import svg
from scalechannels.training.config import NetworkName

STYLE = """<style>
main { max-width: 68rem; }
nav { columns: 2 20rem; font-size: 0.95rem; margin: 1.5rem 0; }
nav a { display: block; color: var(--first); text-decoration: none; padding: 0.1rem 0; }
.panels { display: grid; gap: 0.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.panels > div { max-width: 34rem; } .images > div { min-width: 40rem; }
.main td { line-height: 1.3; padding: 0.3rem 0.6rem; }
td small { color: var(--soft); display: block; white-space: nowrap; }
.main tr.first-of td { border-top: 2px solid var(--soft); }
.main th:first-child, .main td:first-child { position: sticky; left: 0; background: var(--ground); }
.claims td { white-space: normal; text-align: left; vertical-align: top; min-width: 6rem; }
.claims td:nth-child(3) { min-width: 12rem; } .claims th { text-align: left; }
.holds { color: var(--first); font-weight: 600; } .fails { color: var(--second); font-weight: 600; }
details { margin: 0.5rem 0 0; } summary { color: var(--soft); font-size: 0.9rem; cursor: pointer; }
details pre { font-size: 0.75rem; }
@media (max-width: 44rem) { .claims thead { display: none; }
  .claims tr, .claims td { display: block; } .claims td { border: 0; padding: 0 0 0.2rem; }
  .claims tr { border-bottom: 1px solid var(--line); padding: 0.6rem 0; }
  .claims td:first-child { font-weight: 600; } .claims td:nth-child(2) { color: var(--soft); } }
@media print { details, nav { display: none; } .main { font-size: 7.5pt; } .claims { font-size: 8pt; }
  .panels { grid-template-columns: 1fr 1fr; } h2 { break-before: auto; } }
</style>"""

SAYINGS: dict[str, str] = {
    "figure2": "Every channel sees the image through a window of the same number of pixels: small windows at "
    "full resolution, large ones at reduced resolution.",
    "figure3": "Where the digit grows, the code moves up the scale axis and keeps its shape, so that its "
    "maximum (dashed) stays. The dotted line is the size of the digit.",
    "figure4": "One test digit at the 17 sizes. From size 4 on, the image may show only a part of it.",
    "figure5": "Trained on one size, tested on all. Bands are standard deviations over seeds.",
    "figure6": "Channels of ratio √2 over four ranges, trained on size 2.",
    "figure7": "Channels on [1/2, 8] with different ratios between neighbours, trained on size 2.",
    "figure8": "The same as Figure 7 for FovAvg and FovMax, close up.",
    "figure9": "Training on a range of sizes helps inside the range alone.",
    "figure10": "Trained on sizes in [1, 4], 17 channels on [1/2, 8].",
    "figure11": "Trained and tested on sizes in [1, 4]; 12,500 steps of 16 images for every "
    "size of the training set.",
    "figure12": "The share of each channel in the winning class, darker for more. Mean over seeds.",
    "figure13": "The same for the networks that are not scale invariant, with 17 channels.",
    "figure14": "Two test images at the nine factors, continued by mirroring below 1.",
    "figure15": "Trained on the original images, tested on rescaled ones.",
    "batch-norm": "The paper reports that both ways of batch norm impair SWMax.",
    "single-channel": "One channel knows the size that it was trained on, and hardly any other.",
    "pretrained": "The weights of one channel, trained alone, in all channels.",
    "beyond-sizes": "Close-up of figure 5 with our networks, and the plain CNN that learnt all sizes.",
    "beyond-few": "What our network gains where there is little to learn from; not in the paper.",
    "beyond-cifar": "Figure 15 with our network; not in the paper.",
    "equal-blur": "FovMax with the same blur in all channels, which the paper proposes in a footnote.",
}


def report_page(results: Results) -> str:
    """The whole page."""
    rows = main_table(results)
    checked = verdicts(results)
    states = [verdict.state for _, verdict in checked]
    done, needed, seconds = _totals(results)
    parts: list[str] = [
        Markup(STYLE),
        html.paragraph(
            "Every table and figure of Jansson & Lindeberg, “Scale-invariant scale-channel networks” (JMIV "
            "2022), from our own runs: the paper's value beside ours.",
            "lead",
        ),
        html.figures(
            [
                (f"{done} of {needed}", "runs of the paper have a result", "first"),
                (
                    f"{states.count('holds')} of {len(states) - states.count('not enough runs')}",
                    "claims of the paper that can be checked hold; "
                    f"not to be checked yet: {states.count('not enough runs')}",
                    "first",
                ),
                (duration(seconds), "is what these runs took in all", ""),
            ]
        ),
        _contents(),
        _heading("table1", "Table 1: accuracy over ranges of test sizes"),
        html.paragraph(
            "Test accuracy in per cent: ours as mean ± standard deviation over seeds, and below it the "
            "paper's value with the difference. tr1, tr2, tr4: trained on one size; tr14: on sizes from 1 to "
            "4; mean: of tr1, tr2 and tr4."
        ),
        _main(rows),
        *_rankings(results),
        *_deviations(results),
        *_beyond(results),
    ]
    for one in with_pictures():
        parts += _figure(results, one)
    parts += [
        _heading("claims", "The paper's claims, checked"),
        html.paragraph(
            "Each is a check of the results that can fail; thresholds are ours where the paper has words."
        ),
        _claims(results),
        *_made(results),
    ]
    return html.page("The paper, reproduced", *parts)


def _totals(results: Results) -> tuple[int, int, float]:
    """Of the paper's experiments: runs with a result, runs needed, and the seconds that they took."""
    runs = {run for one in EXPERIMENTS if one.place != OURS for run in one.runs()}
    here = [found for found in map(results.find, runs) if found is not None]
    return len(here), len(runs), sum(result.seconds for result in here)


def _heading(id: str, text: str) -> Markup:
    return Markup(f'<h2 id="{escape(id)}">{escape(text)}</h2>')


def _contents() -> Markup:
    links = [("table1", "Table 1"), ("table2", "Tables 2 to 5: rankings")]
    links += [(one.id, _title(one)) for one in with_pictures()]
    links += [("claims", "The paper's claims, checked"), ("made", "How this was made")]
    return Markup("<nav>" + "".join(f'<a href="#{id}">{escape(text)}</a>' for id, text in links) + "</nav>")


def _title(one: Experiment) -> str:
    return f"{one.place}: {one.title}" if one.place.startswith("Figure") else one.title


def _main(rows: Iterable[TableRow]) -> Markup:
    head = "".join(f'<th scope="col">{column}</th>' for column in ("", *COLUMNS, "seeds"))
    body, before = [], ""
    for row in rows:
        cells = []
        for column in COLUMNS:
            paper = "" if row.paper is None else f"{row.paper[column]:.2f}"
            below = f"{paper} ({signed(row.difference(column))})" if row.ours and paper else paper
            cells.append(f"<td>{_two_lines(plus_minus(row.ours.get(column)), below)}</td>")
        kind = ' class="first-of"' if row.title != before else ""
        before = row.title
        label = _two_lines(row.label, "" if row.source == "paper" else "ours, not in the paper")
        body.append(f"<tr{kind}><td>{label}</td>{''.join(cells)}<td>{row.seeds or '–'}</td></tr>")
    return Markup(
        f'<div class="scroll"><table class="main"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _rankings(results: Results) -> list[str]:
    parts: list[str] = [_heading("table2", "Tables 2 to 5: rankings")]
    for id in RANKINGS:
        parts.append(html.paragraph(f"{experiment(id).place}. {experiment(id).title}."))
        parts.append(html.table(RANKING_HEADS, ranking_rows(ranking(results, id))))
    return parts


def _claims(results: Results) -> Markup:
    marks = {"holds": "holds", "does not hold": "fails", "not enough runs": "soft"}
    head = "".join(f'<th scope="col">{text}</th>' for text in ("The paper", "Where", "Ours", ""))
    body = "".join(
        f"<tr><td>{escape(claim.statement)}</td><td>{escape(claim.place)}</td><td>{escape(verdict.measured)}</td>"
        f'<td class="{marks[verdict.state]}">{verdict.state}</td></tr>'
        for claim, verdict in verdicts(results)
    )
    return Markup(
        f'<div class="scroll"><table class="claims"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _deviations(results: Results) -> list[str]:
    failed = [(claim, verdict) for claim, verdict in verdicts(results) if verdict.state == "does not hold"]
    if not failed:
        return []
    parts: list[str] = [_heading("deviations", "Where we differ")]
    for claim, verdict in failed:
        why = explained(claim, verdict)
        parts.append(html.paragraph(f"{claim.statement}. Measured: {verdict.measured}. {why}"))
    return parts


def _two_lines(text: str, below: str = "") -> Markup:
    return Markup(escape(text) + (f"<small>{escape(below)}</small>" if below else ""))


def _beyond(results: Results) -> list[str]:
    parts: list[str] = []
    for title, made, over in ((None, comparisons, OVER), (CIFAR_TITLE, cifar_comparisons, CIFAR_OVER)):
        found = [one for one in made(results) if one.by]
        if found:
            rows = (
                [_two_lines(one, f"against {other}"), *(_two_lines(*cell.split(" ", 1)) for cell in cells)]
                for one, other, *cells in comparison_rows(found, over, between=" ")
            )
            parts += [html.paragraph(title)] if title else []
            parts.append(html.table(["", *over, "seeds"], rows))
    heading = _heading("beyond", "Beyond the paper: our networks compared")
    return [heading, html.paragraph(NOTE), *parts] if parts else []


def _figure(results: Results, one: Experiment) -> list[str]:
    panels = draw_panels(one.id, results.folder.parent, results)
    pictures = "".join(
        f"<div>{svg(panel, f'{_title(one)} {place + 1}')}</div>" for place, panel in enumerate(panels)
    )
    wide = one.id in IMAGES
    layout = (
        f'<div class="scroll images">{pictures}</div>' if wide else f'<div class="panels">{pictures}</div>'
    )
    done, needed, seconds = progress(results, one)
    note = SAYINGS.get(one.id, "")
    if needed and done < needed and not wide:
        note += f" {done} of {needed} runs have a result; the others are named in the legends as missing."
    if done and not wide:
        note += f" Cost: {duration(seconds)}."
    figure = f"<figure>{layout}<figcaption>{escape(note)}</figcaption>{_numbers(results, one)}</figure>"
    return [_heading(one.id, _title(one)), Markup(figure)]


def _numbers(results: Results, one: Experiment) -> str:
    """The figure's data, folded away."""
    if one.renderer not in ("curves", "samples"):
        return ""
    axis = "samples" if one.renderer == "samples" else "size"
    text = curve_text(curve_tables(results, one), "text", axis)
    return f"<details><summary>All figures</summary><pre>{escape(text)}</pre></details>"


def _made(results: Results) -> list[str]:
    runs = sorted(
        {run for one in EXPERIMENTS for run in one.runs()}, key=lambda run: run.resolve("cuda").name
    )
    found = [result for result in map(results.find, runs) if result is not None]
    parts: list[str] = [_heading("made", "How this was made")]
    if found:
        parts.append(
            html.table(["Network", "Data", "Channels", "Runs", "Parameters", "Seconds a run"], _costs(found))
        )
    environments = {
        f"{e.get('device')}, PyTorch {e.get('torch')}, commit {e.get('commit')}, scalechannels "
        f"{e.get('scalechannels')}"
        for e in (result.values["environment"] for result in found)
    }
    parts.append(html.facts([("Made with", text) for text in sorted(environments)]))
    parts.append(
        html.paragraph("To rebuild this page from the results, and to do the runs that are missing:")
    )
    parts.append(html.commands("scalechannels report", "scalechannels reproduce all"))
    return parts


def _costs(found: Iterable[Result]) -> list[list[str]]:
    groups: dict[tuple[NetworkName, str, int, int], list[Result]] = {}
    for result in found:
        network, data = result.config.network.name, result.config.data.name
        key = (network, data, channels(result.config), int(result.values["parameters"]))
        groups.setdefault(key, []).append(result)
    return [
        [
            NETWORKS.get(network, "FovLSE"),
            data,
            str(count),
            str(len(group)),
            f"{parameters:,}",
            f"{sum(result.seconds for result in group) / len(group):.1f}",
        ]
        for (network, data, count, parameters), group in groups.items()
    ]
