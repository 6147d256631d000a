// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCertificates
import CountersignHome
import CountersignVault
public import FoundationEssentials

/// A recorded decision to connect to a server although its certificate does not verify: for one host, one port and one
/// certificate.
public struct ServerTrustException: Equatable, Sendable {
    /// The host's canonical name, or its address without brackets.
    public let host: String
    /// The port.
    public let port: Int
    /// The certificate's SHA-256 fingerprint, as ``X509Certificate/fingerprint`` writes it.
    public let fingerprint: String
    /// The last second of the exception; nil if it does not end.
    public let expirationDate: Date?
    /// Whether challenges are answered, too. Otherwise requests are sent, and challenges go back to the client.
    public let answersChallenges: Bool
    /// When the decision was made.
    public let creationDate: Date

    /// Creates a value, for the tests of a program.
    public init(
        host: String, port: Int, fingerprint: String, expirationDate: Date? = nil, answersChallenges: Bool = false,
        creationDate: Date = .now
    ) {
        self.host = host
        self.port = port
        self.fingerprint = fingerprint
        self.expirationDate = expirationDate
        self.answersChallenges = answersChallenges
        self.creationDate = creationDate
    }

    init(_ record: TrustExceptionRecord) {
        self.init(
            host: record.host, port: Int(record.port), fingerprint: CertificateFingerprint.text(record.leafSHA256),
            expirationDate: record.until.map { Date(seconds: $0) }, answersChallenges: record.answers,
            creationDate: Date(seconds: record.made))
    }

    /// Whether it is still in effect at `date`.
    public func isInEffect(at date: Date = .now) -> Bool { expirationDate.map { date <= $0 } ?? true }
}

/// A trust anchor of a home, beside the system's.
public struct InstalledTrustAnchor: Equatable, Sendable {
    /// The CA's certificate.
    public let certificate: X509Certificate
    /// The file in the home: `Certs/anchors/corp.pem`.
    public let file: String
    /// Why it is weak, each as a clause for display; empty if it is not.
    public let weaknesses: [String]

    /// Creates a value, for the tests of a program.
    public init(certificate: X509Certificate, file: String, weaknesses: [String] = []) {
        self.certificate = certificate
        self.file = file
        self.weaknesses = weaknesses
    }

    init(_ entry: AnchorStore.Entry) {
        self.init(
            certificate: X509Certificate(entry.certificate), file: entry.file,
            weaknesses: entry.certificate.weaknessesAsAnchor)
    }
}

extension HomeManager {
    /// The trust exceptions, sorted by server, with those that have ended.
    public func trustExceptions() async throws -> [ServerTrustException] {
        try await onVault { try $0.perform(ListTrustExceptions()).map { ServerTrustException($0) } }
    }

    /// Records an exception, in place of one for the same host, port and certificate. `fingerprint` is the
    /// certificate's SHA-256 fingerprint, which a person has compared with the server owner's published one. Throws
    /// `valueFaulty` for a faulty host, port or fingerprint, or a date that has passed.
    @discardableResult
    public func allowServer(
        host: String, port: Int = 443, fingerprint: String, until end: Date? = nil, answeringChallenges answers: Bool
    ) async throws -> ServerTrustException {
        let now = ChallengeController.now()
        if let end, end.wholeSeconds < now {
            throw ChallengeError(.valueFaulty, "the end of the exception has passed", hint: "choose a later date")
        }
        return try await onVault(creates: true) { vault in
            let origin = try Self.origin(host, port)
            let record = TrustExceptionRecord(
                host: origin.host, port: origin.port, leafSHA256: try TrustedServer.leaf(fingerprint, of: host),
                until: end?.wholeSeconds, answers: answers, made: now)
            _ = try vault.perform(AddTrustException(record))
            return ServerTrustException(record)
        }
    }

    /// Removes all exceptions for a server. Throws `trustMissing` if the server has no exception.
    public func forgetServer(host: String, port: Int = 443) async throws {
        try await onVault(missing: .trustMissing) { vault in
            let origin = try Self.origin(host, port)
            let removed = try vault.perform(RemoveTrustExceptions(host: origin.host, port: origin.port))
            guard removed.count > 0 else {
                throw CountersignError.unknown(
                    "there is no trust exception for \(TrustedServer.text(origin))", known: removed.known,
                    addedBy: "trust allow HOST --fingerprint SHA256")
            }
        }
    }

    private static func origin(_ host: String, _ port: Int) throws -> Origin {
        guard (1...65_535).contains(port) else { throw ChallengeError(.valueFaulty, "\(port) is not a port") }
        let isAddress = host.contains(":") && !host.hasPrefix("[")
        return try TrustedServer.origin("\(isAddress ? "[\(host)]" : host):\(port)")
    }

    /// The trust anchors of the home, in the order of files.
    public func trustAnchors() async throws -> [InstalledTrustAnchor] {
        try await blocking { [home] in try AnchorStore(home: home).entries().map { InstalledTrustAnchor($0) } }
    }

    /// Trusts the CA certificates in the contents of a file, in PEM, DER or PKCS#7, for all listed sites, and stores
    /// those that are new as `Certs/anchors/NAME.pem`. Throws `valueFaulty` for contents without certificates and for
    /// the root of the home's own CA, and `nameInUse`.
    @discardableResult
    public func addTrustAnchors(_ contents: Data, name: String) async throws -> [InstalledTrustAnchor] {
        try Self.check(name)
        return try await blocking { [home] in
            let certificates = try AnchorStore.read(Array(contents), from: "the file")
            return try AnchorStore(home: home).add(certificates, as: name).map { InstalledTrustAnchor($0.entry) }
        }
    }

    /// Removes the anchor with this SHA-256 fingerprint. Throws `trustMissing` if no anchor has that fingerprint.
    public func removeTrustAnchor(fingerprint: String) async throws {
        try await blocking(missing: .trustMissing) { [home] in
            _ = try AnchorStore(home: home).remove(try TrustedServer.leaf(fingerprint, of: "the anchor"))
        }
    }
}
