// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignChallenges
import CountersignCryptography
import CountersignDeviceManagement
import CountersignOAuth
import Synchronization
import Testing

@testable import CountersignSignIn

/// A page's question for this device's certificate, and the answer to it.
@Suite struct DeviceChallengeTests {
    private static let login = Origin(scheme: .https, host: "login.example", port: 443)
    private static let submit = "https%3A%2F%2Flogin.example%2Fcommon%2FDeviceAuthPKeyAuth%3Fctx%3Da%2526b"

    /// The question with these parameters in place of the usual ones.
    private static func url(_ own: [String: String?] = [:]) -> String {
        let usual: [String: String?] = ["nonce": "n-1", "Context": "c%22x", "Version": "1.0", "SubmitUrl": submit]
        let pairs = usual.merging(own) { $1 }.sorted { $0.key < $1.key }
        return "urn:http-auth:PKeyAuth?"
            + pairs.compactMap { name, value in value.map { "\(name)=\($0)" } }
            .joined(separator: "&")
    }

    private final class Key: DeviceKey {
        let algorithm = "RS256"
        func signature(of message: [UInt8]) -> [UInt8]? { [1, 2, 3] }
    }

    private static let device = DeviceCredential(
        name: "laptop", certificate: DeviceCertificate(der: [0x30, 0], issuer: "CN=CA", key: Key()))

    private func page(_ report: @escaping @Sendable (UserAgentEvent) -> Void = { _ in }) throws -> SignInPage {
        SignInPage(
            url: try EndpointURL("https://login.example/authorize", "page"),
            redirect: try RedirectURI("app.example:/cb"), origins: [Self.login], limit: .seconds(60), messages: nil,
            report: report, judge: { _ in .foreign },
            answer: { _ in nil })
    }

    @Test func theAnswerReturnsContextAndVersionWithASignedToken() throws {
        let challenge = try DeviceChallenge(Self.url(), origins: [Self.login])
        #expect(challenge.submitURL.description == "https://login.example/common/DeviceAuthPKeyAuth?ctx=a%26b")
        let fields = challenge.fields(Self.device, time: 1_800_000_000)
        #expect(fields.map(\.name) == ["Authorization", "x-ms-PKeyAuth"] && fields[1].value == "1.0")
        let answer = try #require(try ChallengeParser.parse(fields: [fields[0].value]).first)
        #expect(answer.scheme == "PKeyAuth" && answer.parameters.map(\.name) == ["AuthToken", "Context", "Version"])
        #expect(answer.parameter("Context") == "c\"x")
        let token = try #require(answer.parameter("AuthToken")?.split(separator: "."))
        let payload = Base64URL.decode(token[1]).map { String(decoding: $0, as: UTF8.self) }
        #expect(
            payload
                == #"{"aud":"https://login.example/common/DeviceAuthPKeyAuth","iat":"1800000000","nonce":"n-1"}"#)
        #expect(challenge.fields(.none, time: 0)[0].value == #"PKeyAuth Context="c\"x", Version="1.0""#)
    }

    @Test func namesCompareWithoutCase() throws {
        let text = Self.url(["nonce": nil, "NONCE": "n-1", "SubmitUrl": nil, "submiturl": Self.submit])
        #expect(
            try DeviceChallenge(text, origins: [Self.login]) == DeviceChallenge(Self.url(), origins: [Self.login]))
    }

    @Test(
        arguments: [
            (["nonce": nil], "lacks"), (["nonce": ""], "lacks"), (["Context": nil], "lacks"),
            (["Version": nil], "lacks"),
            (["SubmitUrl": nil], "lacks"), (["Nonce": "n-2"], "ambiguous"), (["submiturl": submit], "ambiguous"),
            (["Context": "a%0D%0AX: b"], "no field can have"), (["Version": "%C3%A4"], "no field can have"),
            (["Context": "%zz"], "decoded"), (["SubmitUrl": "http%3A%2F%2Flogin.example%2F"], "SubmitUrl"),
            (["SubmitUrl": "https%3A%2F%2Fevil.example%2F"], "not one of the profile's hosts"),
            (["SubmitUrl": "https%3A%2F%2Flogin.example%3A8443%2F"], "not one of the profile's hosts"),
            (["SubmitUrl": "https%3A%2F%2Fa%40login.example%2F"], "SubmitUrl"),
            (["SubmitUrl": "%2Fcommon"], "SubmitUrl"),
        ] as [([String: String?], String)])
    func anotherQuestionIsNotAnswered(own: [String: String?], reason: String) {
        let error = #expect(throws: DeviceManagementError.self) {
            try DeviceChallenge(Self.url(own), origins: [Self.login])
        }
        #expect(error?.detail.contains(reason) == true, "\(String(describing: error))")
    }

    @Test func thePersonIsToldWhyThereIsNoCertificate() throws {
        let events = Mutex<[UserAgentEvent]>([])
        let proof = DeviceProof(isAnnounced: { _ in true }) { _, origin in
            origin == Self.login ? .none(reason: "it is lent") : .certificate(Self.device)
        }
        let answers = DeviceAnswers(try page { event in events.withLock { $0.append(event) } }, [Self.login], proof)
        #expect(answers.isAnnounced)
        guard case .load(_, let fields) = try answers.answer(to: Self.url()) else {
            Issue.record("no page is loaded")
            return
        }
        #expect(fields[0].value == #"PKeyAuth Context="c\"x", Version="1.0""#)
        #expect(
            events.withLock { $0 } == [
                .specialURL("urn:http-auth:PKeyAuth"),
                .unavailable("login.example asks for this device's certificate, and gets none: it is lent"),
            ])
    }

    @Test func pagesCannotAskWithoutEnd() throws {
        let answers = DeviceAnswers(try page(), [Self.login], nil)
        #expect(!answers.isAnnounced)
        for _ in 0..<DeviceAnswers.maximum { _ = try answers.answer(to: Self.url()) }
        let error = #expect(throws: DeviceManagementError.self) { try answers.answer(to: Self.url()) }
        #expect(error?.detail.contains("again and again") == true)
    }

    @Test func anAnswerThatTheWindowWouldRefuseIsNotSent() throws {
        let answers = DeviceAnswers(try page(), [Self.login], nil)
        let error = #expect(throws: DeviceManagementError.self) {
            try answers.answer(to: Self.url(["Context": String(repeating: "c", count: 17_000)]))
        }
        #expect(error?.detail.contains("too long") == true)
    }
}
