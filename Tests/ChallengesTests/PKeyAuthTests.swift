// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import Testing

@testable import CountersignChallenges

@Suite struct PKeyAuthTests {
    /// Signs with a fixed signature, and keeps the signed data.
    private final class Key: DeviceKey {
        let algorithm: String
        private let signs: Bool

        init(_ algorithm: String = "RS256", signs: Bool = true) {
            self.algorithm = algorithm
            self.signs = signs
        }

        func signature(of message: [UInt8]) -> [UInt8]? { signs ? [0xFB, 0xEF] + message.suffix(1) : nil }
    }

    private static let issuer = "DC=net,DC=windows,CN=MS-Organization-Access,OU=82dbaca4-3e81-46ca-9c73-0950c1eaca97"
    /// As servers write it, percent-encoded.
    private static let authorities =
        "OU%3d82DBACA4-3e81-46ca-9c73-0950c1eaca97%2cCN%3dMS-Organization-Access%2cDC%3dwindows%2cDC%3dnet"
    private static let field =
        #"PKeyAuth nonce="n-1", Version="1.0", CertAuthorities="\#(authorities)", Context="c\"x""#

    private static func device(_ key: Key = Key()) -> DeviceCredential {
        DeviceCredential(
            name: "laptop", certificate: DeviceCertificate(der: [0x30, 0x03, 1, 2, 3], issuer: issuer, key: key))
    }

    private static func challenge(_ text: String = field) throws -> PKeyAuthChallenge {
        let challenge = try #require(try ChallengeParser.parse(fields: [text]).first)
        return try #require(PKeyAuthChallenge(challenge))
    }

    private static func value(_ device: DeviceCredential, _ text: String = field) throws -> Challenge {
        let answer = PKeyAuthAnswer(try challenge(text), device)
        let field = answer.field(audience: "https://login.example/common/oauth2/token", time: 1_800_000_000)
        return try #require(field.parsed)
    }

