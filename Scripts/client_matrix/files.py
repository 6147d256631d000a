# SPDX-License-Identifier: Apache-2.0
"""The files that every site serves: a page, a git repository, and one package in the format of each package manager.
All are made here, so that nothing is downloaded."""

import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

MARK = "the page of the client matrix"


def quiet(*words, **options):
    subprocess.run(
        [str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )


def archive(path, files):
    """A .tar.gz or a .zip with these files."""
    if path.suffix in (".zip", ".whl"):
        with zipfile.ZipFile(path, "w") as pack:
            for name, text in files.items():
                pack.writestr(name, text)
        return
    with tarfile.open(path, "w:gz") as pack:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            pack.addfile(entry, io.BytesIO(text.encode()))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def make(www, scratch):
    """Fills the folder `www`. A package manager that is not installed gets no package."""
    www, scratch = pathlib.Path(www), pathlib.Path(scratch)
    www.mkdir()
    scratch.mkdir()
    write(www / "page", MARK + "\n")
    write(www / "page.html", f"<p>{MARK}</p>\n")
    for maker in [git, mercurial, bazaar, python, npm, ruby, php, java, rust, go, apt]:
        try:
            maker(www, scratch)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no files for {maker.__name__}: {error}")


def git(www, scratch):
    work = scratch / "tools"
    write(work / "page", MARK + "\n")
    own = {**os.environ, "HOME": str(scratch), "GIT_CONFIG_GLOBAL": "/dev/null"}
    person = ["-c", "user.name=matrix", "-c", "user.email=matrix@corp.example"]
    quiet("git", "init", "-q", "-b", "main", work, env=own)
    quiet("git", "-C", work, "add", ".", env=own)
    quiet("git", *person, "-C", work, "commit", "-qm", "page", env=own)
    quiet("git", "clone", "-q", "--bare", work, www / "tools.git", env=own)
    # For the dumb protocol, which every server with files speaks.
    quiet("git", "-C", www / "tools.git", "update-server-info", env=own)
    quiet("git", "init", "-q", "--bare", www / "upload.git", env=own)
    shutil.rmtree(www / "upload.git/hooks")
    shutil.rmtree(www / "tools.git/hooks")


def bazaar(www, scratch):
    work = scratch / "bazaar"
    write(work / "page", MARK + "\n")
    own = {
        **os.environ,
        "HOME": str(scratch),
        "BRZ_EMAIL": "matrix@corp.example",
        "PATH": "/usr/bin:" + os.environ["PATH"],
    }
    quiet("brz", "init", work, env=own)
    quiet("brz", "add", work, env=own)
    quiet("brz", "commit", "-m", "page", work, env=own)
    quiet("brz", "branch", "--no-tree", work, www / "bazaar", env=own)


def mercurial(www, scratch):
    work = scratch / "mercurial"
    write(work / "page", MARK + "\n")
    own = {**os.environ, "HOME": str(scratch), "HGUSER": "matrix"}
    quiet("hg", "init", work, env=own)
    quiet("hg", "-R", work, "commit", "-A", "-m", "page", env=own)
    quiet("hg", "-R", work, "bundle", "--all", www / "probe.hg", env=own)


def python(www, _):
    info = "Metadata-Version: 2.1\nName: probe\nVersion: 1.0\n"
    wheel = "Wheel-Version: 1.0\nGenerator: matrix\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    records = "probe_page.py,,\nprobe-1.0.dist-info/METADATA,,\nprobe-1.0.dist-info/WHEEL,,\n"
    archive(
        www / "probe-1.0-py3-none-any.whl",
        {
            "probe_page.py": f"# {MARK}\n",
            "probe-1.0.dist-info/METADATA": info,
            "probe-1.0.dist-info/WHEEL": wheel,
            "probe-1.0.dist-info/RECORD": records + "probe-1.0.dist-info/RECORD,,\n",
        },
    )


def npm(www, _):
    manifest = json.dumps({"name": "probe", "version": "1.0.0", "description": MARK})
    archive(www / "probe-1.0.0.tgz", {"package/package.json": manifest})


def ruby(www, scratch):
    source = scratch / "gem"
    write(source / "page", MARK + "\n")
    write(
        source / "probe.gemspec",
        "Gem::Specification.new { |s| s.name = 'probe'; s.version = '1.0'; "
        "s.summary = 'a page'; s.authors = ['matrix']; s.files = ['page'] }\n",
    )
    own = {**os.environ, "HOME": str(scratch)}
    quiet("gem", "build", "probe.gemspec", cwd=source, env=own)
    (www / "gems").mkdir()
    shutil.move(source / "probe-1.0.gem", www / "gems")
    quiet("gem", "generate_index", "-d", www, env=own)


def php(www, _):
    archive(www / "probe.zip", {"page": MARK + "\n", "composer.json": '{"name": "matrix/probe"}'})


def java(www, _):
    write(
        www / "m2/probe/parent/1/parent-1.pom",
        "<project><modelVersion>4.0.0</modelVersion><groupId>probe</groupId><artifactId>parent</artifactId>"
        f"<version>1</version><packaging>pom</packaging><description>{MARK}</description></project>\n",
    )


def rust(www, _):
    """A sparse index. The crate itself is not asked for when only the lock file is made."""
    write(www / "cargo/config.json", '{"dl": "https://crates.corp.example/dl"}\n')
    line = {"name": "probe", "vers": "1.0.0", "deps": [], "cksum": "0" * 64, "features": {}, "yanked": False}
    write(www / "cargo/pr/ob/probe", json.dumps(line) + "\n")


def go(www, _):
    folder = www / "go/probe.corp.example/tools/@v"
    write(folder / "list", "v1.0.0\n")
    write(folder / "v1.0.0.info", '{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}\n')
    write(folder / "v1.0.0.mod", "module probe.corp.example/tools\n")
    prefix = "probe.corp.example/tools@v1.0.0/"
    files = {prefix + "go.mod": "module probe.corp.example/tools\n", prefix + "page": MARK + "\n"}
    archive(folder / "v1.0.0.zip", files)


def apt(www, _):
    package = f"Package: probe\nVersion: 1.0\nArchitecture: all\nMaintainer: matrix\nDescription: {MARK}\n"
    digest = hashlib.sha256(b"").hexdigest()
    write(www / "apt/Packages", package + f"Filename: probe.deb\nSize: 0\nSHA256: {digest}\n\n")
