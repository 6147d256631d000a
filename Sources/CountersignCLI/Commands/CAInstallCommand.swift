// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import Countersign
import FoundationEssentials

extension CACommand {
    struct Install: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install",
            abstract:
                "Put the CA's root into trust stores, for programs that `countersign exec` and `env` do not reach.",
            discussion: """
                Says what it will write and where, asks, does it, and looks whether it is in force. What is there already is left \
                as it is. The entry is called countersign-HOME-ROOT, after the home's path and the root's fingerprint.

                system: the anchors of Debian, Fedora, Arch or SUSE; as root, or through sudo. nss: the databases of Firefox \
                (also as a snap or Flatpak) and Chromium, by certutil. java: the cacerts of JAVA_HOME, of java in the path and of \
                /usr/lib/jvm, by keytool. Without --store: all that are found.

                EXAMPLES:
                  countersign ca install
                  countersign ca install --store nss --store java --yes
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @OptionGroup var stores: StoreOptions

        func run() throws {
            let home = try homeOption.located()
            let confirmation = Confirmation(isGiven: stores.yes)
            if try InterceptionStore(home: home).root() == nil { try confirmation.check() }
            let root = try ClientTrust(home: home, door: VaultDoor(home: home, secrets: secrets.input)).root()
            try TrustStoreRun(home: home, stores: stores, verb: .install).run(.present(root), root: root)
        }
    }

    struct Uninstall: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "uninstall",
            abstract: "Take the CA's root, and earlier roots of this home, out of the trust stores again.",
            discussion: """
                Takes out the certificate with the root's fingerprint, whatever it is called there, and those that `ca install` put \
                in for this home's path before `ca rotate`. It works without the home's files, too. Nothing else is touched.

                EXAMPLES:
                  countersign ca uninstall
                  countersign ca uninstall --store system --yes
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var stores: StoreOptions

        func run() throws {
            let home = try homeOption.located()
            let root = try InterceptionStore(home: home).root()
            try TrustStoreRun(home: home, stores: stores, verb: .uninstall).run(.absent(root), root: root)
        }
    }
}

/// `--store` and `--yes`.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("system, nss or java; may be repeated. Default: every one that is found.", valueName: "kind")
    )
    var store: [TrustStoreKind] = []

    @Flag(help: "Do not ask.")
    var yes = false
}

extension TrustStoreKind: ExpressibleByArgument {}

/// One run of `ca install` or `ca uninstall`: says, asks, does, reports.
struct TrustStoreRun {
    enum Verb {
        case install
        case uninstall

        var question: String { self == .install ? "Install it?" : "Take it out?" }
        var done: String { self == .install ? "installed" : "taken out" }
        var asWanted: String { self == .install ? "already there" : "not there" }
    }

    let home: Home
    let stores: StoreOptions
    let verb: Verb

    func run(_ goal: TrustInstaller.Goal, root: Certificate?) throws {
        let confirmation = Confirmation(isGiven: stores.yes)
        let layout = try StoreLayout.ofThisMachine(
            environment: ProcessInfo.processInfo.environment, hasTerminal: Confirmation.hasTerminal)
        let installer = TrustInstaller(home: home, layout: layout)
        let steps = installer.steps(to: goal, in: stores.store)
        let writes = steps.compactMap { step -> [String]? in
            guard case .write(let clause) = step.plan else { return nil }
            return ["  \(step.kind.rawValue)", clause]
        }
        if !writes.isEmpty {
            if let root { Console.result("\(root.subject)\n\(root.fingerprintText)\n") }
            Console.result(TextTable(rows: writes).text)
            guard try confirmation.asks(verb.question) else {
                throw CountersignError(.refused, "nothing was written")
            }
        }
        var hasFailed = false
        for step in steps where !report(step, installer.perform(step, to: goal)) { hasFailed = true }
        if steps.isEmpty { Console.result("no trust store was found\n") }
        if hasFailed { throw ExitCode.failure }
    }

    /// Whether it is as it was asked for.
    private func report(_ step: TrustInstaller.Step, _ outcome: TrustInstaller.Outcome) -> Bool {
        let place = step.place.isEmpty ? "" : " \(step.place)"
        switch outcome {
        case .done:
            Console.result("\(step.kind.rawValue)\(place): \(verb.done)\n")
        case .asWanted:
            Console.result("\(step.kind.rawValue)\(place): \(verb.asWanted)\n")
        case .failed(let diagnostic):
            let diagnostic = Diagnostic("\(step.kind.rawValue): \(diagnostic.message)", hint: diagnostic.hint)
            if case .unknown = step.plan, stores.store.isEmpty {
                Console.warning(diagnostic.message, hint: diagnostic.hint)
                return true
            }
            Console.error(diagnostic)
            return false
        }
        return true
    }
}
