# SPDX-License-Identifier: Apache-2.0
"""The rows of the matrix. Each client is a shell command that prints the page: files.MARK.

The commands find these variables: URL (where the site's files are), FILE (1 MiB to upload), PROGRAMS (the folder of
the small programs beside this file), PYTHON and NODE24 (from the environment that `Scripts/clients --install` makes)
and MARK. They run in an empty folder of their own, which is also HOME.
"""

# For clients that cannot read a login in a proxy's URL. `exec` admits its own processes without it.
BARE = 'export http_proxy="http://$PROXY" https_proxy="http://$PROXY"; '
LOGIN = "cannot read the login that `exec` puts in the proxy's URL: run with a URL without it, as `env` gives it"

# Debian's programs in Python need Debian's Python.
SYSTEM_PYTHON = "PATH=/usr/bin:$PATH; "


class Client:
    """A row. `needs` is a program, or a condition as a shell command. `note` is for the page. `why` maps what a client
    says when it fails to what its cell says."""

    def __init__(self, name, version, get, post=None, needs=None, note=None, why=None, group="tools"):
        self.name, self.version, self.get, self.post = name, version, get, post
        self.needs = needs or get.split()[0]
        self.note, self.why, self.group = note, why or {}, group


TOOLS = [
    Client("curl", "curl --version", 'curl -sSfL "$URL/page"', 'curl -sSfL --data-binary "@$FILE" "$URL/echo"'),
    Client(
        "wget",
        "wget --version",
        'wget -nv --tries=1 -O - "$URL/page"',
        'wget -nv --tries=1 -O - --post-file="$FILE" "$URL/echo"',
    ),
    Client(
        "wget2",
        "wget2 --version",
        'wget2 -nv --tries=1 -O - "$URL/page"',
        'wget2 -nv --tries=1 -O - --post-file="$FILE" "$URL/echo"',
        needs="wget2",
        note=(
            "cannot use such a proxy: this version opens TLS to the proxy itself for https, and leaves out the port of"
            " the site for http"
        ),
        why={"": "no: own fault"},
    ),
    Client(
        "aria2",
        "aria2c --version",
        'aria2c -q -m 1 --ca-certificate="$SSL_CERT_FILE" -o page "$URL/page" && cat page',
        note="reads no variable for anchors: run with `--ca-certificate`",
    ),
    Client("axel", "axel --version", 'axel -q -o page "$URL/page" && cat page'),
    Client(
        "httpie",
        '"$PYTHON" -m httpie --version',
        '"$PYTHON" -m httpie --ignore-stdin --check-status --follow -b "$URL/page"',
        '"$PYTHON" -m httpie --check-status -b POST "$URL/echo" <"$FILE"',
        '"$PYTHON" -c "import httpie"',
    ),
    Client("lynx", "lynx --version", BARE + 'lynx -source "$URL/page"', needs="lynx", note=LOGIN),
    Client("w3m", "w3m -version", 'w3m -dump_source "$URL/page"'),
    Client("elinks", "elinks -version", 'elinks -source 1 "$URL/page"'),
    Client(
        "links",
        "links -version",
        'links -http-proxy "$PROXY" -https-proxy "$PROXY" -source "$URL/page"',
        needs="links",
        note=(
            "reads no variable for a proxy: run with `-http-proxy` and `-https-proxy`. Its CONNECT has no Host, which "
            "RFC 9112 §3.2 makes an error"
        ),
        why={"forwarding failed": "no: CONNECT"},
    ),
    Client(
        "httrack",
        "httrack --version",
        'httrack -q -O copy -r1 -F httrack -P "$PROXY" "$URL/page" && grep -rh "$MARK" copy',
        needs="httrack",
        note=(
            "reads no variable: run with `-P`. It connects to https sites without the proxy. By default it says that"
            " it is a browser (`Mozilla/`), which gets no answer unless it says which page asks: run with `-F`"
        ),
        why={"": "no: direct"},
    ),
    Client(
        "lftp",
        "lftp --version",
        'lftp -c "set net:max-retries 1; cat $URL/page"',
        'lftp -c "set net:max-retries 1; put $FILE -o $URL/echo" && echo 1048576',
        needs="lftp",
        note="sends a CONNECT without Host, which RFC 9112 §3.2 makes an error",
        why={"400 Bad": "no: CONNECT"},
    ),
    Client(
        "cadaver (neon)",
        "cadaver -V",
        'printf "get page\\nquit\\n" | cadaver -p "$PROXY" "$URL/"; cat page',
        needs="cadaver",
        note=(
            "reads no variable: run with `-p`. It has no option for trust anchors: it asks about each certificate. "
            "No site is a WebDAV server"
        ),
        why={"issuer is not trusted": "no: CA", "": "no: WebDAV"},
    ),
    Client("rclone", "rclone version", 'rclone copyurl --retries 1 --stdout "$URL/page" page'),
    Client(
        "yt-dlp",
        '"$PYTHON" -m yt_dlp --version',
        'printf \'{"id":"a","title":"a","ext":"mp4","extractor":"x","url":"%s/page"}\' "$URL" >info.json && "$PYTHON"'
        " -m yt_dlp -q --compat-options no-certifi --add-headers Sec-Fetch-Site:none -o page --no-part"
        " --load-info-json info.json && cat page",
        needs='"$PYTHON" -c "import yt_dlp"',
        note=(
            "prefers certifi's anchors where that is installed: run with `--compat-options no-certifi`. It sends part"
            " of a browser's fields (`Sec-Fetch-Mode`), so that it counts as one that does not say which page asks:"
            " run with `--add-headers Sec-Fetch-Site:none`"
        ),
    ),
    Client(
        "Emacs url.el",
        "emacs --version",
        needs="emacs",
        note=(
            "takes its anchors from `gnutls-trustfiles`, here the file in `SSL_CERT_FILE`. Its"
            " `network-security-level` is `low`, because otherwise it also looks the site's name up itself"
        ),
        get=(
            "emacs --batch --eval '(progn (require (quote gnutls)) (setq gnutls-verify-error t network-security-level"
            " (quote low) gnutls-trustfiles (list (getenv \"SSL_CERT_FILE\"))))' --eval '(with-current-buffer"
            ' (url-retrieve-synchronously (concat (getenv "URL") "/page") t) (princ (buffer-string)))\''
        ),
    ),
    Client(
        "Chromium (headless)",
        "chromium --version",
        '"$COUNTERSIGN" ca install --store nss --yes >&2; for db in .pki/nssdb .local/share/pki/nssdb; do certutil -d'
        ' "sql:$db" -A -n origin -t C,, -i "$ORIGIN_CA"; done; chromium --headless=new --no-sandbox --disable-gpu'
        ' --no-first-run --user-data-dir=profile --proxy-server="http://$PROXY" --proxy-bypass-list="<-loopback>"'
        ' --dump-dom "$URL/page.html"',
        needs="chromium",
        note="trusts the CA after `countersign ca install`; the proxy is given by `--proxy-server`",
    ),
]

