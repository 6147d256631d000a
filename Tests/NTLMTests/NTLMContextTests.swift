// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignSPNEGO
import Testing

@testable import CountersignDemo
@testable import CountersignNTLM

@Suite struct NTLMContextTests {
    @Test func theAnswerNamesAccountBindingServiceAndServerTime() throws {
        var dialogue = try Dialogue()
        let (message, response) = try dialogue.authenticateMessage()
        #expect(message.user == "jdoe")
        #expect(message.domain == "ACME")
        #expect(message.workstation == "WS01")
        #expect(message.flags == .client)
        #expect(message.encryptedRandomSessionKey.count == 16)
        #expect(response.time == Dialogue.now + 5)
        #expect(response.clientChallenge == [UInt8](repeating: 0xA1, count: 8))
        #expect(
            response.targetInfo.pairs.map(\.id) == [
                .nbComputerName, .nbDomainName, .timestamp, .flags, .channelBindings, .targetName,
            ])
        #expect(response.targetInfo.announcesMIC)
        #expect(response.targetInfo[.targetName] == UTF16Text.encode("HTTP/www.example"))
        #expect(
            response.targetInfo[.channelBindings]
                == NTLMv2.channelBindingsHash(applicationData: Dialogue.binding.applicationData))
    }

    @Test func withServerTimeTheLMResponseIsZeros() throws {
        var dialogue = try Dialogue()
        #expect(try dialogue.authenticateMessage().0.lmChallengeResponse == [UInt8](repeating: 0, count: 24))
    }

    /// HMAC-MD5 keyed with NTOWFv2, followed by the client's challenge; not LM.
    @Test func withoutServerTimeTheCallersIsUsedAndLMv2IsComputed() throws {
        var dialogue = try Dialogue(serverPairs: Dialogue.names)
        let (message, response) = try dialogue.authenticateMessage()
        let key = try NTLMv2.ntowfv2(password: Secret(utf8: Dialogue.password), user: "jdoe", domain: "ACME")
        let challenges = Dialogue.serverChallenge + response.clientChallenge
        #expect(response.time == Dialogue.now)
        #expect(
            message.lmChallengeResponse == NTLMv2.hmacMD5(challenges, key: key).bytes + response.clientChallenge)
    }

    @Test func withoutBindingSixteenZerosSaySo() throws {
        var dialogue = try Dialogue(channelBinding: nil)
        let response = try dialogue.authenticateMessage().1
        #expect(response.targetInfo[.channelBindings] == [UInt8](repeating: 0, count: 16))
    }

    @Test func flagsTheServerDidNotGrantAreNotUsed() throws {
        var dialogue = try Dialogue()
        var challenge = try ChallengeMessage(parsing: try dialogue.challenge())
        challenge.flags = [.unicode, .targetInfo, .extendedSessionSecurity, .ntlm, .keyExchange, .oem, .seal, .lmKey]
        challenge.version = nil
        let message = try AuthenticateMessage(parsing: try dialogue.answer(try challenge.serialized()))
        // A key exchange requires signing.
        #expect(message.flags == [.unicode, .targetInfo, .extendedSessionSecurity, .ntlm, .version])
        #expect(message.encryptedRandomSessionKey == [])
        #expect(message.mic != nil)
    }

    @Test(arguments: [NTLMContext.Framing.raw, .spnego])
    func theVerbsHaveOneOrder(framing: NTLMContext.Framing) throws {
        let outOfOrder = NTLMError(.outOfOrder, "")
        var dialogue = try Dialogue(framing)
        #expect(throws: outOfOrder) { try dialogue.answer([]) }
        #expect(throws: outOfOrder) { try dialogue.client.conclude([]) }
        let challenge = try dialogue.challenge()
        #expect(throws: outOfOrder) { try dialogue.client.conclude([]) }
        let answer = try dialogue.answer(challenge)
        #expect(throws: outOfOrder) { try dialogue.answer(challenge) }
        let final = try dialogue.verify(answer).finalToken
        #expect(try dialogue.client.conclude(final) == nil)
        #expect(throws: outOfOrder) { try dialogue.client.conclude(final) }
    }

    @Test func afterARefusedChallengeNoOtherIsAnswered() throws {
        var dialogue = try Dialogue()
        let challenge = try dialogue.challenge()
        #expect(throws: NTLMError(.malformed, "")) { try dialogue.answer([1, 2, 3]) }
        #expect(throws: NTLMError(.outOfOrder, "")) { try dialogue.answer(challenge) }
    }

    @Test(arguments: [(7, 16), (9, 16), (8, 15), (8, 17), (0, 0)])
    func randomBytesOfAnotherLengthAreRefused(challengeBytes: Int, keyBytes: Int) throws {
        var dialogue = try Dialogue()
        let challenge = try dialogue.challenge()
        #expect(throws: NTLMError(.outOfOrder, "")) {
            try dialogue.client.authenticate(
                challenge, now: 0, clientChallenge: [UInt8](repeating: 0, count: challengeBytes),
                exportedSessionKey: [UInt8](repeating: 0, count: keyBytes))
        }
    }

    @Test func unusableCredentialsAreRefusedBeforeAnythingIsSent() {
        #expect(throws: NTLMError(.unusableCredential, "")) { try Dialogue(user: "ACME\\") }
        #expect(throws: NTLMError(.unusableCredential, "")) {
            try NTLMContext(
                credential: PasswordCredential(name: "x", user: "u", password: Secret([0xFF]), generation: 1),
                domain: nil, servicePrincipalName: "HTTP/h", channelBinding: nil, workstation: "", framing: .raw)
        }
    }

    @Test func namesTooLongForAMessageAreRefused() throws {
        for (user, name) in [
            (String(repeating: "u", count: 40_000), "HTTP/h"), ("u", String(repeating: "h", count: 33_000)),
        ] {
            var dialogue = try Dialogue(user: user, servicePrincipalName: name)
            let challenge = try dialogue.challenge()
            #expect(throws: NTLMError(.unusableCredential, "")) { try dialogue.answer(challenge) }
        }
    }

    @Test func nothingPrintedTellsThePassword() throws {
        var dialogue = try Dialogue()
        var texts = ["\(dialogue.client)"]
        let challenge = try dialogue.challenge()
        _ = try dialogue.answer(challenge)
        var dumped = ""
        dump(dialogue.client, to: &dumped)
        texts.append(dumped)
        for text in texts {
            #expect(!text.contains(Dialogue.password))
            #expect(text.contains("(secret)"))
        }
    }
}

