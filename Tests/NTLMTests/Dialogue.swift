// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography

@testable import CountersignDemo
@testable import CountersignNTLM

/// A client and our acceptor with fixed random values, and the messages that they exchange.
struct Dialogue {
    static let password = "Sesame1!"
    static let binding = ChannelBinding.tlsServerEndPoint(certificateHash: Array(0..<32))
    static let servicePrincipalName = "HTTP/www.example"
    static let now: UInt64 = 133_000_000_000_000_000
    static let serverChallenge: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
    static let timestamp = AVPair(.timestamp, (now + 5).littleEndianBytes)
    static let names = [AVPair(.nbComputerName, text: "SRV"), AVPair(.nbDomainName, text: "ACME")]

    var client: NTLMContext
    var acceptor: NTLMAcceptor
    var requirements = NTLMAcceptor.Requirements(
        channelBinding: binding, servicePrincipalName: servicePrincipalName, mic: true)

    init(
        _ framing: NTLMContext.Framing = .raw, user: String = "ACME\\jdoe", password: String = password,
        domain: String? = nil, servicePrincipalName: String = servicePrincipalName,
        channelBinding: ChannelBinding? = binding, serverPairs: [AVPair] = names + [timestamp]
    ) throws(NTLMError) {
        client = try NTLMContext(
            credential: PasswordCredential(
                name: "enrollment", user: user, password: Secret(utf8: password), generation: 1),
            domain: domain, servicePrincipalName: servicePrincipalName, channelBinding: channelBinding,
            workstation: "WS01", framing: framing)
        acceptor = NTLMAcceptor(targetName: "SRV", targetInfo: TargetInfo(serverPairs))
    }

    mutating func challenge() throws(NTLMError) -> [UInt8] {
        try acceptor.challenge(client.negotiate(), serverChallenge: Self.serverChallenge)
    }

    mutating func answer(_ challenge: [UInt8]) throws(NTLMError) -> [UInt8] {
        try client.authenticate(
            challenge, now: Self.now, clientChallenge: [UInt8](repeating: 0xA1, count: 8),
            exportedSessionKey: [UInt8](repeating: 0xB2, count: 16))
    }

    mutating func verify(_ token: [UInt8], password: String = password) throws(NTLMError) -> NTLMAcceptor.Client {
        try acceptor.verify(token, password: Secret(utf8: password), requiring: requirements)
    }

    /// Runs the complete dialogue.
    mutating func run(password: String = password) throws(NTLMError) -> NTLMAcceptor.Client {
        let accepted = try verify(try answer(try challenge()), password: password)
        _ = try client.conclude(accepted.finalToken)
        return accepted
    }

    /// The raw AuthenticateMessage and its response.
    mutating func authenticateMessage() throws(NTLMError) -> (AuthenticateMessage, ClientResponse) {
        let message = try AuthenticateMessage(parsing: try answer(try challenge()))
        return (message, try ClientResponse(parsing: message.ntChallengeResponse))
    }
}
