// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import Foundation
import CountersignCryptography
import CountersignTestOrigin
import Synchronization
import Testing

@testable import Countersign

/// Sites that require a scope which the access token of a sign-in does not have.
@Suite(.waiting) struct LibraryScopeTests {
    private static let challenge = #"Bearer realm="r""#
    private static let lacking = #"Bearer realm="r", error="insufficient_scope", scope="wiki.write admin""#

    /// Signs in again with the scopes, or declines.
    private final class Person: ScopeDelegate {
        private let home: EnrollmentHome
        private let agrees: Bool
        private let questions = Mutex<[ScopeQuestion]>([])

        init(_ home: EnrollmentHome, agrees: Bool) {
            self.home = home
            self.agrees = agrees
        }

        var asked: [ScopeQuestion] { questions.withLock { $0 } }

        func obtainScopes(_ question: ScopeQuestion) async -> Bool {
            questions.withLock { $0.append(question) }
            guard agrees else { return false }
            do {
                let profile = try home.profile().adding(scopes: question.scopes)
                try await home.signIns.enrollment(profile, name: question.signIn)
                    .signIn(with: .custom(EnrollmentHome.Browser(home)))
                return true
            } catch {
                Issue.record("\(error)")
                return false
            }
        }
    }

    private struct Unasked: Error { let action: ChallengeExchange.Action }

    /// An exchange up to the response that says which scopes are missing.
    private static func lackingScope(
        _ controller: ChallengeController, status: Int = 403, _ lacking: String = lacking
    ) async throws -> (exchange: ChallengeExchange, action: ChallengeExchange.Action) {
        var exchange = try ChallengeExchange(
            url: "https://git.corp.example/repository", serverIsTrusted: true, controller: controller)
        _ = exchange.started()
        let action = exchange.responseReceived(status: 401, challenges: [challenge])
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        let (disposition, credential) = await controller.handle(question)
        _ = exchange.dispositionReceived(disposition, credential)
        let next = exchange.responseReceived(status: status, challenges: [lacking])
        return (exchange, next)
    }

    private static func signedIn() async throws -> (EnrollmentHome, ChallengeController) {
        let home = try EnrollmentHome(["token": ["first", "second", "third"]])
        try await home.signIn()
        return (home, try ChallengeController(home: URL(filePath: home.path)))
    }