    /// The claims of the answer's token.
    private static func payload(of value: Challenge) -> String? {
        guard let parts = value.parameter("AuthToken")?.split(separator: "."), parts.count == 3 else { return nil }
        return Base64URL.decode(parts[1]).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: The challenge

    @Test func theParametersAreRead() throws {
        let challenge = try Self.challenge()
        #expect(challenge.nonce == "n-1" && challenge.context == "c\"x" && challenge.version == "1.0")
        #expect(challenge.permits(algorithm: "RS256") && !challenge.permits(algorithm: "ES256"))
        let other = try Self.challenge(#"pkeyauth NONCE=n,context="",VERSION=1.0,SupportedAlgs="ES256, PS256""#)
        #expect(other.permits(algorithm: "ES256") && !other.permits(algorithm: "RS256") && other.context.isEmpty)
        #expect(other.accepts(issuer: "CN=anything"))
    }

    @Test(arguments: [
        "PKeyAuth", "PKeyAuth abc", "PKeyAuth nonce=n, Version=1.0", "PKeyAuth nonce=n, Context=c",
        #"PKeyAuth nonce="", Context=c, Version="1.0""#, "PKeyAuth Context=c, Version=1.0",
    ])
    func anIncompleteChallengeIsNotAnswered(field: String) throws {
        let challenge = try #require(try ChallengeParser.parse(fields: [field]).first)
        #expect(!PKeyAuthAuthenticator.shared.canAnswer(challenge))
        #expect(PKeyAuthAuthenticator.shared.shortcoming(of: challenge) == "without a nonce, Context and Version")
    }

    @Test(arguments: [
        (issuer, true), ("OU=82DBACA4-3E81-46CA-9C73-0950C1EACA97,CN=other", true),
        ("OU=82dbaca4-3e81-46ca-9c73-0950c1eaca98", false), ("CN=MS-Organization-Access,DC=windows,DC=net", false),
        ("CN=82dbaca4-3e81-46ca-9c73-0950c1eaca97", false),
    ])
    func theIssuersUnitDecides(issuer: String, isAccepted: Bool) throws {
        #expect(try Self.challenge().accepts(issuer: issuer) == isAccepted)
    }

    @Test func withoutAUnitAllAttributesDecide() throws {
        let challenge = try Self.challenge(
            #"PKeyAuth nonce=n, Context=c, Version=1.0, CertAuthorities="CN=A, O=Acme;CN = Device CA,O=Acme""#)
        #expect(challenge.accepts(issuer: "O=ACME,CN=device ca") && challenge.accepts(issuer: "CN=A,O=Acme"))
        #expect(!challenge.accepts(issuer: "CN=Device CA") && !challenge.accepts(issuer: "CN=Device CA,O=Acme,C=US"))
    }

    /// SHA-1 of its DER.
    @Test func aServerCanNameOneCertificate() throws {
        let der: [UInt8] = [0x30, 0x03, 1, 2, 3]
        let print = Hex.encode(Digest.sha1.hash(der)).uppercased()
        let named = try Self.challenge("PKeyAuth nonce=n, Context=c, Version=1.0, CertThumbprint=\(print)")
        #expect(named.accepts(certificate: der) && !named.accepts(certificate: der + [4]))
        #expect(named.accepts(issuer: "CN=anything"))
        // Issuers come first.
        let both = try Self.challenge(
            "PKeyAuth nonce=n, Context=c, Version=1.0, CertAuthorities=\"CN=A\", CertThumbprint=00")
        #expect(both.accepts(certificate: der) && both.accepts(issuer: "CN=A") && !both.accepts(issuer: "CN=B"))
    }

    @Test func onlyPercentEncodingIsRemoved() {
        #expect(PKeyAuthChallenge.decoded("a%3Db+c%") == "a=b+c%")
        #expect(PKeyAuthChallenge.decoded("%zz%4") == "%zz%4" && PKeyAuthChallenge.decoded("%C3%A4") == "ä")
    }

    // MARK: The answer

    @Test func theAnswerIsASignedToken() throws {
        let value = try Self.value(Self.device())
        #expect(value.scheme == "PKeyAuth" && value.parameters.map(\.name) == ["AuthToken", "Context", "Version"])
        #expect(value.parameter("Context") == "c\"x" && value.parameter("Version") == "1.0")
        let parts = try #require(value.parameter("AuthToken")?.split(separator: "."))
        try #require(parts.count == 3)
        func text(_ part: Substring) -> String? { Base64URL.decode(part).map { String(decoding: $0, as: UTF8.self) } }
        #expect(text(parts[0]) == #"{"alg":"RS256","typ":"JWT","x5c":["MAMBAgM="]}"#)
        #expect(
            text(parts[1])
                == #"{"aud":"https://login.example/common/oauth2/token","iat":"1800000000","nonce":"n-1"}"#)
        #expect(Base64URL.decode(parts[2]) == [0xFB, 0xEF] + parts[1].utf8.suffix(1))
    }

    @Test func withoutACertificateTheAnswerHasNoToken() throws {
        for device in [DeviceCredential.none, Self.device(Key(signs: false))] {
            #expect(try Self.value(device).parameters.map(\.name) == ["Context", "Version"])
        }
    }

    @Test func aNonceIsQuoted() throws {
        let value = try Self.value(
            Self.device(), "PKeyAuth nonce=\"a\\\"\\\\\t\u{E9}\", Context=c, Version=1.0")
        let payload = try #require(Self.payload(of: value))
        #expect(payload.hasSuffix(#""nonce":"a\"\\\u0009é"}"#), "\(payload)")
    }

    @Test(arguments: [
        (
            ["PKeyAuth nonce=n, Context=c, Version=1.0", "Basic realm=r"],
            "the origin did not accept the device's answer"
        ), ([], "the origin did not accept the device's answer"),
        (
            ["Negotiate, Basic realm=r"],
            "the origin asks for Negotiate, Basic after the device's answer, and a request carries one answer"
        ),
    ])
    func theReasonSaysWhatTheServerWantsAfterTheDevice(fields: [String], reason: String) throws {
        var machine = ExchangeMachine(Self.context())
        _ = machine.started()
        _ = machine.responseReceived(status: 401, challengeFields: [ChallengeField(Self.field)])
        _ = machine.decisionReceived(.useCredential(.device(Self.device())))
        guard
            case .deliver(.handedBack(let checks)) = machine.responseReceived(
                status: 401, challengeFields: fields.map { ChallengeField($0) })
        else {
            Issue.record("the challenge is not handed back")
            return
        }
        #expect(checks.failure == reason)
    }

    @Test func nothingSecretIsPrinted() {
        let field = AuthorizationField(scheme: "PKeyAuth", credentials: [1])
        #expect("\(field)" == "PKeyAuth (secret)")
    }

    // MARK: The exchange

    private struct Request: RequestDescription {
        let method = "POST"
        let target: String
        func readContent(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool { true }
    }

    private static func context(
        _ scheme: Origin.Scheme = .https, permitted: [AuthenticationScheme] = [.pkeyauth, .basic]
    ) -> RequestContext {
        RequestContext(
            origin: Origin(scheme: scheme, host: "login.example", port: scheme.defaultPort),
            authenticators: AuthenticatorTable([PKeyAuthAuthenticator.shared, BasicAuthenticator.shared]),
            site: .yes("listed"), permitted: permitted, plaintextPermitted: true, clientAuthorizes: false,
            originTrusted: true, hasBody: false)
    }

    @Test(arguments: [401, 400])
    func aChallengeIsAnsweredWithEitherStatus(status: Int) throws {
        var machine = ExchangeMachine(Self.context())
        #expect(machine.started() == .send(nil))
        guard
            case .ask(let question) = machine.responseReceived(
                status: status, challengeFields: [ChallengeField(Self.field)])
        else {
            Issue.record("the challenge is not answered")
            return
        }
        #expect(question.space.scheme == .pkeyauth && question.space.realm == nil)
        guard case .send(let answer?) = machine.decisionReceived(.useCredential(.device(Self.device()))) else {
            Issue.record("nothing is sent")
            return
        }
        // 2027-01-15 08:00:00 UTC.
        let inputs = AnswerInputs(fileTime: 134_444_736_000_000_000, random: { [UInt8](repeating: 0, count: $0) })
        let field = try #require(answer.field(for: Request(target: "/token?a=b"), inputs)?.parsed)
        #expect(
            Self.payload(of: field)
                == #"{"aud":"https://login.example/token","iat":"1800000000","nonce":"n-1"}"#)
        // The device was asked, so any other response of the server is an acceptance.
        guard case .deliver(.accepted(let accepted)) = machine.responseReceived(status: 400, challengeFields: []) else {
            Issue.record("the response is not delivered")
            return
        }
        #expect(accepted.credential.name == "laptop" && accepted.preemption == .none)
    }

    @Test(arguments: [401, 400])
    func aSecondChallengeIsHandedBack(status: Int) {
        var machine = ExchangeMachine(Self.context())
        _ = machine.started()
        _ = machine.responseReceived(status: 401, challengeFields: [ChallengeField(Self.field)])
        _ = machine.decisionReceived(.useCredential(.device(.none)))
        guard
            case .deliver(.handedBack(let checks)) = machine.responseReceived(
                status: status, challengeFields: [ChallengeField(Self.field)])
        else {
            Issue.record("the challenge is answered again")
            return
        }
        #expect(checks.failure == "the origin did not accept the device's answer")
    }

    @Test(arguments: [
        (400, ["Basic realm=r"]), (400, []), (400, ["PKeyAuth\""]), (403, [field]), (500, [field]),
        (407, [field]),
    ])
    func noOtherResponseIsAChallenge(status: Int, fields: [String]) {
        var machine = ExchangeMachine(Self.context())
        _ = machine.started()
        #expect(
            machine.responseReceived(status: status, challengeFields: fields.map { ChallengeField($0) })
                == .deliver(.notChallenged))
    }

    @Test func aSiteThatDoesNotPermitItIsNotChallengedBy400() {
        var machine = ExchangeMachine(Self.context(permitted: [.basic]))
        _ = machine.started()
        #expect(
            machine.responseReceived(status: 400, challengeFields: [ChallengeField(Self.field)])
                == .deliver(.notChallenged))
    }

    @Test func noOtherSchemeIsAnsweredToA400() {
        var machine = ExchangeMachine(Self.context())
        _ = machine.started()
        let fields = ["Basic realm=r", "PKeyAuth nonce=n"]
        guard
            case .deliver(.handedBack) = machine.responseReceived(
                status: 400, challengeFields: fields.map { ChallengeField($0) })
        else {
            Issue.record("a password is asked for")
            return
        }
        machine = ExchangeMachine(Self.context())
        _ = machine.started()
        guard
            case .ask(let question) = machine.responseReceived(
                status: 400, challengeFields: ["Basic realm=r", ChallengeField(Self.field)])
        else {
            Issue.record("the device is not asked for")
            return
        }
        #expect(question.space.scheme == .pkeyauth)
        // The device cannot answer, and nothing weaker is offered.
        guard case .deliver(.handedBack) = machine.decisionReceived(.rejectProtectionSpace(reason: "no identity"))
        else {
            Issue.record("a password is asked for")
            return
        }
    }

    @Test func a400AfterAnotherSchemesAnswerIsNoRejection() {
        var machine = ExchangeMachine(Self.context())
        _ = machine.started()
        _ = machine.responseReceived(status: 401, challengeFields: ["Basic realm=r"])
        _ = machine.decisionReceived(.jdoe)
        guard
            case .deliver(.accepted) = machine.responseReceived(
                status: 400, challengeFields: [ChallengeField(Self.field)])
        else {
            Issue.record("the password counts as rejected")
            return
        }
    }

    @Test func itIsAnsweredOverTLSOnly() {
        var machine = ExchangeMachine(Self.context(.http))
        _ = machine.started()
        guard
            case .deliver(.handedBack(let checks)) = machine.responseReceived(
                status: 401, challengeFields: [ChallengeField(Self.field)])
        else {
            Issue.record("the challenge is answered")
            return
        }
        #expect(checks.failure == "PKeyAuth is answered over https only")
    }
}