VERSION_CONTROL = [
    Client(
        "git",
        "git --version",
        'git clone -q "$URL/tools.git" copy && cat copy/page',
        'git init -q -b main up && cd up && cp "$FILE" big && git add big && '
        "git -c user.name=m -c user.email=m@corp.example commit -qm big && "
        'git push -q "${URL}/git/upload.git" "main:$(date +%s%N)" && echo 1048576',
        group="version control",
    ),
    Client(
        "Mercurial",
        "hg --version",
        "hg init copy && hg -R copy --config ui.interactive=no unbundle -q "
        '"$URL/probe.hg" && hg -R copy cat -r tip copy/page',
        needs="hg",
        note=(
            "sends, after a redirect to another host, the request for it through the tunnel to the first one, which"
            " the proxy refuses with 400"
        ),
        why={"HTTP Error 400": "no: 400"},
        group="version control",
    ),
    Client(
        "Subversion",
        "svn --version",
        "svn info --non-interactive --config-option servers:global:http-proxy-host=127.0.0.1 "
        '--config-option "servers:global:http-proxy-port=${PROXY#*:}" --config-option '
        '"servers:global:ssl-authority-files=$ORIGIN_CA;$COUNTERSIGN_HOME/Certs/interception/root.pem" '
        '"$URL/m2" 2>&1 | tee said; grep -q "HTTP/DAV\\|E175015\\|E170011" said && echo "$MARK"',
        needs="svn",
        note=(
            "reads no variable: run with the `--config-option`s that `exec` prints. No site is a repository, so that "
            "the site's answer to an OPTIONS request counts"
        ),
        group="version control",
    ),
    Client(
        "Breezy",
        SYSTEM_PYTHON + "brz --version",
        SYSTEM_PYTHON + 'brz branch -q "$URL/bazaar" copy && cat copy/page',
        needs="brz",
        note="ends, in this version, with an internal error when it opens a tunnel (with Python 3.11)",
        why={"_ConnectRequest": "no: own fault"},
        group="version control",
    ),
]

