// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignSPNEGO

/// The client's side of one NTLM dialogue on one connection: NTLMv2 with MIC, channel binding and target name, raw or
/// in SPNEGO. MS-NLMP §3.1, RFC 4178.
///
///       negotiate() →  NegotiateMessage   →
///                   ←  ChallengeMessage   ←
///       authenticate() → AuthenticateMessage →
///                   ←  (SPNEGO only: accept-completed)  → conclude()
///
/// Each method is called once, in this order. After an error, only `negotiate()` may be called, which starts a new
/// dialogue. LM, NTLMv1, anonymous log-on, datagrams, sealing of messages, and signing without extended session
/// security are not implemented. The response is always NTLMv2 with our three pairs: a server's message without target
/// info, or with fewer flags, may come from a man in the middle.
package struct NTLMContext: Sendable {
    /// The encoding of the messages.
    package enum Framing: Sendable {
        /// Without an envelope: the `NTLM` scheme.
        case raw
        /// In SPNEGO, which offers NTLM as the only mechanism: the `Negotiate` scheme (RFC 4559).
        case spnego
    }

    private enum State: Sendable {
        case created
        case negotiated([UInt8])
        /// Nil if the server replied without SPNEGO, and no final token is due.
        case authenticated(spnego: Session?)
        case ended
    }

    private struct Session: Sendable {
        let flags: NegotiateFlags
        let exportedSessionKey: Secret

        /// Whether ``SessionSecurity`` can sign.
        var signs: Bool { flags.isSuperset(of: [.sign, .extendedSessionSecurity]) }
    }

    private let account: AccountName
    private let responseKey: Secret
    private let servicePrincipalName: String
    private var channelBindingsHash: [UInt8]
    private let workstation: String
    private let framing: Framing
    private var state = State.created

    /// Creates a dialogue for `credential`. The password is not retained, only NTOWFv2.
    ///
    /// `domain` is used for a user name without a domain. `servicePrincipalName` has the form `HTTP/host`.
    /// `workstation` may be empty. If `channelBinding` is nil, the response states that there is no binding. Throws
    /// `unusableCredential`.
    package init(
        credential: PasswordCredential, domain: String?, servicePrincipalName: String, channelBinding: ChannelBinding?,
        workstation: String, framing: Framing
    ) throws(NTLMError) {
        account = try AccountName(enrolled: credential.user, domain: domain)
        responseKey = try NTLMv2.ntowfv2(password: credential.password, user: account.user, domain: account.domain)
        self.servicePrincipalName = servicePrincipalName
        channelBindingsHash = Self.hash(of: channelBinding)
        self.workstation = workstation
        self.framing = framing
    }

    /// Binds the dialogue to the TLS connection that will carry the second token. The first token does not depend on
    /// it.
    package mutating func bind(to channelBinding: ChannelBinding?) {
        channelBindingsHash = Self.hash(of: channelBinding)
    }

    private static func hash(of channelBinding: ChannelBinding?) -> [UInt8] {
        channelBinding.map { NTLMv2.channelBindingsHash(applicationData: $0.applicationData) }
            ?? [UInt8](repeating: 0, count: 16)
    }

    /// The first token of a new dialogue. It contains no user, domain or workstation.
    package mutating func negotiate() -> [UInt8] {
        let message = NegotiateMessage(flags: .client, version: .own).serialized
        state = .negotiated(message)
        return switch framing {
        case .raw: message
        case .spnego: NegTokenInit.ntlm(message).serialized
        }
    }

    /// The second token, which answers the server's ChallengeMessage.
    ///
    /// `now` is a FILETIME (100 ns steps since 1601), which is used if the server does not send its own time.
    /// `clientChallenge` (8 bytes) and `exportedSessionKey` (16 bytes) must be unpredictable and must never be reused.
    /// Throws `malformed`, `unsupported` or `rejected` because of the server's token, and `outOfOrder` or
    /// `unusableCredential` because of the caller.
    package mutating func authenticate(
        _ serverToken: [UInt8], now: UInt64, clientChallenge: [UInt8], exportedSessionKey: [UInt8]
    ) throws(NTLMError) -> [UInt8] {
        guard case .negotiated(let negotiate) = state else {
            throw NTLMError(.outOfOrder, "a ChallengeMessage is answered once, after the NegotiateMessage")
        }
        state = .ended
        guard clientChallenge.count == NTLMv2.clientChallengeBytes, exportedSessionKey.count == NTLMv2.keyBytes else {
            throw NTLMError(.outOfOrder, "the client challenge has 8 bytes and the session key 16")
        }
        let isBare = framing == .raw || serverToken.starts(with: MessageReader.signature)
        let challengeBytes = isBare ? serverToken : try Self.unwrap(serverToken)
        let challenge = try ChallengeMessage(parsing: challengeBytes)

        let (message, session) = try answer(
            challenge, now: now, clientChallenge: clientChallenge, sessionKey: Secret(exportedSessionKey))
        let mic = MIC.compute(
            exportedSessionKey: session.exportedSessionKey, negotiate: negotiate, challenge: challengeBytes,
            authenticate: message)
        let signed = AuthenticateMessage.write(mic, into: message)
        state = .authenticated(spnego: isBare ? nil : session)
        return isBare ? signed : Self.wrap(signed, session: session)
    }

    /// Verifies the token of the server's final response, which may be empty if the response has none.
    ///
    /// Returns the reason if the token proves nothing. Throws `rejected` if the server did not accept the answer, and
    /// `wrongMIC` if its mechListMIC was not computed with the session key.
    @discardableResult
    package mutating func conclude(_ serverToken: [UInt8]) throws(NTLMError) -> String? {
        guard case .authenticated(let session) = state else {
            throw NTLMError(.outOfOrder, "a dialogue is concluded once, after the AuthenticateMessage")
        }
        state = .ended
        guard !serverToken.isEmpty else { return nil }
        guard let session else { return "the server sent a token of \(serverToken.count) bytes where none is due" }
        let response: NegTokenResp
        do throws(SPNEGOError) {
            response = try NegTokenResp(parsing: serverToken)
        } catch {
            return error.detail
        }
        try response.checkAcceptable()
        guard let mic = response.mechListMIC else {
            let isComplete = response.negState == .acceptCompleted && response.responseToken?.isEmpty ?? true
            return isComplete ? nil : "it did not complete the negotiation"
        }
        guard mic.count == MIC.lengthBytes else { return "its mechListMIC has \(mic.count) bytes" }
        guard session.signs else { return "it granted no extended session security to sign with" }
        guard mic == Self.mechListMIC(session: session, direction: .serverToClient) else {
            throw NTLMError(.wrongMIC, "the server's mechListMIC does not fit the session key")
        }
        return nil
    }

    // MARK: The AuthenticateMessage

    /// The message with a MIC of zeros, and the session that it establishes. MS-NLMP §3.1.5.1.2.
    private func answer(
        _ challenge: ChallengeMessage, now: UInt64, clientChallenge: [UInt8], sessionKey: Secret
    ) throws(NTLMError) -> (message: [UInt8], session: Session) {
        var flags = NegotiateFlags.client.intersection(challenge.flags)
        // A key is exchanged only for signing; otherwise MS-NLMP leaves the field undefined.
        if !flags.contains(.sign) { flags.remove(.keyExchange) }
        // OEM is not requested, but some servers know nothing else.
        if !flags.contains(.unicode) { flags.insert(.oem) }
        flags.insert(.version)

        let targetInfo = challenge.targetInfo.answered(
            channelBindings: channelBindingsHash, servicePrincipalName: servicePrincipalName)
        let response = NTLMv2.computeResponse(
            responseKey: responseKey, serverChallenge: challenge.serverChallenge, clientChallenge: clientChallenge,
            time: challenge.targetInfo.timestamp ?? now, targetInfo: try targetInfo.serialized())
        let exportedSessionKey = flags.contains(.keyExchange) ? sessionKey : response.sessionBaseKey
        var encryptedKey: [UInt8] = []
        if flags.contains(.keyExchange) {
            var rc4 = RC4(key: response.sessionBaseKey)
            encryptedKey = sessionKey.withBytes { rc4.apply(Array($0)) }
        }
        let hasServerTime = challenge.targetInfo.timestamp != nil
        let message = AuthenticateMessage(
            flags: flags,
            lmChallengeResponse: hasServerTime ? [UInt8](repeating: 0, count: 24) : response.lmChallengeResponse,
            ntChallengeResponse: response.ntChallengeResponse, domain: account.domain, user: account.user,
            workstation: workstation, encryptedRandomSessionKey: encryptedKey, version: .own,
            mic: [UInt8](repeating: 0, count: MIC.lengthBytes))
        return (try message.serialized(), Session(flags: flags, exportedSessionKey: exportedSessionKey))
    }

    // MARK: SPNEGO

    private static func unwrap(_ serverToken: [UInt8]) throws(NTLMError) -> [UInt8] {
        let response = try NTLMError.reading(try NegTokenResp(parsing: serverToken))
        try response.checkAcceptable(refusal: NegTokenResp.wantsKerberos)
        guard response.negState != .acceptCompleted else {
            throw NTLMError(.unsupported, "the server accepted before it was given any proof")
        }
        guard let token = response.responseToken else {
            throw NTLMError(.malformed, "SPNEGO: the server's token has no ChallengeMessage")
        }
        return token
    }

    private static func wrap(_ message: [UInt8], session: Session) -> [UInt8] {
        NegTokenResp(
            negState: .acceptIncomplete, responseToken: message,
            mechListMIC: session.signs ? mechListMIC(session: session, direction: .clientToServer) : nil
        ).serialized
    }

    /// GSS_GetMIC over the offered mechanisms, with sequence number 0 (RFC 4178 §5).
    private static func mechListMIC(session: Session, direction: SessionSecurity.Direction) -> [UInt8] {
        var security = SessionSecurity(
            flags: session.flags, exportedSessionKey: session.exportedSessionKey, direction: direction)
        return security.mac(NegTokenInit.ntlm([]).mechTypeList)
    }
}
