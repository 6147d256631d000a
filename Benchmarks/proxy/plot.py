# SPDX-License-Identifier: Apache-2.0
"""Draws the plots as SVG, for light and dark backgrounds."""

import math

from report import median
from scenarios import (CONNECTIONS, CURVE_PEERS, LINES, SCALED, SCENARIOS, SHOWN, at_connections, at_lines,
                       is_countersign)

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 13px } .quiet { fill: #57606a; font-size: 11px }
.bar { fill: #8c959f } .ours { fill: #0969da } .grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke: #8c959f; stroke-width: 2 } .line.ours { fill: none; stroke: #0969da }
.mitm { stroke-dasharray: 6 4 } .dot { fill: #8c959f } .dot.ours { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9198a1 } .bar, .dot { fill: #7d8590 } .grid { stroke: #30363d }
  .ours, .dot.ours { fill: #4493f8 } .line { stroke: #7d8590 } .line.ours { stroke: #4493f8; fill: none }
}
</style>"""


def figure(width, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img">\n{STYLE}\n' + "\n".join(parts) + "\n</svg>\n")


def text(x, y, content, kind="", anchor="start"):
    content = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{content}</text>'


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def decades(figures):
    return math.floor(math.log10(min(figures)) - 0.05), math.ceil(math.log10(max(figures)) + 0.02)


def bars(records, names):
    """One panel per scenario, one bar per proxy. Panels with the same unit share a logarithmic scale."""
    panels = []
    for scenario in SCENARIOS:
        found = [(name, max(value, 0.1)) for name in names
                 if (value := median(records, scenario.name, name)) is not None]
        if found:
            panels.append((scenario, sorted(found, key=lambda pair: pair[1])))
    if not panels:
        return None
    ranges = {}
    for scenario, found in panels:
        ranges.setdefault(scenario.unit, []).extend(value for _, value in found)
    left, width, row = 110, 760, 17
    y, parts = 8, []
    for scenario, found in panels:
        low, high = decades(ranges[scenario.unit])
        scale = (width - left - 80) / (high - low)
        y += 22
        parts.append(text(8, y, scenario.title, "title"))
        parts.append(text(width - 8, y, f"{scenario.unit}, logarithmic", "quiet", "end"))
        y += 8
        bottom = y + row * len(found)
        for decade in range(low, high + 1):
            x = left + (decade - low) * scale
            parts.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
            parts.append(text(x, bottom + 12, f"{10 ** decade:,g}", "quiet", "middle"))
        for name, value in found:
            length = (math.log10(value) - low) * scale
            kind = "ours" if is_countersign(name) else "bar"
            parts.append(text(left - 6, y + 12, SHOWN[name], "", "end"))
            parts.append(f'<rect x="{left}" y="{y + 2}" width="{max(length, 1):.1f}" height="{row - 4}" rx="2" '
                         f'class="{kind}"/>')
            parts.append(text(left + max(length, 1) + 5, y + 12, shown(value)))
            y += row
        y += 20
    return figure(width, y + 4, parts)


def curve_panel(parts, top, title, unit, points, lines):
    """`lines` are (label, class, values); a value is None if there is no measurement."""
    left, width, height = 60, 560, 200
    most = max(value for _, _, found in lines for value in found if value is not None)
    step = 10 ** math.floor(math.log10(most))
    step = step if most / step >= 3 else step / 2 if most / step >= 1.5 else step / 5
    roof = math.ceil(most / step) * step

    def at(index, value):
        return left + index * (width - left) / (len(points) - 1), top + 30 + height * (1 - value / roof)

    parts.append(text(8, top + 14, title, "title"))
    for number in range(int(round(roof / step)) + 1):
        _, y = at(0, number * step)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width}" y2="{y:.1f}" class="grid"/>')
        parts.append(text(left - 6, y + 4, f"{number * step:g}", "quiet", "end"))
    for index, point in enumerate(points):
        parts.append(text(at(index, 0)[0], top + 30 + height + 16, f"{point:,}", "quiet", "middle"))
    parts.append(text((left + width) / 2, top + 30 + height + 34, unit, "quiet", "middle"))
    labels = []
    for label, kind, found in lines:
        dots = [at(index, value) for index, value in enumerate(found) if value is not None]
        if not dots:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        parts.append(f'<polyline points="{path}" class="line {kind}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="dot {kind.replace("mitm", "")}"/>' for x, y in dots]
        labels.append((dots[-1][1], label))
    below = -math.inf
    for y, label in sorted(labels):
        below = max(y + 4, below + 14)
        parts.append(text(width + 8, below, label))
    return top + 30 + height + 50


def curves(records):
    """Cost by number of connections and by length of the list; None if neither was measured."""
    parts, top = [], 4
    panels = [("CPU µs per request by connections, each with a request in flight", "connections", CONNECTIONS,
               at_connections, CURVE_PEERS),
              ("CPU µs per request by length of the allowed-sites list", "lines", LINES, at_lines, ["countersign"])]
    for title, unit, points, scenario_at, peers in panels:
        lines = [(f"{SHOWN[peer]}, {'intercepted' if kind == 'mitm' else kind}",
                  f"{'ours' if peer == 'countersign' else ''} {'mitm' if kind == 'mitm' else ''}",
                  [median(records, scenario_at(kind, point).name, peer) for point in points])
                 for peer in peers for kind in SCALED]
        if any(value is not None for _, _, found in lines for value in found):
            top = curve_panel(parts, top, title, unit, points, lines)
    return figure(760, top, parts) if parts else None
