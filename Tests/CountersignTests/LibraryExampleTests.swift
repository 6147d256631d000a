// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestOrigin
import Testing

@testable import Countersign

/// The fetcher of Examples, which drives an exchange by hand.
struct LibraryExampleTests {
    /// In COUNTERSIGN_EXAMPLES, or beside this test bundle, where Scripts/test builds it.
    private static var fetch: String {
        get throws {
            let folder = ProcessInfo.processInfo.environment["COUNTERSIGN_EXAMPLES"] ?? LibrarySymbolsTests.products
            guard access("\(folder)/fetch", X_OK) == 0 else {
                throw HarnessError(
                    "no example in \"\(folder)\": run Scripts/test, or swift build --package-path Examples --scratch-path .build"
                )
            }
            return "\(folder)/fetch"
        }
    }

    private static func run(_ home: LibraryHome, _ url: String) throws -> CommandResult {
        try Command.run(try fetch, [home.path, url], in: home.folder)
    }

    @Test(arguments: [
        (ChallengingOrigin.Mode.basic, "jdoe"), (.ntlm, "ACME\\jdoe"), (.negotiate, "ACME\\jdoe"), (.open, "jdoe"),
    ])
    func itFetchesWhatASiteOfEachKindHas(_ mode: ChallengingOrigin.Mode, _ user: String) throws {
        let origin = try ChallengingOrigin(mode, certificate: nil, user: user, password: LibraryHome.password)
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let site = "http://127.0.0.1:\(origin.port)"
        let domain = mode == .basic || mode == .open ? "" : " domain=ACME"
        let home = try LibraryHome("\(site) plaintext=yes\(domain)\n")
        let result = try Self.run(home, "\(site)/file")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output == "a file\n")
    }

    @Test func itSaysWhyAChallengeIsNotAnswered() throws {
        let origin = try ChallengingOrigin(.basic, certificate: nil, user: "jdoe", password: LibraryHome.password)
        let site = "http://127.0.0.1:\(origin.port)"
        for (sites, word) in [("", "not on the list"), ("\(site)\n", "plaintext=yes")] {
            let result = try Self.run(try LibraryHome(sites), "\(site)/file")
            #expect(result.status != 0)
            #expect(result.error.contains(word), "\(result.said)")
            #expect(!result.error.contains(LibraryHome.password))
        }
        let home = try LibraryHome("\(site) plaintext=yes\n", credentials: ["enrollment": ("jdoe", "wrong")])
        let rejected = try Self.run(home, "\(site)/file")
        #expect(rejected.status != 0)
        #expect(rejected.error.contains("did not take the credential"), "\(rejected.said)")
    }
}
