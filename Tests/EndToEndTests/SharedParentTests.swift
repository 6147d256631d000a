// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// Connections to a parent that NTLM authenticates serve all client connections of one user.
@Suite(.waiting) struct SharedParentTests {
    private let user: Countersign
    private let squid: SquidParent
    private let origins: [ChallengingOrigin]
    /// Each event loop has its own connections, and the first of them is challenged twice.
    private let challenges = 2 * min(ProcessInfo.processInfo.activeProcessorCount, 8)

    init() throws {
        user = try Countersign()
        squid = try SquidParent(.ntlm(boundTo: nil))
        origins = try (0..<2).map { _ in
            try ChallengingOrigin(.open, certificate: nil, user: "x", password: "y")
        }
        try user.enroll(SquidParent.user, password: SquidParent.password, name: "corp")
        try user.allow("proxy://127.0.0.1:\(squid.port) credential=corp domain=ACME plaintext=yes")
    }

    private func serve() throws -> RunningProxy {
        try RunningProxy(user, ["--no-proxy", "<-loopback>", "--parent", "http://127.0.0.1:\(squid.port)"])
    }

    private var refused: Int { squid.logged("GET").count { $0.hasPrefix("407 ") } }

    @Test func twentyClientConnectionsNeedOneHandshake() throws {
        let proxy = try serve()
        for number in 0..<20 {
            let shown = try proxy.get("http://127.0.0.1:\(origins[number % 2].port)/bytes/\(number)")
            #expect(shown.status == 200 && shown.body.count == number, "\(shown.said)")
        }
        let logged = squid.logged("GET")
        #expect(logged.count { $0.hasPrefix("200 ") && $0.hasSuffix(" jdoe") } == 20, "\(logged)")
        #expect((2...challenges).contains(refused), "\(logged)")
    }

    /// A connection that was authenticated with the password of before is not used again.
    @Test func anotherPasswordNeedsAnotherHandshake() throws {
        let proxy = try serve()
        let url = "http://127.0.0.1:\(origins[0].port)/bytes/1"
        for _ in 0..<4 { #expect(try proxy.get(url).status == 200) }
        try user.enroll(SquidParent.user, password: "wrong", name: "corp")
        #expect(poll { (try? proxy.get(url))?.status == 407 ? true : nil } == true)
        for _ in 0..<4 { #expect(try proxy.get(url).status == 407) }
    }

    @Test func aLineThatIsGoneEndsTheSharing() throws {
        let proxy = try serve()
        let url = "http://127.0.0.1:\(origins[0].port)/bytes/1"
        for _ in 0..<4 { #expect(try proxy.get(url).status == 200) }
        try user.writeSites("")
        #expect(poll { (try? proxy.get(url))?.status == 407 ? true : nil } == true)
        for _ in 0..<4 { #expect(try proxy.get(url).status == 407) }
    }
}