@Suite struct NTLMContextInSPNEGOTests {
    @Test func theAnswerCarriesAMechListMIC() throws {
        var dialogue = try Dialogue(.spnego)
        let token = try NegTokenResp(parsing: try dialogue.answer(try dialogue.challenge()))
        #expect(token.negState == .acceptIncomplete)
        #expect(token.supportedMech == nil)
        #expect(token.mechListMIC?.prefix(4) == [1, 0, 0, 0])
        #expect(token.mechListMIC?.suffix(4) == [0, 0, 0, 0])
    }

    /// mod_auth_ntlm and similar servers reply to `Negotiate` with raw NTLM.
    @Test func aServerWithoutSPNEGOIsAnsweredWithout() throws {
        var dialogue = try Dialogue(.spnego)
        let negotiate = NegotiateMessage(flags: .client, version: .own).serialized
        _ = dialogue.client.negotiate()
        let challenge = try dialogue.acceptor.challenge(negotiate, serverChallenge: Dialogue.serverChallenge)
        let accepted = try dialogue.verify(try dialogue.answer(challenge))
        #expect(accepted.user == "jdoe")
        #expect(accepted.finalToken == [])
        #expect(try dialogue.client.conclude([]) == nil)
    }

    @Test(arguments: [
        (NegTokenResp(negState: .reject, responseToken: nil), NTLMError.Code.wantsTicket),
        (NegTokenResp(negState: .reject, supportedMech: MechanismOID.ntlm, responseToken: [1]), .wantsTicket),
        (NegTokenResp(negState: .acceptIncomplete, supportedMech: [0x2A], responseToken: [1]), .wantsTicket),
        (NegTokenResp(negState: .requestMIC, supportedMech: [0x2A], responseToken: nil), .wantsTicket),
        (NegTokenResp(negState: .acceptCompleted, responseToken: nil), .unsupported),
        (NegTokenResp(negState: .acceptIncomplete, responseToken: nil), .malformed),
        (NegTokenResp(negState: .acceptIncomplete, responseToken: []), .malformed),
    ])
    func aServerThatDoesNotGoOnWithNTLMIsAnError(token: NegTokenResp, code: NTLMError.Code) throws {
        var dialogue = try Dialogue(.spnego)
        _ = try dialogue.challenge()
        #expect(throws: NTLMError(code, "")) { try dialogue.answer(token.serialized) }
    }

