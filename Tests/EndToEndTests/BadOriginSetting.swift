// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation

/// Servers for all bad origins, and a user whose list contains them and who could answer their challenges.
final class BadOriginSetting: Sendable {
    private static let made = Result { try BadOriginSetting() }

    static var shared: BadOriginSetting { get throws { try made.get() } }

    let origins: ChainOrigins
    let user: Countersign
    let proxy: RunningProxy
    private let chains: [String: ChainOrigins.Chain]

    private init() throws {
        user = try Self.makeUser()
        let own = try Self.intercepted(BadOrigin.intercepted.host, by: user)
        let control = ChainOrigins.Chain(
            BadOrigin.control.name, certificate: Tool.fixture("bad-expired.pem"),
            key: Tool.fixture("bad-expired.key.pem"))
        let served = BadOrigin.all.map { $0.name == BadOrigin.intercepted.name ? own : $0.fixture } + [control]
        chains = Dictionary(uniqueKeysWithValues: served.map { ($0.name, $0) })
        origins = try ChainOrigins(served, user: Countersign.user, password: Countersign.password)
        try user.writeSites(try Self.list(origins))
        proxy = try user.serve()
    }

    /// A user who trusts the origins' root with its revocation list, and has a password and a client certificate.
    static func makeUser() throws -> Countersign {
        let user = try Countersign(anchors: [Tool.fixture("origin-root.pem")])
        try user.folder.write(
            "home/Certs/anchors/list.pem", TextFile.bytes(Tool.fixture("origin-root.crl.pem")))
        try user.enroll()
        try user.importIdentity("laptop")
        return user
    }

    static func list(_ origins: ChainOrigins) throws -> String {
        try (BadOrigin.all + [.control]).map {
            "https://\($0.host):\(try origins.port($0.name)) answer=basic,certificate\n"
        }.joined()
    }

    func chain(_ origin: BadOrigin) throws -> ChainOrigins.Chain {
        guard let chain = chains[origin.name] else { throw HarnessError("no chain \"\(origin.name)\"") }
        return chain
    }

    func place(_ origin: BadOrigin) throws -> String { "\(origin.host):\(try origins.port(origin.name))" }

    /// Another user with the same home, for checking that trust decisions are per user.
    func twin() throws -> Countersign {
        let twin = try Countersign(anchors: [])
        let copied = try Command.run(
            Tool.path("sh"), ["-c", "mkdir \"$1\" && cp -rp \"$0\"/[!r]* \"$1\"", user.home, twin.home], in: twin.folder
        )
        guard copied.status == 0 else { throw HarnessError("cannot copy the home: \(copied.said)") }
        return twin
    }

    /// The origin's log entries with this query, and those without a request line. Waits until there are `count`,
    /// because nginx logs a request after responding.
    func logged(_ origin: BadOrigin, _ query: String, atLeast count: Int = 0) throws -> [LoggedRequest] {
        func now() throws -> [LoggedRequest] {
            try origins.logged(origin.name, query: query) + origins.logged(origin.name, query: "")
        }
        return try poll { () -> [LoggedRequest]? in
            let logged = try now()
            return logged.count >= count ? logged : nil
        } ?? now()
    }

    /// Sends an absolute-form request and returns the whole response.
    func absolute(
        _ origin: BadOrigin, _ path: String, proxy port: Int, fields: String = ""
    ) throws -> String {
        let place = try place(origin)
        let connection = try RawConnection(port: port)
        try connection.send(
            "GET https://\(place)\(path) HTTP/1.1\r\nHost: \(place)\r\n\(fields)Connection: close\r\n\r\n")
        return connection.receive()
    }

    /// A chain for `host` issued by the user's own interception CA, whose root the user also has as a trust anchor.
    private static func intercepted(_ host: String, by user: Countersign) throws -> ChainOrigins.Chain {
        // The list's hosts; the ports are not known yet.
        try user.writeSites(Set((BadOrigin.all + [.control]).map(\.host)).map { "https://\($0)\n" }.joined())
        let authority = try StolenCA.of(user)
        try user.folder.write("home/Certs/anchors/own.pem", authority.root.pem)
        let key = try PrivateKey.generateP256()
        let chain = try authority.mintLeaf(host: host, key: key, at: Int64(Date().timeIntervalSince1970))
        return ChainOrigins.Chain(
            BadOrigin.intercepted.name,
            certificate: try user.folder.write("own.pem", chain.map(\.pem).joined()),
            key: try user.folder.write("own.key.pem", try StolenCA.pem(key)))
    }
}
