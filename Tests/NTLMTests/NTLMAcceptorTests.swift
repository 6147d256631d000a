// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignCryptography
import CountersignSPNEGO
import Testing

@testable import CountersignDemo
@testable import CountersignNTLM

@Suite struct NTLMAcceptorTests {
    @Test(arguments: [NTLMContext.Framing.raw, .spnego])
    func aRightAnswerIsAccepted(framing: NTLMContext.Framing) throws {
        for (user, domain, expected) in [
            ("ACME\\jdoe", nil, ("jdoe", "ACME")), ("jdoe", "ACME", ("jdoe", "ACME")),
            ("jdoe@acme.example", "ACME", ("jdoe@acme.example", "")), ("ACME\\jörgé", nil, ("jörgé", "ACME")),
        ] as [(String, String?, (String, String))] {
            var dialogue = try Dialogue(framing, user: user, domain: domain)
            let client = try dialogue.run()
            #expect((client.user, client.domain) == expected)
            #expect(client.workstation == "WS01")
            #expect(client.finalToken.isEmpty == (framing == .raw))
        }
    }

    @Test(arguments: [NTLMContext.Framing.raw, .spnego])
    func aWrongPasswordIsRefused(framing: NTLMContext.Framing) throws {
        for password in ["", "sesame1!", "Sesame1! ", "Sesame1"] {
            var dialogue = try Dialogue(framing)
            #expect(throws: NTLMError(.wrongPassword, "")) { try dialogue.run(password: password) }
        }
    }

    @Test func anotherConnectionsBindingIsRefused() throws {
        for binding in [nil, ChannelBinding.tlsServerEndPoint(certificateHash: Array(1..<33))] {
            var dialogue = try Dialogue(channelBinding: binding)
            #expect(throws: NTLMError(.wrongChannelBinding, "")) { try dialogue.run() }
            dialogue.requirements.channelBinding = nil
            #expect(throws: Never.self) { try dialogue.run() }
        }
    }

    @Test func anotherServicesAnswerIsRefused() throws {
        for name in ["HTTP/evil.example", "", "cifs/www.example", "HTTP/www.example:8443"] {
            var dialogue = try Dialogue(servicePrincipalName: name)
            #expect(throws: NTLMError(.wrongTargetName, "")) { try dialogue.run() }
            dialogue.requirements.servicePrincipalName = nil
            #expect(throws: Never.self) { try dialogue.run() }
        }
        var dialogue = try Dialogue(servicePrincipalName: "http/WWW.EXAMPLE")
        #expect(throws: Never.self) { try dialogue.run() }
    }

    @Test func everyFlippedBitOfTheMICIsFound() throws {
        var dialogue = try Dialogue()
        let answer = try dialogue.answer(try dialogue.challenge())
        for bit in 0..<128 {
            var altered = answer
            altered[72 + bit / 8] ^= 1 << (bit % 8)
            var attempt = dialogue
            attempt.requirements.mic = false
            #expect(throws: NTLMError(.wrongMIC, "")) { try attempt.verify(altered) }
        }
    }

    @Test func anyFlippedBitOfTheAnswerIsFound() throws {
        var dialogue = try Dialogue()
        let answer = try dialogue.answer(try dialogue.challenge())
        for bit in 0..<8 * answer.count {
            var altered = answer
            altered[bit / 8] ^= 1 << (bit % 8)
            var attempt = dialogue
            #expect(throws: NTLMError.self, "bit \(bit)") { try attempt.verify(altered) }
        }
    }

    @Test func aMessageWithoutMICIsRefusedIfOneIsDemandedOrAnnounced() throws {
        var dialogue = try Dialogue()
        var message = try AuthenticateMessage(parsing: try dialogue.answer(try dialogue.challenge()))
        message.mic = nil
        let bytes = try message.serialized()
        dialogue.requirements.mic = false
        #expect(throws: NTLMError(.wrongMIC, "")) { try dialogue.verify(bytes) }
    }

    /// The message of an old client: a correct proof, none of our pairs in the target info, and no MIC.
    private func messageWithoutMIC(_ dialogue: inout Dialogue, targetInfo: [UInt8] = [0, 0, 0, 0]) throws -> [UInt8] {
        let key = try NTLMv2.ntowfv2(password: Secret(utf8: Dialogue.password), user: "jdoe", domain: "ACME")
        var message = try AuthenticateMessage(parsing: try dialogue.answer(try dialogue.challenge()))
        message.mic = nil
        message.ntChallengeResponse =
            NTLMv2.computeResponse(
                responseKey: key, serverChallenge: Dialogue.serverChallenge,
                clientChallenge: [UInt8](repeating: 3, count: 8), time: 1, targetInfo: targetInfo
            ).ntChallengeResponse
        return try message.serialized()
    }

    @Test func aClientThatKnowsNoMICIsAcceptedWhereNoneIsDemanded() throws {
        var dialogue = try Dialogue()
        let bytes = try messageWithoutMIC(&dialogue)
        dialogue.requirements = NTLMAcceptor.Requirements(mic: false)
        var demanding = dialogue
        demanding.requirements.mic = true
        #expect(throws: NTLMError(.wrongMIC, "")) { try demanding.verify(bytes) }
        #expect(try dialogue.verify(bytes).user == "jdoe")
    }

