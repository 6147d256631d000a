// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome

/// The system's trust anchors: a folder of certificates, and a program that generates from it the files that other
/// programs read.
struct SystemStore: TrustStore {
    /// A family of distributions.
    struct Family: Sendable {
        /// The folder for the administrator's anchors.
        let folder: String
        let suffix: String
        /// The command to run after the folder has changed.
        let update: [String]
        /// The generated file with all anchors.
        let bundle: String
        /// The folder in which the program leaves dangling links to deleted files, if it does.
        var links: String?

        static let all = [
            // Fedora, RHEL and derivatives: update-ca-trust(8).
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

    /// Returns nil if the system has no known folder.
    init?(_ layout: StoreLayout) {
        guard let family = Family.all.first(where: { StoreLayout.isFolder(layout.path($0.folder)) }) else { return nil }
        self.layout = layout
        self.family = family
    }

    var place: String { layout.path(family.folder) }

    var obstacle: Diagnostic? {
        guard layout.program(family.update[0]) == nil else { return nil }
        return Diagnostic(
            "\(place) requires \(family.update[0]), which is not installed",
            hint: family.update[0] == "trust" ? "install the package p11-kit" : "install the package ca-certificates")
    }

    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot] {
        let trusted = try bundle()
        var roots: [StoredRoot] = []
        for file in StoreLayout.names(in: place) where file.hasSuffix(family.suffix) {
            let name = String(file.dropLast(family.suffix.count))
            // Files from other sources may be unreadable, which is not an error.
            guard let bytes = try? HomeFile(path: "\(place)/\(file)").readIfThere(upTo: 64 << 10),
                let certificates = try? Certificate.readPEM(bytes), certificates.count == 1,
                let certificate = certificates.first, RootName(parsing: name) != nil || certificate == root
            else { continue }
            roots.append(
                StoredRoot(
                    entry: "\(place)/\(file)", name: name, certificate: certificate,
                    isInForce: trusted.contains(certificate)))
        }
        return roots
    }

    /// The certificates in the generated file.
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
        let script = (commands + ["sudo \(family.update.joined(separator: " "))"]).joined(separator: " && ")
        return Diagnostic(
            "only root may write \(place), and there is no terminal for sudo to ask on",
            hint: "as root, or by hand: \(script)")
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

    /// `$1` is the file, the rest is the update command. Removes the file if the command fails. Root writes only in a
    /// new folder of its own, because a link may wait in one that others may write to, as on Debian.
    private static let adding = """
        file=$1; shift; umask 022; set -C
        rm -rf "$file".countersign.??????
        work=$(mktemp -d "$file.countersign.XXXXXX") || exit
        trap 'rm -rf "$work"' EXIT; trap 'exit 1' HUP INT TERM
        cat > "$work/root" && mv -fT "$work/root" "$file" && rmdir "$work" || exit
        "$@" && exit
        status=$?; rm -f "$file"; "$@" >/dev/null 2>&1; exit $status
        """

    /// `$1` is the file, `$2` the folder with links or empty, the rest is the update command. Puts the file back if the
    /// command fails. Removes only the links to the deleted file, first the one by name and then the one by hash:
    /// `update-ca-certificates --fresh` would temporarily remove all links.
    private static let removing = """
        file=$1; links=$2; shift 2; umask 022
        rm -rf "$file".countersign.??????
        work=$(mktemp -d "$file.countersign.XXXXXX") || exit
        trap 'rm -rf "$work"' EXIT; trap 'exit 1' HUP INT TERM
        mv -fT "$file" "$work/root" || exit
        "$@" || { status=$?; mv -fT "$work/root" "$file"; exit $status; }
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
                throw CountersignError(.environment, "\(file) exists already, with another certificate")
            }
            try layout.script(Self.adding, [file] + update, asRoot: !isWritable).succeed(input: Array(root.pem.utf8))
            guard try bundle().contains(root) else {
                throw CountersignError(
                    .environment, "\(update[0]) succeeded, but \(layout.path(family.bundle)) does not contain the root")
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
                    "\(layout.path(family.bundle)) still contains the root, from a file that is not Countersign's")
            }
        }
    }

    /// The update command, with options for the folders if the layout is not the machine's own.
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
