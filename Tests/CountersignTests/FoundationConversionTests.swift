// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignCryptography
import CountersignURLSession
import CountersignVault
import Foundation
import FoundationNetworking
import Testing

@testable import Countersign

/// The conversions between the library's types and Foundation's.
@Suite(.waiting) struct FoundationConversionTests {
    private static let methods: [AuthenticationMethod] = [
        .basic, .digest, .ntlm, .negotiate, .bearer, .clientCertificate, .serverTrust, .other("HTMLForm"),
    ]

    @Test(arguments: methods) func aProtectionSpaceSurvivesBothConversions(_ method: AuthenticationMethod) {
        let space = Countersign.ProtectionSpace(
            scheme: "http", host: "git.corp.example", port: 8080, realm: "r", authenticationMethod: method)
        let foundation = URLProtectionSpace(space)
        #expect(foundation.host == "git.corp.example" && foundation.port == 8080 && foundation.protocol == "http")
        #expect(Countersign.ProtectionSpace(foundation) == space)
    }

    @Test func theNamesOfTheMethodsAreFoundations() {
        #expect(AuthenticationMethod.basic.foundationName == NSURLAuthenticationMethodHTTPBasic)
        #expect(AuthenticationMethod.digest.foundationName == NSURLAuthenticationMethodHTTPDigest)
        #expect(AuthenticationMethod(foundationName: NSURLAuthenticationMethodDefault) == .basic)
        #expect(
            AuthenticationMethod(foundationName: NSURLAuthenticationMethodHTMLForm)
                == .other(NSURLAuthenticationMethodHTMLForm))
    }

    @Test func onlyAPasswordBecomesACredentialOfURLSession() throws {
        let password = Credential.password(user: "jdoe", Password("kanarie"))
        let foundation = try #require(URLCredential(password))
        #expect(foundation.user == "jdoe" && foundation.password == "kanarie" && foundation.persistence == .none)
        #expect(Credential(foundation) == password)
        #expect(URLCredential(password, persistence: .forSession)?.persistence == .forSession)
        #expect(URLCredential(.password(user: "jdoe", Password(bytes: [0x6B, 0xFF, 0xFE]))) == nil)
    }

    @Test(arguments: [
        (ChallengeDisposition.useCredential, URLSession.AuthChallengeDisposition.useCredential),
        (.performDefaultHandling, .performDefaultHandling),
        (.cancelAuthenticationChallenge, .cancelAuthenticationChallenge),
        (.rejectProtectionSpace, .rejectProtectionSpace),
    ])
    func aDispositionHasTheSameName(
        _ own: ChallengeDisposition, _ foundation: URLSession.AuthChallengeDisposition
    ) {
        #expect(URLSession.AuthChallengeDisposition(own) == foundation)
        #expect(ChallengeDisposition(foundation) == own)
    }

    private final class Sender: NSObject, URLAuthenticationChallengeSender, Sendable {
        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
        func cancel(_ challenge: URLAuthenticationChallenge) {}
        func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
    }

    /// Foundation's challenge keeps the proposed credential, which is not taken back from it.
    @Test func aChallengeKeepsItsFailures() {
        let challenge = Countersign.AuthenticationChallenge(
            protectionSpace: .git(.basic), proposedCredential: .password(user: "jdoe", Password("wrong")),
            previousFailureCount: 2)
        let foundation = URLAuthenticationChallenge(challenge, sender: Sender())
        #expect(foundation.previousFailureCount == 2)
        #expect(foundation.proposedCredential?.user == "jdoe")
        let back = Countersign.AuthenticationChallenge(foundation)
        #expect(back == .init(protectionSpace: .git(.basic), previousFailureCount: 2))
    }

    // MARK: Answers

    @Test(arguments: [true, false]) func aDelegateGetsTheHomesPasswordOrAnEnd(hasProposal: Bool) async throws {
        let home = try LibraryHome("https://git.corp.example answer=basic\n")
        let controller = try home.controller()
        let (disposition, credential) = await controller.answer(
            .init(protectionSpace: .git(.basic)), hasProposal: hasProposal)
        #expect(disposition == .useCredential)
        #expect(credential?.password == LibraryHome.password)
        let refused = await controller.answer(.init(protectionSpace: .git(.ntlm)), hasProposal: hasProposal)
        #expect(refused.0 == (hasProposal ? .performDefaultHandling : .cancelAuthenticationChallenge))
        #expect(refused.1 == nil)
    }

    @Test(arguments: [true, false]) func aTokenIsNotSentByURLSession(hasProposal: Bool) async throws {
        let home = try LibraryHome("https://git.corp.example credential=api\n")
        let vault = try SealedVault(home: home.path).open { () throws in Secret(utf8: LibraryHome.passphrase) }
        try vault.update { try $0.setToken(name: "api", token: Secret(utf8: "kanarie.to-ken==")) }
        let controller = try home.controller()
        let (disposition, credential) = await controller.answer(
            .init(protectionSpace: .git(.bearer)), hasProposal: hasProposal)
        #expect(disposition == (hasProposal ? .performDefaultHandling : .cancelAuthenticationChallenge))
        #expect(credential == nil)
    }

    // MARK: Errors

    @Test func anErrorOfTheLibraryBecomesOneOfURLSession() async throws {
        let controller = try LibraryHome("").controller()
        let error = try #require(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        let url = try #require(URL(string: "https://git.corp.example/"))
        let converted = URLError(error, url: url)
        #expect(converted.code == .userAuthenticationRequired)
        #expect(converted.localizedDescription == error.localizedDescription)
        #expect(converted.userInfo[NSLocalizedRecoverySuggestionErrorKey] as? String == error.hint)
        #expect(converted.userInfo[NSURLErrorFailingURLErrorKey] as? URL == url)
        #expect(converted.challengeError == error)
        #expect(URLError(.timedOut).challengeError == nil)
    }

    @Test(arguments: [
        (ChallengeError.Code.serverNotTrusted, URLError.Code.serverCertificateUntrusted),
        (.tlsFailed, .secureConnectionFailed), (.proxyFailed, .cannotConnectToHost),
        (.providerUnreachable, .networkConnectionLost), (.signInCancelled, .userCancelledAuthentication),
        (.signInTimedOut, .timedOut), (.invalidProtectionSpace, .badURL),
        (.nothingToAnswerWith, .userAuthenticationRequired),
    ])
    func eachKindOfErrorHasTheCodeOfURLSession(_ own: ChallengeError.Code, _ code: URLError.Code) {
        #expect(URLError(ChallengeError(own, "what happened")).code == code)
    }
}