    @Test(arguments: [
        (NegTokenResp(negState: .reject, responseToken: nil), NTLMError.Code.rejected),
        (NegTokenResp(negState: .acceptCompleted, supportedMech: [0x2A], responseToken: nil), .wantsTicket),
        (
            NegTokenResp(
                negState: .acceptCompleted, responseToken: nil, mechListMIC: [UInt8](repeating: 1, count: 16)),
            .wrongMIC
        ),
    ])
    func onlyACompletedNegotiationConcludes(token: NegTokenResp, code: NTLMError.Code) throws {
        var dialogue = try Dialogue(.spnego)
        _ = try dialogue.answer(try dialogue.challenge())
        #expect(throws: NTLMError(code, "")) { try dialogue.client.conclude(token.serialized) }
    }

    /// No server has to prove anything.
    @Test(arguments: [
        (NegTokenResp(negState: .acceptIncomplete, responseToken: nil), "it did not complete the negotiation"),
        (NegTokenResp(negState: .requestMIC, responseToken: nil), "it did not complete the negotiation"),
        (NegTokenResp(negState: nil, responseToken: nil), "it did not complete the negotiation"),
        (NegTokenResp(negState: .acceptCompleted, responseToken: [1]), "it did not complete the negotiation"),
        (NegTokenResp(negState: .acceptCompleted, responseToken: nil, mechListMIC: []), "its mechListMIC has 0 bytes"),
        (
            NegTokenResp(
                negState: .acceptCompleted, responseToken: nil, mechListMIC: [UInt8](repeating: 1, count: 15)),
            "its mechListMIC has 15 bytes"
        ),
    ])
    func whatProvesNothingIsNotWrong(token: NegTokenResp, reason: String) throws {
        var dialogue = try Dialogue(.spnego)
        _ = try dialogue.answer(try dialogue.challenge())
        #expect(try dialogue.client.conclude(token.serialized) == reason)
    }

    @Test func aTokenThatCannotBeReadIsNotWrong() throws {
        var dialogue = try Dialogue(.spnego)
        _ = try dialogue.answer(try dialogue.challenge())
        #expect(try dialogue.client.conclude([0x60, 1, 2])?.hasPrefix("SPNEGO: ") == true)
    }

    @Test(arguments: [
        NegTokenResp(negState: .acceptCompleted, responseToken: nil),
        NegTokenResp(negState: .acceptCompleted, supportedMech: MechanismOID.ntlm, responseToken: []),
    ])
    func aCompletedNegotiationNeedsNoMIC(token: NegTokenResp) throws {
        var dialogue = try Dialogue(.spnego)
        _ = try dialogue.answer(try dialogue.challenge())
        #expect(try dialogue.client.conclude(token.serialized) == nil)
    }

    @Test func everyFlippedBitOfTheServersMICIsFound() throws {
        var dialogue = try Dialogue(.spnego)
        let final = try dialogue.verify(try dialogue.answer(try dialogue.challenge())).finalToken
        let mic = final.count - 16
        for bit in 0..<128 {
            var altered = final
            altered[mic + bit / 8] ^= 1 << (bit % 8)
            var client = dialogue.client
            #expect(throws: NTLMError(.wrongMIC, "")) { try client.conclude(altered) }
        }
        #expect(try dialogue.client.conclude(final) == nil)
    }

    @Test func aRawDialogueEndsWithoutAToken() throws {
        var dialogue = try Dialogue(.raw)
        _ = try dialogue.answer(try dialogue.challenge())
        #expect(try dialogue.client.conclude([0]) == "the server sent a token of 1 bytes where none is due")
    }

    /// As in a library restricted to FIPS 140.
    @Test func withoutMD5NothingIsAnswered() throws {
        let credential = EnrolledCredential.password(
            PasswordCredential(name: "e", user: "jdoe", password: Secret(utf8: "secret"), generation: 1))
        let context = RequestContext(
            origin: Origin(scheme: .https, host: "wiki.corp.example", port: 443),
            authenticators: AuthenticatorTable([]), site: .yes("listed"), permitted: [.ntlm],
            plaintextPermitted: false, clientAuthorizes: false, originTrusted: true, hasBody: false)
        let challenge = try #require(try ChallengeParser.parse(fields: ["NTLM"]).first)
        let authenticator = NTLMAuthenticator(.raw, hasMD5: false)
        let reason = "NTLM needs MD5, which OpenSSL does not offer here"
        #expect(authenticator.obstacle(to: credential, context) == reason)
        #expect(throws: AuthenticationError(.unsupportedChallenge, reason)) {
            try authenticator.reply(to: challenge, with: credential, context)
        }
        #expect(NTLMAuthenticator.raw.obstacle(to: credential, context) == nil)
    }
}
