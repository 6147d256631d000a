// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import CountersignDemo
import CountersignNTLM
import Synchronization
import CountersignTestOrigin
import Testing

@testable import Countersign

import struct CountersignChallenges.ChannelBinding

/// Exchanges driven by hand against a simulated server.
@Suite(.waiting) struct LibraryExchangeTests {
    /// A simulated server with one scheme and one password.
    struct Server {
        enum Kind: String, CaseIterable, Sendable { case basic, ntlm, negotiate }

        let kind: Kind
        var password = LibraryHome.password
        var certificate: Certificate?
        private(set) var accepted: [String] = []
        private var hasChallenged = false
        private var acceptor = NTLMAcceptor(
            targetName: "SRV",
            targetInfo: TargetInfo([AVPair(.nbComputerName, text: "SRV"), AVPair(.nbDomainName, text: "ACME")]))

        init(_ kind: Kind) { self.kind = kind }

        /// The status and `WWW-Authenticate` values of the response to a request with this `Authorization`.
        mutating func respond(to authorization: Authorization?) -> (status: Int, challenges: [String]) {
            let ask: [String]
            switch kind {
            case .basic: ask = ["Basic realm=\"r\""]
            case .ntlm: ask = ["NTLM"]
            case .negotiate: ask = ["Negotiate"]
            }
            guard let authorization, authorization.scheme.lowercased() == kind.rawValue,
                let token = Base64.decode(authorization.fieldValue.split(separator: " ")[1])
            else { return (401, ask) }
            if kind == .basic {
                guard String(decoding: token, as: UTF8.self) == "jdoe:\(password)" else { return (401, ask) }
                accepted.append("jdoe")
                return (200, [])
            }
            do {
                hasChallenged.toggle()
                if hasChallenged {
                    let challenge = try acceptor.challenge(token, serverChallenge: [1, 2, 3, 4, 5, 6, 7, 8])
                    return (401, ["\(authorization.scheme) \(Base64.encode(challenge))"])
                }
                let client = try acceptor.verify(
                    token, password: Secret(utf8: password),
                    requiring: .init(
                        channelBinding: certificate.map {
                            .tlsServerEndPoint(certificateHash: $0.tlsServerEndPointHash)
                        }, servicePrincipalName: "HTTP/git.corp.example"))
                accepted.append(client.user)
                let final = client.finalToken
                return (200, final.isEmpty ? [] : ["Negotiate \(Base64.encode(final))"])
            } catch {
                return (401, ask)
            }
        }
    }

    static let site = "https://git.corp.example\n"
    static let url = "https://git.corp.example/repository"

