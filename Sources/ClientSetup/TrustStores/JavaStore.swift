// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignHome

/// A `cacerts` keystore with the trust anchors of one or more Java runtimes. It is read and written with `keytool`,
/// using the default password.
struct JavaStore: TrustStore {
    let kind = TrustStoreKind.java
    let layout: StoreLayout
    /// The keystore's path, with symbolic links resolved.
    let place: String
    private let keytool: String?

    private static let password = "changeit"
    /// Keystores that Fedora, Arch and SUSE generate from the system's anchors.
    private static let derived = [
        "/etc/pki/ca-trust/extracted/", "/etc/ca-certificates/extracted/", "/var/lib/ca-certificates/",
    ]

    /// The keystores of `JAVA_HOME`, of `java` in the path, and of all runtimes in `/usr/lib/jvm`.
    static func all(_ layout: StoreLayout) -> [JavaStore] {
        var homes: [String] = []
        if let home = layout.environment["JAVA_HOME"], !home.isEmpty { homes += [home, "\(home)/jre"] }
        if let java = layout.installedProgram("java") {
            homes.append(HomeFile.folder(of: HomeFile.folder(of: java)))
        }
        let runtimes = layout.path("/usr/lib/jvm")
        homes += StoreLayout.names(in: runtimes).map { "\(runtimes)/\($0)" }
        var stores: [JavaStore] = []
        for home in homes {
            guard let place = HomeFile.resolved("\(home)/lib/security/cacerts") else { continue }
            let own = "\(home)/bin/keytool"
            let tool = StoreLayout.exists(own) ? own : layout.program("keytool")
            if let index = stores.firstIndex(where: { $0.place == place }) {
                if stores[index].keytool == nil { stores[index] = JavaStore(layout, place, tool) }
            } else {
                stores.append(JavaStore(layout, place, tool))
            }
        }
        return stores
    }

    private init(_ layout: StoreLayout, _ place: String, _ keytool: String?) {
        self.layout = layout
        self.place = place
        self.keytool = keytool
    }

    var obstacle: Diagnostic? {
        guard keytool == nil else { return nil }
        return Diagnostic(
            "\(place) requires keytool, which is not installed", hint: "keytool is in the bin folder of a Java runtime"
        )
    }

    // MARK: Reading

    func roots(like root: Certificate?) throws(CountersignError) -> [StoredRoot] {
        let output = String(decoding: try run(["-list", "-rfc", "-keystore", place]), as: UTF8.self)
        var roots: [StoredRoot] = []
        // Each entry begins with `Alias name: …`. A trusted certificate's entry contains one certificate, in PEM.
        for entry in output.components(after: "Alias name: ") {
            let alias = entry.prefix { !$0.isNewline }
            let name = Self.name(of: alias)
            let isOurs = RootName(parsing: name) != nil
            guard entry.contains("trustedCertEntry"), isOurs || root != nil,
                let certificate = try? Certificate.readPEM(Array(entry.utf8)).first, isOurs || certificate == root
            else { continue }
            roots.append(
                StoredRoot(entry: String(alias), name: name, certificate: certificate, isInForce: true))
        }
        return roots
    }

    /// Debian's keystore follows the system's anchors, with the file's name in the alias. It keeps the entries of
    /// deleted files.
    private static func name(of alias: Substring) -> String {
        guard alias.hasPrefix("debian:"), alias.hasSuffix(".pem") else { return String(alias) }
        return String(alias.dropFirst("debian:".count).dropLast(".pem".count))
    }

    // MARK: Writing

    private var isWritable: Bool { layout.isWritable(HomeFile.folder(of: place)) && layout.isWritable(place) }

    func barrier(to change: StoreChange) -> Diagnostic? {
        if Self.derived.contains(where: { place.hasPrefix(layout.path($0)) }) {
            return Diagnostic(
                "\(place) is generated from the system's anchors", hint: "use --store system, which updates it too")
        }
        guard layout.privilege == .none, !isWritable else { return nil }
        let tool = keytool ?? "keytool"
        let commands =
            switch change {
            case .add(_, let name):
                [
                    "countersign ca export | sudo \(tool) -importcert -noprompt -trustcacerts "
                        + "-alias \(name.text) -keystore \(place)"
                ]
            case .remove(let roots): roots.map { "sudo \(tool) -delete -alias \($0.entry) -keystore \(place)" }
            }
        return Diagnostic(
            "only root may write \(place), and there is no terminal for sudo to ask on",
            hint: "as root, or by hand: \(commands.joined(separator: " && "))")
    }

    func description(of change: StoreChange) -> String {
        let means = isWritable || layout.privilege == .own ? "" : " through sudo"
        return switch change {
        case .add(_, let name): "in \(place) add \(name.text)\(means)"
        case .remove(let roots): "in \(place) remove \(roots.map(\.entry).joined(separator: ", "))\(means)"
        }
    }

