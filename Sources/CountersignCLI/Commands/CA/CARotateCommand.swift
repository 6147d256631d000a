// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignClientSetup
import CountersignHome
import CountersignReporting
import FoundationEssentials
import Glibc

/// `countersign ca rotate`.
struct CARotateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Replace the CA with a new one.",
        discussion: """
            Replaces the root, the issuing certificate and their keys in one step; a running server uses the new CA \
            within a second or two. `countersign exec` and `env` use the new root automatically. Update trust stores \
            with `ca uninstall` and `ca install`, and export the root again for programs that use a copy.

            EXAMPLES:
              countersign ca rotate
              countersign ca rotate --yes && countersign ca uninstall --yes && countersign ca install --yes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Flag(help: "Do not ask for confirmation.")
    var yes = false

    func run() throws {
        let home = try homeOption.locatedOrNew()
        let store = InterceptionStore(home: home)
        let confirmation = Confirmation(isGiven: yes)
        try confirmation.check()
        if let old = try store.root() {
            Console.result("\(old.subject)\n\(old.fingerprintText)\nwill be replaced and no longer used.\n")
        }
        guard try confirmation.asks("Create a new interception CA?") else {
            throw CountersignError(.refused, "not confirmed; nothing was written")
        }
        let access = VaultAccess(home: home, secrets: secrets.input)
        // Reports a faulty list before it asks for the passphrase.
        _ = try home.sites()
        let root = try access.session(creates: true).perform(RotateAuthority())
        try ClientTrust(home: home, access: access).writeBundle()
        Console.result("\(root.subject)\n\(root.fingerprintText)\nis the new root.\n")
        try reportStores(without: root, in: home)
    }

    private func reportStores(without root: Certificate, in home: Home) throws {
        let layout = try StoreLayout.ofThisMachine(
            environment: ProcessInfo.processInfo.environment, hasTerminal: false)
        let places = TrustInstaller(home: home, layout: layout).places(withRootsBesides: root)
        guard !places.isEmpty else {
            Console.result("No trust store on this machine contains an old root.\n")
            return
        }
        Console.result("These trust stores still contain an old root:\n")
        Console.result(TextTable(rows: places.map { ["  \($0.kind.rawValue)", $0.place] }).text)
        Console.result("Run `countersign ca uninstall`, then `countersign ca install`.\n")
    }
}
