// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import CountersignRevocation

/// The requests, their number, and the remembered results. The documents are made by openssl; nothing is sent.
struct RevocationServiceTests {
    private let authority: OpenSSLAuthority
    private let clock = Clock()
    private let network = Network()

    private final class Clock: Sendable {
        private let time: Mutex<Int64>

        init() { time = Mutex(Int64(Date().timeIntervalSince1970)) }

        var now: Int64 { time.withLock { $0 } }

        func pass(_ seconds: Int64) { time.withLock { $0 += seconds } }
    }

    /// The documents by their URLs, and the fetches.
    private final class Network: Sendable {
        private struct State {
            var replies: [String: Result<[UInt8], FetchFault>] = [:]
            var fetches: [String] = []
            var isHeld = false
        }

        private let state = Mutex(State())

        var fetches: [String] { state.withLock { $0.fetches } }

        func set(_ url: String, _ reply: Result<[UInt8], FetchFault>) { state.withLock { $0.replies[url] = reply } }

        func hold(_ isHeld: Bool) { state.withLock { $0.isHeld = isHeld } }

        func fetch(_ fetch: StatusFetch) -> Result<[UInt8], FetchFault> {
            let reply = state.withLock { state in
                state.fetches.append(fetch.target.url)
                return state.replies[fetch.target.url] ?? .failure(.status(404))
            }
            while state.withLock({ $0.isHeld }) { usleep(1_000) }
            return reply
        }
    }

    private final class Store: Sendable {
        private let files = Mutex<[String: [UInt8]]>([:])

        var count: Int { files.withLock { $0.count } }

        func alter(_ change: @Sendable ([UInt8]) -> [UInt8]) { files.withLock { $0 = $0.mapValues(change) } }

        var storage: RevocationStorage {
            RevocationStorage(
                read: { [self] name in files.withLock { $0[name] } },
                write: { [self] name, bytes in files.withLock { $0[name] = bytes } })
        }
    }

    init() throws {
        authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("responder", of: "root", OpenSSLAuthority.responder)
        try authority.make("leaf", of: "root", OpenSSLAuthority.server)
        try authority.make("other", of: "root", OpenSSLAuthority.server)
    }

    private static let ocsp = "http://ocsp.example/"
    private static let crl = "http://crl.example/root.crl"

    private func certificate(_ name: String) throws -> Certificate {
        try #require(try Certificate.readPEM(authority.bytes("\(name).pem")).first)
    }

    private func question(
        _ name: String = "leaf", _ points: [RevocationPoint] = [.responder(url: ocsp), .list(url: crl)]
    ) throws -> RevocationQuestion {
        RevocationQuestion(
            certificate: try certificate(name), issuer: try certificate("root"), points: points, isOfLeaf: true,
            isBelowOwnAnchor: false)
    }

    private func service(_ storage: RevocationStorage = .none) -> RevocationService {
        RevocationService(storage: storage, now: { [clock] in clock.now }, fetch: { [network] in network.fetch($0) })
    }

    private func learn(
        _ service: RevocationService, _ questions: [RevocationQuestion], patience: Duration = .seconds(600)
    ) async {
        await withCheckedContinuation { continuation in
            service.learn(questions, patience: patience) { continuation.resume() }
        }
    }

    private func finding(_ service: RevocationService, _ name: String = "leaf") throws -> CertificateStatus.Finding? {
        guard let status = service.status(of: try certificate(name), by: try certificate("root")),
            status.validity.contains(clock.now)
        else { return nil }
        return status.finding
    }

    private func response(about name: String = "leaf", _ flags: [String] = ["-ndays", "1"]) throws -> [UInt8] {
        try authority.makeResponse("\(name).der", about: name, of: "root", signedBy: "responder", flags: flags)
    }

    private func list(days: Double = 1) throws -> [UInt8] {
        let format = DateFormatter()
        format.timeZone = TimeZone(identifier: "UTC")
        format.locale = Locale(identifier: "en_US_POSIX")
        format.dateFormat = "yyyyMMddHHmmss'Z'"
        let now = Date(timeIntervalSince1970: TimeInterval(clock.now))
        return try authority.makeList(
            "root.crl", of: "root", from: format.string(from: now.addingTimeInterval(-60)),
            until: format.string(from: now.addingTimeInterval(days * 86_400)))
    }

    @Test func theResponderIsAskedFirstAndTheListIfItFails() async throws {
        network.set(Self.ocsp, .success(try response()))
        let first = service()
        await learn(first, [try question()])
        #expect(try finding(first) == .good && network.fetches == [Self.ocsp])
        network.set(Self.ocsp, .failure(.timedOut(seconds: 5)))
        network.set(Self.crl, .success(try list()))
        let second = service()
        await learn(second, [try question()])
        #expect(try finding(second) == .good)
        #expect(network.fetches == [Self.ocsp, Self.ocsp, Self.crl])
        let source = second.status(of: try certificate("leaf"), by: try certificate("root"))?.source
        #expect(source == .distributedList(url: Self.crl))
    }

