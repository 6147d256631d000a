// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth
import CountersignTestOrigin
import CountersignVault
import Foundation
import NIOConcurrencyHelpers
import Synchronization
import Testing

@testable import Countersign
@testable import CountersignNIO

import class CountersignCryptography.Secret

/// Sign-ins of an app with the agent `embedded`, whose window is a program of the test.
@Suite(.waiting) struct LibraryWindowTests {
    /// A home with a password for a provider that challenges, and a program in place of the window's.
    private final class Bench: Sendable {
        let provider: SignInProvider
        let home: LibraryHome
        let signIns: SignIns
        let asked = NIOLockedValueBox(0)

        /// The program signs in as a person does, through the window's proxy and with the window's certificates alone.
        init(
            isListed: Bool = true, challenges: Bool = true, locked: Bool = false, throughController: Bool = false,
            control: [String: any Sendable] = [:], others: [String] = []
        ) throws {
            let own: [String: any Sendable] = challenges ? ["basic": Self.basic] : [:]
            provider = try SignInProvider(control.merging(own) { _, new in new }, isTLS: true)
            let listed = (isListed ? [provider.issuer] : []) + others
            home = try LibraryHome(
                listed.map { "\($0) answer=basic\n" }.joined(), anchors: [try TestPKI.shared.originAnchor],
                openedBy: locked ? .passphrase(Secret(utf8: LibraryHome.passphrase)) : .file)
            let program = try home.folder.write(
                program: "webview",
                """
                #!/bin/sh
                say() { printf '%s\\n' "$1"; }
                hear() { IFS= read -r line || exit 9; printf '%s\\n' "$line" >> \(home.folder.file("heard")); }
                say '{"protocolVersion":1,"type":"ready","webKit":"2"}'
                hear
                url=$(printf '%s' "$line" | sed -n 's/.*"url":"\\([^"]*\\)".*/\\1/p')
                proxy=$(printf '%s' "$line" | sed -n 's/.*"proxy":"\\([^"]*\\)".*/\\1/p')
                location=$(curl -q -sS -m 60 -H 'Sec-Fetch-Dest: document' --cacert "$2" --proxy "$proxy" \\
                    -o /dev/null -D - "$url" 2> \(home.folder.file("curl")) | tr -d '\\r' | sed -n 's/^[Ll]ocation: //p')
                [ ! -e \(home.folder.file("question")) ] || { cat \(home.folder.file("question")); hear; }
                case $line in *'"cancel"'*) say '{"reason":"cancel","type":"closed"}'; exit ;; esac
                say '{"cookies":[\(Self.cookie)],"type":"cookies"}'
                [ -n "$location" ] || { say '{"reason":"window","type":"closed"}'; exit; }
                say "{\\"type\\":\\"redirect\\",\\"url\\":\\"$location\\"}"
                hear
                say '{"reason":"close","type":"closed"}'

                """)
            let environment = ["COUNTERSIGN_WEBVIEW": program, "PATH": "/usr/bin:/bin"]
            if throughController {
                signIns = SignIns(try home.controller(), environment: environment, windows: .proxied)
            } else {
                let box = asked
                signIns = try SignIns(home: home.path, environment: environment, windows: .proxied) {
                    box.withLockedValue { $0 += 1 }
                    return Password(LibraryHome.passphrase)
                }
            }
        }

        static let basic = "\(LibraryHome.user):\(LibraryHome.password)"

        private static let cookie = """
            {"domain":"provider.test.localhost","httpOnly":true,"name":"sid","path":"/","sameSite":"strict",\
            "secure":true,"value":"kanarie-sid"}
            """

        func enrollment(_ own: [String: any Sendable] = [:]) throws -> Enrollment {
            let usual: [String: any Sendable] = ["name": "work", "redirect_uri": "com.example.app:/callback"]
            let text = try provider.profile(usual.merging(own) { _, new in new })
            return try signIns.enrollment(try EnrollmentProfile(Array(text.utf8), source: "a test"))
        }

        /// The page asks this once it is loaded.
        func ask(_ callbacks: [String]) throws {
            let event: [String: any Sendable] = [
                "type": "pageMessage", "id": 1, "origin": provider.issuer,
                "body": #"{"authId": "a", "callbacks": [\#(callbacks.joined(separator: ","))]}"#,
            ]
            let line = try JSONSerialization.data(withJSONObject: event, options: [.withoutEscapingSlashes])
            try home.folder.write("question", String(decoding: line, as: UTF8.self) + "\n")
        }

        /// The answer that the page has got: callbacks with their inputs, or an error.
        func answer() throws -> [String: Any] {
            let line = try #require(heard.first { $0.contains("answerMessage") }, "\(heard)")
            let command = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let text = try #require(command["answer"] as? String)
            return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }

