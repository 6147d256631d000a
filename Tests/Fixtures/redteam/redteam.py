# SPDX-License-Identifier: Apache-2.0
"""A hostile program that knows the whole list tries to obtain a secret, or to get more than its line permits.

    redteam.py EXECUTABLE CERTIFICATE KEY ANCHOR

CERTIFICATE and KEY are a server's for *.test.localhost, and ANCHOR its trust anchor. Runs `countersign serve` with a
home of its own, and prints one line per violation, then
`attempts N secrets N beyond N controls N of N loosened N of N`.
The controls are requests that must get their secret. `loosened` is the number of kinds of attempts that succeed once
the limits are taken out of the list: all of them must, or the program would not notice an attack.
The exit status is 0 if nothing was found and both last pairs are complete.
"""

import argparse
import dataclasses
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import h2
import hpack
import hyperframe

import attacks
import connections
import frames
import hosts
import judge
import processes
import smuggling
import texts
from origin import Origin
from run import Run, describe
from world import World, loosened, sites

NOBODY = 65534


def all_groups():
    """Each is a part of the attempts. The first is always made as a whole."""
    return [
        attacks.finding_attempts(),
        attacks.path_attempts(),
        attacks.method_attempts(),
        attacks.echo_attempts(),
        attacks.placeholder_attempts(),
        hosts.redirect_attempts(),
        hosts.follow_attempts(),
        hosts.page_attempts(),
        hosts.host_attempts(),
        hosts.mixed_attempts(),
        connections.client_attempts(),
        smuggling.smuggling_attempts(),
        smuggling.upgrade_attempts(),
        frames.two_attempts(),
        frames.odd_frames(),
        texts.text_attempts(),
        texts.own_attempts(),
    ]


def controls(run):
    """Requests that their lines are for, each with its secret at the origin: names of those without, and how many."""
    missing, total, attempts = [], 0, run.attempts
    for site, via in itertools.product(run.world.sites, attacks.VIAS):
        if site.name == "exe" or via == "two" and (site.name == "ntlm" or not site.tls):
            continue
        total += 1
        run.origin.taken()
        run.attempt(attacks.Attempt("control", site.name, via))
        if not any(r.bound or site.secret.encode() in judge.opened(r) for r in run.origin.taken()):
            missing.append(f"{site.name} {via}")
    run.attempts = attempts
    return missing, total


# A site for each kind of limit, and the kind of violation that its attempts are without the limit.
LOOSENED = {"paths": "paths", "inject": "inject", "for": "for", "header": "redact"}