    @Test func aStatusIsUsedUntilItsDocumentExpires() async throws {
        network.set(Self.ocsp, .success(try response(about: "leaf", ["-nmin", "60"])))
        let service = service()
        await learn(service, [try question()])
        clock.pass(3_600 + 200)
        await learn(service, [try question()])
        #expect(try finding(service) == .good && network.fetches.count == 1)
        clock.pass(200)
        #expect(try finding(service) == nil)
        await learn(service, [try question()])
        #expect(network.fetches.count == 3, "the responder and the list are asked again")
    }

    @Test func aDocumentIsNotUsedForMoreThanAWeek() async throws {
        network.set(Self.ocsp, .success(try response(about: "leaf", ["-ndays", "300"])))
        let service = service()
        await learn(service, [try question()])
        clock.pass(7 * 86_400)
        #expect(try finding(service) == .good)
        clock.pass(1)
        #expect(try finding(service) == nil)
    }

    @Test func aResponseWithoutNextUpdateIsUsedForAnHour() async throws {
        network.set(Self.ocsp, .success(try response(about: "leaf", [])))
        let service = service()
        await learn(service, [try question()])
        clock.pass(3_600)
        #expect(try finding(service) == .good)
        clock.pass(1)
        #expect(try finding(service) == nil)
    }

    @Test func aFailureIsRememberedForAMinute() async throws {
        let service = service()
        let before = service.version
        await learn(service, [try question()])
        let text =
            "OCSP responder http://ocsp.example/ answered with the status 404, "
            + "revocation list http://crl.example/root.crl answered with the status 404"
        #expect(try finding(service) == .unknown(text) && service.version > before)
        clock.pass(59)
        await learn(service, [try question()])
        #expect(network.fetches.count == 2)
        clock.pass(1)
        network.set(Self.ocsp, .success(try response()))
        await learn(service, [try question()])
        #expect(try finding(service) == .good)
    }

    @Test func aDocumentIsFetchedOnceForAllWhoAskAtTheSameTime() async throws {
        network.set(Self.crl, .success(try list()))
        network.hold(true)
        let service = service()
        let questions = try ["leaf", "other"].map { try question($0, [.list(url: Self.crl)]) }
        async let waits: Void = withTaskGroup(of: Void.self) { group in
            for index in 0..<20 { group.addTask { await learn(service, [questions[index % 2]]) } }
        }
        while network.fetches.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
        network.hold(false)
        await waits
        #expect(network.fetches == [Self.crl])
        #expect(try finding(service) == .good && finding(service, "other") == .good)
    }

    @Test func patienceCountsFromTheFirstQuestion() async throws {
        network.hold(true)
        network.set(Self.ocsp, .success(try response()))
        let service = service()
        let started = ContinuousClock.now
        await learn(service, [try question()], patience: .milliseconds(200))
        #expect(ContinuousClock.now - started >= .milliseconds(200))
        let isDone = Mutex(false)
        service.learn([try question()], patience: .milliseconds(200)) { isDone.withLock { $0 = true } }
        #expect(isDone.withLock { $0 }, "at once")
        #expect(try finding(service) == nil)
        network.hold(false)
        await learn(service, [try question()], patience: .seconds(600))
        #expect(try finding(service) == .good)
        #expect(network.fetches.count == 1)
    }

    @Test func whoWaitsIsReleasedAtTheEnd() async throws {
        network.hold(true)
        let service = service()
        let released = Mutex(0)
        service.learn([try question()], patience: .seconds(60)) { released.withLock { $0 += 1 } }
        #expect(released.withLock { $0 } == 0)
        service.finishWaiting()
        #expect(released.withLock { $0 } == 1)
        network.hold(false)
        await learn(service, [try question()])
        #expect(released.withLock { $0 } == 1, "only once")
    }

    @Test func aRevokedCertificateIsFoundInBothKinds() async throws {
        try authority.revoke("leaf", of: "root", because: "keyCompromise")
        network.set(Self.ocsp, .success(try response()))
        network.set(Self.crl, .success(try list()))
        for point in [RevocationPoint.responder(url: Self.ocsp), .list(url: Self.crl)] {
            let service = service()
            await learn(service, [try question("leaf", [point])])
            guard case .revoked(let entry)? = try finding(service) else {
                return #expect(Bool(false), "\(point)")
            }
            #expect(entry.reason == .keyCompromise && entry.date != nil)
        }
    }

