// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignNTLM
import CountersignSPNEGO

/// The server's side of an NTLM exchange, for the demo's sites and for tests: issues the ChallengeMessage and verifies
/// the response, raw or inside SPNEGO. MS-NLMP §3.2.
///
/// Supports NTLMv2 only, and rejects a client whose preferred SPNEGO mechanism is another one.
package struct NTLMAcceptor: Sendable {
    /// Requirements on a response, apart from the correct proof.
    package struct Requirements: Sendable {
        /// The TLS connection that the response must be bound to; nil accepts any, or none.
        package var channelBinding: ChannelBinding?
        /// The service that the response must name, compared case-insensitively; nil accepts any, or none.
        package var servicePrincipalName: String?
        /// Whether a message without a MIC is rejected. A MIC that is present or announced must always be correct.
        package var mic: Bool

        package init(channelBinding: ChannelBinding? = nil, servicePrincipalName: String? = nil, mic: Bool = true) {
            self.channelBinding = channelBinding
            self.servicePrincipalName = servicePrincipalName
            self.mic = mic
        }
    }

    /// The authenticated client.
    package struct Client: Equatable, Sendable {
        package let user: String
        package let domain: String
        package let workstation: String
        /// The token for the final response; empty if the client did not use SPNEGO.
        package let finalToken: [UInt8]
    }

    private struct Exchange: Sendable {
        let negotiate: [UInt8]
        let challenge: [UInt8]
        let serverChallenge: [UInt8]
        let grantedFlags: NegotiateFlags
        /// Nil if the client does not use SPNEGO.
        let mechTypeList: [UInt8]?
    }

    private let targetName: String
    private let targetInfo: TargetInfo
    private var exchange: Exchange?

    /// A server that sends `targetName` and `targetInfo`, including the timestamp if that has one.
    package init(targetName: String, targetInfo: TargetInfo) {
        self.targetName = targetName
        self.targetInfo = targetInfo
    }

    /// The reply to the client's first token. `serverChallenge` must be 8 unpredictable bytes.
    package mutating func challenge(
        _ clientToken: [UInt8], serverChallenge: [UInt8]
    ) throws(NTLMError) -> [UInt8] {
        exchange = nil
        guard serverChallenge.count == ChallengeMessage.serverChallengeBytes else {
            throw NTLMError(.outOfOrder, "a server challenge must have 8 bytes")
        }
        let initiation = try Self.initiation(clientToken)
        let negotiate = try NegotiateMessage(parsing: initiation.message)
        guard negotiate.flags.isSuperset(of: [.unicode, .extendedSessionSecurity]) else {
            throw NTLMError(.unsupported, "the client does not offer Unicode and extended session security")
        }
        let flags = negotiate.flags.intersection(.client).union([.ntlm, .targetInfo, .targetTypeServer, .version])
        let message = try ChallengeMessage(
            flags: flags, serverChallenge: serverChallenge, targetName: targetName, targetInfo: targetInfo,
            version: .own
        ).serialized()
        exchange = Exchange(
            negotiate: initiation.message, challenge: message, serverChallenge: serverChallenge, grantedFlags: flags,
            mechTypeList: initiation.mechTypeList)
        guard initiation.mechTypeList != nil else { return message }
        return NegTokenResp(
            negState: .acceptIncomplete, supportedMech: MechanismOID.ntlm, responseToken: message
        ).serialized
    }

    /// The unverified user name in the client's second token, for looking up the password.
    package func claimedUser(_ clientToken: [UInt8]) throws(NTLMError) -> (user: String, domain: String) {
        let message = try AuthenticateMessage(parsing: try unwrap(clientToken).message)
        return (message.user, message.domain)
    }

    /// Verifies that the client's second token was computed with `password` for this challenge and meets
    /// `requirements`. Throws `wrongPassword`, `wrongMIC`, `wrongChannelBinding`, `wrongTargetName`, or the fault of
    /// the message.
    package mutating func verify(
        _ clientToken: [UInt8], password: Secret, requiring requirements: Requirements
    ) throws(NTLMError) -> Client {
        guard let exchange else {
            throw NTLMError(.outOfOrder, "an AuthenticateMessage can be verified once, after the ChallengeMessage")
        }
        let token = try unwrap(clientToken)
        self.exchange = nil
        let message = try AuthenticateMessage(parsing: token.message)
        let answer = try ClientResponse(parsing: message.ntChallengeResponse)
        let sessionBaseKey = try Self.verifyProof(of: message, answer, exchange: exchange, password: password)
        let sessionKey = try Self.exportedSessionKey(message, sessionBaseKey: sessionBaseKey)
        try Self.verifyMIC(
            of: message, bytes: token.message, isRequired: requirements.mic || answer.targetInfo.announcesMIC,
            exchange: exchange, sessionKey: sessionKey)
        try Self.verifyTarget(answer.targetInfo, requirements)
        let finalToken = try Self.finalToken(
            token, flags: message.flags, sessionKey: sessionKey, mechTypeList: exchange.mechTypeList)
        return Client(
            user: message.user, domain: message.domain, workstation: message.workstation, finalToken: finalToken)
    }

    // MARK: Checks

    private static func verifyProof(
        of message: AuthenticateMessage, _ answer: ClientResponse, exchange: Exchange, password: Secret
    ) throws(NTLMError) -> Secret {
        guard !message.user.isEmpty else { throw NTLMError(.unsupported, "anonymous logon") }
        guard exchange.grantedFlags.isSuperset(of: message.flags.intersection(.client)) else {
            throw NTLMError(.unsupported, "the client uses flags that the server did not grant")
        }
        let key = try NTLMv2.ntowfv2(password: password, user: message.user, domain: message.domain)
        let expected = NTLMv2.response(
            to: exchange.serverChallenge, temp: answer.temp, responseKey: key, clientChallenge: answer.clientChallenge)
        guard Secret(expected.ntChallengeResponse) == Secret(message.ntChallengeResponse) else {
            throw NTLMError(.wrongPassword, "the response was computed with a different password, name or challenge")
        }
        return expected.sessionBaseKey
    }

    private static func exportedSessionKey(
        _ message: AuthenticateMessage, sessionBaseKey: Secret
    ) throws(NTLMError) -> Secret {
        guard message.flags.isSuperset(of: [.keyExchange, .sign]) else { return sessionBaseKey }
        guard message.encryptedRandomSessionKey.count == NTLMv2.keyBytes else {
            throw NTLMError(.malformed, "an encrypted session key must have 16 bytes")
        }
        var rc4 = RC4(key: sessionBaseKey)
        return Secret(rc4.apply(message.encryptedRandomSessionKey))
    }

    private static func verifyMIC(
        of message: AuthenticateMessage, bytes: [UInt8], isRequired: Bool, exchange: Exchange, sessionKey: Secret
    ) throws(NTLMError) {
        guard isRequired else { return }
        guard let mic = message.mic else { throw NTLMError(.wrongMIC, "the response has no MIC") }
        let zeros = [UInt8](repeating: 0, count: MIC.lengthBytes)
        let expected = MIC.compute(
            exportedSessionKey: sessionKey, negotiate: exchange.negotiate, challenge: exchange.challenge,
            authenticate: AuthenticateMessage.write(zeros, into: bytes))
        guard Secret(expected) == Secret(mic) else {
            throw NTLMError(.wrongMIC, "the MIC does not match the messages")
        }
    }

    private static func verifyTarget(_ info: TargetInfo, _ requirements: Requirements) throws(NTLMError) {
        if let binding = requirements.channelBinding {
            let expected = NTLMv2.channelBindingsHash(applicationData: binding.applicationData)
            guard info[.channelBindings] == expected else {
                throw NTLMError(.wrongChannelBinding, "the response is bound to a different TLS connection")
            }
        }
        if let name = requirements.servicePrincipalName {
            let claimed = info[.targetName].flatMap { UTF16Text.decode($0) }
            guard claimed?.lowercased() == name.lowercased() else {
                throw NTLMError(.wrongTargetName, "the response is for \"\(claimed ?? "")\", not \"\(name)\"")
            }
        }
    }

    // MARK: SPNEGO

    /// A client token without its SPNEGO wrapper.
    private struct Unwrapped {
        let message: [UInt8]
        var mechTypeList: [UInt8]?
        var mechListMIC: [UInt8]?
    }

    private static func initiation(_ token: [UInt8]) throws(NTLMError) -> Unwrapped {
        guard !token.starts(with: MessageReader.signature) else { return Unwrapped(message: token) }
        let initiation = try NTLMError.reading(try NegTokenInit(parsing: token))
        guard initiation.mechTypes.first == MechanismOID.ntlm, let message = initiation.mechToken else {
            throw NTLMError(.unsupported, "the client's first SPNEGO mechanism is not NTLM")
        }
        return Unwrapped(message: message, mechTypeList: initiation.mechTypeList)
    }

    private func unwrap(_ token: [UInt8]) throws(NTLMError) -> Unwrapped {
        guard exchange?.mechTypeList != nil else { return Unwrapped(message: token) }
        let response = try NTLMError.reading(try NegTokenResp(parsing: token))
        guard response.negState != .reject else { throw NTLMError(.rejected, "the client rejected the negotiation") }
        guard let message = response.responseToken else {
            throw NTLMError(.malformed, "SPNEGO: the client's token contains no AuthenticateMessage")
        }
        return Unwrapped(message: message, mechListMIC: response.mechListMIC)
    }

    private static func finalToken(
        _ token: Unwrapped, flags: NegotiateFlags, sessionKey: Secret, mechTypeList: [UInt8]?
    ) throws(NTLMError) -> [UInt8] {
        guard let mechTypeList else { return [] }
        guard let mic = token.mechListMIC else {
            return NegTokenResp(negState: .acceptCompleted, responseToken: nil).serialized
        }
        var client = SessionSecurity(flags: flags, exportedSessionKey: sessionKey, direction: .clientToServer)
        guard Secret(client.mac(mechTypeList)) == Secret(mic) else {
            throw NTLMError(.wrongMIC, "the client's mechListMIC does not match the session key")
        }
        var server = SessionSecurity(flags: flags, exportedSessionKey: sessionKey, direction: .serverToClient)
        return NegTokenResp(
            negState: .acceptCompleted, responseToken: nil, mechListMIC: server.mac(mechTypeList)
        ).serialized
    }
}
