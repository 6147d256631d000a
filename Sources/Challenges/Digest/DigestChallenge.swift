// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// A Digest challenge (RFC 7616 §3.3), or one of RFC 2617 or RFC 2069.
struct DigestChallenge: Equatable, Sendable {
    /// `qop`: the parts of the request that the digest covers.
    enum Protection: String, Sendable {
        /// Method and target.
        case request = "auth"
        /// Method, target and content.
        case content = "auth-int"
    }

    /// As octets, because they are hashed and sent back unchanged.
    let realm: [UInt8]
    let nonce: [UInt8]
    let opaque: [UInt8]?
    let algorithm: DigestAlgorithm
    /// The algorithm as the server wrote it, to be sent back unchanged; nil if it named none.
    let algorithmName: String?
    /// Nil for a server of RFC 2069, which does not know the parameter.
    let protection: Protection?
    /// Whether the nonce of the request was out of date.
    let isStale: Bool
    /// Whether to send the user name as a hash.
    let hashesUser: Bool
    /// A server that states one knows RFC 7616, and with it `username*`.
    let charset: String?
    var statesCharset: Bool { charset != nil }

    /// Nil if a required parameter is missing, or if the server requires an algorithm or a protection that is unknown.
    /// Also nil for a challenge that is cut before both, because the default would be weaker than the part that was cut
    /// off.
    init?(_ challenge: Challenge) {
        guard challenge.isOf(DigestAuthenticator.word), let realm = challenge.octets("realm"),
            let nonce = challenge.octets("nonce"), let algorithm = DigestAlgorithm(challenge),
            !challenge.isCut || challenge.parameter("algorithm") != nil && challenge.parameter("qop") != nil
        else { return nil }
        switch challenge.parameter("qop").map(Self.words) {
        // Some servers of RFC 2069 send an empty one.
        case nil, []?: protection = nil
        case let words? where words.contains(Protection.request.rawValue): protection = .request
        case let words? where words.contains(Protection.content.rawValue): protection = .content
        case .some: return nil
        }
        // A caller that decodes fields itself has replaced octets, which could not be sent back unchanged.
        guard !["realm", "nonce", "opaque"].contains(where: { challenge.parameter($0)?.contains("\u{FFFD}") == true })
        else { return nil }
        // The session's secret contains the client's nonce, which the server learns only together with a protection.
        guard !algorithm.isSession || protection != nil else { return nil }
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        algorithmName = challenge.parameter("algorithm")
        opaque = challenge.octets("opaque")
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
