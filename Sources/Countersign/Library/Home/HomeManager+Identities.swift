// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault
public import FoundationEssentials

/// A client identity of a home, without its key.
public struct InstalledIdentity: Equatable, Sendable {
    /// The name that a site's line gives with `identity=`.
    public let name: String
    /// The certificate and its issuers, leaf first; empty if an enrolment has not brought the first one yet.
    public let chain: [X509Certificate]
    /// The EST server that renews it; nil for one that was imported.
    public let server: URL?
    /// When it should be renewed, at two thirds of its lifetime; nil without a certificate.
    public let renewalDate: Date?
    /// Why it cannot be used or renewed, as a clause for display; nil if all is well.
    public let fault: String?

    /// Creates a value, for the tests of a program.
    public init(
        name: String, chain: [X509Certificate], server: URL? = nil, renewalDate: Date? = nil, fault: String? = nil
    ) {
        self.name = name
        self.chain = chain
        self.server = server
        self.renewalDate = renewalDate
        self.fault = fault
    }

    /// The certificate; nil until it is issued.
    public var certificate: X509Certificate? { chain.first }

    /// The end of its validity; nil until the certificate is issued.
    public var expirationDate: Date? { chain.first?.notAfter }

    /// The whole days that the certificate is still valid at `date`: 0 on its last day, negative after its end, nil
    /// without a certificate.
    public func daysLeft(at date: Date = .now) -> Int? {
        expirationDate.map { Int(($0.timeIntervalSince(date) / 86_400).rounded(.down)) }
    }

    /// Whether a renewal is due at `date`.
    public func needsRenewal(at date: Date = .now) -> Bool { renewalDate.map { $0 <= date } ?? true }
}

/// A first enrolment over EST (RFC 7030), with a new key or one in a token.
public struct IdentityEnrollment: Sendable {
    /// The name of the identity.
    public var name: String
    /// The EST server: `https://ca.corp.example`, or with its path.
    public var server: URL
    /// The requested subject, such as `CN=jdoe`; nil for the credential's user name.
    public var subject: String?
    /// The requested alternative names, each with its kind: `dns:`, `email:`, `uri:`, `ip:` or `upn:`.
    public var alternativeNames: [String] = []
    /// The kind of key, such as `ec-p256` or `rsa-3072`; nil for the server's choice.
    public var key: String?
    /// The key in a token that the certificate is for; nil for a new key in the vault.
    public var token: IdentityToken?
    /// The CA certificates that verify the server; nil for those of the system and the home.
    public var serverAnchors: [X509Certificate]?
    /// The SHA-256 fingerprint, as ``X509Certificate/fingerprint`` writes it, of the root of the certificates that the
    /// server issues. If nil, the roots that the verified server publishes are trusted for them.
    public var issuerFingerprint: String?
    /// The name of the credential that authenticates the request. If it does not exist, nothing does.
    public var credential = "enrollment"
    /// The name of a client identity that authenticates it; nil for none.
    public var identity: String?
    /// Whether an identity of that name is replaced, once the new certificate is proved.
    public var replaces = false
    /// How long to wait for a server that decides later. The request stays: the next
    /// ``HomeManager/refreshIdentity(_:waitingFor:progress:)`` goes on with it.
    public var patience = Duration.zero

    /// An enrolment with the defaults above.
    public init(name: String, server: URL) {
        self.name = name
        self.server = server
    }
}

/// The progress of an enrolment or a renewal. Later versions may add kinds.
public struct IdentityProgress: Equatable, Sendable, CustomStringConvertible {
    /// The kind of progress.
    public struct Kind: Hashable, Sendable {
        private let name: String

        /// Waiting for the server's response.
        public static let asking = Kind(name: "asking")
        /// Another process does the same, and its result is awaited.
        public static let waitingForOtherProcess = Kind(name: "waitingForOtherProcess")
        /// The server has not decided yet. The operation asks it again at ``IdentityProgress/date``.
        public static let waiting = Kind(name: "waiting")
        /// Something did not go as expected, but the operation goes on.
        public static let warning = Kind(name: "warning")
    }

    /// The kind of progress.
    public let kind: Kind
    /// A sentence for display, without a full stop.
    public let description: String
    /// When the operation asks the server again, with the kind `waiting`; otherwise nil.
    public let date: Date?

    /// Creates a value, for the tests of a program.
    public init(_ kind: Kind, _ description: String, date: Date? = nil) {
        self.kind = kind
        self.description = description
        self.date = date
    }

    init(_ progress: RenewalProgress) {
        switch progress {
        case .asking(let server): self.init(.asking, "asking \(server)")
        case .waitingForOtherProcess: self.init(.waitingForOtherProcess, "waiting for another process")
        case .waiting(let server, let until):
            self.init(.waiting, "\(server) has not decided yet", date: Date(seconds: until))
        case .pageToOpen(let url): self.init(.warning, "a person has to open \(url)")
        case .attributesNotRead, .attributesNotSupplied, .notVerified, .fileNotWritten:
            self.init(.warning, progress.warning ?? "\(progress)")
        }
    }
}

