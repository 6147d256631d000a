// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `test` and `exec` name the real cause, and the command that helps against it.
@Suite(.waiting) struct AdviceTests {
    private let sandbox: Sandbox
    private let server: ChildProcess
    private let port: String

    init() throws {
        sandbox = try Sandbox()
        server = try ChildProcess(
            try Tool.path("python3"), [Tool.server("challenges.py")], capture: sandbox.folder.file("server"))
        port = try server.line(after: "port ")
    }

    private var site: String { "http://localhost:\(port)" }
    private var parent: String { "http://127.0.0.1:\(port)" }

    private struct Shown: Decodable, Equatable {
        let route: String
        let next: String
        let error: String?
        let ok: Bool
    }

    private func test(_ arguments: String) throws -> (status: Int32, shown: Shown) {
        let result = try sandbox.sh("countersign test --json \(arguments)")
        let shown = try JSONDecoder().decode(Shown.self, from: Data(result.output.utf8))
        return (result.status, shown)
    }

    private func enrol(_ name: String = "enrollment", _ password: String = "wrong") throws {
        try sandbox.succeed(
            "credential", "set", name, "--user", "ACME\\jdoe", "--password-stdin", input: "\(password)\n")
    }

    // MARK: Parents

    @Test func theParentIsTheCauseBeforeTheSite() throws {
        try sandbox.succeed("sites", "add", "https://other.example")
        let listing = "`countersign sites add proxy://127.0.0.1:\(port) plaintext=yes`"
        for url in ["https://git.example/", "http://git.example/"] {
            var found = try test("--parent \(parent) \(url)")
            #expect(found.status == 1 && found.shown.next == listing, "\(found)")
            #expect(found.shown.route == "\(parent) (--parent)")
            try sandbox.succeed("sites", "add", "proxy://127.0.0.1:\(port)", "plaintext=yes", "credential=corp")
            found = try test("--parent \(parent) \(url)")
            #expect(found.shown.next == "`countersign credential set corp --user USER`", "\(found)")
            try enrol("corp", url)
            found = try test("--parent \(parent) \(url)")
            let right = "`countersign credential set corp --user 'ACME\\jdoe'` with the right password"
            #expect(found.status == 1 && found.shown.next == right, "\(found)")
            found = try test("--parent \(parent) \(url)")
            #expect(
                found.shown.next == "\(right), or `countersign credential retry corp` permits an attempt", "\(found)")
            try sandbox.succeed("sites", "remove", "proxy://127.0.0.1:\(port)")
            try sandbox.succeed("credential", "remove", "corp")
        }
    }

    @Test func execNamesTheParent() throws {
        try sandbox.succeed("sites", "add", "proxy://127.0.0.1:\(port)", "plaintext=yes")
        let done = try sandbox.sh(
            "countersign exec --parent \(parent) -- curl -sf -o /dev/null https://git.example/")
        #expect(
            done.error
                == "countersign: warning: proxy://127.0.0.1:\(port): no credential \"enrollment\" is enrolled: "
                + "`countersign credential set --user USER`\n", "\(done.said)")
    }

    @Test func aParentThatRefusesOrDoesNotAnswerIsNamed() throws {
        try sandbox.succeed("sites", "add", "https://other.example")
        var found = try test("--parent \(parent) https://refused.example/")
        #expect(found.status == 1)
        #expect(found.shown.next == "the parent proxy 127.0.0.1:\(port) refuses: ask its administrator")
        found = try test("--parent http://127.0.0.1:1 https://git.example/")
        #expect(
            found.shown.next
                == "the parent proxy 127.0.0.1:1 gave no answer: check its name and port, with "
                + "`countersign route https://git.example/`")
    }

    @Test func withoutAParentTheRouteIsDirect() throws {
        #expect(try test("\(site)/open").shown.route == "direct")
        let found = try test("https://no-such-host.invalid/")
        #expect(
            found.shown.next
                == "the name was not found: check it, and whether a parent proxy is needed (--parent)", "\(found)")
    }

    // MARK: The home

    @Test func aPausedHomeIsNoEmptyList() throws {
        try sandbox.succeed("pause")
        let done = try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/basic")
        let paused = "integrated authentication is switched off; run `countersign resume`"
        #expect(
            done.error == "countersign: warning: \(paused)\ncountersign: warning: \(site): \(paused)\n")
        let found = try test("\(site)/basic")
        #expect(found.status == 1 && found.shown.next == "`countersign resume`", "\(found)")
        #expect(try sandbox.sh("countersign explain \(site)").output.contains("\nnext         `countersign resume`\n"))
    }

    @Test func aRejectedPasswordIsSetForTheSameUser() throws {
        try sandbox.succeed("sites", "add", site, "plaintext=yes", "answer=basic")
        try enrol()
        #expect(
            try test("\(site)/basic").shown.next
                == "`countersign credential set --user 'ACME\\jdoe'` with the right password")
    }

    // MARK: Bearer

    @Test func aTokenIsNotAnsweredOverHTTPWhateverTheListSays() throws {
        try sandbox.succeed("sites", "add", "https://other.example")
        #expect(try test("\(site)/bearer").shown.next == "use https://localhost, if the site has that")
        try sandbox.succeed("sites", "add", site, "plaintext=yes")
        #expect(try test("\(site)/bearer").shown.next == "use https://localhost, if the site has that")
    }

    @Test func theClientOfARegistryLogsInItself() throws {
        try sandbox.succeed("sites", "add", "https://other.example")
        let advice = "the client itself gets a token for it from https://auth.example: log in with the client"
        #expect(try test("\(site)/registry").shown.next == advice)
        // The client may have got its token all the same.
        let done = try sandbox.sh("countersign exec -- curl -s -o /dev/null \(site)/registry")
        #expect(done.status == 0 && done.error.isEmpty, "\(done.said)")
        let failed = try sandbox.sh("countersign exec -- curl -sf -o /dev/null \(site)/registry")
        #expect(failed.error == "countersign: warning: \(site): not on the list: \(advice)\n", "\(failed.said)")
    }

    // MARK: Libraries

    @Test func theMissingLibrarysPackageIsNamed() throws {
        let libraries = try TemporaryFolder("libraries")
        _ = try libraries.write("libcurl.so.4", "no library")
        let found = try test("\(site)/open; true").shown
        #expect(found.ok)
        let result = try sandbox.sh("LD_LIBRARY_PATH=\(libraries.path) countersign test \(site)/open")
        #expect(result.status == 1)
        #expect(result.output.contains("install the package libcurl4"), "\(result.said)")
    }

    // MARK: Client certificates

    /// A site that says only with a 400 that it wants a certificate.
    @Test func aClientCertificateThatIsMissingExpiredOrOfAnotherIssuerIsNamed() throws {
        let nginx = try NginxOrigin()
        let site = "https://none.test.localhost:\(nginx.mutual13Port)"
        let pki = try TestPKI.shared
        try sandbox.succeed("trust", "anchor", "add", pki.originAnchor)
        try sandbox.succeed("sites", "add", site, "answer=certificate")
        var found = try test("\(site)/who")
        #expect(found.status == 1 && !found.shown.ok)
        #expect(found.shown.next == "`countersign certificate import FILE` adds one", "\(found)")
        let old = try sandbox.folder.write(
            "old.pem",
            TextFile.text(Tool.fixture("client-expired.pem")) + TextFile.text(Tool.fixture("client-expired.key.pem")))
        try sandbox.succeed("certificate", "import", old, "--name", "old")
        found = try test("\(site)/who")
        #expect(found.status == 1)
        #expect(
            found.shown.next
                == "`countersign certificate refresh old` renews it, or `countersign certificate import FILE --name old "
                + "--replace` replaces it", "\(found)")
        try sandbox.succeed("certificate", "remove", "old")
        try sandbox.succeed(
            "certificate", "import", Tool.fixture("client-b.p12"), "--name", "other", "--password-stdin",
            input: "fixture\n")
        found = try test("\(site)/who")
        #expect(found.status == 1)
        #expect(
            found.shown.next
                == "`countersign certificate list` lists them, or `countersign certificate import FILE` adds one",
            "\(found)")
    }
}
