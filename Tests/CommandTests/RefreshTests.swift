// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

/// `certificate refresh` and `needs-refresh`.
@Suite(.waiting) struct RefreshTests {
    private func enrolled(_ control: [String: any Sendable] = [:]) throws -> EnrolledSandbox {
        let place = try EnrolledSandbox(control)
        let result = try place.enroll()
        try #require(result.status == 0, "\(result.said)")
        return place
    }

    @Test func identityAuthenticatesItsRefreshAndGetsANewKey() throws {
        let place = try enrolled()
        let before = try place.leaf()
        let asked = place.server.log.count
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output.hasPrefix("identity \"laptop\" refreshed: CN=jdoe, valid until "))
        #expect(try place.isVerified())
        #expect(try place.leaf().publicKeyDER != before.publicKeyDER)
        let requests = place.server.log.dropFirst(asked)
        #expect(
            requests.allSatisfy { $0.authorization == "" && $0.client == "CN=jdoe" && $0.operation != "simpleenroll" })
        #expect(requests.contains { $0.operation == "simplereenroll" })
    }

    @Test func refreshRemovesTheTemporaryFilesOfKilledWriters() throws {
        let place = try enrolled()
        let abandoned = try place.sandbox.folder.write("home/Certs/identities/laptop.pem.4711.1.new", "x")
        try #require(abandoned == "\(place.chainPath()).4711.1.new")
        let inRoot = try place.sandbox.folder.write("home/breaker.4711.1.new", "x")
        #expect(try place.refresh("laptop").status == 0)
        #expect(access(abandoned, F_OK) != 0 && access(inRoot, F_OK) != 0)
    }

    @Test func reuseKeyKeepsTheKey() throws {
        let place = try enrolled()
        let before = try place.leaf()
        #expect(try place.refresh("laptop", "--reuse-key").status == 0)
        #expect(try place.leaf().publicKeyDER == before.publicKeyDER)
        #expect(try place.leaf() != before)
    }

    @Test func oldCertificateIsKeptUntilTheNewOneIsAccepted() throws {
        let place = try enrolled()
        let first = try place.leaf()
        #expect(try place.refresh("laptop").status == 0)
        let kept = try #require(try place.vault.contents.enrollments["laptop"]?.previous)
        #expect(kept.chain.first == first.der)
        // The second certificate has now authenticated a request.
        let second = try place.leaf()
        #expect(try place.refresh("laptop").status == 0)
        #expect(try place.vault.contents.enrollments["laptop"]?.previous?.chain.first == second.der)
    }

    @Test func revokedCertificateIsReplacedUsingTheCredential() throws {
        let place = try enrolled()
        let before = try place.leaf()
        try place.control(["revoked": [before.serialNumberHex]])
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf() != before && place.isVerified())
        #expect(place.server.requests("simplereenroll").isEmpty)
        #expect(place.server.log.contains { $0.handshake != nil })
    }

    @Test func keyThatTheServerCannotUseIsReplacedUsingTheCredential() throws {
        let place = try EnrolledSandbox()
        let enrolled = try place.enroll("--key", "ec-p384")
        try #require(enrolled.status == 0, "\(enrolled.said)")
        let before = try place.leaf()
        try place.control(["tls": "1.2", "curve": "prime256v1"])
        let result = try place.refresh("laptop")
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.leaf() != before && place.isVerified())
        #expect(place.server.requests("simplereenroll").isEmpty)
        // Without the credential, the identity is kept.
        try place.sandbox.succeed("credential", "remove", "enrollment")
        let next = try place.refresh("laptop")
        #expect(next.status == 1 && next.error.contains("illegal parameter"), "\(next.said)")
        #expect(next.error.contains("countersign: hint: enrol it again with a credential"), "\(next.said)")
        #expect(try place.identity() != nil)
    }

    /// The server ends the handshake with "handshake failure" or "illegal parameter" if the new certificate is
    /// presented, although it accepts the present one.
    @Test(arguments: [40, 47])
    func certificateThatTheServerCannotUseIsNotInstalled(alert: Int) throws {
        let place = try enrolled()
        let before = try place.leaf()
        try place.control(["tls": "1.2", "alert": alert, "alertUnless": [before.serialNumberHex]])
        for attempt in 1...2 as ClosedRange<UInt32> {
            let result = try place.refresh("laptop")
            #expect(result.status == 1, "\(result.said)")
            #expect(result.error.contains("does not accept the certificate that it issued"), "\(result.said)")
            #expect(try place.leaf() == before && place.identity()?.leaf == before)
            #expect(try place.vault.contents.pendingEnrollments["laptop"]?.attempts == attempt)
        }
        #expect(place.server.requests("simplereenroll").count == 1)
        try place.control()
        #expect(try place.refresh("laptop").status == 0)
        #expect(try place.leaf() != before && place.isVerified())
    }

    /// The identity to be replaced works elsewhere, even if this server does not accept it.
    @Test func replacementThatTheServerCannotUseIsNotInstalled() throws {
        let place = try enrolled()
        let before = try place.leaf()
        try place.control(["tls": "1.2", "curve": "prime256v1"])
        let result = try place.enroll("--replace", "--key", "ec-p384")
        #expect(result.status == 1, "\(result.said)")
        #expect(result.error.contains("does not accept the certificate that it issued"), "\(result.said)")
        #expect(try place.leaf() == before && place.identity()?.leaf == before)
    }

    @Test(arguments: ["1.2", "1.3"])
    func serverThatClosesAtTheCertificateGetsTheCredential(version: String) throws {
        let place = try enrolled()
        let before = try place.leaf()
        try place.control(["tls": version, "hangsUp": true])
        let result = try place.refresh("laptop", "--no-wait")
        // The credential has obtained a certificate, which the server does not accept in the test either.
        #expect(result.status == 1, "\(result.said)")
        #expect(place.server.requests("simpleenroll").count { $0.user != nil } == 2)
        try place.control()
        #expect(try place.refresh("laptop").status == 0)
        #expect(place.server.requests("simpleenroll").count { $0.user != nil } == 2)
        #expect(try place.leaf() != before)
        // Without a credential that can be used, the reason is the lost connection.
        try place.sandbox.succeed("credential", "remove", "enrollment")
        try place.control(["tls": version, "hangsUp": true])
        let next = try place.refresh("laptop")
        #expect(next.status == 1 && next.error.contains("the server may have refused it"), "\(next.said)")
    }

    @Test func revokedCertificateWithoutACredentialIsKeptWithAHint() throws {
        let place = try enrolled()
        let before = try place.leaf()
        try place.sandbox.succeed("credential", "remove", "enrollment")
        try place.control(["revoked": [before.serialNumberHex]])
        let result = try place.refresh("laptop")
        #expect(result.status == 1)
        #expect(result.error.contains("countersign: hint: "), "\(result.said)")
        #expect(try place.leaf() == before)
        #expect(try place.identity() != nil)
    }

    @Test(arguments: ["missing", "junk", "cut", "another's"])
    func damagedChainFileIsRestoredWithoutTheServer(damage: String) throws {
        let place = try enrolled()
        let whole = TextFile.bytes(place.chainPath())
        let damaged: [UInt8]
        switch damage {
        case "junk": damaged = Array("hello\n".utf8)
        case "cut": damaged = Array(whole.prefix(whole.count / 3))
        case "another's": damaged = TextFile.bytes(place.server.certificate("server"))
        default: damaged = []
        }
        if damage == "missing" {
            unlink(place.chainPath())
        } else {
            try Data(damaged).write(to: URL(fileURLWithPath: place.chainPath()))
        }
        // The vault has a copy, so the identity still works.
        #expect(try place.identity() != nil)
        #expect(try place.needsRefresh("laptop").status == 0)
        let asked = place.server.log.count
        let result = try place.refresh()
        #expect(result.output == "identity \"laptop\": chain file restored\n", "\(result.said)")
        #expect(TextFile.bytes(place.chainPath()) == whole)
        #expect(place.server.log.count == asked)
        #expect(try place.needsRefresh("laptop").status == 1)
    }

    @Test func lostKeyIsReplacedUsingTheCredential() throws {
        let place = try enrolled()
        try place.vault.update { _ = $0.removeIdentityKey(named: "laptop") }
        #expect(try place.needsRefresh("laptop").status == 0)
        let result = try place.refresh()
        #expect(result.status == 0, "\(result.said)")
        #expect(try place.identity() != nil && place.isVerified())
    }

    // MARK: Selection

    @Test func withoutANameOnlyDueIdentitiesAreRefreshed() throws {
        let place = try enrolled()
        #expect(try place.enroll(name: "young").status == 0)
        #expect(try place.refresh().output == "nothing is due\n")
        try place.control(Self.late)
        #expect(try place.refresh("laptop").status == 0)
        let (old, young) = (try place.leaf(), try place.leaf("young"))
        #expect(try place.needsRefresh().output.contains("laptop: yes, since "))
        #expect(try place.needsRefresh("young").status == 1)
        try place.control()
        let result = try place.refresh()
        #expect(result.output.hasPrefix("identity \"laptop\" refreshed") && !result.output.contains("young"))
        #expect(try place.leaf() != old)
        #expect(try place.leaf("young") == young)
    }

    /// The server issues a certificate that is past three quarters of its lifetime.
    static var late: [String: any Sendable] { dates(from: -30, to: 10) }

    static func dates(from: Double, to: Double) -> [String: any Sendable] {
        func text(_ days: Double) -> String {
            let parts = Calendar(identifier: .gregorian).dateComponents(
                in: TimeZone(secondsFromGMT: 0) ?? .current, from: Date(timeIntervalSinceNow: days * 86_400))
            return String(
                format: "%04d%02d%02d%02d%02d%02dZ", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0, parts.hour ?? 0,
                parts.minute ?? 0, parts.second ?? 0)
        }
        return ["notBefore": text(from), "notAfter": text(to)]
    }

    @Test func oneFailureDoesNotStopTheOthers() throws {
        let place = try enrolled(Self.late)
        let other = try ESTServer(#"{"auth": "basic", "clientCertificate": "optional"}"#)
        let enrolled = try place.sandbox.countersign(
            "certificate", "enroll", "gone", "--est", other.address(), "--anchor", other.certificate("ca"))
        try #require(enrolled.status == 0, "\(enrolled.said)")
        unlink(place.chainPath("gone"))
        try place.vault.update { _ = $0.removeIdentityKey(named: "gone") }
        other.stop()
        try place.control()
        let result = try place.refresh()
        #expect(result.status == 1)
        #expect(result.error.contains("countersign: error: identity \"gone\": "), "\(result.said)")
        #expect(result.output.hasPrefix("identity \"laptop\" refreshed"))
    }

    @Test func importedIdentityCannotBeRefreshed() throws {
        let place = try EnrolledSandbox()
        try place.sandbox.succeed(
            "certificate", "import", "\(Tool.repository)/Certs/dev/pki/client-a.p12", "--name", "file",
            "--password-stdin",
            input: "fixture\n")
        let result = try place.refresh("file")
        #expect(result.status == 1)
        #expect(result.error.contains("has no server; it was imported"), "\(result.said)")
        #expect(try place.refresh().output == "nothing is due\n")
        #expect(try place.refresh("nobody").error.contains("there is no identity \"nobody\""))
    }

    @Test func removedIdentityLeavesNothingBehind() throws {
        let place = try enrolled()
        try place.sandbox.succeed("certificate", "remove", "laptop")
        #expect(try place.hasNothing())
        #expect(try place.needsRefresh("laptop").status == 2)
    }

    // MARK: Due dates

    @Test(arguments: [(0, 1), (18, 1), (22, 0), (31, 0)] as [(Int, Int32)])
    func identityIsDueAfterTwoThirdsOfItsLifetime(days: Int, status: Int32) throws {
        let place = try enrolled()
        let result = try place.certificate("needs-refresh", "laptop", daysAhead: days)
        #expect(result.status == status, "\(result.said)")
        let all = try place.certificate("needs-refresh", "--json", daysAhead: days)
        #expect(all.status == status)
        #expect(all.output.contains("\"needsRefresh\" : \(status == 0)"))
    }

    @Test func expiredCertificateIsReplacedUsingTheCredential() throws {
        let place = try enrolled()
        try place.control(Self.dates(from: 0, to: 90))
        let result = try place.certificate("refresh", daysAhead: 40)
        #expect(result.status == 0, "\(result.said)")
        #expect(place.server.requests("simplereenroll").isEmpty)
        #expect(place.server.requests("simpleenroll").last?.user == ESTServer.user)
        #expect(try place.isVerified())
    }

    // MARK: Concurrency

    @Test func concurrentRefreshesAreOne() throws {
        let place = try enrolled()
        let result = try place.sandbox.sh(
            "countersign certificate refresh laptop & countersign certificate refresh laptop & wait $! && wait")
        #expect(result.status == 0, "\(result.said)")
        #expect(result.output.split(separator: "\n").count == 2)
        #expect(Set(result.output.split(separator: "\n")).count == 1)
        // The second may start after the first has finished.
        let said = "another process is renewing identity \"laptop\""
        #expect(result.error.isEmpty || result.error.contains(said), "\(result.said)")
        #expect(place.server.requests("simplereenroll").count == 1)
    }

    /// This refresh was due before the other one had finished.
    @Test func refreshRightAfterAnotherUsesItsResult() async throws {
        let place = try enrolled()
        let renewals = [try renewal(place), try renewal(place)]
        #expect(try place.refresh("laptop").status == 0)
        let leaf = try place.leaf()
        #expect(try await renewals[0].refresh("laptop") == .renewed(leaf))
        #expect(try await renewals[1].refreshIfUnlocked("laptop") == .renewed(leaf))
        #expect(place.server.requests("simplereenroll").count == 1)
    }

    @Test func noWaitDoesNotWaitForAnotherProcess() async throws {
        let place = try enrolled()
        let file = open("\(place.sandbox.home)/run/refresh-laptop.lock", O_RDWR)
        try #require(flock(file, LOCK_EX) == 0)
        let result = try place.refresh("laptop", "--no-wait")
        #expect(result.status == 1 && result.error.contains("another process"), "\(result.said)")
        #expect(try await renewal(place).refreshIfUnlocked("laptop", patience: .milliseconds(150)) == nil)
        // Children that other tests are starting may hold a copy of the descriptor.
        flock(file, LOCK_UN)
        close(file)
        let free = try place.refresh("laptop", "--no-wait")
        #expect(free.status == 0, "\(free.said)")
    }

    /// Like a child between fork and exec.
    @Test func lockEndsWithItsHolderDespiteACopiedDescriptor() throws {
        let sandbox = try Sandbox()
        let home = Home(path: sandbox.home)
        var lock = try RenewalLock.acquireIfFree("laptop", of: home)
        let path = "\(sandbox.home)/run/refresh-laptop.lock"
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }
        let held = try #require(
            descriptors.first {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == path
            })
        let copy = dup(held)
        defer { close(copy) }
        #expect(try RenewalLock.acquireIfFree("laptop", of: home) == nil && lock != nil)
        lock = nil
        #expect(try RenewalLock.acquireIfFree("laptop", of: home) != nil)
    }

    /// A cancelled refresh has no result for the processes that wait.
    @Test func cancelledRefreshGivesWaitersNoResult() async throws {
        let place = try enrolled(["retryAfter": "60"])
        try place.control(["pending": 1, "retryAfter": "60"])
        let (waiting, isWaiting) = AsyncStream.makeStream(of: Void.self)
        let renewal = try renewal(place) { if case .waiting = $0 { isWaiting.yield() } }
        let task = Task { try await renewal.refresh("laptop") }
        for await _ in waiting { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(TextFile.text("\(place.sandbox.home)/run/refresh-laptop.lock").isEmpty)
        #expect(try place.vault.contents.enrollments["laptop"]?.failures == 0)
    }

    private func renewal(
        _ place: EnrolledSandbox, _ report: @escaping @Sendable (IdentityRenewal.Progress) -> Void = { _ in }
    ) throws -> IdentityRenewal {
        IdentityRenewal(
            home: Home(path: place.sandbox.home), vault: try place.vault,
            now: { Int64(Date().timeIntervalSince1970) }, report: report)
    }

    @Test func waitersShareTheFailure() throws {
        let place = try enrolled()
        try place.control(["fault": "500", "faultFor": "simplereenroll"])
        let result = try place.sandbox.sh(
            "countersign certificate refresh laptop & "
                + "countersign certificate refresh laptop; code=$?; wait $! || exit $code"
        )
        #expect(result.status == 1, "\(result.said)")
        #expect(place.server.requests("simplereenroll").count == 1)
        #expect(result.error.split(separator: "\n").count { $0.contains("error: ") } == 2)
    }
}
