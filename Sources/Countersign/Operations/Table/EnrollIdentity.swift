// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignCryptography
import CountersignEnrollment
import CountersignHome
import CountersignVault
package import FoundationEssentials

/// Creates a key and has an EST server issue a certificate for it.
///
/// Without ``OperationDialogue/confirm``, the anchors are those that the user has chosen; if the server's certificates
/// are not those among which they were chosen, they have to be chosen again. That ends the attempt before it has
/// requested anything, because a person may take any time.
package struct EnrollIdentity: VaultOperation {
    package static let name = "enrollIdentity"
    private let request: EnrollmentRequest

    package init(_ request: EnrollmentRequest) { self.request = request }

    package enum Result: Codable, Sendable {
        case enrolled(RenewalOutcome)
        /// The user has to choose anchors from the certificates that the EST server sends.
        case needsAnchors(published: [Certificate], serverChain: [Certificate])
    }

    package var isLong: Bool { true }

    package func change(_ result: Result) -> String? {
        if case .enrolled(.renewed) = result { "enrolled identity \(request.name.debugDescription)" } else { nil }
    }

    package func perform(on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue) throws -> Result {
        try VaultOperations.check(request.name)
        guard request.keySpecification != EnrollmentRecord.tokenKey else {
            throw CountersignError(.refused, "keys in tokens are enrolled by the command itself")
        }
        let renewal = try vault.renewal(dialogue)
        let (request, confirm) = (request, dialogue.confirm)
        do {
            return .enrolled(
                try Blocking.run(isAbandoned: dialogue.isAbandoned) {
                    try await renewal.enroll(
                        EnrollmentRecord(request), replaces: request.replaces, request.options
                    ) { published in
                        if let confirm { return try confirm(published) }
                        guard let chosen = request.chosen,
                            chosen.published == published.certificates.map({ Data($0.der) })
                        else { throw AnchorsNeeded(published: published) }
                        return try chosen.anchors.map { try Certificate(der: Array($0)) }
                    }
                })
        } catch let needed as AnchorsNeeded {
            return .needsAnchors(
                published: needed.published.certificates, serverChain: needed.published.serverChain)
        }
    }
}

/// The server has published CA certificates that the user has not chosen among.
private struct AnchorsNeeded: Error {
    let published: ESTPublishedAuthorities
}

/// A first enrolment, for which a new key is created.
package struct EnrollmentRequest: Equatable, Sendable, Codable {
    package var name: String
    package var server: String
    package var subject: String
    package var alternativeNames: [String]
    package var keySpecification: String
    package var credential: String?
    package var identity: String?
    package var replaces: Bool
    package var options: IdentityRenewal.Options
    /// The anchors of the server, DER; nil for the system's and those in `Certs/anchors`.
    package var serverAnchors: [Data]?
    /// The user's choice of the CA certificates that the server had published; nil before that question.
    package var chosen: ChosenAnchors?

    package init(
        name: String, server: String, subject: String, alternativeNames: [String], keySpecification: String,
        credential: String?, identity: String?, replaces: Bool, options: IdentityRenewal.Options,
        serverAnchors: [Data]?
    ) {
        self.name = name
        self.server = server
        self.subject = subject
        self.alternativeNames = alternativeNames
        self.keySpecification = keySpecification
        self.credential = credential
        self.identity = identity
        self.replaces = replaces
        self.options = options
        self.serverAnchors = serverAnchors
    }

    package struct ChosenAnchors: Equatable, Sendable, Codable {
        /// DER.
        package var anchors: [Data]
        /// The certificates among which they were chosen, DER.
        package var published: [Data]

        package init(anchors: [Data], published: [Data]) {
            self.anchors = anchors
            self.published = published
        }
    }
}

extension EnrollmentRecord {
    package init(_ request: EnrollmentRequest) {
        self.init(
            name: request.name, server: request.server, subject: request.subject,
            alternativeNames: request.alternativeNames, keySpecification: request.keySpecification, anchors: [],
            credential: request.credential, identity: request.identity)
        serverAnchors = request.serverAnchors.map { .own($0.map { Array($0) }) } ?? .implicit
    }
}
