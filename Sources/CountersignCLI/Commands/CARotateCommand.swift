// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CountersignCertificates
import Countersign
import FoundationEssentials
import Glibc

extension CACommand {
    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate",
            abstract: "Make a new CA in the place of the old one, which vouches for nothing from then on.",
            discussion: """
                The new root, its issuing certificate and their keys take the place of the old ones in one step; a running server \
                takes them up within a second or two. `countersign exec` and `env` know the new root by themselves; trust stores, \
                and programs that were given the old one by `ca export`, have to be told.

                EXAMPLES:
                  countersign ca rotate
                  countersign ca rotate --yes && countersign ca uninstall --yes && countersign ca install --yes
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption

        @Flag(help: "Do not ask.")
        var yes = false

        func run() throws {
            let home = try homeOption.located()
            let store = InterceptionStore(home: home)
            let confirmation = Confirmation(isGiven: yes)
            try confirmation.check()
            if let old = try store.root() {
                Console.result("\(old.subject)\n\(old.fingerprintText)\nwill vouch for nothing any more.\n")
            }
            guard try confirmation.asks("Make a new interception CA?") else {
                throw CountersignError(.refused, "nothing was written")
            }
            let door = VaultDoor(home: home, secrets: secrets.input)
            let hosts = InterceptionStore.hosts(of: try home.sites())
            let authority = try store.rotate(for: hosts, in: try door.openOrCreate(), at: Int64(time(nil)))
            try ClientTrust(home: home, door: door).writeBundle()
            Console.result("\(authority.root.subject)\n\(authority.root.fingerprintText)\nis the new root.\n")
            try tell(of: authority.root, in: home)
        }

        private func tell(of root: Certificate, in home: Home) throws {
            let layout = try StoreLayout.ofThisMachine(
                environment: ProcessInfo.processInfo.environment, hasTerminal: false)
            let places = TrustInstaller(home: home, layout: layout).places(withRootsBesides: root)
            guard !places.isEmpty else {
                Console.result("No trust store of this machine has an old one.\n")
                return
            }
            Console.result("An old one is still trusted by\n")
            Console.result(TextTable(rows: places.map { ["  \($0.kind.rawValue)", $0.place] }).text)
            Console.result("Run `countersign ca uninstall`, then `countersign ca install`.\n")
        }
    }
}
