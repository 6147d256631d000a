// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignTestOrigin
import CountersignCertificates
import Testing

@testable import Countersign

/// The results of `canHandle` and `handle` for every kind of challenge in every situation.
@Suite(.waiting) struct LibraryChecksTests {
    enum Situation: String, CaseIterable, Sendable {
        case unlisted, listed, listedForOthers, noCredential, plainHTTP, plainHTTPPermitted, tunnelled, rejectedBefore
        case failedBefore, switchedOff

        var sites: String {
            switch self {
            case .unlisted: "https://other.corp.example\n"
            case .listedForOthers: "# one\nhttps://git.corp.example credential=none answer=%\n"
            case .noCredential: "# one\nhttps://git.corp.example credential=none identity=none\n"
            case .plainHTTP: "# one\nhttp://git.corp.example\n"
            case .plainHTTPPermitted: "# one\nhttp://git.corp.example plaintext=yes\n"
            case .tunnelled: "# one\nhttps://git.corp.example intercept=no\n"
            case .listed, .rejectedBefore, .failedBefore, .switchedOff: "# one\nhttps://git.corp.example\n"
            }
        }

        var scheme: String { self == .plainHTTP || self == .plainHTTPPermitted ? "http" : "https" }
    }

    /// The result of `canHandle`.
    enum Word: Equatable, Sendable {
        case yes
        /// False, without an error.
        case no
        case fails(ChallengeError.Check)
    }

    struct Row: Sendable, CustomStringConvertible {
        let situation: Situation
        let method: AuthenticationMethod
        let word: Word
        var description: String { "\(situation) \(method)" }
    }

    static let methods: [AuthenticationMethod] = [
        .basic, .ntlm, .negotiate, .clientCertificate, .digest, .bearer, .other("Hawk"), .serverTrust,
    ]

    static let rows: [Row] = {
        let (site, method, credential) = (Word.fails(.site), Word.fails(.method), Word.fails(.credential))
        let table: [(Situation, [Word])] = [
            // Basic, NTLM, Negotiate, certificate, Digest, Bearer, Hawk, server trust
            (.unlisted, [site, site, site, site, site, site, site, .no]),
            (.listed, [.yes, .yes, .yes, .yes, .yes, credential, method, .no]),
            (.listedForOthers, [method, method, method, method, method, method, method, .no]),
            (.noCredential, [credential, credential, credential, credential, credential, credential, method, .no]),
            (.plainHTTP, [method, method, method, method, method, method, method, .no]),
            (.plainHTTPPermitted, [.yes, .yes, .yes, method, .yes, method, method, .no]),
            (.tunnelled, [site, site, site, site, site, site, site, .no]),
            (.rejectedBefore, [credential, credential, credential, .yes, credential, credential, method, .no]),
            (.failedBefore, [.yes, .yes, .yes, .yes, .yes, credential, method, .no]),
            (.switchedOff, [.no, .no, .no, .no, .no, .no, .no, .no]),
        ]
        return table.flatMap { situation, words in
            zip(methods, words).map { Row(situation: situation, method: $0, word: $1) }
        }
    }()

    /// The home for a situation. Its line permits everything, except the method if the situation is about that.
    private static func home(_ row: Row) throws -> LibraryHome {
        let other =
            row.method == .basic ? "certificate" : row.method == .clientCertificate ? "basic" : "certificate,basic"
        return try LibraryHome(
            row.situation.sites.replacing("%", with: other), identities: ["laptop"])
    }

    @Test func theTableCoversEveryKindInEverySituation() {
        #expect(Self.rows.count == Situation.allCases.count * Self.methods.count)
        #expect(Self.rows.count >= 60)
    }