    /// The effect of a change on the original keystore, which stays beside the keystore until the last root of
    /// Countersign is removed.
    private enum Purpose: String {
        /// None of Countersign's roots is in the keystore yet.
        case first
        /// There are others before and after the change.
        case further
        /// None of Countersign's roots is left after the change.
        case last
    }

    /// `$1` is the keystore, `$2` the purpose, the rest is the keytool command. The first line of standard input is the
    /// password. keytool modifies files in place, so it is run on a copy, which replaces the keystore only if that is
    /// still the same. The original is restored only if the digest shows that no other program has changed the keystore
    /// since Countersign did.
    ///
    /// Root writes only in a new folder of its own, and from there moves files over names in the keystore's folder,
    /// which does not follow a planted link.
    private static let script = """
        IFS= read -r COUNTERSIGN_STOREPASS; export COUNTERSIGN_STOREPASS
        store=$1 purpose=$2; shift 2; umask 077; set -C
        kept=$store.countersign-original digest=$store.countersign-digest
        sum() { line=$(sha256sum < "$1" 2>/dev/null) && line=${line%% *} && [ ${#line} = 64 ] && echo "$line"; }
        is_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
        discard() { rm -f "$kept" "$digest" 2>/dev/null; }
        rm -rf "$store".countersign.??????
        work=$(mktemp -d "$store.countersign.XXXXXX") || exit
        trap 'rm -rf "$work"' EXIT; trap 'exit 1' HUP INT TERM
        cp -p "$store" "$work/before" && before=$(sum "$work/before"); [ -e "$work/before" ] || exit 1
        is_file "$kept" && is_file "$digest" && [ -n "$before" ] && [ "$(cat "$digest")" = "$before" ] || discard
        if [ "$purpose" = last ] && is_file "$kept"; then
            mv -fT "$kept" "$store" && rm -f "$digest"; exit
        fi
        cp -p "$work/before" "$work/store" && "$@" -keystore "$work/store" && after=$(sum "$work/store" || :) || exit
        cmp -s "$store" "$work/before" || { echo "another program has changed $store; try again" >&2; exit 1; }
        mv -fT "$work/store" "$store" || exit
        [ "$purpose" != first ] || [ -z "$before" ] || mv -fT "$work/before" "$kept" 2>/dev/null
        if is_file "$kept" && [ -n "$after" ] && echo "$after" > "$work/digest"; then
            mv -fT "$work/digest" "$digest" 2>/dev/null || discard
        else
            discard
        fi
        exit 0
        """

    func make(_ change: StoreChange) throws(CountersignError) {
        switch change {
        case .add(let root, let name):
            let purpose: Purpose = try roots(like: root).isEmpty ? .first : .further
            try write(
                ["-importcert", "-noprompt", "-trustcacerts", "-alias", name.text], purpose,
                input: Array(root.pem.utf8))
        case .remove(let roots):
            var left = Set(try self.roots(like: nil).map(\.entry))
            for root in roots {
                left.remove(root.entry)
                try write(["-delete", "-alias", root.entry], left.isEmpty ? .last : .further)
            }
        }
    }

    private func write(_ arguments: [String], _ purpose: Purpose, input: [UInt8] = []) throws(CountersignError) {
        let program = try layout.script(
            Self.script, [place, purpose.rawValue] + words(arguments), asRoot: !isWritable)
        try program.succeed(input: Array("\(Self.password)\n".utf8) + input)
    }

    private func run(_ arguments: [String]) throws(CountersignError) -> [UInt8] {
        var helper = layout.helper(try words(arguments))
        helper.environment["COUNTERSIGN_STOREPASS"] = Self.password
        return try helper.succeed()
    }

    /// Half the time: by default a runtime prepares for work of hours. One that lacks an option ignores it.
    static let briefRun = [
        "-J-XX:+IgnoreUnrecognizedVMOptions", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC",
    ]

    private func words(_ arguments: [String]) throws(CountersignError) -> [String] {
        guard let keytool else { throw CountersignError(.environment, "keytool is not installed") }
        return [keytool, "-J-Duser.language=en", "-J-Duser.country=US"] + Self.briefRun + arguments
            + ["-storepass:env", "COUNTERSIGN_STOREPASS"]
    }
}

extension String {
    /// The parts that begin after each `marker` at the start of a line, up to the next marker.
    fileprivate func components(after marker: String) -> [Substring] {
        var parts: [Substring] = []
        var start: Substring.Index?
        for line in split(whereSeparator: \.isNewline) where line.hasPrefix(marker) {
            if let start { parts.append(self[start..<line.startIndex]) }
            start = line.index(line.startIndex, offsetBy: marker.count)
        }
        if let start { parts.append(self[start...]) }
        return parts
    }
}