    /// An exchange over a connection to a trusted server.
    static func exchange(_ controller: ChallengeController) throws -> ChallengeExchange {
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: true, controller: controller)
        try exchange.connected(serverCertificate: certificate("server").der)
        return exchange
    }

    static func certificate(_ name: String) throws -> Certificate {
        try #require(Certificate.readPEM(TextFile.bytes(TestPKI.shared.certificate(name))).first)
    }

    /// Drives an exchange to its end, answering each challenge with `answer`, and returns all actions.
    static func drive(
        _ exchange: inout ChallengeExchange, _ server: inout Server, showing certificate: Certificate? = nil,
        answer: (AuthenticationChallenge) async -> (ChallengeDisposition, Credential?)
    ) async throws -> [ChallengeExchange.Action] {
        if let certificate { try exchange.connected(serverCertificate: certificate.der) }
        var actions = [exchange.started()]
        while actions.count < 12, let action = actions.last {
            switch action {
            case .send(let authorization):
                let response = server.respond(to: authorization)
                actions.append(exchange.responseReceived(status: response.status, challenges: response.challenges))
            case .sendOpening(let authorization):
                let response = server.respond(to: authorization)
                actions.append(exchange.responseReceived(status: response.status, challenges: response.challenges))
            case .ask(let challenge):
                let (disposition, credential) = await answer(challenge)
                actions.append(exchange.dispositionReceived(disposition, credential))
            case .deliver, .fail, .wait:
                return actions
            }
        }
        return actions
    }

    // MARK: Every disposition, kind of challenge and outcome

    enum End: Equatable, Sendable { case accepted, rejected, handedBack, failed }

    struct Row: Sendable, CustomStringConvertible {
        let disposition: ChallengeDisposition
        let kind: Server.Kind
        let passwordIsRight: Bool
        let end: End
        var description: String { "\(disposition) at \(kind), the password \(passwordIsRight ? "right" : "wrong")" }
    }

    static let rows: [Row] = Server.Kind.allCases.flatMap { kind in
        [true, false].flatMap { right in
            [
                Row(
                    disposition: .useCredential, kind: kind, passwordIsRight: right,
                    end: right ? .accepted : .rejected),
                Row(disposition: .performDefaultHandling, kind: kind, passwordIsRight: right, end: .handedBack),
                Row(disposition: .rejectProtectionSpace, kind: kind, passwordIsRight: right, end: .handedBack),
                Row(disposition: .cancelAuthenticationChallenge, kind: kind, passwordIsRight: right, end: .failed),
            ]
        }
    }

    @Test(arguments: rows)
    func theDispositionAndTheServerDecideTheOutcome(_ row: Row) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try Self.exchange(controller)
        var server = Server(row.kind)
        if !row.passwordIsRight { server.password = "another" }
        let actions = try await Self.drive(&exchange, &server) { challenge in
            guard row.disposition == .useCredential else { return (row.disposition, nil) }
            return await controller.handle(challenge)
        }
        switch (row.end, actions.last) {
        case (.accepted, .deliver(.accepted)?): #expect(server.accepted == ["jdoe"])
        case (.rejected, .deliver(.rejected)?): #expect(server.accepted.isEmpty)
        case (.handedBack, .deliver(.handedBack(let error))?): #expect(error.check == .credential)
        case (.failed, .fail(let reason)?): #expect(reason == "the challenge was cancelled")
        default: Issue.record("\(actions)")
        }
        #expect(actions.first == .send(nil))
        #expect(exchange.requiresSameConnection == (row.kind != .basic && row.disposition == .useCredential))
        // After one rejection, the enrolled credential is not used there again.
        let isStillUsed = (try? controller.canHandle(.git(.basic))) == true
        #expect(isStillUsed == (row.end != .rejected))
    }

    @Test(arguments: Server.Kind.allCases)
    func aRejectedPasswordOfTheProgramDoesNotCountAgainstTheEnrolledOne(_ kind: Server.Kind) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try Self.exchange(controller)
        var server = Server(kind)
        let actions = try await Self.drive(&exchange, &server) { _ in
            (.useCredential, .password(user: "jdoe", Password("of the program")))
        }
        #expect(actions.last == .deliver(.rejected))
        #expect(try controller.canHandle(.git(.basic)))
    }

    @Test func theWeakerChallengeIsAskedAboutIfTheStrongerIsRejected() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try Self.exchange(controller)
        #expect(exchange.started() == .send(nil))
        let first = exchange.responseReceived(status: 401, challenges: ["Basic realm=\"r\"", "NTLM"])
        #expect(Self.method(first) == .ntlm)
        let second = exchange.dispositionReceived(.rejectProtectionSpace, nil)
        #expect(Self.method(second) == .basic)
    }

    private static func method(_ action: ChallengeExchange.Action) -> AuthenticationMethod? {
        if case .ask(let challenge) = action { challenge.protectionSpace.authenticationMethod } else { nil }
    }

    // MARK: NTLM

    @Test(arguments: [Server.Kind.ntlm, .negotiate])
    func anAnswerIsBoundToTheServersCertificate(_ kind: Server.Kind) async throws {
        let certificates = try ["server", "server-sha384"].map {
            try #require(Certificate.readPEM(TextFile.bytes(TestPKI.shared.certificate($0))).first)
        }
        for (shown, demanded) in [(0, 0), (1, 1), (0, 1)] {
            let controller = try LibraryHome(Self.site).controller()
            var exchange = try Self.exchange(controller)
            var server = Server(kind)
            server.certificate = certificates[demanded]
            let actions = try await Self.drive(&exchange, &server, showing: certificates[shown]) {
                await controller.handle($0)
            }
            #expect(actions.last == .deliver(shown == demanded ? .accepted : .rejected))
        }
    }

    @Test func aLaterConnectionRebindsTheAnswer() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let certificate = try Self.certificate("server-sha384")
        var exchange = try Self.exchange(controller)
        var server = Server(.ntlm)
        server.certificate = certificate
        _ = exchange.started()
        guard case .ask(let challenge) = exchange.responseReceived(status: 401, challenges: ["NTLM"]) else {
            Issue.record("no question")
            return
        }
        let (disposition, credential) = await controller.handle(challenge)
        guard case .sendOpening(let opening) = exchange.dispositionReceived(disposition, credential) else {
            Issue.record("no opening")
            return
        }
        try exchange.connected(serverCertificate: certificate.der)
        let challenged = server.respond(to: opening)
        guard case .send(let answer) = exchange.responseReceived(status: 401, challenges: challenged.challenges) else {
            Issue.record("no answer")
            return
        }
        #expect(server.respond(to: answer).status == 200)
    }

    /// A Negotiate exchange, up to the response to its last message.
    private static func answered(_ controller: ChallengeController) async throws -> ChallengeExchange {
        var exchange = try Self.exchange(controller)
        var server = Server(.negotiate)
        _ = exchange.started()
        let challenge = try #require(question(exchange.responseReceived(status: 401, challenges: ["Negotiate"])))
        let (disposition, credential) = await controller.handle(challenge)
        guard case .sendOpening(let opening) = exchange.dispositionReceived(disposition, credential) else {
            throw HarnessError("no opening")
        }
        let challenged = server.respond(to: opening)
        guard case .send = exchange.responseReceived(status: 401, challenges: challenged.challenges) else {
            throw HarnessError("no answer")
        }
        return exchange
    }

    /// Whether the credential counts as accepted.
    private static func isProven(_ controller: ChallengeController) throws -> Bool {
        let key = try #require(try controller.key(.negotiate))
        defer { controller.breaker.ended(key, .inconclusive) }
        return controller.breaker.requestAtOnce(key) == .go && !controller.breaker.isTried(key)
    }

    /// A rejection, and a mechListMIC of another key.
    @Test(arguments: ["oQcwBaADCgEC", "oRswGaADCgEAoxIEEAEBAQEBAQEBAQEBAQEBAQE="])
    func aForgedFinalTokenIsNotAnAcceptance(_ token: String) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try await Self.answered(controller)
        let end = exchange.responseReceived(status: 200, challenges: ["Negotiate \(token)"])
        #expect(end == .fail(reason: "the server's final authentication token is invalid"))
        #expect(try !Self.isProven(controller))
        #expect(exchange.connectionLost() == .fail(reason: "connectionLost was reported out of turn"))
    }

    /// No server has to prove anything.
    @Test(arguments: ["AAAA", "====", "oQcw BaADCgEA", "AAAA, Negotiate AAAA"])
    func aFinalTokenThatCannotBeReadIsNotForged(_ token: String) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try await Self.answered(controller)
        let end = exchange.responseReceived(status: 200, challenges: ["Negotiate \(token)"])
        #expect(end == .deliver(.accepted))
        #expect(try Self.isProven(controller))
    }

    /// A SPNEGO accept-completed token without a mechListMIC is valid.
    @Test func aFinalTokenWithoutAMICIsAccepted() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try await Self.answered(controller)
        let end = exchange.responseReceived(status: 200, challenges: ["Negotiate oQcwBaADCgEA", "Basic realm=x"])
        #expect(end == .deliver(.accepted))
        #expect(try Self.isProven(controller))
    }

    @Test(arguments: [Server.Kind.ntlm, .negotiate])
    func anAnswerWithoutAChannelBindingIsNotSentOverHTTPS(_ kind: Server.Kind) async throws {
        let controller = try LibraryHome(Self.site).controller()
        let untold = ChallengeExchange.Action.fail(
            reason: "the server's certificate was not passed to connected(serverCertificate:)")
        for isTold in [false, true] {
            var exchange = try ChallengeExchange(url: Self.url, serverIsTrusted: true, controller: controller)
            if isTold {
                try exchange.connected(serverCertificate: try Self.certificate("server").der)
                let error = #expect(throws: ChallengeError.self) {
                    try exchange.connected(serverCertificate: [1, 2, 3])
                }
                #expect(error?.code == .certificateFaulty)
                #expect(error?.fault == .caller)
                #expect(error?.hint != nil)
            }
            var server = Server(kind)
            let actions = try await Self.drive(&exchange, &server) { await controller.handle($0) }
            #expect(actions == [.send(nil), untold])
        }
        var basic = try ChallengeExchange(url: Self.url, serverIsTrusted: true, controller: controller)
        var server = Server(.basic)
        #expect(try await Self.drive(&basic, &server) { await controller.handle($0) }.last == .deliver(.accepted))
    }

    @Test func anAnswerOverPlainHTTPNeedsNoChannelBinding() async throws {
        let controller = try LibraryHome("http://git.corp.example plaintext=yes\n").controller()
        var exchange = try ChallengeExchange(url: "http://git.corp.example/", controller: controller)
        var server = Server(.ntlm)
        #expect(try await Self.drive(&exchange, &server) { await controller.handle($0) }.last == .deliver(.accepted))
    }

    static func question(_ action: ChallengeExchange.Action) -> AuthenticationChallenge? {
        if case .ask(let challenge) = action { challenge } else { nil }
    }

    // MARK: Challenges that are not answered

    @Test(arguments: [
        ("https://other.corp.example/", "", ChallengeError.Check.site),
        ("http://git.corp.example/", "http://git.corp.example\n", .method),
        ("https://git.corp.example/", "https://git.corp.example answer=ntlm\n", .method),
    ])
    func aChallengeThatTheListDoesNotPermitIsDeliveredUnchanged(
        _ url: String, _ sites: String, _ check: ChallengeError.Check
    ) async throws {
        let controller = try LibraryHome(sites).controller()
        var exchange = try ChallengeExchange(url: url, serverIsTrusted: true, controller: controller)
        #expect(exchange.started() == .send(nil))
        let action = exchange.responseReceived(status: 401, challenges: ["Basic realm=\"r\""])
        guard case .deliver(.handedBack(let error)) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(error.check == check)
        #expect(error.hint != nil)
        #expect(error.listLine == (check == .site ? nil : "AllowedSites/test.sites:1"))
    }

    @Test(arguments: [true, false])
    func aServerThatIsNotTrustedIsNotAnswered(_ isSaid: Bool) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange =
            isSaid
            ? try ChallengeExchange(url: Self.url, serverIsTrusted: false, controller: controller)
            : try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(.basic)
        let actions = try await Self.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.count == 2)
        guard case .deliver(.handedBack(let error))? = actions.last else {
            Issue.record("\(actions)")
            return
        }
        #expect(error.code == .serverNotTrusted)
        #expect(error.fault == .peer)
        #expect(error.listLine == "AllowedSites/test.sites:1")
        #expect(error.hint != nil)
    }

    @Test func nothingIsAnsweredWhileSwitchedOff() async throws {
        let controller = try LibraryHome(Self.site).controller()
        controller.isIntegratedAuthenticationEnabled = false
        var exchange = try Self.exchange(controller)
        var server = Server(.basic)
        let actions = try await Self.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.count == 2)
        guard case .deliver(.handedBack(let error))? = actions.last else {
            Issue.record("\(actions)")
            return
        }
        #expect(error == ChallengeError(.switchedOff, ""))
        #expect(error.fault == .caller)
        #expect(error.hint?.contains("isIntegratedAuthenticationEnabled") == true)
    }

    @Test(arguments: [
        (LibraryHome.password, "https://git.corp.example credential=none\n", "no"),
        ("wrong", Self.site, "was rejected here"),
    ])
    func theExchangeReportsWhyTheControllerHandedTheChallengeBack(
        _ password: String, _ sites: String, _ reason: String
    ) async throws {
        let controller = try LibraryHome(sites).controller()
        var server = Server(.basic)
        server.password = password == "wrong" ? "another" : password
        var actions: [ChallengeExchange.Action] = []
        for _ in 0..<2 {
            var exchange = try Self.exchange(controller)
            actions = try await Self.drive(&exchange, &server) { await controller.handle($0) }
        }
        guard case .deliver(.handedBack(let error))? = actions.last else {
            Issue.record("\(actions)")
            return
        }
        #expect(error == ChallengeError(.nothingToAnswerWith, "", listLine: "AllowedSites/test.sites:1"))
        #expect(error.detail.contains(reason))
        #expect(error.hint?.contains("`countersign credential set ") == true)
    }

    @Test(arguments: [
        "", "git.corp.example", "ftp://git.corp.example/", "https:///x", "https://jdoe@git.corp.example/",
    ])
    func aURLWithoutASiteIsTheCallersFault(_ url: String) throws {
        let controller = try LibraryHome(Self.site).controller()
        let error = #expect(throws: ChallengeError.self) {
            _ = try ChallengeExchange(url: url, controller: controller)
        }
        #expect(error?.code == .invalidProtectionSpace)
    }

    // MARK: Events out of turn

    @Test func anEventOutOfTurnFailsAndNeverTraps() throws {
        let controller = try LibraryHome(Self.site).controller()
        let events: [(inout ChallengeExchange) -> ChallengeExchange.Action] = [
            { $0.started() }, { $0.responseReceived(status: 200, challenges: []) },
            { $0.responseReceived(status: 401, challenges: ["NTLM"]) }, { $0.dispositionReceived(.useCredential, nil) },
            { $0.dispositionReceived(.useCredential, .password(user: "j", Password("p"))) }, { $0.connectionLost() },
            { $0.connectionLost(requestMayRepeat: true) }, { $0.replayImpossible() },
        ]
        // Every sequence of four events results in actions.
        for number in 0..<(8 * 8 * 8 * 8) {
            var exchange = try Self.exchange(controller)
            var rest = number
            for _ in 0..<4 {
                _ = events[rest % 8](&exchange)
                rest /= 8
            }
        }
        var exchange = try Self.exchange(controller)
        #expect(
            exchange.responseReceived(status: 200, challenges: [])
                == .fail(reason: "responseReceived was reported out of turn"))
    }

    @Test func anInterimResponseIsSkipped() throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try Self.exchange(controller)
        _ = exchange.started()
        #expect(exchange.responseReceived(status: 103, challenges: []) == .wait)
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.notChallenged))
    }

    @Test func anAuthorizationIsRedactedWhenPrinted() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try Self.exchange(controller)
        var server = Server(.basic)
        let actions = try await Self.drive(&exchange, &server) { await controller.handle($0) }
        let value = Base64.encode(Array("jdoe:\(LibraryHome.password)".utf8))
        #expect(
            actions.contains { if case .send(let sent?) = $0 { sent.fieldValue == "Basic \(value)" } else { false } })
        var text = "\(actions)"
        dump(actions, to: &text)
        #expect(!text.contains(value))
    }
}