    @Test(arguments: [403, 401])
    func thePersonIsAskedOnceAndTheRequestIsSentAgain(status: Int) async throws {
        let (home, controller) = try await Self.signedIn()
        let person = Person(home, agrees: true)
        controller.scopeDelegate = person
        var (exchange, action) = try await Self.lackingScope(controller, status: status)
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        let (disposition, credential) = await controller.handle(question)
        guard case .send(let sent?) = exchange.dispositionReceived(disposition, credential) else {
            Issue.record("nothing is sent")
            return
        }
        #expect(sent.fieldValue == "Bearer second")
        #expect(
            person.asked == [
                ScopeQuestion(
                    protectionSpace: .git(.bearer), signIn: "work", scopes: ["wiki.write", "admin"],
                    target: "/repository")
            ])
        let signIn = try #require(try await home.signIns.all().first)
        #expect(signIn.scopes == ["openid", "offline_access", "wiki.write", "admin"])
        // More scopes did not help: the person is not asked a second time for the same request.
        guard case .deliver(.handedBack) = exchange.responseReceived(status: 403, challenges: [Self.lacking]) else {
            Issue.record("the person was asked again")
            return
        }
        #expect(person.asked.count == 1)
    }

    // MARK: Metadata of the resource (RFC 9728)

    /// A site whose challenges name no scope, and a sign-in for it.
    private static func unnamed(
        _ own: [String: any Sendable]
    ) async throws -> (home: EnrollmentHome, origin: BearerOrigin, question: ScopeQuestion) {
        let home = try EnrollmentHome()
        var control: [String: any Sendable] = ["metadata": true, "issuer": home.provider.issuer]
        control.merge(own) { _, new in new }
        let origin = try BearerOrigin(control)
        let anchors = "\(home.path)/Certs/anchors"
        try FileManager.default.createDirectory(atPath: anchors, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: try TestPKI.shared.originAnchor, toPath: "\(anchors)/origin.pem")
        try await home.signIn(["sites": [origin.url]])
        let url = try #require(URL(string: origin.url))
        let space = ProtectionSpace(
            host: url.host ?? "", port: url.port, authenticationMethod: .bearer)
        let question = ScopeQuestion(
            protectionSpace: space, signIn: "work", scopes: [], target: "/admin",
            resourceMetadata: "\(origin.url)/.well-known/oauth-protected-resource")
        return (home, origin, question)
    }

    @Test func theMetadataNamesTheScopesThatTheChallengeDoesNot() async throws {
        let (home, origin, question) = try await Self.unnamed([:])
        let scopes = try await home.signIns.scopes(lackedIn: question)
        #expect(scopes.contains("admin") && !scopes.contains("openid"), "\(scopes)")
        let asked = origin.log.requests.filter { $0.path?.hasPrefix("/.well-known/") == true }
        #expect(asked.count == 1 && asked.allSatisfy { $0.authorization == nil })
    }

    @Test func theQuestionSaysWhereTheMetadataIs() async throws {
        let (home, controller) = try await Self.signedIn()
        let person = Person(home, agrees: false)
        controller.scopeDelegate = person
        let address = "https://git.corp.example/.well-known/oauth-protected-resource"
        let lacking = #"Bearer realm="r", error="insufficient_scope", resource_metadata="\#(address)""#
        let (exchange, action) = try await Self.lackingScope(controller, lacking)
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        _ = (exchange, await controller.handle(question))
        #expect(person.asked.map(\.resourceMetadata) == [address] && person.asked.first?.scopes == [])
        #expect(person.asked.first?.target == "/repository")
    }

    @Test func theMetadataOfAnotherProviderOrOfAnUnlistedSiteIsRefused() async throws {
        let (home, origin, question) = try await Self.unnamed(["issuer": "https://other.corp.example"])
        let error = await #expect(throws: ChallengeError.self) {
            try await home.signIns.scopes(lackedIn: question)
        }
        #expect(error?.code == .providerRefused && error?.detail.contains("does not accept tokens of") == true)
        let before = origin.log.requests.count
        func refused(_ host: String, _ signIn: String = "work") async -> ChallengeError.Code? {
            let space = ProtectionSpace(host: host, port: question.protectionSpace.port, authenticationMethod: .bearer)
            let other = ScopeQuestion(
                protectionSpace: space, signIn: signIn, scopes: [], resourceMetadata: question.resourceMetadata)
            do {
                _ = try await home.signIns.scopes(lackedIn: other)
                return nil
            } catch {
                return (error as? ChallengeError)?.code
            }
        }
        #expect(await refused("unlisted.test.localhost") == .siteMissing)
        #expect(await refused(question.protectionSpace.host, "other") == .signInMissing)
        #expect(origin.log.requests.count == before)
    }

    @Test func aPersonWhoDeclinesIsNotAskedAgain() async throws {
        let (home, controller) = try await Self.signedIn()
        let person = Person(home, agrees: false)
        controller.scopeDelegate = person
        // The scopes are the same in any order.
        for scopes in ["wiki.write admin", "wiki.write admin", "admin  wiki.write"] {
            let lacking = #"Bearer realm="r", error="insufficient_scope", scope="\#(scopes)""#
            var (exchange, action) = try await Self.lackingScope(controller, lacking)
            guard case .ask(let question) = action else { throw Unasked(action: action) }
            let (disposition, credential) = await controller.handle(question)
            #expect(disposition == .performDefaultHandling)
            guard case .deliver(.handedBack(let error)) = exchange.dispositionReceived(disposition, credential) else {
                Issue.record("the response is not delivered")
                return
            }
            #expect(error.detail.contains("wiki.write") && error.code == .nothingToAnswerWith)
        }
        #expect(person.asked.count == 1)
        // The token itself stays usable.
        #expect(try controller.canHandle(.git(.bearer)))
    }

    @Test func withoutADelegateTheResponseIsDelivered() async throws {
        let (home, controller) = try await Self.signedIn()
        let (_, action) = try await Self.lackingScope(controller)
        withExtendedLifetime(home) {}
        guard case .deliver(.handedBack(let error)) = action else { throw Unasked(action: action) }
        #expect(error.detail.contains("wiki.write admin"))
    }

    /// The exchange has seen the delegate, which the program takes away before the controller asks it.
    @Test func aDelegateThatIsGoneIsNotWaitedFor() async throws {
        let (home, controller) = try await Self.signedIn()
        controller.scopeDelegate = Person(home, agrees: true)
        let (_, action) = try await Self.lackingScope(controller)
        guard case .ask(let question) = action else { throw Unasked(action: action) }
        controller.scopeDelegate = nil
        let disposition = Mutex<ChallengeDisposition?>(nil)
        let task = Task {
            let (found, _) = await controller.handle(question)
            disposition.withLock { $0 = found }
        }
        let isHandedBack = try await eventually { disposition.withLock { $0 } == .performDefaultHandling }
        task.cancel()
        try #require(isHandedBack)
        // A delegate that is set later gets the question.
        let person = Person(home, agrees: false)
        controller.scopeDelegate = person
        guard case (_, .ask(let later)) = try await Self.lackingScope(controller) else { return }
        _ = await controller.handle(later)
        #expect(person.asked.count == 1)
    }

    /// Decides when the test says so.
    private final class Undecided: ScopeDelegate {
        let gate = Gate()
        private let questions = Mutex<[[String]]>([])

        var asked: [[String]] { questions.withLock { $0 } }

        func obtainScopes(_ question: ScopeQuestion) async -> Bool {
            questions.withLock { $0.append(question.scopes) }
            await gate.wait()
            return false
        }
    }

    private static func lack(_ scopes: String..., of name: String = "work") -> ScopeQuestions.Lack {
        let token = TokenCredential(name: name, token: Secret(utf8: "token"), source: .program).reference
        return ScopeQuestions.Lack(
            token: token, stepUp: StepUp(scopes: scopes), reason: "the token's scope is insufficient", target: "/",
            metadata: nil)
    }

    /// A server that requires other scopes each time has the delegate called once.
    @Test func aSignInHasOneOpenQuestion() async throws {
        let (questions, person) = (ScopeQuestions(), Undecided())
        questions.delegate = person
        #expect(questions.begin(Self.lack("a"), at: .git(.bearer)))
        for _ in 0..<200 { #expect(questions.begin(Self.lack("a"), at: .git(.bearer))) }
        for number in 0..<200 { #expect(!questions.begin(Self.lack("scope\(number)"), at: .git(.bearer))) }
        #expect(questions.begin(Self.lack("b", of: "home"), at: .git(.bearer)))
        #expect(try await eventually { person.asked.count == 2 })
        person.gate.open()
        #expect(try await eventually { !questions.begin(Self.lack("a"), at: .git(.bearer)) })
        #expect(Set(person.asked) == [["a"], ["b"]])
    }

    @Test func aTokenHasAFewQuestions() async throws {
        let (questions, person) = (ScopeQuestions(), Undecided())
        questions.delegate = person
        person.gate.open()
        for number in 0..<40 {
            #expect(await questions.ask(Self.lack("scope\(number)"), at: .git(.bearer)) == false)
        }
        #expect(person.asked == (0..<16).map { ["scope\($0)"] })
    }

    @Test func aSignInIsRepeatedWithItsProfileAndMoreScopes() async throws {
        let home = try EnrollmentHome()
        let path = try home.folder.write("profile.json", home.profile().description)
        let browser = SignInAgent.custom(EnrollmentHome.Browser(home))
        let first = try await home.signIns.enrollment(home.signIns.profile(at: path)).signIn(with: browser)
        let second = try await home.signIns.enrollment(again: first, addingScopes: ["wiki.write", "openid"])
        #expect(second.name == first.name && second.profile.scopes == ["openid", "offline_access", "wiki.write"])
        let error = await #expect(throws: ChallengeError.self) {
            try await home.signIns.enrollment(again: first, addingScopes: ["two words"])
        }
        #expect(error?.code == .profileFaulty)
    }
}