PACKAGES = [
    Client(
        "apt-get",
        "apt-get --version",
        'mkdir -p state/lists/partial cache/archives/partial && echo "deb [trusted=yes] $URL/apt ./" >list && '
        "apt-get -q update -o Dir::Etc::SourceList=$PWD/list -o Dir::Etc::SourceParts=/dev/null "
        "-o Dir::State=$PWD/state -o Dir::Cache=$PWD/cache -o APT::Sandbox::User=root -o Acquire::Retries=0 "
        "-o Acquire::Languages=none && /usr/lib/apt/apt-helper cat-file state/lists/*Packages*",
        needs="apt-get",
    ),
    Client(
        "pip",
        '"$PYTHON" -m pip --version',
        '"$PYTHON" -m pip download -q --retries 0 --no-cache-dir --disable-pip-version-check --no-deps '
        '"$URL/probe-1.0-py3-none-any.whl" && unzip -p probe-1.0-py3-none-any.whl probe_page.py',
        needs='"$PYTHON" -m pip --version',
    ),
    Client(
        "uv",
        '"$PYTHON" -m uv --version',
        '"$PYTHON" -m uv pip install -q --no-cache --no-deps --no-index --python "$PYTHON" --target out '
        '"probe @ $URL/probe-1.0-py3-none-any.whl" && cat out/probe_page.py',
        needs='"$PYTHON" -m uv --version',
    ),
    Client(
        "npm",
        "npm --version",
        'npm pack --silent --fetch-retries=0 "$URL/probe-1.0.0.tgz" && tar -xOf probe-1.0.0.tgz package/package.json',
    ),
    Client(
        "yarn 1",
        "NODE_PATH=/usr/share/nodejs yarnpkg --version",
        'NODE_PATH=/usr/share/nodejs yarnpkg add --silent --no-progress "$URL/probe-1.0.0.tgz" && '
        "cat node_modules/probe/package.json",
        needs="yarnpkg",
    ),
    Client(
        "RubyGems",
        "gem --version",
        'gem fetch --clear-sources -s "$URL/" probe && gem unpack probe-1.0.gem && cat probe-1.0/page',
    ),
    Client(
        "Bundler",
        "bundle --version",
        'printf \'source "%s/"\\ngem "probe"\\n\' "$URL" >Gemfile && '
        "bundle config set --local path out >gems.log && bundle install --retry 0 --jobs 1 && "
        "cat out/ruby/*/gems/probe-1.0/page",
    ),
    Client(
        "Composer",
        "composer --version",
        'printf \'{"repositories":[{"packagist":false},{"type":"package","package":{"name":"matrix/probe",'
        '"version":"1.0","dist":{"type":"zip","url":"%s/probe.zip"}}}],"require":{"matrix/probe":"1.0"},'
        '"config":{"secure-http":false}}\' "$URL" >composer.json && '
        "COMPOSER_ALLOW_SUPERUSER=1 composer install -q -n && cat vendor/matrix/probe/page",
    ),
    Client(
        "Maven",
        "mvn --version",
        "printf '<project><modelVersion>4.0.0</modelVersion><parent><groupId>probe</groupId><artifactId>parent"
        "</artifactId><version>1</version><relativePath/></parent><artifactId>a</artifactId><packaging>pom</packaging>"
        "<repositories><repository><id>central</id><url>%s/m2</url></repository></repositories></project>' "
        '"$URL" >pom.xml && printf "<settings/>" >empty.xml && '
        "mvn -q -gs empty.xml -s empty.xml -Dmaven.repo.local=$PWD/repository validate && "
        "cat repository/probe/parent/1/parent-1.pom",
        needs="mvn",
    ),
    Client(
        "Cargo",
        "cargo --version",
        "mkdir -p p/src .cargo && touch p/src/lib.rs && printf '[source.crates-io]\\nreplace-with ="
        ' "m"\\n[source.m]\\nregistry = "sparse+%s/cargo/"\\n\' "$URL" >.cargo/config.toml && printf'
        ' \'[package]\\nname = "a"\\nversion = "1.0.0"\\n[dependencies]\\nprobe = "1"\\n\' >p/Cargo.toml && cargo'
        " generate-lockfile -q --manifest-path p/Cargo.toml && grep -q probe p/Cargo.lock && echo $MARK",
        needs="cargo",
    ),
    Client(
        "Go modules",
        "go version",
        'GOPROXY="$URL/go" GOSUMDB=off GOFLAGS=-modcacherw GOPATH="$PWD/go" GOTOOLCHAIN=local '
        "go mod download -json probe.corp.example/tools@v1.0.0 >go.json && cat go/pkg/mod/probe*/tools*/page",
        needs="go",
    ),
]
for client in PACKAGES:
    client.group = "packages"

ALL = TOOLS + VERSION_CONTROL + PACKAGES