        var pages: [String] { provider.requests.filter { $0.hasPrefix("GET /authorize") } }
        var heard: [String] { TextFile.lines(home.folder.file("heard")) }
        var curl: String { TextFile.text(home.folder.file("curl")) }
    }

    @Test(arguments: [false, true], [false, true])
    func aSignInPageThatChallengesIsAnswered(throughController: Bool, manually: Bool) async throws {
        let bench = try Bench(throughController: throughController)
        let enrollment = try bench.enrollment()
        let signIn =
            manually
            ? try await enrollment.authorize(with: .embedded).redeem() : try await enrollment.signIn(with: .embedded)
        #expect(signIn.account == "jdoe@acme.example", "\(bench.curl)")
        #expect(bench.pages == ["GET /authorize 401", "GET /authorize 302"], "\(bench.curl)")
        // The window's process writes what it hears; the sign-in does not wait for that.
        #expect(try await eventually { bench.heard.last?.contains("close") == true })
    }

    private static let questions = [
        """
        {"type": "NameCallback", "output": [{"name": "prompt", "value": "Code"}], "input": [{"name": "i", "value": ""}]}
        """,
        #"{"type": "ChoiceCallback", "output": [{"name": "choices", "value": ["a", "b"]}]}"#,
    ]
    private static let asking = ["page_messages": ["types": ["NameCallback", "ChoiceCallback"]]]

