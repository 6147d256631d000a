// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates

/// The system's anchors: a folder of certificates, and a program that makes of it what other programs read.
struct SystemStore: TrustStore {
    /// A family of distributions.
    struct Family: Sendable {
        /// Where an administrator's anchors are put.
        let folder: String
        let suffix: String
        /// What has to be run when the folder has changed.
        let update: [String]
        /// The file that comes of it.
        let bundle: String
        /// Where the program leaves links to files that have gone, if it does.
        var links: String?

        static let all = [
            // Fedora, RHEL and their kin: update-ca-trust(8).
            Family(
                folder: "/etc/pki/ca-trust/source/anchors", suffix: ".pem", update: ["update-ca-trust", "extract"],
                bundle: "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"),
            // Debian, Ubuntu, Alpine: update-ca-certificates(8).
            Family(
                folder: "/usr/local/share/ca-certificates", suffix: ".crt", update: ["update-ca-certificates"],
                bundle: "/etc/ssl/certs/ca-certificates.crt", links: "/etc/ssl/certs"),
            // Arch: trust(1) of p11-kit.
            Family(
                folder: "/etc/ca-certificates/trust-source/anchors", suffix: ".crt",
                update: ["trust", "extract-compat"], bundle: "/etc/ca-certificates/extracted/tls-ca-bundle.pem"),
            // SUSE: its own update-ca-certificates(8).
            Family(
                folder: "/usr/share/pki/trust/anchors", suffix: ".pem", update: ["update-ca-certificates"],
                bundle: "/var/lib/ca-certificates/ca-bundle.pem"),
        ]
    }

    let kind = TrustStoreKind.system
    let layout: StoreLayout
    private let family: Family

    /// Nil where the system has none that is known.
    init?(_ layout: StoreLayout) {
        guard let family = Family.all.first(where: { StoreLayout.isFolder(layout.path($0.folder)) }) else { return nil }
        self.layout = layout
        self.family = family
    }

    var place: String { layout.path(family.folder) }