    @Test(arguments: rows)
    func aChallengeIsAnsweredIfAllThreeChecksPass(_ row: Row) async throws {
        let home = try Self.home(row)
        let controller = try home.controller()
        let space = ProtectionSpace.git(row.method, scheme: row.situation.scheme)
        let events = controller.events
        if row.situation == .rejectedBefore {
            let basic = ProtectionSpace.git(.basic)
            _ = await controller.handle(AuthenticationChallenge(protectionSpace: basic))
            _ = await controller.handle(AuthenticationChallenge(protectionSpace: basic, previousFailureCount: 1))
        }
        if row.situation == .switchedOff { controller.isIntegratedAuthenticationEnabled = false }

        #expect(Self.word(of: controller, on: space) == row.word)

        let failures = row.situation == .failedBefore ? 1 : 0
        let challenge = AuthenticationChallenge(protectionSpace: space, previousFailureCount: failures)
        let (disposition, credential) = await controller.handle(challenge)
        let isAnswered = row.word == .yes && failures == 0
        #expect(disposition == (isAnswered ? .useCredential : .performDefaultHandling))
        switch (isAnswered, row.method, credential) {
        case (false, _, nil): break
        case (true, .clientCertificate, .identity(let identity)?): #expect(identity.name == "laptop")
        case (true, _, .password(let user, let password)?):
            #expect(user == LibraryHome.user)
            #expect(password.text == LibraryHome.password)
        default: Issue.record("answered with \(String(describing: credential))")
        }

        let last = await controller.told(events).last
        switch last {
        case .answered(space, with: "enrollment"), .answered(space, with: "laptop"): #expect(isAnswered)
        case .handedBack(space, let error):
            #expect(!isAnswered)
            if case .fails(let check) = row.word, failures == 0 { #expect(error?.check == check) }
        default: Issue.record("told \(String(describing: last))")
        }
    }

    private static func word(of controller: ChallengeController, on space: ProtectionSpace) -> Word {
        do throws(ChallengeError) {
            return try controller.canHandle(space) ? .yes : .no
        } catch {
            guard let check = error.check else { return .no }
            // An error caused by a line of the list names the line, and how to correct it.
            if check != .site { #expect(error.listLine == "AllowedSites/test.sites:2") }
            #expect(error.hint != nil)
            #expect(error.fault == .configuration)
            return .fails(check)
        }
    }

    @Test(arguments: [
        (Situation.unlisted, AuthenticationMethod.basic, ChallengeRemedy.addSite("https://git.corp.example")),
        (.tunnelled, .basic, .changeLine("AllowedSites/test.sites:2")),
        (.plainHTTP, .basic, .changeLine("AllowedSites/test.sites:2")),
        (.plainHTTPPermitted, .bearer, .useHTTPS(host: "git.corp.example")),
        (.listedForOthers, .basic, .changeLine("AllowedSites/test.sites:2")),
        (.noCredential, .basic, .setPassword(name: "none", user: nil)),
        (.noCredential, .bearer, .setToken(name: "none")),
        (.noCredential, .clientCertificate, .importIdentity(name: "none")),
    ])
    func theErrorHasTheRemedy(situation: Situation, method: AuthenticationMethod, remedy: ChallengeRemedy) throws {
        let controller = try Self.home(Row(situation: situation, method: method, word: .no)).controller()
        let space = ProtectionSpace(
            scheme: situation.scheme, host: "git.corp.example", port: situation.scheme == "http" ? 80 : 443,
            realm: nil, authenticationMethod: method)
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(space) }
        #expect(error?.remedy == remedy, "\(String(describing: error))")
        #expect(error?.hint != nil)
    }

    @Test func theErrorNamesTheLineThatRefuses() throws {
        let controller = try LibraryHome("# ours\n\nhttps://git.corp.example answer=ntlm\n").controller()
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        #expect(error?.listLine == "AllowedSites/test.sites:3")
        #expect(
            error?.description
                == "Basic is not among the site's answer= (AllowedSites/test.sites:3); "
                + "write answer=ntlm,basic to permit it"
        )
    }

    @Test func theDomainOfALineQualifiesABareUserName() async throws {
        let controller = try LibraryHome("https://git.corp.example domain=ACME\n").controller()
        for method in [AuthenticationMethod.basic, .ntlm] {
            let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: .git(method)))
            #expect(credential == .password(user: "ACME\\jdoe", Password(LibraryHome.password)))
            controller.answerAccepted(AuthenticationChallenge(protectionSpace: .git(method)))
        }
    }

    @Test func aCredentialThatTheSchemeCannotRepresentIsNotUsed() throws {
        let home = try LibraryHome(
            "https://git.corp.example\n", credentials: ["enrollment": ("j:doe", LibraryHome.password)])
        let controller = try home.controller()
        let error = #expect(throws: ChallengeError.self) { try controller.canHandle(.git(.basic)) }
        #expect(error?.code == .nothingToAnswerWith)
        #expect(try controller.canHandle(.git(.ntlm)))
    }

    @Test func anIdentityIsChosenByTheIssuersThatTheServerAccepts() async throws {
        let home = try LibraryHome("https://git.corp.example\n", identities: ["laptop", "badge"])
        let controller = try home.controller()
        for name in ["laptop", "badge"] {
            let issuer = try #require(home.chain(named: name).first?.issuerDER)
            var space = ProtectionSpace.git(.clientCertificate)
            space.acceptableIssuers = [issuer]
            let (_, credential) = await controller.handle(AuthenticationChallenge(protectionSpace: space))
            guard case .identity(let identity)? = credential else {
                Issue.record("no identity for \(name)")
                continue
            }
            #expect(identity.name == name)
            #expect(identity.chain.first?.subject == "CN=\(name),O=Test")
        }
    }
}

extension LibraryHome {
    fileprivate func chain(named name: String) throws -> [Certificate] {
        try Home(path: path).chain(named: name) ?? []
    }
}
