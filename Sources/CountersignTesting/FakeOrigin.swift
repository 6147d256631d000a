// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignDemo
public import FoundationEssentials
import Glibc
import NIOPosix

/// An https site on the loopback interface that challenges, with a certificate of its own.
public final class FakeOrigin: Sendable {
    /// How the site challenges.
    public enum Challenge: Hashable, Sendable {
        /// It does not.
        case none
        /// Basic (RFC 7617).
        case basic
        /// NTLM with extended protection.
        case ntlm
        /// It requires a client certificate, such as ``FakeOrigin/identity``: without one, the response is a 403.
        case clientCertificate
        /// Basic, on a server whose certificate does not verify: ``FakeOrigin/anchor`` is not its issuer's.
        case untrusted
    }

    /// The user name and password that sites accept.
    public static let user = "jdoe"
    /// The password that sites accept.
    public static let password = "correct horse"

    /// The site as the list of sites writes it: `https://basic.demo.localhost:40123`.
    public let url: URL
    /// The port on 127.0.0.1.
    public let port: Int
    /// The host, a name below `localhost`.
    public let host: String
    /// The certification authority that verifies the site, unless it is untrusted.
    public let anchor: X509Certificate
    /// A client certificate with its key, which the site accepts: a PEM file for
    /// `HomeManager.importIdentity(_:password:name:replacing:)`.
    public let identity: Data
    private let server: DemoServer

    /// Starts a site. Throws if the system refuses a socket.
    public static func start(_ challenge: Challenge) async throws -> FakeOrigin {
        let now = Int64(time(nil))
        let certificates = try DemoCertificates(named: "fake", at: now)
        let kind: DemoSite.Kind =
            switch challenge {
            case .none: .open
            case .basic: .basic
            case .ntlm: .ntlm
            case .clientCertificate: .cert
            case .untrusted: .untrusted
            }
        let account = PasswordCredential(
            name: "enrollment", user: user, password: Secret(utf8: password), source: .supplied(0))
        let site = try certificates.site(kind, account: account, at: now) { _ in nil }
        let server = try await DemoServer.start(site, group: MultiThreadedEventLoopGroup.singleton)
        return try FakeOrigin(server, certificates)
    }

    private init(_ server: DemoServer, _ certificates: DemoCertificates) throws {
        self.server = server
        port = server.port
        guard let url = URL(string: server.origin), let host = url.host() else {
            throw ChallengeError(.valueFaulty, "\(server.origin) is not a URL")
        }
        self.url = url
        self.host = host
        anchor = try X509Certificate(Data(certificates.sites.root.der))
        let key = try certificates.identity.key.pkcs8.withBytes { Base64.encodeLines($0) }
        let pem = "-----BEGIN PRIVATE KEY-----\n\(key)-----END PRIVATE KEY-----\n"
        identity = Data((certificates.identity.chain.map(\.pem).joined() + pem).utf8)
    }

    /// Closes the listening socket.
    public func stop() async { await server.stop() }
}
