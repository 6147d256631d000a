// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

// Digest
//
//   DigestChallenge       a challenge of the server
//   DigestAlgorithm       MD5, SHA-256 and SHA-512-256, each also per session
//   DigestSecret          H(user:realm:password): enough to answer, and as secret as the password in this realm
//   DigestSigner          the nonce and its count, which concurrent requests share
//   DigestNonce           the texts that requests with one nonce share, and the field of each request
//   DigestAuthenticator   plugs it in: which challenges, the scope of an answer, the verdict on a repeated challenge

/// Digest with one hash function (RFC 7616, and servers of RFC 2617 and RFC 2069).
package final class DigestAuthenticator: Authenticator {
    static let word = "Digest"

    /// The functions, strongest first (§3.7).
    package static let strongestFirst = DigestAlgorithm.Function.allCases.map { DigestAuthenticator($0) }

    private let function: DigestAlgorithm.Function
    private let isAvailable: Bool

    convenience init(_ function: DigestAlgorithm.Function) {
        self.init(function, isAvailable: function.digest.isAvailable)
    }

    /// `isAvailable` says whether OpenSSL can compute the function.
    init(_ function: DigestAlgorithm.Function, isAvailable: Bool) {
        self.function = function
        self.isAvailable = isAvailable
    }

    package var schemeName: String { Self.word }
    package var scheme: AuthenticationScheme { .digest }

    package func canAnswer(_ challenge: Challenge) -> Bool {
        DigestChallenge(challenge)?.algorithm.function == function
    }

    package func shortcoming(of challenge: Challenge) -> String? {
        guard !canAnswer(challenge) else { return nil }
        guard challenge.realm != nil else { return "without a realm" }
        guard challenge.parameter("nonce") != nil else { return "without a nonce" }
        guard !challenge.isCut else { return "with a fault" }
        guard DigestAlgorithm(challenge) != nil else {
            return "with algorithm \(Self.shown(challenge.parameter("algorithm") ?? ""))"
        }
        return challenge.parameter("qop").map { "with qop \(Self.shown($0))" }
    }

    /// At most 32 characters, without those that a header field or a terminal could misread.
    private static func shown(_ value: String) -> String {
        let scalars = value.unicodeScalars.prefix(32).map { (0x20...0x7E).contains($0.value) ? $0 : "?" }
        return String(String.UnicodeScalarView(scalars))
    }

    /// The paths of this origin that `domain` lists, and all below them; without `domain`, the whole origin (§3.3). No
    /// other origin receives an answer before it challenges. If `domain` may have been cut off, only the paths beside
    /// the challenged target.
    package func scopes(of challenge: Challenge, at origin: Origin, challengedTarget: String) -> [PathScope] {
        guard !challenge.isCut else { return PathScope(challengedPath: challengedTarget).map { [$0] } ?? [] }
        let uris = (challenge.parameter("domain") ?? "").split(separator: " ").map(String.init)
        guard !uris.isEmpty else { return [.wholeOrigin] }
        return uris.compactMap { uri in Self.path(of: uri, at: origin).flatMap { PathScope(below: $0) } }
    }

    /// The path of a URI, or nil if it belongs to another origin.
    private static func path(of uri: String, at origin: Origin) -> String? {
        guard !uri.hasPrefix("/") else { return uri.hasPrefix("//") ? nil : uri }
        let prefixes = [origin.description, "\(origin.scheme.rawValue)://\(origin.authority)"]
        for prefix in prefixes where uri.lowercased().hasPrefix(prefix) {
            let rest = uri.dropFirst(prefix.count)
            if rest.isEmpty { return "/" }
            if rest.hasPrefix("/") { return String(rest) }
        }
        return nil
    }

    package func obstacle(to credential: EnrolledCredential, _ context: RequestContext) -> String? {
        do throws(AuthenticationError) {
            try requireFunction()
            _ = try CredentialText.user(of: try credential.password(for: name), domain: context.domain)
            return nil
        } catch {
            return error.detail
        }
    }

    package func reply(
        to challenge: Challenge, with credential: EnrolledCredential, _ context: RequestContext
    ) throws(AuthenticationError) -> Reply {
        guard let asked = DigestChallenge(challenge) else {
            throw AuthenticationError(.unsupportedChallenge, "a Digest challenge that this version cannot answer")
        }
        try requireFunction()
        let secret = try DigestSecret(
            of: try credential.password(for: name), domain: context.domain, asked,
            context.charset.required(by: challenge))
        return .answer(.perRequest(DigestSigner(asked, secret)))
    }

    private func requireFunction() throws(AuthenticationError) {
        guard isAvailable else { throw .missing(function.digest, for: "Digest with \(function.rawValue)") }
    }

    /// A nonce that is out of date says nothing about the password (§3.3). Neither does a challenge to an answer that
    /// was sent before one: a session lasts until the server sends another challenge in its realm (§3.6), and many
    /// servers do not say that a nonce is out of date.
    package func verdict(on repeated: RepeatedChallenge) -> ChallengeVerdict {
        guard case .perRequest(let signer as DigestSigner) = repeated.answer else { return .rejected }
        let renewed = repeated.challenges.compactMap(DigestChallenge.init).filter {
            $0.realm == signer.challenge.realm
        }
        if let stale = renewed.first(where: { $0.isStale && $0.isLike(signer.challenge) }) {
            return .stale(.perRequest(DigestSigner(stale, signer.secret)))
        }
        if renewed.contains(where: \.isStale) { return .asksAnew(isStale: true) }
        return repeated.isUnasked ? .asksAnew(isStale: false) : .rejected
    }

    /// A server need not prove anything (§3.5).
    package func verifiesAcceptance(ofStatus status: Int, hasInformation: Bool) -> Bool { hasInformation }

    /// Verifies `rspauth`, and takes the next nonce (§3.5). Only a digest of full length can be wrong.
    package func acceptance(_ response: AcceptingResponse) -> AcceptanceVerdict {
        guard case .perRequest(let signer as DigestSigner) = response.answer else { return .accepted }
        guard let information = DigestInformation(response.informationFields) else {
            return .unproved("the \(response.source.informationField) field cannot be read")
        }
        var reason: String?
        if let proof = information.responseDigest, let sent = response.sent {
            if !signer.isDigest(proof) {
                reason = "rspauth is no digest"
            } else if !signer.verifies(proof, of: sent) {
                return .forged("the server does not know the password (rspauth)")
            }
        }
        if let nonce = information.nextNonce, let sent = response.sent?.parameter("nonce") {
            signer.use(nonce, after: sent)
        }
        return reason.map { .unproved($0) } ?? .accepted
    }

    /// Content can be hashed only when all of it is here, which the first send of a request does not wait for.
    package func preemption(after answer: Answer) -> Preemption {
        answer.needsContent ? .none : .answer(answer)
    }
}

/// The parameters of `Authentication-Info` (RFC 7616 §3.5) that concern a client.
private struct DigestInformation {
    let nextNonce: String?
    let responseDigest: String?

    init?(_ fields: [String]) {
        // The field is a list of parameters, without a scheme.
        let reading = ChallengeParser.read("Digest \(fields.joined(separator: ", "))")
        guard reading.fault == nil, reading.challenges.count == 1, let parameters = reading.challenges.first else {
            return nil
        }
        nextNonce = parameters.parameter("nextnonce")
        responseDigest = parameters.parameter("rspauth")
    }
}