    @Test(arguments: [[], [0x30], [0x30, 0x03, 0x0A, 0x01, 0x06]] as [[UInt8]])
    func anotherDocumentLeavesTheStatusUnknown(bytes: [UInt8]) async throws {
        network.set(Self.ocsp, .success(bytes))
        network.set(Self.crl, .success(bytes))
        let service = service()
        await learn(service, [try question()])
        guard case .unknown(let why)? = try finding(service) else { return #expect(Bool(false), "no finding") }
        #expect(why.contains("OCSP responder http://ocsp.example/ is not usable: "), "\(why)")
        #expect(why.contains("revocation list http://crl.example/root.crl is not usable: no"), "\(why)")
    }

    @Test(arguments: [
        "http://user@crl.example/", "http://user:secret@crl.example/", "http://crl.example:0/", "http://[::1",
        "http://",
        "http://crl.example:22/", "http://crl.example:443/", "http://crl.example:6667/", "http://2130706433/",
        "http://127.1/", "http://0x7f.1/", "http://crl.example%2f/", "http://[fe80::1%25eth0]/", "https://crl.example/",
    ])
    func aURLWithTricksIsNotFetched(url: String) async throws {
        let service = service()
        await learn(service, [try question("leaf", [.list(url: url)])])
        #expect(network.fetches.isEmpty)
        guard case .unknown(let why)? = try finding(service) else { return #expect(Bool(false), "no finding") }
        #expect(why.hasPrefix("revocation list \(url) was not asked: "), "\(why)")
    }

    // MARK: Storage

    @Test func aStoredDocumentServesTheNextProcess() async throws {
        let store = Store()
        network.set(Self.ocsp, .success(try response()))
        network.set(Self.crl, .success(try list()))
        for point in [RevocationPoint.responder(url: Self.ocsp), .list(url: Self.crl)] {
            for _ in 0..<2 {
                let service = service(store.storage)
                await learn(service, [try question("leaf", [point])])
                #expect(try finding(service) == .good)
            }
        }
        #expect(network.fetches == [Self.ocsp, Self.crl] && store.count == 2)
    }

    @Test func aStoredDocumentIsVerifiedAndItsAgeIsLimited() async throws {
        let store = Store()
        network.set(Self.crl, .success(try list(days: 100)))
        let question = try question("leaf", [.list(url: Self.crl)])
        await learn(service(store.storage), [question])
        clock.pass(7 * 86_400 + 1)
        await learn(service(store.storage), [question])
        #expect(network.fetches.count == 2, "too old")
        clock.pass(-3 * 86_400)
        await learn(service(store.storage), [question])
        #expect(network.fetches.count == 3, "from the future")
        store.alter { bytes in
            var bytes = bytes
            bytes[bytes.count / 2] ^= 1
            return bytes
        }
        let service = service(store.storage)
        await learn(service, [question])
        #expect(try finding(service) == .good && network.fetches.count == 4, "altered")
    }

    @Test func aDocumentThatDoesNotCountIsNotStored() async throws {
        let store = Store()
        try authority.make("stranger", of: "stranger", OpenSSLAuthority.responder)
        network.set(
            Self.ocsp,
            .success(try authority.makeResponse("x.der", about: "leaf", of: "root", signedBy: "stranger")))
        network.set(Self.crl, .success([1]))
        let service = service(store.storage)
        await learn(service, [try question()])
        guard case .unknown(let why)? = try finding(service) else { return #expect(Bool(false), "no finding") }
        #expect(why.contains("not signed by the issuer or a responder that it has authorised"), "\(why)")
        #expect(store.count == 0)
    }

    // MARK: The queue

    /// Fetches from one slow origin occupy two threads, so that others are not delayed.
    @Test func aSlowOriginDoesNotDelayOthers() async throws {
        let queue = FetchQueue()
        let gate = DispatchSemaphore(value: 0)
        let slow = Mutex(0)
        for _ in 0..<20 {
            #expect(
                queue.submit(host: "slow") {
                    slow.withLock { $0 += 1 }
                    gate.wait()
                })
        }
        await withCheckedContinuation { continuation in
            _ = queue.submit(host: "fast") { continuation.resume() }
        }
        #expect(slow.withLock { $0 } <= FetchQueue.threadLimitPerHost)
        for _ in 0..<20 { gate.signal() }
    }

    @Test func theQueueIsBounded() throws {
        let queue = FetchQueue()
        let gate = DispatchSemaphore(value: 0)
        let accepted = (0..<400).filter { _ in queue.submit(host: "slow") { gate.wait() } }
        let limit = FetchQueue.waitingLimit
        #expect((limit...limit + FetchQueue.threadLimitPerHost).contains(accepted.count))
        for _ in accepted { gate.signal() }
    }
}
