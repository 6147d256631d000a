// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A Digest challenge (RFC 7616 §3.3), or one of RFC 2617 or RFC 2069.
struct DigestChallenge: Equatable, Sendable {
    /// `qop`: what the digest covers.
    enum Protection: String, Sendable {
        /// Method and target.
        case request = "auth"
        /// Method, target and content.
        case content = "auth-int"
    }

    let realm: String
    let nonce: String
    let opaque: String?
    let algorithm: DigestAlgorithm
    /// The algorithm as the server wrote it, to be sent back unchanged; nil if it named none.
    let algorithmName: String?
    /// Nil for a server of RFC 2069, which does not know the parameter.
    let protection: Protection?
    /// Whether the nonce of the request was out of date.
    let isStale: Bool
    /// Whether the user name is to be sent as a hash.
    let hashesUser: Bool
    /// A server that states one knows RFC 7616, and with it `username*`.
    let charset: String?
    var statesCharset: Bool { charset != nil }

    /// Nil if a required parameter is missing, or if the server requires an algorithm or a protection that is unknown.
    init?(_ challenge: Challenge) {
        guard challenge.isOf(DigestAuthenticator.word), let realm = challenge.realm,
            let nonce = challenge.parameter("nonce"), let algorithm = DigestAlgorithm(challenge)
        else { return nil }
        switch challenge.parameter("qop").map(Self.words) {
        case nil: protection = nil
        case let words? where words.contains(Protection.request.rawValue): protection = .request
        case let words? where words.contains(Protection.content.rawValue): protection = .content
        case .some: return nil
        }
        // Octets that are not UTF-8 were replaced when the field was read, and could not be sent back as they came.
        guard ![realm, nonce, challenge.parameter("opaque") ?? ""].contains(where: { $0.contains("\u{FFFD}") }) else {
            return nil
        }
        // The session's secret contains the client's nonce, which the server learns only together with a protection.
        guard !algorithm.isSession || protection != nil else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        algorithmName = challenge.parameter("algorithm")
        opaque = challenge.parameter("opaque")
        isStale = challenge.parameter("stale")?.lowercased() == "true"
        hashesUser = challenge.parameter("userhash")?.lowercased() == "true"
        charset = challenge.parameter("charset")?.lowercased()
    }

    /// Whether an answer to both has the same secret and the same parameters, apart from the nonce and `opaque`.
    func isLike(_ other: DigestChallenge) -> Bool {
        realm == other.realm && algorithm == other.algorithm && protection == other.protection
            && hashesUser == other.hashesUser && charset == other.charset
    }

    private static func words(_ list: String) -> [String] {
        list.split { $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
    }
}
