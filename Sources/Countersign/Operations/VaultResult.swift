// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
package import CountersignChallenges
package import CountersignVault
package import FoundationEssentials

/// The result of a ``VaultOperation``. Never contains a secret.
package enum VaultResult: Equatable, Sendable, Codable {
    case done
    case names(credentials: Set<String>, identities: Set<String>)
    /// Sorted by name.
    case credentials([ListedCredential])
    /// A credential was stored. `blocked` says where its user name and password are blocked already.
    case stored(blocked: BlockedCredential?)
    /// The number of removed records. If it is 0, `known` has the names that exist.
    case removed(count: Int, known: Set<String>)
    case trustExceptions([TrustExceptionRecord])
    case identities(IdentityListing)
    /// Sorted by name.
    case renewalStates([RenewalState])
    case repaired(Bool)
    /// The new leaf, DER.
    case renewed(leaf: Data)
    /// The server has not decided yet; seconds since 1970.
    case pending(until: Int64)
    /// The user has to choose anchors among what the EST server sends, DER.
    case needsAnchors(published: [Data], serverChain: [Data])
    /// Sorted by name.
    case signIns([ListedSignIn])
    case signedOut(SignedOut)
    case compliance(ComplianceReport)
    /// Sorted by group and host.
    case sessions([ListedSession])
    /// Sorted by identifier, without the contents of files.
    case profiles([ProfileRecord])
    /// A profile is installed. `leaf` is the certificate of its enrolment, DER, and `pendingUntil` is when a server
    /// that has not decided yet is asked again, in seconds since 1970; both are nil if it has no enrolment.
    case profileInstalled(leaf: Data?, pendingUntil: Int64?)
    case profileRemoved(RemovedProfile)
    /// DER.
    case root(Data)
    case report(PolicyReport)
    case unanswered(UnansweredReport)
}

/// What a proxy for one command could not answer, as sentences.
package struct UnansweredReport: Equatable, Sendable, Codable {
    /// If the command succeeded.
    package let afterSuccess: [String]
    /// If the command failed.
    package let afterFailure: [String]
    package let isListEmpty: Bool
    /// Whether a certificate was not trusted; nil from an earlier version.
    package let hasUntrusted: Bool?

    package init(_ sites: UnansweredSites, isListEmpty: Bool) {
        afterSuccess = sites.sites(hasFailed: false).map(\.sentence)
        afterFailure = sites.sites(hasFailed: true).map(\.sentence)
        self.isListEmpty = isListEmpty
        hasUntrusted = sites.hasUntrusted
    }
}

/// A credential without its password or token.
package struct ListedCredential: Equatable, Sendable, Codable {
    package let name: String
    package let kind: EnrolledCredential.Kind
    /// The user name or the principal; nil for a token.
    package let user: String?
    package let blocked: BlockedCredential?
}

/// The client identities of a home without their keys.
package struct IdentityListing: Equatable, Sendable, Codable {
    /// Sorted by name.
    package var identities: [ListedIdentity] = []
    /// Sorted by name.
    package var pending: [ListedRequest] = []
    /// The identities that are incomplete.
    package var faults: [Fault] = []
    /// The identities whose file is faulty.
    package var fileFaults: [Fault] = []

    package struct Fault: Equatable, Sendable, Codable {
        package let name: String
        package let reason: String
    }
}

/// A client identity without its key.
package struct ListedIdentity: Equatable, Sendable, Codable {
    package enum Key: Equatable, Sendable, Codable {
        case vault
        case token(uri: String)
        case nowhere
    }

    /// How it was enrolled.
    package struct Enrollment: Equatable, Sendable, Codable {
        package let server: String
        /// The anchors of issued certificates, DER.
        package let anchors: [Data]
        /// The anchors of the server, DER; nil for the system's and those in `Certs/anchors`.
        package let serverAnchors: [Data]?
    }

    package let name: String
    /// Leaf first, DER; never empty.
    package let chain: [Data]
    package let key: Key
    package let enrollment: Enrollment?

    init(_ name: String, _ chain: [Certificate], in contents: VaultContents?) {
        self.name = name
        self.chain = chain.map { Data($0.der) }
        let leaf = chain.first?.sha256Fingerprint
        // A key that does not belong to the leaf does not count.
        if contents?.identityKeys[name]?.leafSHA256 == leaf {
            key = .vault
        } else if let token = contents?.tokenKeys[name], token.leafSHA256 == leaf {
            key = .token(uri: token.uri)
        } else {
            key = .nowhere
        }
        enrollment = contents?.enrollments[name].map { record in
            let anchors = record.anchors.map { Data($0) }
            let serverAnchors: [Data]? =
                switch record.serverAnchors {
                case .same: anchors
                case .own(let own): own.map { Data($0) }
                case .implicit: nil
                }
            return Enrollment(server: record.server, anchors: anchors, serverAnchors: serverAnchors)
        }
    }
}

/// A certificate that an EST server has received a request for and that is not in use yet. Times are in seconds since
/// 1970.
package struct ListedRequest: Equatable, Sendable, Codable {
    package let name: String
    package let subject: String
    package let server: String
    package let created: Int64
    /// The earliest time of the next request; 0: any time.
    package let retryAt: Int64
    /// The certificate is issued and has not passed its test handshake yet.
    package let isIssued: Bool

    init(_ request: PendingEnrollment, for plan: EnrollmentRecord) {
        name = request.name
        subject = plan.subject
        server = plan.server
        created = request.created
        retryAt = request.retryAt
        isIssued = request.state != .requested
    }

    /// Sorted by name.
    static func all(in contents: VaultContents) -> [ListedRequest] {
        contents.pendingEnrollments.values.filter(\.isUnderway).sorted { $0.name < $1.name }.compactMap { request in
            if contents.hasAbandonedRequest(named: request.name) { return nil }
            return (request.plan ?? contents.enrollments[request.name]).map { ListedRequest(request, for: $0) }
        }
    }
}

/// A running server's reasons for a failed operation.
package struct ServerRefusal: Error {
    package let diagnostics: [Diagnostic]
}
