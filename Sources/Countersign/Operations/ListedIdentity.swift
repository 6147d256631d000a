// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignVault
package import FoundationEssentials

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