def loosened_kinds(options, folder, origin_of):
    """The kinds of attempts that succeed without the limits."""
    origin = origin_of()
    strict = [site for site in sites() if site.name in LOOSENED]
    rules = [dataclasses.replace(site, line=loosened(site.line)) for site in strict]
    world = World(options.executable, os.path.join(folder, "loose"), options.anchor, origin, rules)
    world.serve()
    try:
        for site, rule in zip(strict, rules):
            site.secret = rule.secret
        run = Run(world, origin, strict, options.verbose)
        attempts = itertools.chain(
            attacks.path_attempts(every=20),
            itertools.islice(connections.client_attempts(), 40),
            (a for a in attacks.echo_attempts() if a.target == b"/echo/body"),
        )
        run.run(a for a in attempts if a.site in LOOSENED)
        return set(run.violations) & set(LOOSENED.values())
    finally:
        world.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("executable", "certificate", "key", "anchor"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--verbose", action="store_true", help="the time of each group")
    parser.add_argument("--part", type=float, default=1, help="the share of the attempts that is made")
    parser.add_argument("--seed", type=int, default=1, help="chooses them")
    options = parser.parse_args()
    if os.geteuid() == 0:
        sys.exit(as_nobody(options))
    folder = tempfile.mkdtemp(prefix="redteam-")
    needs = {site.host: site.need for site in sites() if site.need}
    try:
        status = attack_all(options, folder, lambda: Origin(options.certificate, options.key, needs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.flush()
    os._exit(status)


def as_nobody(options):
    """Runs this program as another user: root may look into every process. Returns its exit status."""
    with tempfile.TemporaryDirectory(prefix="redteam-") as folder:
        os.chmod(folder, 0o777)
        copies = []
        for name in ("executable", "certificate", "key", "anchor"):
            copies.append(shutil.copy(getattr(options, name), os.path.join(folder, name)))
            os.chown(copies[-1], NOBODY, NOBODY)
        # That user may not be permitted to read the checkout.
        program = os.path.join(folder, "program")
        shutil.copytree(os.path.dirname(os.path.abspath(__file__)), program)
        for module in (h2, hpack, hyperframe):
            shutil.copytree(os.path.dirname(module.__file__), os.path.join(program, module.__name__))
        flags = ["--part", str(options.part), "--seed", str(options.seed)] + ["--verbose"] * options.verbose
        environment = {"PATH": "/usr/bin:/bin", "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
        other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig", "TERM"]
        return subprocess.run(
            [*other, os.path.realpath(sys.executable), os.path.join(program, "redteam.py"), *copies, *flags],
            check=False,
            env=environment,
            cwd=folder,
        ).returncode


def attack_all(options, folder, origin_of):
    origin = origin_of()
    rules = sites()
    world = World(options.executable, os.path.join(folder, "world"), options.anchor, origin, rules)
    world.serve()
    run = Run(world, origin, rules, options.verbose)
    missing, total = controls(run)
    attack_groups(options, run)
    for text in processes.attack(world):
        run.violations["process"].append((None, text))
    run.attempts += processes.ATTEMPTS
    missing += [name + " afterwards" for name in controls(run)[0]]
    look_at_traces(run, world)
    return report(run, missing, 2 * total, loosened_kinds(options, folder, origin_of), None if options.verbose else 5)


def attack_groups(options, run):
    chosen = random.Random(options.seed)
    for place, group in enumerate(all_groups()):
        begin = time.monotonic()
        attempts = list(group)
        if place > 0 and options.part < 1:
            attempts = chosen.sample(attempts, min(len(attempts), max(20, int(len(attempts) * options.part))))
        run.run(attempts)
        if options.verbose:
            seconds = time.monotonic() - begin
            print(f"{attempts[0].group}: {len(attempts)} attempts, {seconds:.1f} s", file=sys.stderr)


def look_at_traces(run, world):
    """What the proxy has written, and whether it was well to the end."""
    for line in world.malformed_lines():
        run.violations["log"].append((None, f"a line of the access log is not clean: {line[:300]!r}"))
    if not world.stops_well():
        run.violations["crash"].append((None, f"serve has ended with {world.server.returncode}"))
    for name, text in world.traces():
        for secret_name, secret in world.secrets():
            if judge.is_visible(secret, text):
                run.violations["secret"].append((None, f"{name} has the secret of {secret_name}"))
        if name == "serve.err" and re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80[\xa8-\xae]", text):
            run.violations["log"].append((None, f"{name} has control characters"))


SECRETS = {"secret", "redact", "host", "trace", "process", "place"}


def report(run, missing, total, loose, shown):
    """Prints the results, at most `shown` violations of a kind, and returns the exit status."""
    for kind, found in sorted(run.violations.items()):
        for attempt, text in found[:shown]:
            print(f"{kind}: {describe(attempt)}{text}")
        if shown and len(found) > shown:
            print(f"{kind}: {len(found) - shown} more")
    for name in missing:
        print(f"control: no secret at {name}")
    for kind in sorted(set(LOOSENED.values()) - loose):
        print(f"loosened: no attempt of the kind {kind} has succeeded")
    counts = {kind: len(found) for kind, found in run.violations.items()}
    secrets = sum(count for kind, count in counts.items() if kind in SECRETS)
    beyond = sum(counts.values()) - secrets
    print(
        f"attempts {run.attempts} secrets {secrets} beyond {beyond} controls {total - len(missing)} of {total} "
        f"loosened {len(loose)} of {len(LOOSENED)}"
    )
    return 0 if not counts and not missing and len(loose) == len(LOOSENED) else 1


if __name__ == "__main__":
    main()
