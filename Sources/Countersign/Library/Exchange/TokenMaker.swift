// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignNTLM
import CountersignProxy

/// The NTLM messages of one dialogue, raw or inside SPNEGO.
struct TokenMaker: Sendable {
    /// What a dialogue was begun with.
    private struct Opening {
        let kind: OfferKind
        let credential: PasswordCredential
    }

    private let domain: String?
    private let servicePrincipalName: String
    private var bindingHash: [UInt8]?
    private var opened: Opening?
    private var context: NTLMContext?

    init(domain: String?, servicePrincipalName: String) {
        self.domain = domain
        self.servicePrincipalName = servicePrincipalName
    }

    /// Whether answers are bound to a certificate.
    var isBound: Bool { bindingHash != nil }

    /// From here on answers are bound to the certificate of this hash (RFC 5929 §4).
    mutating func bind(to certificateHash: [UInt8]?) {
        bindingHash = certificateHash
        // The first message is the same on every connection; only the second is bound.
        guard let opened, context != nil else { return }
        _ = try? begin(opened)
    }

    /// The first message without a `serverToken`, else the one that answers it.
    mutating func token(
        _ kind: OfferKind, _ credential: PasswordCredential, answering serverToken: [UInt8]?
    ) throws(NTLMError) -> [UInt8] {
        guard let serverToken else { return try begin(Opening(kind: kind, credential: credential)) }
        let token = try context?.authenticate(
            serverToken, now: WallClock.fileTime(), clientChallenge: Randomness.bytes(8),
            exportedSessionKey: Randomness.bytes(16))
        return token ?? []
    }

    private mutating func begin(_ opening: Opening) throws(NTLMError) -> [UInt8] {
        var context = try NTLMContext(
            credential: opening.credential, domain: domain, servicePrincipalName: servicePrincipalName,
            channelBinding: bindingHash.map { .tlsServerEndPoint(certificateHash: $0) }, workstation: "",
            framing: opening.kind == .ntlm ? .raw : .spnego)
        let token = context.negotiate()
        opened = opening
        self.context = context
        return token
    }

    /// What the server sends with its final response (RFC 4559 §5) proves that it knows the password too; `fields` are
    /// the values of that response's `WWW-Authenticate`.
    mutating func isFinalTokenRight(_ fields: [String]) -> Bool {
        let word = "negotiate "
        guard context != nil, let field = fields.first(where: { $0.lowercased().hasPrefix(word) }) else { return true }
        guard let token = Base64.decode(field.dropFirst(word.count).drop { $0 == " " }) else { return false }
        do throws(NTLMError) {
            try context?.conclude(token)
            return true
        } catch {
            return false
        }
    }
}
