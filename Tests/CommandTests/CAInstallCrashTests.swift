// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `ca install` and `ca uninstall` killed at each of their changes to the folder of an NSS database.
@Suite(.waiting) struct CAInstallCrashTests {
    private let sandbox: Sandbox
    private let place = ".pki/nssdb"

    init() throws {
        sandbox = try Sandbox()
        let anchor = Tool.fixture("client-a-root.pem")
        let made = try sandbox.sh(
            """
            mkdir -p \(place) && certutil -N --empty-password -d sql:\(place) \
            && certutil -A -n mine -t C,, -a -i '\(anchor)' -d sql:\(place)
            """)
        guard made.status == 0 else { throw HarnessError(made.said) }
    }

    private func list() throws -> String { try sandbox.sh("certutil -L -d sql:\(place)").output }

    private func bytes() -> [UInt8] { TextFile.bytes(sandbox.folder.file("\(place)/cert9.db")) }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: sandbox.folder.file(place)).sorted()
    }

    /// The database is complete without the root, and another cycle restores it byte for byte.
    private func check(_ text: String) throws {
        try sandbox.succeed("ca", "uninstall", "--store", "nss", "--yes")
        #expect(try list().contains("mine") && !list().contains("countersign-"), "\(text)")
        #expect(try names() == ["cert9.db", "key4.db", "pkcs11.txt"], "\(text)")
        let before = bytes()
        try sandbox.succeed("ca", "install", "--store", "nss", "--yes")
        #expect(try list().contains("mine") && list().contains("countersign-"), "\(text)")
        try sandbox.succeed("ca", "uninstall", "--store", "nss", "--yes")
        #expect(bytes() == before, "\(text)")
    }

    @Test(arguments: ["install", "uninstall"], ["renameat2", "renameat", "unlinkat", "mkdirat", "fchmod"])
    func aKilledCommandLosesNothing(command: String, call: String) throws {
        try sandbox.succeed("ca", "install", "--store", "nss", "--yes")
        try sandbox.succeed("ca", "uninstall", "--store", "nss", "--yes")
        var kills = 0
        for count in 1...30 {
            if command == "uninstall" { try sandbox.succeed("ca", "install", "--store", "nss", "--yes") }
            let arguments = ["ca", command, "--store", "nss", "--yes"]
            guard try sandbox.callsUnlessKilled(at: call, count, arguments) == nil else { break }
            kills += 1
            try check("\(command), \(call) \(count)")
        }
        #expect(kills < 30)
        if command == "install" { #expect(kills > 0) }
    }
}
