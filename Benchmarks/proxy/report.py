# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a run as Markdown: the goals, the curves, and every figure with its rounds."""

import datetime
import statistics

from scenarios import (CONNECTIONS, CURVE_PEERS, LATENCY, LINES, SCALED, SCENARIOS, SHOWN, at_connections, at_lines,
                       countersign_in, is_countersign, peer_of_bound)


def values(records, scenario, peer, key="value"):
    return [r[key] for r in records if r.get("scenario") == scenario and r.get("peer") == peer and key in r]


def median(records, scenario, peer, key="value"):
    found = values(records, scenario, peer, key)
    return statistics.median(found) if found else None


def shown(value):
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def bound_rows(records):
    """One row per goal: the scenario, our figure, the other one, their ratio, the goal, and whether it is met."""
    for scenario in SCENARIOS:
        name = countersign_in(scenario)
        ours = median(records, scenario.name, name)
        for bound in scenario.bounds:
            if not bound.peer and not scenario.beside:
                verdict = "–" if ours is None else "yes" if ours <= bound.times else "no"
                yield [scenario.title, scenario.unit, shown(ours), "", "", f"≤ {bound.times:g}", verdict]
                continue
            if not bound.peer:
                what, theirs = scenario.beside_is, median(records, scenario.name, name, "beside")
                ratio = median(records, scenario.name, name, "ratio")
            else:
                what, peer = SHOWN[bound.peer], peer_of_bound(bound.peer, scenario)
                theirs = median(records, scenario.name, peer)
                ratio = ours / theirs if ours and theirs else None
            verdict = "–" if ratio is None else "yes" if ratio <= bound.times else "no"
            yield [scenario.title, scenario.unit, shown(ours), f"{what} {shown(theirs)}",
                   "–" if ratio is None else f"{ratio:.2f}", f"≤ {bound.times:g} × {what}", verdict]


def peer_rows(records, names):
    """One row per scenario, one column per proxy, whose configurations share it."""
    for scenario in SCENARIOS:
        row = [scenario.title, scenario.unit]
        for column in columns(names):
            measured = [name for name in names if column_of(name) == column and values(records, scenario.name, name)]
            row.append(shown(median(records, scenario.name, measured[0]) if measured else None))
        yield row


def column_of(name):
    return SHOWN["squid" if name == "squid-bump" else name]


def columns(names):
    return list(dict.fromkeys(column_of(name) for name in names))


def curve_rows(records, scenario_at, points, peer):
    for kind in SCALED:
        row = [f"{SHOWN[peer]}, {'intercepted' if kind == 'mitm' else 'plain'}"]
        for point in points:
            row.append(shown(median(records, scenario_at(kind, point).name, peer)))
        yield row


def figure_rows(records, names):
    curves = [at_connections(kind, count) for kind in SCALED for count in CONNECTIONS]
    curves += [at_lines(kind, count) for kind in SCALED for count in LINES]
    for scenario in SCENARIOS + curves:
        for name in names:
            mine = [r for r in records if r.get("scenario") == scenario.name and r.get("peer") == name]
            if not mine:
                continue
            found = values(records, scenario.name, name)
            faults = [r["fault"] for r in mine if "fault" in r]
            spread = f"{shown(min(found))}–{shown(max(found))}" if found else "–"
            cost = median(records, scenario.name, name, "cost_us") if scenario.unit == LATENCY else None
            rate = median(records, scenario.name, name, "megabytes")
            speed = f"{shown(rate)} MB/s" if rate else shown(median(records, scenario.name, name, "rate")) + "/s"
            yield [scenario.name, SHOWN[name], str(len(found)), shown(median(records, scenario.name, name)), spread,
                   scenario.unit + (f" ({shown(cost)} CPU µs)" if cost else ""),
                   shown(median(records, scenario.name, name, "p50_us")),
                   shown(median(records, scenario.name, name, "p99_us")), "" if speed == "–/s" else speed,
                   "; ".join(sorted(set(faults)))]


def versions(records, names):
    newest = {r["peer"]: r["version"] for r in records if "version" in r}
    return ", ".join(dict.fromkeys(newest[name] for name in names if name in newest and not is_countersign(name)))


def text(records, names, left_out, machine, began):
    day = datetime.datetime.fromtimestamp(began, datetime.timezone.utc).date().isoformat()
    facts = [*machine, ("peers", versions(records, names)), ("measured", day)]
    if left_out:
        facts.append(("left out", ", ".join(f"{name} ({why})" for name, why in left_out.items())))
    parts = [
        "# The whole proxy, measured\n",
        "Made by `Scripts/bench`. CPU is user and system time of the proxy's process tree, kernel work on its behalf"
        " included, divided by the requests (or 10⁹ bytes of body) in the measured window. Each proxy has one worker. A"
        " figure is the median of its rounds. For a site that is answered, the ratio is also a median: rounds alternate"
        " with the same work unanswered. HAProxy and nginx show the limit: they are reverse proxies for one origin,"
        " with a fixed leaf certificate, and handle neither CONNECT nor challenges. Envoy has a fixed leaf certificate"
        " too. \"Envoy without VAES\" is restricted to the AES instructions that OpenSSL 3.0 uses. None of them"
        " answers a 401.\n",
        table(["", ""], [list(fact) for fact in facts]),
        "## Goals\n",
        table(["scenario", "unit", "Countersign", "compared with", "ratio", "goal", "met"], list(bound_rows(records))),
        "## Comparison\n",
        table(["scenario", "unit", *columns(names)], list(peer_rows(records, names))),
        "![bars](proxy.svg)\n",
    ]
    if any("connections-" in r.get("scenario", "") for r in records):
        rows = [row for peer in CURVE_PEERS for row in curve_rows(records, at_connections, CONNECTIONS, peer)]
        parts += ["## At scale: CPU µs per request\n",
                  "Every connection always has a request in flight. With few connections, few requests share the cost"
                  " of a wake-up. HAProxy's curve shows how much of the cost is the kernel's.\n",
                  table(["connections", *(f"{count:,}" for count in CONNECTIONS)], rows),
                  table(["lines in the allowed-sites list", *(f"{count:,}" for count in LINES)],
                        list(curve_rows(records, at_lines, LINES, "countersign"))),
                  "![curves](scale.svg)\n"]
    parts += ["## Every figure\n",
              table(["scenario", "proxy", "rounds", "median", "min–max", "unit", "p50 µs", "p99 µs", "speed",
                     "fault"], list(figure_rows(records, names)))]
    return "\n".join(parts)
