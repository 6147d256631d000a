// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignParents
import CountersignRouting
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignRevocation

/// libcurl against servers on loopback.
struct StatusFetchTests {
    private func fetch(
        _ url: String, request: [UInt8]? = nil, mayBeLocal: Bool = true, ownPorts: Set<UInt16> = []
    ) throws -> Result<[UInt8], FetchFault> {
        StatusFetch(target: try FetchTarget(url: url), request: request, mayBeLocal: mayBeLocal, ownPorts: ownPorts)
            .run()
    }

    @Test func aListIsFetchedWithAPlainGet() throws {
        let server = try StatusServer { _ in .body([1, 2, 3]) }
        let received = try fetch(server.url("/a.crl?x=1"))
        #expect(received == .success([1, 2, 3]), "\(received)")
        let request = try #require(server.requests.first)
        #expect(request.method == "GET" && request.path == "/a.crl?x=1" && request.body.isEmpty)
        let names = request.fields.compactMap { $0.split(separator: ":").first.map { $0.lowercased() } }
        #expect(Set(names) == ["host", "user-agent", "accept"], "\(request.fields)")
    }

    @Test func aParentIsAskedForNamesAndPublicAddressesOnly() throws {
        let parent = try StatusServer { _ in .body([6]) }
        let hop = NextHop.parent(
            ParentProxy(.http, try HostName(canonicalizing: "127.0.0.1", for: .forwarded), UInt16(parent.port)))
        func fetch(_ url: String, mayBeLocal: Bool) throws -> Result<[UInt8], FetchFault> {
            StatusFetch(
                target: try FetchTarget(url: url), request: nil, mayBeLocal: mayBeLocal, ownPorts: [],
                route: CurlRoute(hops: [hop])
            ).run()
        }
        #expect(try fetch("http://crl.corp.invalid/a.crl", mayBeLocal: false) == .success([6]))
        #expect(parent.requests.map(\.path) == ["http://crl.corp.invalid/a.crl"])
        for host in ["10.0.0.1", "[::1]", "127.0.0.1", "localhost"] {
            guard case .failure(.addressRefused) = try fetch("http://\(host)/", mayBeLocal: false) else {
                Issue.record("the parent was asked for \(host)")
                continue
            }
        }
        #expect(parent.requests.count == 1)
        #expect(try fetch("http://10.0.0.1/", mayBeLocal: true) == .success([6]))
    }

    @Test func aResponderGetsTheRequestInAPost() throws {
        let server = try StatusServer { _ in .body([4]) }
        #expect(try fetch(server.url("/"), request: [5, 0, 6]) == .success([4]))
        let request = try #require(server.requests.first)
        #expect(request.method == "POST" && request.body == [5, 0, 6])
        #expect(request.fields.contains("Content-Type: application/ocsp-request"))
        #expect(!request.fields.contains { $0.lowercased().hasPrefix("expect:") })
    }

    /// The same server, as a certificate below a public anchor names it.
    @Test(arguments: ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost"])
    func loopbackIsRefusedWithoutAnAnchorOfTheUser(host: String) throws {
        let server = try StatusServer { _ in .body([1]) }
        let refused = try fetch("http://\(host):\(server.port)/", mayBeLocal: false)
        guard case .failure(.addressRefused(let address)) = refused else {
            return #expect(Bool(false), "\(refused)")
        }
        #expect(["127.0.0.1", "::1"].contains(address), "\(address)")
        #expect(server.requests.isEmpty)
        #expect(
            FetchFault.addressRefused("127.0.0.1").text
                == "was not asked: 127.0.0.1 is not a public address of another machine, "
                + "and the trust anchor is not one of Certs/anchors")
    }

    @Test func aPortOfThisProxyIsRefused() throws {
        let server = try StatusServer { _ in .body([1]) }
        let refused = try fetch(server.url("/"), ownPorts: [UInt16(server.port)])
        #expect(refused == .failure(.ownPort(UInt16(server.port))) && server.requests.isEmpty)
    }

    @Test func aRedirectIsNotFollowed() throws {
        let other = try StatusServer { _ in .body([1]) }
        let server = try StatusServer { _ in .status(302, fields: ["Location: \(other.url("/"))"]) }
        let refused = try fetch(server.url("/"))
        #expect(refused == .failure(.status(302)) && other.requests.isEmpty)
        #expect(FetchFault.status(302).text == "answered with a redirect (302), which is not followed")
    }

    @Test(arguments: [401, 404, 500, 503]) func onlyTheStatus200Counts(status: Int) throws {
        let server = try StatusServer { _ in .status(status, fields: ["WWW-Authenticate: Basic realm=\"x\""]) }
        #expect(try fetch(server.url("/")) == .failure(.status(status)))
        #expect(server.requests.count == 1)
    }