    var obstacle: Diagnostic? {
        guard layout.program(family.update[0]) == nil else { return nil }
        return Diagnostic(
            "\(family.update[0]) is not installed, which takes \(place) up",
            hint: family.update[0] == "trust" ? "install the package p11-kit" : "install the package ca-certificates")
    }

    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot] {
        let inForce = try bundle()
        var roots: [StoredRoot] = []
        for file in StoreLayout.names(in: place) where file.hasSuffix(family.suffix) {
            let name = String(file.dropLast(family.suffix.count))
            // What others put there may be unreadable for its own reasons.
            guard let bytes = try? HomeFile(path: "\(place)/\(file)").readIfThere(upTo: 64 << 10),
                let certificates = try? Certificate.readPEM(bytes), certificates.count == 1,
                let certificate = certificates.first, RootName(parsing: name) != nil || certificate == root
            else { continue }
            roots.append(
                StoredRoot(
                    entry: "\(place)/\(file)", name: name, certificate: certificate,
                    isInForce: inForce.contains(certificate)))
        }
        return roots
    }

    /// What other programs read.
    private func bundle() throws(CountersignError) -> Set<Certificate> {
        let file = HomeFile(path: layout.path(family.bundle))
        guard let bytes = try file.readIfThere(upTo: Home.fileLimitBytes) else { return [] }
        do {
            return Set(try Certificate.readPEM(bytes))
        } catch  where error.code == .noCertificate {
            return []
        } catch {
            throw CountersignError(.environment, "\(file.name): \(error.detail)")
        }
    }

    // MARK: Writing

    private var isWritable: Bool {
        layout.isWritable(place) && layout.isWritable(HomeFile.folder(of: layout.path(family.bundle)))
    }

    func barrier(to change: StoreChange) -> Diagnostic? {
        guard layout.privilege == .none, !isWritable else { return nil }
        let commands =
            switch change {
            case .add(_, let name):
                ["countersign ca export | sudo tee \(path(of: name)) >/dev/null"]
            case .remove(let roots): roots.map { "sudo rm \($0.entry)" }
            }
        return Diagnostic(
            "only root may write \(place), and there is no terminal for sudo to ask on",
            hint:
                "as root, or by hand: \((commands + ["sudo \(family.update.joined(separator: " "))"]).joined(separator: " && "))"
        )
    }

    func description(of change: StoreChange) -> String {
        let update = family.update.joined(separator: " ")
        let means = isWritable || layout.privilege == .own ? "" : " through sudo"
        return switch change {
        case .add(_, let name): "write \(path(of: name)) and run \(update)\(means)"
        case .remove(let roots): "remove \(roots.map(\.entry).joined(separator: ", ")) and run \(update)\(means)"
        }
    }

    private func path(of name: RootName) -> String { "\(place)/\(name.text)\(family.suffix)" }

    /// `$1` is the file; the rest is the program that takes it up. What fails leaves no file behind.
    private static let adding = """
        file=$1; shift; umask 022
        trap 'rm -f "$file.new"' EXIT
        cat > "$file.new" && mv -f "$file.new" "$file" || exit
        "$@" && exit
        status=$?; rm -f "$file"; "$@" >/dev/null 2>&1; exit $status
        """

    /// `$1` is the file, `$2` the folder of links or nothing; the rest is the program. What fails leaves the file where it was.
    /// Only the links that the file leaves dangling are removed, by name and then by hash: `update-ca-certificates --fresh`
    /// would for a moment take away all of them.
    private static let removing = """
        file=$1; links=$2; shift 2; umask 022
        kept=$(cat "$file") && rm "$file" || exit
        "$@" || { status=$?; printf '%s\\n' "$kept" > "$file"; exit $status; }
        [ -n "$links" ] || exit 0
        target=$file
        for pass in 1 2; do
            for link in "$links"/*; do
                [ -L "$link" ] && [ ! -e "$link" ] && [ "$(readlink "$link")" = "$target" ] || continue
                rm -f "$link"; [ $pass = 2 ] || name=${link##*/}
            done
            target=${name-}; [ -n "$target" ] || exit 0
        done
        """

    func make(_ change: StoreChange) throws(CountersignError) {
        let update = try updateProgram()
        switch change {
        case .add(let root, let name):
            let file = path(of: name)
            if let bytes = try HomeFile(path: file).readIfThere(upTo: 64 << 10),
                let other = try? Certificate.readPEM(bytes).first, other != root
            {
                throw CountersignError(.environment, "\(file) is there already, with another certificate")
            }
            try layout.script(Self.adding, [file] + update, asRoot: !isWritable).succeed(input: Array(root.pem.utf8))
            guard try bundle().contains(root) else {
                throw CountersignError(
                    .environment, "\(update[0]) ended well, but \(layout.path(family.bundle)) has not the root")
            }
        case .remove(let roots):
            let links = family.links.map(layout.path) ?? ""
            for root in roots {
                try layout.script(Self.removing, [root.entry, links] + update, asRoot: !isWritable).succeed()
            }
            let left = try bundle().intersection(roots.map(\.certificate))
            guard left.isEmpty else {
                throw CountersignError(
                    .environment,
                    "\(layout.path(family.bundle)) still has the root, from another file than Countersign's")
            }
        }
    }

    /// The program with its path, and with the tree's folders where that is not the machine's own.
    private func updateProgram() throws(CountersignError) -> [String] {
        guard let program = layout.program(family.update[0]) else {
            throw CountersignError(.environment, "\(family.update[0]) is not installed")
        }
        let update = [program] + family.update.dropFirst()
        guard !layout.root.isEmpty, family.suffix == ".crt", family.update.count == 1 else { return update }
        return update + [
            "--certsconf", layout.path("/etc/ca-certificates.conf"),
            "--certsdir", layout.path("/usr/share/ca-certificates"), "--localcertsdir", place,
            "--etccertsdir", layout.path("/etc/ssl/certs"), "--hooksdir", layout.path("/etc/ca-certificates/update.d"),
        ]
    }
}
