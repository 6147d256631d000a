# SPDX-License-Identifier: Apache-2.0
"""The rows of the matrix for libraries of programming languages; see clients.py."""

from clients import Client


def python(library, version=None, note=None):
    code = f"import {library}; print(getattr({library}, '__version__', None) or {library}.version)"
    if library == "urllib":
        code = "import platform; print(platform.python_version())"
    return Client(
        f"Python {library}",
        f'"$PYTHON" -c "{version or code}"',
        f'"$PYTHON" "$PROGRAMS/fetch.py" {library} "$URL/page"',
        f'"$PYTHON" "$PROGRAMS/fetch.py" {library} "$URL/echo" "$FILE"',
        f'"$PYTHON" -c "import {library}"',
        note,
        group="Python",
    )


def node(name, kind, command="node", needs=None, note=None):
    why = {"ENOTFOUND": "no: direct"}
    run = f'{command} "$PROGRAMS/fetch.mjs" {kind}'
    return Client(
        name,
        f"{command} --version",
        f'{run} "$URL/page"',
        f'{run} "$URL/echo" "$FILE"',
        needs or f"{command} --version",
        note,
        why,
        group="JavaScript",
    )


NODE = "reads no variable for a proxy before version 24 (22.21)"
LIBRARIES = [
    python("urllib"),
    python("requests"),
    python("urllib3", note="reads no variable: the program here does"),
    python("httpx"),
    python("aiohttp", note="runs with `trust_env=True`"),
    python("httplib2"),
    python("pycurl", note="reads no variable for anchors: the program here does"),
    python("curl_cffi"),
    node("Node 20 fetch", "fetch", note=NODE),
    node("Node 20 https", "https", note=NODE),
    node("Node 24 fetch", "fetch", '"$NODE24"'),
    node("Node 24 https", "https", '"$NODE24"'),
    node("Node axios", "axios", "NODE_PATH=/usr/share/nodejs node", "test -d /usr/share/nodejs/axios"),
    Client(
        "Deno fetch",
        '"$PYTHON" -m deno --version',
        "printf 'const r = await fetch(Deno.args[0]); if (!r.ok) Deno.exit(1); console.log(await r.text())' >f.ts &&"
        ' "$PYTHON" -m deno run -q -A f.ts "$URL/page"',
        'printf \'const r = await fetch(Deno.args[0], {method: "POST", body: await Deno.readFile(Deno.args[1])}); '
        'console.log(await r.text())\' >f.ts && "$PYTHON" -m deno run -q -A f.ts "$URL/echo" "$FILE"',
        needs='"$PYTHON" -m deno --version',
        group="JavaScript",
    ),
    Client(
        "Ruby Net::HTTP",
        "ruby --version",
        "ruby -rnet/http -e 'r = Net::HTTP.get_response(URI(ARGV[0])); "
        'r = Net::HTTP.get_response(URI(r["location"])) if r.code == "302"; print r.body\' "$URL/page"',
        'ruby -rnet/http -e \'print Net::HTTP.post(URI(ARGV[0]), File.binread(ARGV[1])).body\' "$URL/echo" "$FILE"',
        group="other languages",
    ),
    Client(
        "Ruby open-uri",
        "ruby --version",
        "ruby -ropen-uri -e 'print URI.open(ARGV[0]).read' \"$URL/page\"",
        group="other languages",
    ),
    Client(
        "Perl LWP",
        "perl -MLWP -e 'print LWP->VERSION'",
        'lwp-request "$URL/page"',
        'lwp-request -m POST -c application/octet-stream "$URL/echo" <"$FILE"',
        group="other languages",
    ),
    Client(
        "Perl HTTP::Tiny",
        "perl -MHTTP::Tiny -e 'print HTTP::Tiny->VERSION'",
        "perl -MHTTP::Tiny -e 'my $r = HTTP::Tiny->new(verify_SSL => 1)->get($ARGV[0]); print $r->{content}' "
        '"$URL/page"',
        "perl -MHTTP::Tiny -e 'local $/; open F, $ARGV[1]; my $r = HTTP::Tiny->new(verify_SSL => 1)"
        '->post($ARGV[0], {content => <F>}); print $r->{content}\' "$URL/echo" "$FILE"',
        group="other languages",
    ),
    Client(
        "Perl Mojo::UserAgent",
        "perl -MMojolicious -e 'print Mojolicious->VERSION'",
        "perl -MMojo::UserAgent -e 'my $u = Mojo::UserAgent->new(max_redirects => 3); $u->proxy->detect; "
        'print $u->get($ARGV[0])->result->body\' "$URL/page"',
        "perl -MMojo::UserAgent -e 'local $/; open F, $ARGV[1]; my $u = Mojo::UserAgent->new; $u->proxy->detect; "
        'print $u->post($ARGV[0], <F>)->result->body\' "$URL/echo" "$FILE"',
        needs="perl -MMojo::UserAgent -e 1",
        note="runs with `proxy->detect`",
        group="other languages",
    ),
    Client(
        "PHP curl",
        "php --version",
        "php -r '$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_FAILONERROR, true); "
        "curl_setopt($c, CURLOPT_FOLLOWLOCATION, true); if (!curl_exec($c)) { fwrite(STDERR, curl_error($c)); "
        'exit(1); }\' "$URL/page"',
        "php -r '$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_POSTFIELDS, file_get_contents($argv[2])); "
        'curl_exec($c);\' "$URL/echo" "$FILE"',
        needs="php -r 'exit(function_exists(\"curl_init\") ? 0 : 1);'",
        group="other languages",
    ),
    Client(
        "PHP streams",
        "php --version",
        'php -r \'$p = parse_url(getenv("https_proxy")); $o = ["proxy" => "tcp://$p[host]:$p[port]", '
        '"request_fulluri" => str_starts_with($argv[1], "http:")]; '
        'echo file_get_contents($argv[1], false, stream_context_create(["http" => $o]));\' "$URL/page"',
        'php -r \'$p = parse_url(getenv("https_proxy")); $o = ["proxy" => "tcp://$p[host]:$p[port]", '
        '"method" => "POST", "header" => "Content-Type: a/b", "content" => file_get_contents($argv[2])]; '
        'echo file_get_contents($argv[1], false, stream_context_create(["http" => $o]));\' "$URL/echo" "$FILE"',
        note="reads no variable for a proxy: the program here does. After a redirect, it names the first host in TLS",
        why={"unrecognized name": "no: SNI"},
        group="other languages",
    ),
    Client(
        "Go net/http",
        "go version",
        '"$GO_PROGRAM" "$URL/page"',
        '"$GO_PROGRAM" "$URL/echo" "$FILE"',
        needs='test -x "$GO_PROGRAM"',
        group="other languages",
    ),
    Client(
        "Java HttpURLConnection",
        "java --version",
        'java -cp "$CLASSES" Fetch old "$URL/page"',
        'java -cp "$CLASSES" Fetch old "$URL/echo" "$FILE"',
        needs='test -d "$CLASSES"',
        group="other languages",
    ),
    Client(
        "Java java.net.http",
        "java --version",
        'java -cp "$CLASSES" Fetch new "$URL/page"',
        'java -cp "$CLASSES" Fetch new "$URL/echo" "$FILE"',
        needs='test -d "$CLASSES"',
        group="other languages",
    ),
]
