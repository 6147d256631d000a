// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

/// The client's side of one NTLM dialogue on one connection: NTLMv2 with MIC, channel binding and target name, raw or inside
/// SPNEGO. MS-NLMP §3.1, RFC 4178.
///
///     negotiate() →  NegotiateMessage   →
///                 ←  ChallengeMessage   ←
///     authenticate() → AuthenticateMessage →
///                 ←  (SPNEGO only: accept-completed)  → conclude()
///
/// Each verb is taken once, in this order; after an error only `negotiate()` is left, which begins anew. Does not implement LM, NTLMv1, anonymous log-on, datagrams, and sealing of messages.
package struct NTLMContext: Sendable {
    /// How the messages are carried.
    package enum Framing: Sendable {
        /// As they are: the `NTLM` scheme.
        case raw
        /// Inside SPNEGO, NTLM being the only mechanism offered: the `Negotiate` scheme (RFC 4559).
        case spnego
    }

    private enum State: Sendable {
        case created
        case negotiated([UInt8])
        /// Nil: the server answered without SPNEGO, and owes nothing more.
        case authenticated(spnego: Session?)
        case ended
    }

    private struct Session: Sendable {
        let flags: NegotiateFlags
        let exportedSessionKey: Secret
    }

    private let account: AccountName
    private let responseKey: Secret
    private let servicePrincipalName: String
    private var channelBindingsHash: [UInt8]
    private let workstation: String
    private let framing: Framing
    private var state = State.created

    /// A dialogue for `credential`, whose password is not kept: only NTOWFv2 is.
    ///
    /// `domain` goes with a bare user name; `servicePrincipalName` reads `HTTP/host`; `workstation` may be empty. Without
    /// `channelBinding` the server is told that there is none. Throws `unusableCredential`.
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

    /// Binds the dialogue to the TLS connection that the second token will be sent on. The first token does not depend on it.
    package mutating func bind(to channelBinding: ChannelBinding?) {
        channelBindingsHash = Self.hash(of: channelBinding)
    }

    private static func hash(of channelBinding: ChannelBinding?) -> [UInt8] {
        channelBinding.map { NTLMv2.channelBindingsHash(applicationData: $0.applicationData) }
            ?? [UInt8](repeating: 0, count: 16)
    }

    /// The first token of a new dialogue. It names nobody: no user, domain or workstation is in it.
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
    /// `now` is a FILETIME (100 ns steps since 1601) and is used when the server does not tell its own time;
    /// `clientChallenge` is 8 and `exportedSessionKey` 16 unpredictable bytes, never used before. Throws `malformed`,
    /// `unsupported` or `rejected` for the server's token, `outOfOrder` and `unusableCredential` for ours.
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
        let signed = MIC.write(mic, into: message)
        state = .authenticated(spnego: isBare ? nil : session)
        return isBare ? signed : Self.wrap(signed, session: session)
    }

    /// Takes what the server sent with its final response; empty if that was nothing.
    ///
    /// Throws `rejected` when it did not accept, `wrongMIC` when its mechListMIC was made by somebody who does not know
    /// the session key.
    package mutating func conclude(_ serverToken: [UInt8]) throws(NTLMError) {
        guard case .authenticated(let session) = state else {
            throw NTLMError(.outOfOrder, "a dialogue is concluded once, after the AuthenticateMessage")
        }
        state = .ended
        guard !serverToken.isEmpty else { return }
        guard let session else {
            throw NTLMError(.malformed, "the server sent a token of \(serverToken.count) bytes where none is due")
        }
        let response = try NegTokenResp(parsing: serverToken)
        try response.checkAcceptable()
        guard response.negState == .acceptCompleted, response.responseToken?.isEmpty ?? true else {
            throw NTLMError(.rejected, "the server did not complete the negotiation")
        }
        guard let mic = response.mechListMIC else { return }
        guard mic == Self.mechListMIC(session: session, direction: .serverToClient) else {
            throw NTLMError(.wrongMIC, "the server's mechListMIC does not fit the session key")
        }
    }

    // MARK: The AuthenticateMessage

    /// The message with a MIC of zeros, and the session it opens. MS-NLMP §3.1.5.1.2.
    private func answer(
        _ challenge: ChallengeMessage, now: UInt64, clientChallenge: [UInt8], sessionKey: Secret
    ) throws(NTLMError) -> (message: [UInt8], session: Session) {
        var flags = NegotiateFlags.client.intersection(challenge.flags)
        // A key is exchanged only to sign with it; MS-NLMP leaves the field undefined otherwise.
        if !flags.contains(.sign) { flags.remove(.keyExchange) }
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
        let response = try NegTokenResp(parsing: serverToken)
        try response.checkAcceptable()
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
            mechListMIC: session.flags.contains(.sign) ? mechListMIC(session: session, direction: .clientToServer) : nil
        ).serialized
    }

    /// GSS_GetMIC over the mechanisms that were offered, with sequence number 0 (RFC 4178 §5).
    private static func mechListMIC(session: Session, direction: SessionSecurity.Direction) -> [UInt8] {
        var security = SessionSecurity(
            flags: session.flags, exportedSessionKey: session.exportedSessionKey, direction: direction)
        return security.mac(NegTokenInit.ntlm([]).mechTypeList)
    }
}
