// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignClientSetup
import CountersignHome
import CountersignReporting
import FoundationEssentials

/// `countersign ca install`.
struct CAInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Add the CA's root to trust stores, for programs that `countersign exec` and `env` do not reach.",
        discussion: """
            Shows the changes, asks for confirmation, makes them and verifies the result. Leaves existing entries \
            alone. The entry is named countersign-HOME-ROOT, after the home's path and the root's fingerprint.

            system: the system's trust anchors on Debian, Fedora, Arch or SUSE; needs root or sudo.
            nss: the databases of Firefox (including the snap and Flatpak packages) and Chromium; needs certutil.
            java: the cacerts file of $JAVA_HOME, of the java in $PATH and of those in /usr/lib/jvm; needs keytool.

            EXAMPLES:
              countersign ca install
              countersign ca install --store nss --store java --yes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var stores: StoreOptions

    func run() throws {
        let home = try homeOption.locatedOrNew()
        let confirmation = Confirmation(isGiven: stores.yes)
        if try InterceptionStore(home: home).root() == nil { try confirmation.check() }
        let root = try ClientTrust(home: home, access: VaultAccess(home: home, secrets: secrets.input)).root()
        try TrustStoreChange(home: home, stores: stores, verb: .install).run(.present(root), root: root)
    }
}

/// `countersign ca uninstall`.
struct CAUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Remove the CA's root, and earlier roots of this home, from the trust stores.",
        discussion: """
            Removes the certificate that has the root's fingerprint, whatever its entry is named, and the roots that \
            `ca install` added for this home's path before a `ca rotate`. Works even if the home's files are gone. \
            Leaves all other entries alone. Puts back the original files of a database or keystore, or removes the \
            database that `ca install` created, if it is certain that nothing else has changed it since. A browser \
            that runs meanwhile may change its database at any time, so only the root is removed from it.

            EXAMPLES:
              countersign ca uninstall
              countersign ca uninstall --store system --yes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var stores: StoreOptions

    func run() throws {
        let home = try homeOption.locatedOrNew()
        let root = try InterceptionStore(home: home).root()
        try TrustStoreChange(home: home, stores: stores, verb: .uninstall).run(.absent(root), root: root)
    }
}

/// `--store` and `--yes`.
struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("Change only this store; may be repeated. (default: all stores found)", valueName: "kind")
    )
    var store: [TrustStoreKind] = []

    @Flag(help: "Do not ask for confirmation.")
    var yes = false
}

extension TrustStoreKind: ExpressibleByArgument {}

/// One run of `ca install` or `ca uninstall`: shows the changes, asks for confirmation, makes them and reports the
/// results.
struct TrustStoreChange {
    enum Verb {
        case install
        case uninstall

        var question: String { self == .install ? "Install it?" : "Remove it?" }
        var done: String { self == .install ? "installed" : "removed" }
        var unchanged: String { self == .install ? "already installed" : "not installed" }
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
                throw CountersignError(.refused, "not confirmed; nothing was written")
            }
        }
        var hasFailed = false
        for step in steps where !report(step, installer.perform(step, to: goal)) { hasFailed = true }
        if steps.isEmpty { Console.result("no trust store was found\n") }
        if hasFailed { throw ExitCode.failure }
    }

    /// Whether the store is in the requested state.
    private func report(_ step: TrustInstaller.Step, _ outcome: TrustInstaller.Outcome) -> Bool {
        let place = step.place.isEmpty ? "" : " \(step.place)"
        switch outcome {
        case .done:
            Console.result("\(step.kind.rawValue)\(place): \(verb.done)\n")
        case .unchanged:
            Console.result("\(step.kind.rawValue)\(place): \(verb.unchanged)\n")
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
