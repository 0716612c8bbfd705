"""
The figures of the documentation, drawn from the last run: a chart, and the table of ``benchmarks/README.md``.

``python benchmarks/chart.py`` draws both from ``results.json``; with ``--check`` it says whether they are current.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from measure import HERE, OURS, Result, short

RESULTS = HERE / "results.json"
CHART = HERE.parent / "docs" / "images" / "bench.svg"
PAGE = HERE / "README.md"
MARKED = re.compile(r"(?<=<!-- Start of what benchmarks/chart.py writes -->\n\n).*(?=\n\n<!-- End)", re.DOTALL)
# What the chart shows, in its two columns: the title there, and what was measured. The table has the rest, too.
SHOWN = (
    {
        "Parsing a Dag of 20 tasks": "Cold parse of a Dag of 20 tasks",
        "First call of a task, with TLS": "First call of a fresh task process, with TLS",
        "Each further call": "GET of 1.5 kB of JSON",
        "A page of 100 members": "A page of 100 members",
    },
    {
        "10,000 invites": "10,000 invites",
        "5,000 waits: processor": "5,000 waits on one organization, every 5 s: processor",
        "5,000 waits: requests every 5 s": "5,000 waits on one organization, every 5 s: requests per interval",
        "5,000 waits: memory of each": "5,000 waits on one organization, every 5 s: memory of each",
    },
)
COLUMN, LABELS, BARS = 535, 300, 155
LINE, GAP, TITLE = 20, 14, 24
INK, FAINT, OURS_COLOUR, THEIRS_COLOUR, LIMIT_COLOUR = "#1f2937", "#6b7280", "#2563eb", "#cbd5e1", "#dc2626"


def keep(results: Sequence[Result]) -> None:
    """Keep the medians of all measurements that have somebody to compare with, and draw them."""
    shown = [result for result in results if len(result.samples) > 1 and any(map(any, result.samples.values()))]
    for result in shown:
        result.samples = {
            name: [float(short(statistics.median(all_)).replace(",", ""))] for name, all_ in result.samples.items()
        }
    RESULTS.write_text(json.dumps([asdict(result) for result in shown], indent=1) + "\n")
    main([])


def main(arguments: Sequence[str]) -> int:
    """Draw chart and table, or check them."""
    results = [Result(**result) for result in json.loads(RESULTS.read_text())]
    text = PAGE.read_text()
    drawn = {CHART: draw(results), PAGE: MARKED.sub(lambda _: table(results), text)}
    if "--check" in arguments:
        stale = [str(path.name) for path, content in drawn.items() if path.read_text() != content]
        print(*(f"{name} is not what benchmarks/chart.py draws from results.json" for name in stale), sep="\n")
        return 1 if stale else 0
    for path, content in drawn.items():
        path.write_text(content)
    return 0


def table(results: Sequence[Result]) -> str:
    """Return the table of the page."""
    lines = ["| measured | this provider | others |", "| --- | --- | --- |"]
    for result in results:
        middles = {name: short(values[0]) for name, values in result.samples.items()}
        others = "; ".join(f"{name} {value}" for name, value in middles.items() if name != OURS)
        lines.append(f"| {result.what} ({result.unit}) | {middles[OURS]} | {others} |")
    return "\n".join(lines)


def draw(results: Sequence[Result]) -> str:
    """Return the chart."""
    by_name = {result.what: result for result in results}
    parts: list[str] = []
    lowest = 0
    for column, names in enumerate(SHOWN):
        y = GAP
        for title, name in names.items():
            drawn, height = group(title, by_name[name], column * COLUMN, y)
            parts += drawn
            y += height + GAP
        lowest = max(lowest, y)
    parts.append(text(GAP, lowest + 6, f"Medians, less is better. Blue: {OURS}. Red line: its target.", FAINT))
    width, height = COLUMN * len(SHOWN), lowest + LINE
    style = f'style="background:#fff;font:14px system-ui,sans-serif" fill="{INK}"'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f"{style}>\n"
    )
    svg += f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
    return svg + "\n".join(parts) + "\n</svg>\n"


def group(title: str, result: Result, left: int, y: int) -> tuple[list[str], int]:
    """Draw one measurement, and return how high it is."""
    middles = {name: values[0] for name, values in result.samples.items()}
    limits = [middles[peer] * limit for peer, limit in result.at_most.items()]
    limits += [] if result.bound is None else [result.bound]
    longest = max([*middles.values(), *limits])
    bars = left + LABELS
    parts = [text(left + GAP, y + 12, f"{title} ({result.unit})", INK, "600")]
    for position, (name, middle) in enumerate(middles.items()):
        top = y + TITLE + position * LINE
        length = max(1.0, BARS * middle / longest)
        colour = OURS_COLOUR if name == OURS else THEIRS_COLOUR
        parts.append(text(left + GAP, top + 10, name, INK if name == OURS else FAINT))
        parts.append(f'<rect x="{bars}" y="{top}" width="{length:.1f}" height="{LINE - 7}" fill="{colour}" rx="2"/>')
        mark = BARS * min(limits) / longest if name == OURS and limits else 0
        end = mark if length - 2 < mark < length + 50 else length
        parts.append(text(bars + end + 6, top + 10, short(middle), INK))
        if mark:
            line = f'x1="{bars + mark:.1f}" x2="{bars + mark:.1f}" y1="{top - 3}" y2="{top + LINE - 4}"'
            parts.append(f'<line {line} stroke="{LIMIT_COLOUR}" stroke-width="2"/>')
    return parts, TITLE + len(middles) * LINE


def text(x: float, y: float, words: str, colour: str, weight: str = "400") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-weight="{weight}">{escape(words)}</text>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
