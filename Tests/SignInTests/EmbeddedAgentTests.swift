// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCookies
import CountersignCryptography
import CountersignOAuth
import CountersignTestOrigin
import Glibc
import Synchronization
import Testing

@testable import CountersignSignIn

/// The agent with a scripted program in place of `countersign-webview`.
@Suite struct EmbeddedAgentTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private final class Log<Entry: Sendable>: Sendable {
        private let content = Mutex<[Entry]>([])
        var entries: [Entry] { content.withLock { $0 } }
        func add(_ entry: Entry) { content.withLock { $0.append(entry) } }
    }

    private static let ready = #"{"protocolVersion":1,"type":"ready","webKit":"2"}"#
    private static let closed = #"{"reason":"close","type":"closed"}"#

    private static func redirect(_ query: String) -> String {
        #"{"type":"redirect","url":"com.example.app:/cb?\#(query)"}"#
    }

    /// `script` is of sh. `say` prints a line, `hear` reads one into `$line` and keeps it.
    private func agent(
        _ script: String, door: EmbeddedAgent.Door? = nil, cookies: SharedCookies? = nil
    ) throws -> EmbeddedAgent {
        let text = """
            #!/bin/sh
            printf '%s\\n' "$@" > \(folder.file("arguments"))
            say() { printf '%s\\n' "$1"; }
            hear() { IFS= read -r line || exit 9; printf '%s\\n' "$line" >> \(folder.file("heard")); }
            \(script)

            """
        let path = try folder.write(program: "webview", text)
        return EmbeddedAgent(
            environment: ["COUNTERSIGN_WEBVIEW": path, "PATH": "/usr/bin:/bin"], door: door, cookies: cookies)
    }

    /// Waits without blocking a thread: the tests that run at the same time have few.
    private func eventually(_ isSo: () -> Bool) async throws -> Bool {
        let end = ContinuousClock.now + .seconds(60)
        while !isSo() {
            guard ContinuousClock.now < end else { return false }
            try await Task.sleep(for: .milliseconds(20))
        }
        return true
    }

    private var heard: [String] { TextFile.lines(folder.file("heard")) }

    /// A redirect with `state=good` is the right one.
    private func page(
        _ events: Log<UserAgentEvent> = Log(), messages: PageMessageRules? = nil, scheme: Origin.Scheme = .https,
        answer: @escaping @Sendable (PageMessage) async -> String? = { _ in nil }
    ) throws -> SignInPage {
        let origin = Origin(scheme: scheme, host: "127.0.0.1", port: 8443)
        return SignInPage(
            url: try EndpointURL("\(scheme.rawValue)://127.0.0.1:8443/authorize?a=b", "page", .secureOrLoopback),
            redirect: try RedirectURI("com.example.app:/cb"), origins: [origin], limit: .seconds(600),
            messages: messages, report: { events.add($0) },
            judge: { $0.contains("state=good") ? .accepted : $0.contains("error=") ? .failed : .foreign },
            answer: answer)
    }

    @Test func anAcceptedRedirectClosesTheWindow() async throws {
        let events = Log<UserAgentEvent>()
        let agent = try agent(
            """
            say '\(Self.ready)'; hear
            say '{"type":"loadStarted","url":"https://127.0.0.1:8443/authorize"}'
            say '{"type":"navigationRefused","url":"https://evil.example/","why":"origin"}'
            say '\(Self.redirect("state=bad"))'
            say '\(Self.redirect("code=secret&state=good"))'; hear
            say '{"cookies":[],"type":"cookies"}'
            say '\(Self.closed)'
            """)
        try await agent.show(page(events))
        #expect(
            events.entries == [
                .loadStarted(url: "https://127.0.0.1:8443/authorize"),
                .navigationRefused(
                    url: "https://evil.example/", reason: "it is not one of the profile's hosts",
                    hint: "if the organisation uses that host, its profile must name it in \"navigation_hosts\""),
            ])
        #expect(heard.count == 2 && heard.last == #"{"type":"close"}"#)
        #expect(heard.first?.contains(#""redirectURIs":["com.example.app:/cb"]"#) == true)
        #expect(heard.first?.contains(#""allowedOrigins":["https://127.0.0.1:8443"]"#) == true)
        #expect(heard.first?.contains(#""timeLimitSeconds":600"#) == true)
    }

    @Test func aFailedRedirectCancelsTheWindow() async throws {
        let agent = try agent(
            "say '\(Self.ready)'; hear; say '\(Self.redirect("error=x"))'; hear; say '\(Self.closed)'")
        try await agent.show(page())
        #expect(heard.last == #"{"type":"cancel"}"#)
    }

    @Test func theProxysPasswordIsNotAnArgument() async throws {
        let door = EmbeddedAgent.Door(proxy: Secret(utf8: "http://c:secret@127.0.0.1:1"), bundle: "/bundle.pem")
        let script = "say '\(Self.ready)'; hear; say '\(Self.closed)'"
        try await agent(script, door: door).show(page())
        #expect(TextFile.lines(folder.file("arguments")) == ["--ca-bundle", "/bundle.pem"])
        #expect(heard.first?.contains(#""proxy":"http://c:secret@127.0.0.1:1""#) == true)
        // Plain http goes through no proxy with a password.
        try await agent(script, door: door).show(page(scheme: .http))
        #expect(TextFile.lines(folder.file("arguments")) == ["--loopback-http"])
        #expect(heard.last?.contains("proxy") == false)
    }

    @Test func theSessionsCookiesGoInAndComeBack() async throws {
        func cookies(ofHost host: String) throws -> SharedCookies {
            let text = """
                {"issuer": "https://\(host)", "client_id": "c",
                 "session": {"group": "corp", "host": "\(host)", "cookies": ["sid"]}}
                """
            let scope = try #require(try SignInProfile(Array(text.utf8)).session)
            var session = SharedSession(key: SharedSession.Key(group: "corp", host: host))
            let identity = Cookie.Identity(name: "sid", domain: host, isHostOnly: true, path: "/")
            let cookie = Cookie(
                identity, value: Secret(utf8: "secret-one"), isSecure: true, isHTTPOnly: true, sameSite: .lax,
                expires: nil, stored: 1)
            session.apply(.set(cookie))
            return SharedCookies(scope, stored: session)
        }
        func captured(_ shared: SharedCookies) -> [String?] {
            shared.captured(at: 1, isPublicSuffix: { _ in false }, known: { _ in nil }).map(\.value.utf8Text)
        }
        func report(_ value: String, _ host: String) -> String {
            #"{"cookies":[{"domain":"\#(host)","httpOnly":true,"name":"sid","path":"/","sameSite":"lax","#
                + #""secure":true,"value":"\#(value)"}],"type":"cookies"}"#
        }
        func script(_ host: String) -> String {
            """
            say '\(Self.ready)'; hear; say '\(report("secret-two", host))'
            say '\(Self.redirect("state=good"))'; hear; say '\(report("secret-three", host))'; say '\(Self.closed)'
            """
        }
        let shared = try cookies(ofHost: "127.0.0.1")
        try await agent(script("127.0.0.1"), cookies: shared).show(page())
        #expect(heard.first?.contains(#""captureCookies":{"host":"127.0.0.1","names":["sid"]}"#) == true)
        #expect(heard.first?.contains(#""value":"secret-one","domain":"127.0.0.1""#) == true)
        #expect(captured(shared) == ["secret-three"])
        // A host whose pages the window does not show.
        let other = try cookies(ofHost: "other.example")
        try await agent(script("other.example"), cookies: other).show(page())
        #expect(heard.dropFirst(2).first?.contains("ookies") == false && captured(other) == [])
    }

    @Test(
        arguments: [
            (#"say '{"reason":"window","type":"closed"}'"#, .cancelled, "the window was closed"),
            (#"say '{"reason":"timeLimit","type":"closed"}'"#, .timedOut, "within 600 seconds"),
            (
                #"say '{"code":"noDisplay","remedy":"r","sentence":"no display","type":"failed"}'"#, .noAgent,
                "no display"
            ),
            (#"say '{"code":"webProcess","remedy":"r","sentence":"gone","type":"failed"}'"#, .environment, "gone"),
            ("exit 3", .environment, "ended unexpectedly, with the status 3"),
            ("kill -ABRT $$", .environment, "ended unexpectedly, with the status 134"),
            ("say 'text'", .environment, "does not follow its protocol"),
            (#"say '{"type":"ready","protocolVersion":2,"webKit":"2"}'"#, .environment, "its version is 2"),
            ("head -c 3000000 /dev/zero | tr '\\0' a; sleep 600", .environment, "a line is too long"),
        ] as [(String, SignInError.Code, String)])
    func everyOtherEndIsAnError(script: String, code: SignInError.Code, detail: String) async throws {
        let agent = try agent("say '\(Self.ready)'; hear; \(script)")
        let error = await #expect(throws: SignInError.self) { try await agent.show(page()) }
        #expect(error?.code == code && error?.detail.contains(detail) == true, "\(String(describing: error))")
    }

    @Test func cancellingClosesTheWindow() async throws {
        let agent = try agent("say '\(Self.ready)'; hear; hear; say '{\"reason\":\"cancel\",\"type\":\"closed\"}'")
        let page = try page()
        let task = Task { try await agent.show(page) }
        #expect(try await eventually { !heard.isEmpty })
        task.cancel()
        let error = await #expect(throws: SignInError.self) { try await task.value }
        #expect(error?.detail == "the sign-in was cancelled")
        #expect(heard.last == #"{"type":"cancel"}"#)
    }

    /// The program and its child processes are killed.
    @Test func aWindowThatDoesNotCloseIsKilled() async throws {
        var agent = try agent(
            """
            trap '' TERM
            sleep 60 & echo $! > \(folder.file("child"))
            say '\(Self.ready)'; hear; say '\(Self.redirect("state=good"))'; exec sleep 60
            """)
        agent.closingLimit = .milliseconds(100)
        let error = await #expect(throws: SignInError.self) { try await agent.show(page()) }
        #expect(error?.detail.contains("137") == true, "\(String(describing: error))")
        let child = try #require(pid_t(TextFile.lines(folder.file("child")).first ?? ""))
        let isGone = try await eventually {
            let state = TextFile.text("/proc/\(child)/stat")
            return state.isEmpty || state.contains(") Z ")
        }
        #expect(isGone)
    }

    @Test func messagesAreAnsweredOneAfterTheOther() async throws {
        func message(_ id: Int) -> String {
            #"{"body":"{\"callbacks\":[]}","id":\#(id),"origin":"https://127.0.0.1:8443","type":"pageMessage"}"#
        }
        let rules = PageMessageRules(origins: ["https://127.0.0.1:8443"], types: ["NameCallback"])
        let (asked, waiting) = (Log<PageMessage>(), Log<PageMessage>())
        let agent = try agent(
            """
            say '\(Self.ready)'; hear; say '\(message(1))'; say '\(message(2))'; hear; hear
            say '\(message(3))'; hear; say '{"reason":"cancel","type":"closed"}'
            """)
        let error = await #expect(throws: SignInError.self) {
            try await agent.show(
                page(messages: rules) { message in
                    waiting.add(message)
                    await Task.yield()
                    #expect(waiting.entries.count == asked.entries.count + 1)
                    asked.add(message)
                    return asked.entries.count < 3 ? "{}" : nil
                })
        }
        #expect(error?.code == .cancelled && asked.entries.count == 3)
        #expect(heard.first?.contains(#""types":["NameCallback"]"#) == true)
        #expect(
            heard.dropFirst() == [
                #"{"type":"answerMessage","id":1,"answer":"{}"}"#, #"{"type":"answerMessage","id":2,"answer":"{}"}"#,
                #"{"type":"cancel"}"#,
            ])
    }

    /// An unanswered question ends with the window.
    @Test func aClosedWindowEndsTheQuestion() async throws {
        let agent = try agent(
            """
            say '\(Self.ready)'; hear
            say '{"body":"{}","id":1,"origin":"https://127.0.0.1:8443","type":"pageMessage"}'
            say '{"reason":"window","type":"closed"}'
            """)
        let error = await #expect(throws: SignInError.self) {
            try await agent.show(
                page { _ in
                    try? await Task.sleep(for: .seconds(60))
                    return nil
                })
        }
        #expect(error?.detail == SignInError.windowClosed.detail)
    }

    private static func message(_ id: Int) -> String {
        #"{"body":"\#(id)","id":\#(id),"origin":"https://127.0.0.1:8443","type":"pageMessage"}"#
    }

    /// The terminal does not echo while a password is typed, and the window may take its time to close.
    @Test func aQuestionEndsBeforeTheWindowHasClosed() async throws {
        let agent = try agent(
            """
            say '\(Self.ready)'; hear; say '\(Self.message(1))'; hear
            until [ -e \(folder.file("ended")) ]; do sleep 0.05; done
            say '{"reason":"cancel","type":"closed"}'
            """)
        let asked = Log<PageMessage>()
        let page = try page { message in
            asked.add(message)
            try? await Task.sleep(for: .seconds(60))
            _ = try? folder.write("ended", "")
            return nil
        }
        let task = Task { try await agent.show(page) }
        #expect(try await eventually { !asked.entries.isEmpty })
        task.cancel()
        let error = await #expect(throws: SignInError.self) { try await task.value }
        #expect(error?.detail == "the sign-in was cancelled")
    }

    /// The page was loaded again while the first question was open and the second one waited.
    @Test func questionsOfAPageThatIsGoneAreNotAsked() async throws {
        let agent = try agent(
            """
            say '\(Self.ready)'; hear; say '\(Self.message(1))'; say '\(Self.message(2))'
            until [ -e \(folder.file("asked")) ]; do sleep 0.05; done
            say '{"type":"pageMessagesGone"}'; say '\(Self.message(3))'; hear; say '\(Self.closed)'
            """)
        let asked = Log<String>()
        try await agent.show(
            page { message in
                asked.add(message.body)
                guard message.body == "1" else { return "{}" }
                _ = try? folder.write("asked", "")
                try? await Task.sleep(for: .seconds(60))
                return nil
            })
        #expect(asked.entries == ["1", "3"])
        #expect(heard.dropFirst() == [#"{"type":"answerMessage","id":3,"answer":"{}"}"#])
    }

    @Test func aPageThatAsksWithoutEndEndsTheSignIn() async throws {
        let agent = try agent(
            "say '\(Self.ready)'; hear; while say '\(Self.message(1))'; do :; done; sleep 60")
        let asked = Log<PageMessage>()
        let error = await #expect(throws: SignInError.self) {
            try await agent.show(
                page { message in
                    asked.add(message)
                    return "{}"
                })
        }
        #expect(error?.code == .provider && error?.detail.contains("100 times") == true, "\(String(describing: error))")
        #expect(asked.entries.count <= 100)
    }

    /// The web view would end.
    @Test(arguments: [(16_384, false), (16_385, true)])
    func anAnswerThatIsTooLongIsReplaced(length: Int, isReplaced: Bool) async throws {
        let agent = try agent("say '\(Self.ready)'; hear; say '\(Self.message(1))'; hear; say '\(Self.closed)'")
        try await agent.show(page { _ in "\"\(String(repeating: "a", count: length - 2))\"" })
        #expect(heard.last?.contains("tooLarge") == isReplaced)
        #expect(heard.last?.contains("aaaa") == !isReplaced)
    }

    @Test func textsOfTheWebViewArePrintable() async throws {
        let events = Log<UserAgentEvent>()
        let agent = try agent(
            #"""
            say '\#(Self.ready)'; hear
            message='"code":"other","message":"No\n\u001b[31m ü\u202e"'
            say "{\"type\":\"loadFailed\",\"url\":\"https://a.example/"'\u001b[2J",'"$message}"
            say '{"code":"webProcess","remedy":"do\u0007","sentence":"gone\u001b","type":"failed"}'
            """#)
        let error = await #expect(throws: SignInError.self) { try await agent.show(page(events)) }
        #expect(events.entries == [.loadFailed(url: "https://a.example/ [2J", reason: "No [31m ü")])
        #expect(error?.detail == "gone" && error?.hint == "do")
    }

    @Test func theProgramIsFoundInThreePlaces() throws {
        for place in ["named", "beside", "path"] {
            try folder.write("\(place)/countersign-webview", "")
            chmod(folder.file("\(place)/countersign-webview"), 0o755)
        }
        let (named, beside, path) = (folder.file("named"), folder.file("beside"), folder.file("path"))
        var environment = ["COUNTERSIGN_WEBVIEW": named + "/countersign-webview", "PATH": path]
        #expect(try WebViewProgram.path(in: environment, folder: beside).hasPrefix(named))
        environment["COUNTERSIGN_WEBVIEW"] = ""
        #expect(try WebViewProgram.path(in: environment, folder: beside).hasPrefix(beside))
        #expect(try WebViewProgram.path(in: environment, folder: nil).hasPrefix(path))
        for missing in [["COUNTERSIGN_WEBVIEW": "/nowhere", "PATH": path], ["PATH": "/nowhere"]] {
            let error = #expect(throws: SignInError.self) { try WebViewProgram.path(in: missing, folder: nil) }
            #expect(error?.code == .noAgent)
        }
    }
}