/// The result of an enrolment or a renewal.
public enum IdentityOutcome: Equatable, Sendable {
    /// The new certificate is in use.
    case renewed(X509Certificate)
    /// The server has not decided yet, and expects the next request at that time. A running proxy or controller sends
    /// it.
    case pending(until: Date)

    init(_ outcome: RenewalOutcome) {
        switch outcome {
        case .renewed(let leaf): self = .renewed(X509Certificate(leaf))
        case .pending(let until): self = .pending(until: Date(seconds: until))
        }
    }
}

extension HomeManager {
    /// The client identities, sorted by name, with those whose first certificate has not been issued yet.
    public func identities() async throws -> [InstalledIdentity] {
        try await onVault { vault in
            let listing = try vault.perform(ListIdentities())
            let states = try vault.perform(ListRenewalStates())
            return try states.map { state in
                let listed = listing.identities.first { $0.name == state.name }
                let pending = listing.pending.first { $0.name == state.name }
                let faults = (listing.faults + listing.fileFaults).first { $0.name == state.name }
                let chain = try (listed?.chain ?? []).map { X509Certificate(try Certificate(der: Array($0))) }
                return InstalledIdentity(
                    name: state.name, chain: chain,
                    server: (listed?.enrollment?.server ?? pending?.server).flatMap { URL(string: $0) },
                    renewalDate: chain.isEmpty ? nil : Date(seconds: state.due),
                    fault: faults?.reason ?? (listed?.key == .nowhere ? "its key is not in the vault" : nil))
            }
        }
    }

    /// Creates a key and has an EST server issue a certificate for it. If the server decides later, the result is
    /// `pending`, and the certificate follows while a proxy or controller of the home runs.
    ///
    /// Throws `refreshFailed` with the server's reason, `nameInUse`, `credentialMissing`, `valueFaulty` and
    /// `certificateFaulty`. `progress` is called on any thread.
    public func enrollIdentity(
        _ enrollment: IdentityEnrollment, progress: @escaping @Sendable (IdentityProgress) -> Void = { _ in }
    ) async throws -> IdentityOutcome {
        try Self.check(enrollment.name)
        let fingerprint = try enrollment.issuerFingerprint.map { text in
            do {
                return try CertificateFingerprint.parse(text)
            } catch {
                throw ChallengeError(.valueFaulty, "\(text.debugDescription) is not a fingerprint: \(error)")
            }
        }
        if enrollment.token != nil { return try await enrollInToken(enrollment, fingerprint, progress) }
        return try await onVault(
            creates: true, missing: .credentialMissing, report: { progress(IdentityProgress($0)) }
        ) { vault in
            let user = try vault.perform(ListCredentials()).first { $0.name == enrollment.credential }?.user
            var request = try EnrollmentRequest(enrollment, user: user)
            for _ in 1...3 {
                switch try vault.perform(EnrollIdentity(request)) {
                case .enrolled(let outcome): return IdentityOutcome(outcome)
                case .needsAnchors(let published, _):
                    let anchors = try Self.chosen(
                        published, fingerprint: fingerprint, verifying: request.serverAnchors ?? [])
                    request.chosen = EnrollmentRequest.ChosenAnchors(
                        anchors: anchors.map { Data($0.der) }, published: published.map { Data($0.der) })
                }
            }
            throw ChallengeError(
                .refreshFailed, "\(request.server) sends different CA certificates each time")
        }
    }

    /// Has a new certificate issued for an enrolled identity, whether it is due or not. Waits at most `patience` for a
    /// server that decides later. Throws `identityMissing` if no identity of that name is enrolled, and
    /// `refreshFailed`.
    public func refreshIdentity(
        _ name: String, waitingFor patience: Duration = .zero,
        progress: @escaping @Sendable (IdentityProgress) -> Void = { _ in }
    ) async throws -> IdentityOutcome {
        try await onVault(missing: .identityMissing, report: { progress(IdentityProgress($0)) }) { vault in
            var options = IdentityRenewal.Options()
            options.patienceSeconds = patience.components.seconds
            return IdentityOutcome(try vault.perform(RefreshIdentity(name: name, options: options)))
        }
    }

    /// Removes an identity: its key and its certificate. Throws `identityMissing` if no identity has that name.
    public func removeIdentity(_ name: String) async throws {
        try await onVault(missing: .identityMissing) { vault in
            let removed = try vault.perform(RemoveIdentity(name: name))
            guard removed.count > 0 else {
                throw CountersignError.unknown(
                    "identity", name, known: removed.known, addedBy: "certificate import FILE")
            }
        }
    }
}

extension Date {
    /// `seconds` counts from 1970.
    init(seconds: Int64) { self.init(timeIntervalSince1970: Double(seconds)) }

    /// Whole seconds since 1970.
    var wholeSeconds: Int64 { Int64(timeIntervalSince1970.rounded(.down)) }
}