    @Test func onlyZerosFollowTheTargetInfoOfAResponse() throws {
        var dialogue = try Dialogue()
        let bytes = try messageWithoutMIC(&dialogue, targetInfo: [0, 0, 0, 0, 1])
        #expect(throws: NTLMError(.malformed, "")) { try dialogue.verify(bytes) }
    }

    @Test func flagsThatWereNotGrantedAreRefused() throws {
        var dialogue = try Dialogue()
        let bytes = try messageWithoutMIC(&dialogue)
        let negotiate = NegotiateMessage(flags: .client.subtracting(.negotiate56), version: .own).serialized
        _ = try dialogue.acceptor.challenge(negotiate, serverChallenge: Dialogue.serverChallenge)
        dialogue.requirements = NTLMAcceptor.Requirements(mic: false)
        #expect(throws: NTLMError(.unsupported, "")) { try dialogue.verify(bytes) }
    }

    @Test func anAnswerIsTakenOnceAndForItsChallengeOnly() throws {
        var dialogue = try Dialogue()
        let answer = try dialogue.answer(try dialogue.challenge())
        var fresh = dialogue
        _ = try fresh.verify(answer)
        #expect(throws: NTLMError(.outOfOrder, "")) { try fresh.verify(answer) }
        let negotiate = NegotiateMessage(flags: .client, version: .own).serialized
        _ = try dialogue.acceptor.challenge(negotiate, serverChallenge: [8, 7, 6, 5, 4, 3, 2, 1])
        #expect(throws: NTLMError(.wrongPassword, "")) { try dialogue.verify(answer) }
    }

    @Test func responsesOfNTLMv1AreUnsupported() throws {
        for response in [[], [UInt8](repeating: 1, count: 24), [UInt8](repeating: 2, count: 60)] {
            var dialogue = try Dialogue()
            var message = try AuthenticateMessage(parsing: try dialogue.answer(try dialogue.challenge()))
            message.ntChallengeResponse = response
            let bytes = try message.serialized()
            #expect(throws: NTLMError(.unsupported, "")) { try dialogue.verify(bytes) }
        }
    }

    @Test func theClaimedUserIsReadWithoutProof() throws {
        for framing in [NTLMContext.Framing.raw, .spnego] {
            var dialogue = try Dialogue(framing)
            let answer = try dialogue.answer(try dialogue.challenge())
            #expect(try dialogue.acceptor.claimedUser(answer) == ("jdoe", "ACME"))
        }
    }

    @Test func aForgedMechListMICIsFound() throws {
        var dialogue = try Dialogue(.spnego)
        var token = try NegTokenResp(parsing: try dialogue.answer(try dialogue.challenge()))
        token.mechListMIC?[5] ^= 1
        #expect(throws: NTLMError(.wrongMIC, "")) { try dialogue.verify(token.serialized) }
    }

    @Test func aSPNEGOClientWithoutMechListMICGetsNone() throws {
        var dialogue = try Dialogue(.spnego)
        var token = try NegTokenResp(parsing: try dialogue.answer(try dialogue.challenge()))
        token.mechListMIC = nil
        let final = try dialogue.verify(token.serialized).finalToken
        #expect(try NegTokenResp(parsing: final) == NegTokenResp(negState: .acceptCompleted, responseToken: nil))
    }

    @Test func firstTokensThatCannotBeChallengedAreRefused() throws {
        let noUnicode = NegotiateMessage(flags: .client.subtracting(.unicode), version: .own).serialized
        let noSecurity = NegotiateMessage(flags: .client.subtracting(.extendedSessionSecurity), version: .own)
            .serialized
        let kerberosFirst = NegTokenInit(mechTypes: [[0x2A], MechanismOID.ntlm], mechToken: [1]).serialized
        let nothing = NegTokenInit(mechTypes: [MechanismOID.ntlm], mechToken: nil).serialized
        var acceptor = try Dialogue().acceptor
        for token in [noUnicode, noSecurity, kerberosFirst, nothing] {
            #expect(throws: NTLMError(.unsupported, "")) {
                try acceptor.challenge(token, serverChallenge: Dialogue.serverChallenge)
            }
        }
        #expect(throws: NTLMError(.malformed, "")) {
            try acceptor.challenge([], serverChallenge: Dialogue.serverChallenge)
        }
        #expect(throws: NTLMError(.outOfOrder, "")) { try acceptor.challenge(noUnicode, serverChallenge: [1]) }
    }

    @Test func errorsNeverTellThePassword() throws {
        var dialogue = try Dialogue()
        let error = #expect(throws: NTLMError.self) { try dialogue.run(password: "Tr0ub4dor") }
        #expect(error?.description.contains("Tr0ub4dor") == false)
        #expect(error?.description.contains(Dialogue.password) == false)
    }
}