    @Test func theProgramAnswersThePagesQuestions() async throws {
        let bench = try Bench()
        try bench.ask(Self.questions)
        let enrollment = try bench.enrollment(Self.asking)
        let heard = Mutex<[PageCallback]>([])
        enrollment.pageCallbackHandlers = [
            "NameCallback": { question in
                heard.withLock { $0.append(question) }
                return .text(Password("kanarie-code"))
            },
            "ChoiceCallback": { question in
                heard.withLock { $0.append(question) }
                return .choice(1)
            },
        ]
        try await enrollment.signIn(with: .embedded)
        let origin = bench.provider.issuer
        #expect(
            heard.withLock { $0 } == [
                PageCallback(origin: origin, type: "NameCallback", kind: .text, prompt: "Code"),
                PageCallback(origin: origin, type: "ChoiceCallback", kind: .choice(["a", "b"]), prompt: ""),
            ])
        let callbacks = try #require(try bench.answer()["callbacks"] as? [[String: Any]])
        let inputs = callbacks.map { ($0["input"] as? [[String: Any]])?.first }
        #expect(inputs[0]?["name"] as? String == "i" && inputs[0]?["value"] as? String == "kanarie-code")
        #expect(inputs[1]?["name"] as? String == "IDToken2" && inputs[1]?["value"] as? Int == 1)
    }

    /// The page can go on.
    @Test func aQuestionWithoutAHandlerGetsAnErrorAndTheSignInGoesOn() async throws {
        let bench = try Bench()
        try bench.ask(Self.questions)
        let enrollment = try bench.enrollment(Self.asking)
        enrollment.pageCallbackHandlers["NameCallback"] = { _ in .text(Password("kanarie-code")) }
        let signIn = try await enrollment.signIn(with: .embedded)
        #expect(signIn.account == "jdoe@acme.example")
        #expect(try bench.answer()["error"] as? String == "unsupportedType")
    }

    @Test(arguments: [nil, PageCallback.Answer.choice(2), .seen])
    func aQuestionThatIsNotAnsweredCancelsTheSignIn(answer: PageCallback.Answer?) async throws {
        let bench = try Bench()
        try bench.ask([Self.questions[1]])
        let enrollment = try bench.enrollment(Self.asking)
        enrollment.pageCallbackHandlers["ChoiceCallback"] = { _ in answer }
        let error = await #expect(throws: ChallengeError.self) { try await enrollment.signIn(with: .embedded) }
        #expect(error?.code == .signInCancelled && !bench.heard.contains { $0.contains("answerMessage") })
    }

    @Test func aPageOfAnUnlistedSiteIsNotAnswered() async throws {
        let bench = try Bench(isListed: false)
        let error = await #expect(throws: ChallengeError.self) {
            try await bench.enrollment().signIn(with: .embedded)
        }
        #expect(error?.code == .signInCancelled, "\(error.debugDescription) \(bench.curl)")
        #expect(bench.pages == ["GET /authorize 401"], "\(bench.curl)")
        #expect(try await bench.signIns.all().isEmpty)
    }

    /// The vault is opened once for the sign-in, and once for the window's proxy.
    @Test func thePassphraseIsAskedForOnce() async throws {
        let bench = try Bench(locked: true)
        try await bench.enrollment().signIn(with: .embedded)
        #expect(bench.pages == ["GET /authorize 401", "GET /authorize 302"], "\(bench.curl)")
        #expect(bench.asked.withLockedValue { $0 } == 1)
    }

    @Test(arguments: [false, true]) func theSessionsCookiesAreStoredAndGiven(manually: Bool) async throws {
        let bench = try Bench(isListed: false, challenges: false)
        let session: [String: any Sendable] = [
            "group": "corp", "host": "provider.test.localhost", "cookies": ["sid"],
        ]
        for isFirst in [true, false] {
            let enrollment = try bench.enrollment(["session": session])
            if manually {
                try await enrollment.authorize(with: .embedded).redeem()
            } else {
                try await enrollment.signIn(with: .embedded)
            }
            let opening = try #require(bench.heard.last { $0.contains(#""open""#) })
            #expect(opening.contains("kanarie-sid") == !isFirst)
            let vault = try SealedVault(home: bench.home.path).open { () throws in Secret(utf8: "") }
            let cookies = vault.contents.sessions.values.flatMap(\.cookies)
            #expect(cookies.map { "\($0.name)=\($0.value.utf8Text ?? "")" } == ["sid=kanarie-sid"])
        }
    }

    /// Before the first token, and after it. The page's window gets no cookies of the sign-in.
    @Test(.timeLimit(.minutes(15)), arguments: [false, true], [false, true])
    func aCompliancePageThatChallengesIsAnswered(throughController: Bool, isSignedIn: Bool) async throws {
        let service = try ComplianceServer(["basic": Bench.basic], isTLS: true)
        let bench = try Bench(
            isListed: false, challenges: false, throughController: throughController,
            control: isSignedIn ? [:] : ["policy": service.policy], others: [service.origin])
        let compliance: [String: any Sendable] = ["url": service.url]
        let session: [String: any Sendable] = [
            "group": "corp", "host": "provider.test.localhost", "cookies": ["sid"],
        ]
        let enrollment = try bench.enrollment(["compliance_service": compliance, "session": session])
        if isSignedIn {
            try await enrollment.signIn(with: .embedded)
        } else {
            await #expect(throws: ChallengeError.self) { try await enrollment.signIn(with: .embedded) }
        }
        let result = try await ComplianceManager(bench.signIns).remediate(
            accountID: isSignedIn ? "object-1" : "jdoe@acme.example", silent: false, with: .embedded)
        #expect(result.status == .compliant, "\(result) \(bench.curl)")
        let asked = service.requests.map(\.action).withoutPolls
        #expect(asked == ["remediate", "challenge", "page", "status"], "\(bench.curl)")
        let opening = try #require(bench.heard.last { $0.contains(#""open""#) })
        #expect(opening.contains(service.origin) && !opening.contains("kanarie-sid"))
        // The proxy ends with the page.
        let port = try #require(opening.firstMatch(of: /@127\.0\.0\.1:([0-9]+)/)?.1)
        let late = try Command.run(
            Tool.path("curl"), ["-q", "-sS", "--noproxy", "*", "http://127.0.0.1:\(port)/"], in: bench.home.folder)
        #expect(late.status == 7, "\(late.said)")
    }

    private final class Listening: InteractiveWebviewHandler {
        let seen = Mutex<[String]>([])

        func responseReceived(_ headers: ResponseHeaders) {
            seen.withLock { $0.append(headers["location"] ?? "") }
        }
    }

    @Test(arguments: [false, true])
    func anAppHearsOfTheHeadersOfThePages(throughController: Bool) async throws {
        let bench = try Bench(throughController: throughController)
        let text = try bench.provider.profile(["name": "work", "redirect_uri": "com.example.app:/callback"])
        let profile = try EnrollmentProfile(Array(text.utf8), source: "a test").enablingSpecialURLs()
        let enrollment = try bench.signIns.enrollment(profile)
        let handler = Listening()
        enrollment.webviewHandler = handler
        try await enrollment.signIn(with: .embedded)
        let seen = handler.seen.withLock { $0 }
        #expect(seen.contains { $0.hasPrefix("com.example.app:/callback?") }, "\(seen) \(bench.curl)")
    }

    /// The broker has gone on with the sign-in of the window.
    @Test func theTokensOfABrokerAreStoredLater() async throws {
        let bench = try Bench()
        let enrollment = try bench.enrollment()
        let found = BrokerSignIn.Result(
            tokens: TokenSet(
                accessToken: Secret(utf8: "kanarie-broker"), expiresAt: ChallengeController.now() + 3600,
                obtainedAt: ChallengeController.now(), refreshToken: nil, scope: "openid", idToken: nil,
                clientInfo: nil),
            account: "jdoe@corp.example", subject: "s-1")
        let authorized = AuthorizedEnrollment(.broker(found), nil, enrollment)
        let signIn = try await authorized.redeem()
        #expect(signIn.account == "jdoe@corp.example" && signIn.subject == "s-1")
        let error = await #expect(throws: ChallengeError.self) { try await authorized.redeem() }
        #expect(error?.code == .providerRefused && bench.provider.requests.isEmpty)
    }
}
