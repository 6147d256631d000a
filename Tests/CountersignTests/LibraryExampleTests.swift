// SPDX-License-Identifier: Apache-2.0

import Foundation
import CountersignTestOrigin
import Testing

@testable import Countersign

/// The `fetch` example, which drives an exchange by hand, over plain http and TLS.
@Suite(.waiting) struct LibraryExampleTests {
    /// The example in COUNTERSIGN_EXAMPLES, or beside this test bundle, where Scripts/test builds it.
    static func program(_ name: String) throws -> String {
        let folder = ProcessInfo.processInfo.environment["COUNTERSIGN_EXAMPLES"] ?? LibrarySymbolsTests.products
        guard access("\(folder)/\(name)", X_OK) == 0 else {
            throw HarnessError(
                "no example \"\(name)\" in \"\(folder)\": run Scripts/test, or "
                    + "swift build --package-path Examples --scratch-path .build"
            )
        }
        return "\(folder)/\(name)"
    }

    private static func run(_ home: LibraryHome, _ url: String) throws -> CommandResult {
        try Command.run(try program("fetch"), [home.path, url], in: home.folder)
    }

    @Test(arguments: [
        (ChallengingOrigin.Mode.basic, "jdoe"), (.ntlm, "ACME\\jdoe"), (.negotiate, "ACME\\jdoe"), (.open, "jdoe"),
    ])
    func itFetchesFromEachKindOfSite(_ mode: ChallengingOrigin.Mode, _ user: String) throws {
        let origin = try ChallengingOrigin(mode, certificate: nil, user: user, password: LibraryHome.password)
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let site = "http://127.0.0.1:\(origin.port)"
        let options = mode == .basic ? " answer=basic" : mode == .open ? "" : " domain=ACME"
        let home = try LibraryHome("\(site) plaintext=yes\(options)\n")
        let result = try Self.run(home, "\(site)/file")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output == "a file\n")
    }

    // MARK: Over TLS

    /// Fetches an https URL with a home that lists its site, and trusts the test origins' CA if `isAnchored`.
    private static func run(
        https url: String, _ line: String = "", identities: [String] = [], isAnchored: Bool = true
    ) throws -> CommandResult {
        let site = url.split(separator: "/", omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
        return try run(
            try LibraryHome(
                "\(site) \(line)\n", identities: identities,
                anchors: isAnchored ? [try TestPKI.shared.originAnchor] : []),
            url)
    }

    /// A certificate signed with SHA-384 results in a different channel binding.
    @Test(
        arguments: [
            (ChallengingOrigin.Mode.basic, "jdoe"), (.ntlm, "ACME\\jdoe"), (.negotiate, "ACME\\jdoe"), (.open, "jdoe"),
        ], ["server", "server-sha384"])
    func itFetchesOverTLS(_ site: (mode: ChallengingOrigin.Mode, user: String), _ certificate: String) throws {
        let origin = try ChallengingOrigin(
            site.mode, certificate: certificate, user: site.user, password: LibraryHome.password)
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let result = try Self.run(
            https: "https://site.test.localhost:\(origin.port)/file", site.user.hasPrefix("ACME") ? "domain=ACME" : "")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output == "a file\n")
    }

    @Test func itPresentsAClientCertificateWithEitherVersion() throws {
        let nginx = try LibraryOrigins.shared.nginx
        for (port, version) in [(nginx.mutual12Port, "TLSv1.2"), (nginx.mutual13Port, "TLSv1.3")] {
            let url = "https://cert.test.localhost:\(port)/who"
            let shown = try Self.run(https: url, identities: ["laptop"])
            #expect(shown.output == "\(version) CN=laptop,O=Test\n", "\(shown.said)")
            // The list does not permit a certificate there, which the server reports.
            let without = try Self.run(https: url, "answer=basic", identities: ["laptop"])
            #expect(without.output.contains("No required SSL certificate was sent"), "\(without.said)")
        }
    }

    @Test func anUnverifiedServerIsRefusedAndAtFault() throws {
        let origin = try ChallengingOrigin(.basic, user: "jdoe", password: LibraryHome.password)
        let url = "https://site.test.localhost:\(origin.port)/file"
        let refused = try Self.run(https: url, isAnchored: false)
        #expect(refused.status == 1)
        #expect(refused.output == "")
        #expect(
            refused.error.contains("fetch: https://site.test.localhost:\(origin.port) is not trusted: "),
            "\(refused.said)")
        #expect(refused.error.contains("the server's certificate is at fault"))
        #expect(origin.log.requests.isEmpty)
        let plain = try ChallengingOrigin(.basic, certificate: nil, user: "jdoe", password: LibraryHome.password)
        let spoken = try Self.run(https: "https://site.test.localhost:\(plain.port)/")
        #expect(spoken.status == 1)
        #expect(spoken.error.hasPrefix("fetch: https://site.test.localhost:\(plain.port): "), "\(spoken.said)")
    }

    @Test(arguments: [
        "gopher://127.0.0.1/", "https://", "https://127.0.0.1:0/", "https://127.0.0.1:70000/", "https://a b/",
    ])
    func aURLWithoutASiteIsRefused(_ url: String) throws {
        let result = try Self.run(try LibraryHome(""), url)
        #expect(result.status == 1)
        #expect(result.error.hasPrefix("fetch: ") && result.error.split(separator: "\n").count == 1, "\(result.said)")
    }

    /// Threads of the library that are still at work then would use memory that OpenSSL has freed. A preloaded library
    /// registers its function first, so the program calls it last.
    @Test func openSSLIsUsableUntilTheProgramEnds() throws {
        let home = try LibraryHome("")
        let library = home.folder.file("last.so")
        let source = try home.folder.write(
            "last.c",
            #"""
            #define _GNU_SOURCE
            #include <dlfcn.h>
            #include <stdint.h>
            #include <stdlib.h>
            #include <string.h>
            #include <unistd.h>
            static void last(void) {
                int (*initialise)(uint64_t, void *) = dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
                const char *word = initialise && initialise(0x40000, 0) ? "usable" : "gone";
                (void)!write(2, word, strlen(word));
            }
            __attribute__((constructor)) static void first(void) { atexit(last); }
            """#)
        let compiled = try Command.run(
            try Tool.path("gcc"), ["-shared", "-fPIC", "-o", library, source], in: home.folder)
        try #require(compiled.status == 0, "\(compiled.said)")
        let result = try Command.run(
            try Self.program("fetch"), [home.path, "https://"], environment: ["LD_PRELOAD": library], in: home.folder)
        #expect(result.status == 1 && result.error.contains("usable"), "\(result.said)")
    }

    // MARK: Challenges that are not answered

    @Test func itReportsWhyAChallengeIsNotAnswered() throws {
        let origin = try ChallengingOrigin(.basic, certificate: nil, user: "jdoe", password: LibraryHome.password)
        let site = "http://127.0.0.1:\(origin.port)"
        for (sites, word) in [("", "no site is listed"), ("\(site)\n", "plaintext=yes")] {
            let result = try Self.run(try LibraryHome(sites), "\(site)/file")
            #expect(result.status != 0)
            #expect(result.error.contains(word), "\(result.said)")
            #expect(!result.error.contains(LibraryHome.password))
        }
        let home = try LibraryHome(
            "\(site) answer=basic plaintext=yes\n", credentials: ["enrollment": ("jdoe", "wrong")])
        let rejected = try Self.run(home, "\(site)/file")
        #expect(rejected.status != 0)
        #expect(rejected.error.contains("rejected the credential"), "\(rejected.said)")
    }

    // MARK: A delegate of URLSession

    @Test func aDelegateOfTheAppAnswersBasic() async throws {
        let origin = try ChallengingOrigin(
            .basic, certificate: nil, user: LibraryHome.user, password: LibraryHome.password)
        try Data("a file\n".utf8).write(to: URL(fileURLWithPath: "\(origin.root)/file"))
        let site = "http://basic.test.localhost:\(origin.port)"
        let home = try LibraryHome("\(site) answer=basic plaintext=yes\n")
        // An outcome that is not stored before the program exits stops the answers after the second run.
        for _ in 0..<4 {
            let program = try Self.program("delegate")
            let result = try await Command.detached {
                try Command.run(program, [home.path, "\(site)/file"], in: home.folder)
            }
            #expect(result.status == 0 && result.output == "a file\n", "\(result.said)")
        }
        #expect(origin.log.requests(path: "/file").suffix(2).map(\.auth) == [nil, "basic"])
    }

    @Test func aDelegateOfTheAppSaysWhyItDoesNotAnswer() throws {
        let origin = try ChallengingOrigin(
            .basic, certificate: nil, user: LibraryHome.user, password: LibraryHome.password)
        let site = "http://basic.test.localhost:\(origin.port)"
        let home = try LibraryHome("\(site)\n")
        let result = try Command.run(
            try Self.program("delegate"), [home.path, "\(site)/file"], in: home.folder)
        #expect(result.status == 1)
        #expect(result.error.hasPrefix("delegate: ") && result.error.contains("test.sites:1"), "\(result.said)")
        #expect(origin.log.requests(path: "/file").map(\.auth) == [nil])
    }
}