    /// 50 MB, whether or not the server says so before.
    @Test(arguments: [true, false]) func aDocumentBeyondTheLimitIsRefused(announced: Bool) throws {
        let server = try StatusServer { _ in .large(50 << 20, announced: announced) }
        #expect(try fetch(server.url("/")) == .failure(.tooLarge(limitBytes: 20 << 20)))
        #expect(try fetch(server.url("/"), request: [1]) == .failure(.tooLarge(limitBytes: 64 << 10)))
        #expect(FetchFault.tooLarge(limitBytes: 20 << 20).text == "sent more than 20480 KiB")
        #expect(server.requests.map(\.method) == ["GET", "POST"])
    }

    @Test func aListUpToTheLimitArrives() throws {
        let server = try StatusServer { _ in .large(20 << 20, announced: false) }
        #expect(try fetch(server.url("/")).get().count == 20 << 20)
        #expect(server.requests.count == 1)
    }

    @Test func aSilentResponderIsGivenUp() throws {
        let server = try StatusServer { _ in .silence }
        let started = ContinuousClock.now
        #expect(try fetch(server.url("/"), request: [1]) == .failure(.timedOut(seconds: 5)))
        #expect(ContinuousClock.now - started >= .seconds(5) && server.requests.count == 1)
    }

    @Test func aClosedPortIsAFault() throws {
        let closed = try RefusingPort()
        let refused = try fetch("http://127.0.0.1:\(closed.number)/")
        guard case .failure(.failed) = refused else { return #expect(Bool(false), "\(refused)") }
    }

    /// No socket is opened, so it does not matter whether a server would answer.
    @Test(arguments: ["10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "[fd00::1]", "[fe80::1]"])
    func aPrivateAddressIsRefusedWithoutAnAnchorOfTheUser(host: String) throws {
        let address = host.trimmingCharacters(in: ["[", "]"])
        #expect(try fetch("http://\(host)/", mayBeLocal: false) == .failure(.addressRefused(address)))
    }

    /// A machine may have a public address.
    @Test func anAddressOfThisMachineIsRefusedWithoutAnAnchorOfTheUser() throws {
        func refusal(isOwn: Bool, mayBeLocal: Bool, port: UInt16 = 80) throws -> FetchFault? {
            let target = try FetchTarget(url: "http://crl.example/")
            return StatusFetch(target: target, request: nil, mayBeLocal: mayBeLocal, ownPorts: [8080])
                .refusal(of: [8, 8, 8, 8], port, isOwn: isOwn)
        }
        #expect(try refusal(isOwn: true, mayBeLocal: false) == .addressRefused("8.8.8.8"))
        #expect(try refusal(isOwn: false, mayBeLocal: false) == nil)
        #expect(try refusal(isOwn: true, mayBeLocal: true) == nil)
        #expect(try refusal(isOwn: true, mayBeLocal: true, port: 8080) == .ownPort(8080))
        #expect(try refusal(isOwn: false, mayBeLocal: true, port: 8080) == nil)
    }

    @Test func addressesOfThisMachineAreKnown() {
        #expect(LocalAddress.isOfThisMachine([127, 0, 0, 1]) && LocalAddress.isOfThisMachine([127, 1, 2, 3]))
        #expect(!LocalAddress.isOfThisMachine([8, 8, 8, 8]))
    }

    // MARK: The whole way

    /// A certificate, its root, the responder of `openssl ocsp`, and a service that asks it.
    @Test(arguments: [false, true]) func theResponderOfOpenSSLIsAsked(isRevoked: Bool) async throws {
        let authority = try OpenSSLAuthority()
        try authority.make("root", of: "root", OpenSSLAuthority.authority)
        try authority.make("responder", of: "root", OpenSSLAuthority.responder)
        let responder = try StatusServer.responder(authority, of: "root", signedBy: "responder")
        let url = responder.url("/")
        try authority.make("leaf", of: "root", OpenSSLAuthority.server + ["authorityInfoAccess=OCSP;URI:\(url)"])
        if isRevoked { try authority.revoke("leaf", of: "root", because: "superseded") }
        let leaf = try #require(try Certificate.readPEM(authority.bytes("leaf.pem")).first)
        let root = try #require(try Certificate.readPEM(authority.bytes("root.pem")).first)
        #expect(leaf.revocationPoints == [.responder(url: url)])
        let now = Int64(Date().timeIntervalSince1970)
        for mayBeLocal in [true, false] {
            let service = RevocationService(now: { now })
            let question = RevocationQuestion(
                certificate: leaf, issuer: root, points: leaf.revocationPoints, isOfLeaf: true,
                isBelowOwnAnchor: mayBeLocal)
            await withCheckedContinuation { continuation in
                service.learn([question], patience: .seconds(30)) { continuation.resume() }
            }
            let finding = try #require(service.status(of: leaf, by: root)?.finding)
            switch finding {
            case .good: #expect(mayBeLocal && !isRevoked)
            case .revoked(let entry): #expect(mayBeLocal && isRevoked && entry.reason == .superseded)
            case .unknown(let why): #expect(!mayBeLocal && why.contains("is not a public address"), "\(why)")
            }
        }
        #expect(responder.requests.count == 1)
    }
}
