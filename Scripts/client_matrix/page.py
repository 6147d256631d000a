# SPDX-License-Identifier: Apache-2.0
"""Writes the matrix as a page of Markdown."""

YES, NONE = "yes", "–"

# The column's name, and the requirements of its sites.
COLUMNS = {
    "http": "a site that is not listed, over http",
    "https": "a site that is not listed, over https: a blind tunnel",
    "http Basic": "Basic over http (`plaintext=yes`)",
    "Basic": "Basic over https, as in all further columns",
    "Digest": "Digest",
    "NTLM": "NTLM, with channel binding and a MIC",
    "Negotiate": "Kerberos with MIT's KDC",
    "Bearer": "a bearer token",
    "certificate": "a client certificate",
    "redirect": "a site with Basic that redirects to the one with NTLM",
    "upload": "POST of 1 MiB to the site with NTLM; git pushes 1 MiB",
    "env": "the site with Basic, by `countersign env` and `serve`; in all other columns by `countersign exec`",
}

# The text of a failed client or `exec`, and the text of the cell.
REASONS = {
    "cross-site=": "no: Referer",
    "does not say for which page": "no: browser",
    "does not trust the local CA": "no: CA",
    "Segmentation fault": "no: it crashes",
}

HEAD = """\
# Clients

This page is made by `Scripts/clients --write`, which runs each client at sites on loopback, by `countersign exec` or
`env`, in an empty home folder, and looks for the content of the page in what the client prints. Every client runs with
its defaults, except for what its note says.

| column | site |
|---|---|
"""

LEGEND = """
- **yes**: the client received the page, without a credential of its own. **–**: it does not upload.
- **no: Referer**: the client follows the redirect with a `Referer`, as a browser does for a page, so that the second
  site sees a request that another origin has caused. `cross-site=` in the site's line permits it.
- **no: browser**: the client sends fields of a browser, but does not say which page causes the request.
- **no: CA**: the client does not trust the local CA.
- **no: direct**: the client connects without the proxy.
- **no: CONNECT**: the proxy refuses the client's CONNECT with 400, because it has no Host (RFC 9112 §3.2).
- **no: 400**: the proxy refuses the client's second request.
- **no: own fault**: this version of the client fails with any proxy of this kind.
- **no: WebDAV**: the client has the page of the site, which is no WebDAV server.
- **no: SNI**: the client sends the name of another host in TLS, which the proxy refuses.
- **slow**: no result in 20 seconds.
"""


def result(client, status, output, said, wanted):
    """What a cell says."""
    if wanted in output:
        # A client that has the page but does not end is of no use either.
        return YES if status is not None else "slow"
    if status is None:
        return "slow"
    for text, reason in {**REASONS, **client.why}.items():
        if text in output + said:
            return reason
    return "no"


class Row:
    def __init__(self, client, version, cells):
        self.client, self.version, self.cells = client, version, cells

    @property
    def line(self):
        words = [f"{self.client.name} {self.version}".strip(), *(self.cells.get(name, "") for name in COLUMNS)]
        return "| " + " | ".join(words) + " |"


def wrapped(text):
    """A list item of at most 120 columns."""
    lines, line = [], "-"
    for word in text.split():
        if len(line) + 1 + len(word) > 120:
            lines.append(line)
            line = " "
        line += " " + word
    return "\n".join([*lines, line])


def grouped(rows):
    """The lines of the rows, with one before each group."""
    group = None
    for row in rows:
        if row.client.group != group:
            group = row.client.group
            yield f"| *{group}* " + "| " * len(COLUMNS) + "|"
        yield row.line


def legend(rows):
    """The items of the legend for what the cells say."""
    seen = {f"- **{cell}**" for row in rows for cell in row.cells.values()}
    items = ("\n" + LEGEND.strip("\n")).split("\n- ")[1:]
    return "\n".join(f"- {item}" for item in items if f"- {item}".startswith(tuple(seen)))


def summary(rows):
    """How many cells of each column are `yes`."""
    counts = []
    for name in COLUMNS:
        cells = [row.cells.get(name) for row in rows if row.cells.get(name, NONE) != NONE]
        counts.append(f"{cells.count(YES)} of {len(cells)}")
    return "| **yes** | " + " | ".join(counts) + " |"


def document(rows, missing):
    parts = [HEAD + "".join(f"| {name} | {what} |\n" for name, what in COLUMNS.items()), legend(rows)]
    parts.append("| client | " + " | ".join(COLUMNS) + " |\n|---" + "|---" * len(COLUMNS) + "|")
    parts[-1] = "\n".join([parts[-1], *grouped(rows), summary(rows)])
    notes = [wrapped(f"**{row.client.name}** {row.client.note}.") for row in rows if row.client.note]
    if notes:
        parts.append("## Notes\n\n" + "\n".join(notes))
    if missing:
        parts.append(wrapped("Not installed where this page was made: " + ", ".join(missing) + ".")[2:])
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"
