// SPDX-License-Identifier: Apache-2.0

import Certificates
import Cryptography
import NTLM
import TestOrigin
import Testing

@testable import Countersign

import struct Challenges.ChannelBinding

/// The dialogue that a program with an HTTP client of its own drives by hand, with a server made of values.
struct LibraryExchangeTests {
    /// A server that asks in one way and knows one password.
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

        /// The status and the `WWW-Authenticate` values of a response to a request with this `Authorization`.
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

    private static let site = "https://git.corp.example\n"
    private static let url = "https://git.corp.example/repository"

    /// Drives a dialogue to its end, each question answered by `answer`; gives the actions that it took.
    private static func drive(
        _ exchange: inout ChallengeExchange, _ server: inout Server, showing certificate: Certificate? = nil,
        answer: (AuthenticationChallenge) async -> (ChallengeDisposition, Credential?)
    ) async -> [ChallengeExchange.Action] {
        if let certificate { exchange.connected(serverCertificate: certificate.der) }
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

    // MARK: Every disposition, at every kind of challenge, with every verdict

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
                    disposition: .useCredential, kind: kind, passwordIsRight: right, end: right ? .accepted : .rejected),
                Row(disposition: .performDefaultHandling, kind: kind, passwordIsRight: right, end: .handedBack),
                Row(disposition: .rejectProtectionSpace, kind: kind, passwordIsRight: right, end: .handedBack),
                Row(disposition: .cancelAuthenticationChallenge, kind: kind, passwordIsRight: right, end: .failed),
            ]
        }
    }

    @Test(arguments: rows)
    func aDialogueEndsAsTheAnswerAndTheServerHaveIt(_ row: Row) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(row.kind)
        if !row.passwordIsRight { server.password = "another" }
        let actions = await Self.drive(&exchange, &server) { challenge in
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
        // One rejection of the enrolled credential, and it stays unused there.
        let isStillUsed = (try? controller.canHandle(.git(.basic))) == true
        #expect(isStillUsed == (row.end != .rejected))
    }

    @Test(arguments: Server.Kind.allCases)
    func aPasswordOfTheProgramsOwnIsNotHeldAgainstTheEnrolledOne(_ kind: Server.Kind) async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(kind)
        let actions = await Self.drive(&exchange, &server) { _ in
            (.useCredential, .password(user: "jdoe", Password("of the program")))
        }
        #expect(actions.last == .deliver(.rejected))
        #expect(try controller.canHandle(.git(.basic)))
    }

    @Test func theWeakerOfferIsAskedAboutWhenTheStrongerIsRejected() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
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
            var exchange = try ChallengeExchange(url: Self.url, controller: controller)
            var server = Server(kind)
            server.certificate = certificates[demanded]
            let actions = await Self.drive(&exchange, &server, showing: certificates[shown]) {
                await controller.handle($0)
            }
            #expect(actions.last == .deliver(shown == demanded ? .accepted : .rejected))
        }
    }

    @Test func aLaterConnectionRebindsTheAnswer() async throws {
        let controller = try LibraryHome(Self.site).controller()
        let certificate = try #require(Certificate.readPEM(TextFile.bytes(TestPKI.shared.certificate("server"))).first)
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
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
        exchange.connected(serverCertificate: certificate.der)
        let challenged = server.respond(to: opening)
        guard case .send(let answer) = exchange.responseReceived(status: 401, challenges: challenged.challenges) else {
            Issue.record("no answer")
            return
        }
        #expect(server.respond(to: answer).status == 200)
    }

    @Test func aForgedLastTokenIsNoAcceptance() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(.negotiate)
        _ = exchange.started()
        var action = exchange.responseReceived(status: 401, challenges: ["Negotiate"])
        while true {
            switch action {
            case .ask(let challenge):
                let (disposition, credential) = await controller.handle(challenge)
                action = exchange.dispositionReceived(disposition, credential)
                continue
            case .sendOpening(let authorization):
                action = exchange.responseReceived(
                    status: 401, challenges: server.respond(to: authorization).challenges)
                continue
            case .send:
                action = exchange.responseReceived(
                    status: 200, challenges: ["Negotiate oQcwBaADCgEA", "Basic realm=x"])
            default: break
            }
            break
        }
        // SPNEGO's accept-completed without a mechListMIC is no forgery; anything that does not parse is.
        #expect(action == .deliver(.accepted))
        var forged = try ChallengeExchange(url: Self.url, controller: controller)
        _ = forged.started()
        guard case .ask(let challenge) = forged.responseReceived(status: 401, challenges: ["Negotiate"]) else { return }
        let (disposition, credential) = await controller.handle(challenge)
        var other = Server(.negotiate)
        guard case .sendOpening(let opening) = forged.dispositionReceived(disposition, credential) else { return }
        _ = forged.responseReceived(status: 401, challenges: other.respond(to: opening).challenges)
        let end = forged.responseReceived(status: 200, challenges: ["Negotiate AAAA"])
        #expect(end == .fail(reason: "the server's last authentication token is wrong"))
    }

    // MARK: One at a time

    @Test func aSecondDialogueWaitsForTheFirstAndACancelledOneIsOver() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var first = try ChallengeExchange(url: Self.url, controller: controller)
        _ = first.started()
        let question = try #require(
            Self.question(first.responseReceived(status: 401, challenges: ["Basic realm=\"r\""])))
        let (disposition, credential) = await controller.handle(question)
        _ = first.dispositionReceived(disposition, credential)

        var second = try ChallengeExchange(url: Self.url, controller: controller)
        _ = second.started()
        let other = try #require(Self.question(second.responseReceived(status: 401, challenges: ["Basic realm=\"r\""])))
        let waiting = Task { await controller.handle(other) }
        await Task.yield()
        waiting.cancel()
        let answer = await waiting.value
        #expect(answer.0 == .cancelAuthenticationChallenge)
        #expect(second.dispositionReceived(answer.0, answer.1) == .fail(reason: "the challenge was cancelled"))

        // A third one hears what became of the first.
        var third = try ChallengeExchange(url: Self.url, controller: controller)
        _ = third.started()
        let last = try #require(Self.question(third.responseReceived(status: 401, challenges: ["Basic realm=\"r\""])))
        let patient = Task { await controller.handle(last) }
        await Task.yield()
        #expect(first.responseReceived(status: 401, challenges: ["Basic realm=\"r\""]) == .deliver(.rejected))
        #expect(await patient.value.0 == .performDefaultHandling)
    }

    @Test func aDialogueThatIsDroppedLetsTheNextOneTry() async throws {
        let controller = try LibraryHome(Self.site).controller()
        do {
            var dropped = try ChallengeExchange(url: Self.url, controller: controller)
            _ = dropped.started()
            let question = try #require(Self.question(dropped.responseReceived(status: 401, challenges: ["NTLM"])))
            #expect(await controller.handle(question).0 == .useCredential)
        }
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(.basic)
        let actions = await Self.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.last == .deliver(.accepted))
    }

    private static func question(_ action: ChallengeExchange.Action) -> AuthenticationChallenge? {
        if case .ask(let challenge) = action { challenge } else { nil }
    }

    // MARK: What is not answered

    @Test(arguments: [
        ("https://other.corp.example/", "", ChallengeError.Check.site),
        ("http://git.corp.example/", "http://git.corp.example\n", .method),
        ("https://git.corp.example/", "https://git.corp.example answer=ntlm\n", .method),
    ])
    func whatTheListDoesNotPermitIsDeliveredAsItCame(
        _ url: String, _ sites: String, _ check: ChallengeError.Check
    ) async throws {
        let controller = try LibraryHome(sites).controller()
        var exchange = try ChallengeExchange(url: url, controller: controller)
        #expect(exchange.started() == .send(nil))
        let action = exchange.responseReceived(status: 401, challenges: ["Basic realm=\"r\""])
        guard case .deliver(.handedBack(let error)) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(error.check == check)
    }

    @Test func anUntrustedServerIsNotAnswered() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, serverIsTrusted: false, controller: controller)
        var server = Server(.basic)
        let actions = await Self.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.count == 2)
        guard case .deliver(.handedBack)? = actions.last else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test func nothingIsAnsweredWhileItIsSwitchedOff() async throws {
        let controller = try LibraryHome(Self.site).controller()
        controller.isIntegratedAuthenticationEnabled = false
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(.basic)
        let actions = await Self.drive(&exchange, &server) { await controller.handle($0) }
        #expect(actions.count == 2)
    }

    @Test(arguments: [
        "", "git.corp.example", "ftp://git.corp.example/", "https:///x", "https://jdoe@git.corp.example/",
    ])
    func aURLThatNamesNoSiteIsTheCallersFault(_ url: String) throws {
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
        // Every sequence of four: whatever comes when, there is an action.
        for number in 0..<(8 * 8 * 8 * 8) {
            var exchange = try ChallengeExchange(url: Self.url, controller: controller)
            var rest = number
            for _ in 0..<4 {
                _ = events[rest % 8](&exchange)
                rest /= 8
            }
        }
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        #expect(
            exchange.responseReceived(status: 200, challenges: [])
                == .fail(reason: "responseReceived was reported out of turn"))
    }

    @Test func anInterimResponseIsWaitedThrough() throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        _ = exchange.started()
        #expect(exchange.responseReceived(status: 103, challenges: []) == .wait)
        #expect(exchange.responseReceived(status: 200, challenges: []) == .deliver(.notChallenged))
    }

    @Test func anAuthorizationPrintsAsASecret() async throws {
        let controller = try LibraryHome(Self.site).controller()
        var exchange = try ChallengeExchange(url: Self.url, controller: controller)
        var server = Server(.basic)
        let actions = await Self.drive(&exchange, &server) { await controller.handle($0) }
        let value = Base64.encode(Array("jdoe:\(LibraryHome.password)".utf8))
        #expect(
            actions.contains { if case .send(let sent?) = $0 { sent.fieldValue == "Basic \(value)" } else { false } })
        var text = "\(actions)"
        dump(actions, to: &text)
        #expect(!text.contains(value))
    }
}
