"""The chart of the documentation: a group of bars per measurement, each group to its own scale."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape
from pathlib import Path

from measure import OURS, Result, short

WIDTH, LABELS, BARS = 860, 300, 430
LINE, GAP, TITLE = 22, 18, 26
INK, FAINT, OURS_COLOUR, THEIRS_COLOUR, LIMIT_COLOUR = "#1f2937", "#6b7280", "#2563eb", "#cbd5e1", "#dc2626"


def draw(results: Sequence[Result], path: Path) -> None:
    """Write the chart of all measurements that have somebody to compare with."""
    shown = [result for result in results if len(result.samples) > 1 and any(map(any, result.samples.values()))]
    parts: list[str] = []
    y = GAP
    for result in shown:
        drawn, height = group(result, y)
        parts += drawn
        y += height + GAP
    legend = f"Medians, less is better. Blue: {OURS}. Red line: the most that it should be."
    parts.append(text(GAP, y + 8, legend, FAINT))
    y += LINE + GAP
    style = f'style="background:#fff;font:13px system-ui,sans-serif" fill="{INK}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" {style}>\n'
    svg += f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(svg + "\n".join(parts) + "\n</svg>\n")


def group(result: Result, y: int) -> tuple[list[str], int]:
    """Draw one measurement from a height on, and return how high it is."""
    middles = {name: statistics.median(values) for name, values in result.samples.items()}
    limits = [middles[peer] * limit for peer, limit in result.at_most.items()]
    limits += [] if result.bound is None else [result.bound]
    longest = max([*middles.values(), *limits])
    parts = [text(GAP, y + 14, f"{result.what} ({result.unit})", INK, "600")]
    for position, (name, middle) in enumerate(middles.items()):
        top = y + TITLE + position * LINE
        length = max(1.0, BARS * middle / longest)
        colour = OURS_COLOUR if name == OURS else THEIRS_COLOUR
        parts.append(text(GAP, top + 12, name, INK if name == OURS else FAINT))
        parts.append(f'<rect x="{LABELS}" y="{top}" width="{length:.1f}" height="{LINE - 7}" fill="{colour}" rx="2"/>')
        mark = BARS * min(limits) / longest if name == OURS and limits else 0
        parts.append(
            text(LABELS + (mark if length - 2 < mark < length + 50 else length) + 6, top + 12, short(middle), INK)
        )
        if name == OURS and limits:
            x = LABELS + BARS * min(limits) / longest
            line = f'x1="{x:.1f}" x2="{x:.1f}" y1="{top - 3}" y2="{top + LINE - 4}"'
            parts.append(f'<line {line} stroke="{LIMIT_COLOUR}" stroke-width="2"/>')
    return parts, TITLE + len(middles) * LINE


def text(x: float, y: float, words: str, colour: str, weight: str = "400") -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-weight="{weight}">{escape(words)}</text>'
