// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography
import CountersignDeviceManagement
import CountersignOAuth
import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import CountersignSignIn

/// Special URLs, with a scripted program in place of `countersign-webview`.
@Suite struct SpecialURLAgentTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private final class Log: Sendable {
        private let content = Mutex<[UserAgentEvent]>([])
        private let added: @Sendable (UserAgentEvent) -> Void

        init(_ added: @escaping @Sendable (UserAgentEvent) -> Void = { _ in }) { self.added = added }

        var events: [UserAgentEvent] { content.withLock { $0 } }

        func add(_ event: UserAgentEvent) {
            content.withLock { $0.append(event) }
            added(event)
        }
    }

    /// `main` and `second` are the scripts of the two windows, in sh.
    private func run(
        _ main: String, second: String = "exit 7", log: Log = Log(),
        _ change: (inout SpecialURLSupport) -> Void = { _ in }
    ) async throws {
        let path = try folder.write(
            program: "webview",
            """
            #!/bin/sh
            say() { printf '%s\\n' "$1"; }
            hear() { IFS= read -r line || exit 9; printf '%s\\n' "$line" >> "$heard"; }
            special() { say "{\\"type\\":\\"specialURL\\",\\"url\\":\\"$1\\"}"; }
            closed() { say "{\\"reason\\":\\"$1\\",\\"type\\":\\"closed\\"}"; exit 0; }
            say '{"protocolVersion":1,"type":"ready","webKit":"2"}'
            IFS= read -r line || exit 9
            case $line in
            *'"title":"Sign in'*) heard=\(folder.file("main")); printf '%s\\n' "$line" >> "$heard"
            \(main)
            ;;
            *) heard=\(folder.file("second")); printf '%s\\n' "$line" >> "$heard"
            \(second)
            ;;
            esac
            """)
        let profile = try SignInProfile(
            Array(
                """
                {"issuer": "https://login.example", "client_id": "c",
                "special_urls": {"hosts": ["mdm.example"], "handoff_hosts": ["mdm.example"]}}
                """.utf8))
        var support = SpecialURLSupport(try #require(profile.specialURLs), signIn: "work")
        change(&support)
        let agent = EmbeddedAgent(
            environment: [
                "COUNTERSIGN_WEBVIEW": path, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": folder.path,
            ], specialURLs: support)
        let page = SignInPage(
            url: try EndpointURL("https://login.example/authorize?state=good", "page"),
            redirect: try RedirectURI("com.example.app:/cb"),
            origins: [Origin(scheme: .https, host: "login.example", port: 443)], limit: .seconds(600), messages: nil,
            report: { log.add($0) }, judge: { $0.contains("state=good") ? .accepted : .foreign },
            answer: { _ in nil })
        try await agent.show(page)
    }

    private func heard(_ window: String) -> [String] { TextFile.lines(folder.file(window)) }

    private static let authorize = #"{"type":"load","url":"https://login.example/authorize?state=good"}"#
    /// Waits for the command that ends the program.
    private static let ends = "hear; case $line in *close*) closed close;; *) closed cancel;; esac"

    @Test func anEnrolmentPageIsLoadedAndTheSignInIsRepeated() async throws {
        let log = Log()
        try await run(
            """
            special 'msauth://enroll?cpurl=https://mdm.example/portal'; hear
            special 'msauth://profileInstalled'; hear
            say '{"type":"redirect","url":"com.example.app:/cb?state=good&code=1"}'; \(Self.ends)
            """, log: log)
        #expect(
            heard("main").dropFirst() == [
                #"{"type":"load","url":"https://mdm.example/portal"}"#, Self.authorize, #"{"type":"close"}"#,
            ])
        #expect(heard("main")[0].contains(#""specialURLs":true"#))
        #expect(heard("main")[0].contains(#""allowedOrigins":["https://login.example","https://mdm.example"]"#))
        #expect(log.events.contains(.specialURL("msauth://enroll")))
        #expect(log.events.contains { if case .unavailable = $0 { true } else { false } }, "\(log.events)")
    }

    @Test(arguments: [
        ("msauth://enroll?cpurl=https://evil.example/", "foreignPage", "evil.example"),
        ("msauth://enroll?cpurl=http://mdm.example/", "foreignPage", "cpurl"),
        (
            "msauth://installProfile?url=https://evil.example/p&requireASWebAuthenticationSession=true", "foreignPage",
            "evil"
        ),
        ("msauth://wpj?username=a", "deviceRegistrationRequired", "registered"),
        ("msauth://jit_troubleshooting", "troubleshootingRequired", "could not be enrolled"),
        ("companyportal://enrollment", "brokerRequired", "Company Portal"),
        ("msauth://", "malformed", "no host"),
    ])
    func whatCannotBeDoneEndsTheSignInWithItsReason(url: String, code: String, detail: String) async throws {
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run("special '\(url)'; \(Self.ends)")
        }
        #expect(
            error.map { "\($0.code)" } == code && error?.detail.contains(detail) == true, "\(String(describing: error))"
        )
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#] && heard("second").isEmpty)
    }

    /// The device has to be enrolled first, and then to comply.
    @Test func theSignInIsRepeatedOnceForEachStep() async throws {
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run(
                """
                special 'msauth://profileInstalled'; hear; special 'msauth://compliance_status?status=4'; hear
                say '{"type":"redirect","url":"com.example.app:/cb/msauth/upgradeReg"}'; \(Self.ends)
                """)
        }
        #expect(error?.code == .strongerRegistrationRequired)
        #expect(heard("main").dropFirst() == [Self.authorize, Self.authorize, #"{"type":"cancel"}"#])
    }

    @Test func aSecondRepetitionIsALoop() async throws {
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run(
                "special 'msauth://profileInstalled'; hear; special 'msauth://profileInstalled'; \(Self.ends)")
        }
        #expect(error?.code == .enrollmentFailed && error?.detail.contains("again and again") == true)
        #expect(heard("main").dropFirst() == [Self.authorize, #"{"type":"cancel"}"#])
    }

    @Test func theBrowserEndsTheSignInAndAWalletDoesNot() async throws {
        let browser = try folder.write(
            program: "browser", "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \(folder.file("opened"))\n")
        let error = await #expect(throws: SignInError.self) {
            try await run("special 'openid-vc://wallet?x=1'; special 'browser://help.example/page'; \(Self.ends)") {
                $0.handler = { own in
                    OtherBrowser(own: own, program: browser)
                }
            }
        }
        #expect(error?.code == .cancelled && error?.detail.contains("your browser") == true)
        #expect(TextFile.lines(folder.file("opened")) == ["openid-vc://wallet?x=1", "https://help.example/page"])
    }

    /// Runs a program in place of the person's browser, and waits for it.
    private struct OtherBrowser: InteractiveWebviewHandler {
        let own: any InteractiveWebviewHandler
        let program: String
        var isAgreed = true

        func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction {
            own.viewAction(forSpecialURL: url, state: state)
        }

        func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String { "" }

        func confirmsHandOff(of url: String) async -> Bool { isAgreed }

        func openExternalBrowser(_ url: String) async throws {
            _ = await (try AgentProcess([program, url], environment: [:])).status()
        }
    }

    @Test func aBurstOpensTheBrowserOnce() async throws {
        let browser = try folder.write(
            program: "browser", "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \(folder.file("opened"))\n")
        let script = """
            i=0
            while [ $i -lt 100 ]; do special "browser://evil.example/$i"; i=$((i + 1)); done
            \(Self.ends)
            """
        await #expect(throws: (any Error).self) {
            try await run(script) { $0.handler = { OtherBrowser(own: $0, program: browser) } }
        }
        #expect(TextFile.lines(folder.file("opened")) == ["https://evil.example/0"])
    }

    @Test func aWalletIsAskedForAFewTimesOnly() async throws {
        let browser = try folder.write(
            program: "browser", "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \(folder.file("opened"))\n")
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run("for i in 1 2 3 4 5 6; do special \"openid-vc://$i\"; done; \(Self.ends)") {
                $0.handler = { OtherBrowser(own: $0, program: browser) }
            }
        }
        #expect(error?.detail.contains("without end") == true)
        #expect(TextFile.lines(folder.file("opened")).count == 4)
    }

    @Test func aWalletIsNotOpenedWithoutTheirWord() async throws {
        let browser = try folder.write(
            program: "browser", "#!/bin/sh\nprintf '%s\\n' \"$1\" >> \(folder.file("opened"))\n")
        // The sign-in must not end before the refusal has been reported.
        let gate = folder.file("gate")
        try #require(mkfifo(gate, 0o600) == 0)
        let descriptor = open(gate, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        let isRefusal: @Sendable (UserAgentEvent) -> Bool = {
            if case .unavailable(let reason) = $0 { reason.contains("nobody has agreed") } else { false }
        }
        let log = Log { if isRefusal($0) { _ = write(descriptor, "\n", 1) } }
        try await run(
            """
            special 'openid-vc://1'; IFS= read -r word < \(gate); special 'openid-vc://2'
            say '{"type":"redirect","url":"com.example.app:/cb?state=good"}'; \(Self.ends)
            """, log: log
        ) { $0.handler = { OtherBrowser(own: $0, program: browser, isAgreed: false) } }
        #expect(!FileManager.default.fileExists(atPath: folder.file("opened")))
        #expect(log.events.filter(isRefusal).count == 1)
    }

    @Test(arguments: [(true, 1), (false, 2)])
    func aTokenIsAskedForTwiceAtMost(succeeds: Bool, attempts: Int) async throws {
        let asked = Mutex(0)
        let log = Log()
        let ask: @Sendable () throws -> Void = {
            asked.withLock { $0 += 1 }
            if !succeeds { throw DeviceManagementError(.brokerToken, "none") }
        }
        try await run(
            """
            special 'msauth://enroll?cpurl=https://mdm.example/portal'; hear
            special 'msauth://enroll?cpurl=https://mdm.example/portal'; hear
            say '{"type":"redirect","url":"com.example.app:/cb?state=good"}'; \(Self.ends)
            """, log: log
        ) { $0.handler = { TokenHandler(own: $0, ask: ask) } }
        #expect(asked.withLock { $0 } == attempts)
        #expect(log.events.contains(.unavailable("there is no refresh token of the broker")) == !succeeds)
        #expect(heard("main").count == 4)
    }

    @Test func noTokenIsAskedForInABrokerContext() async throws {
        try await run(
            """
            special 'msauth://enroll?cpurl=https://mdm.example/portal'; hear
            say '{"type":"redirect","url":"com.example.app:/cb?state=good"}'; \(Self.ends)
            """
        ) { $0.handler = { TokenHandler(own: $0, isInBrokerContext: true) { Issue.record("a token was asked for") } } }
        #expect(heard("main").count == 3)
    }

    @Test func withTheFailingPolicyTheSignInFailsWithoutAToken() async throws {
        let profile = try SignInProfile(
            Array(
                """
                {"issuer": "https://login.example", "client_id": "c",
                "special_urls": {"hosts": ["mdm.example"], "broker_token": "fail"}}
                """.utf8))
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run("special 'msauth://enroll?cpurl=https://mdm.example/portal'; \(Self.ends)") {
                if let settings = profile.specialURLs { $0.settings = settings }
            }
        }
        #expect(error?.code == .brokerToken)
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#])
    }

    private struct TokenHandler: InteractiveWebviewHandler {
        let own: any InteractiveWebviewHandler
        var isInBrokerContext = false
        let ask: @Sendable () throws -> Void

        func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool { true }

        func acquireBrokerRefreshToken() async throws { try ask() }

        func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction {
            own.viewAction(forSpecialURL: url, state: state)
        }

        func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String { "" }

        func confirmsHandOff(of url: String) async -> Bool { true }

        func openExternalBrowser(_ url: String) async throws {}
    }

    @Test func theBrokerGoesOnWhenTheDeviceIsEnrolled() async throws {
        let calls = Mutex(0)
        let called: @Sendable () async throws -> Void = { calls.withLock { $0 += 1 } }
        let error = await #expect(throws: SignInError.self) {
            try await run("special 'msauth://in_app_enrollment_complete?status=success'; \(Self.ends)") {
                $0.broker = called
            }
        }
        #expect(error?.code == .transferred && calls.withLock { $0 } == 1)
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#])
    }

    private static let enrolled = "special 'msauth://in_app_enrollment_complete?status=success'"

    /// The window's events go on while the broker works.
    @Test(.timeLimit(.minutes(15))) func aClosedWindowCancelsTheBroker() async throws {
        let asked = folder.file("asked")
        let wasCancelled = Mutex(false)
        let note: @Sendable () -> Void = { wasCancelled.withLock { $0 = true } }
        let error = await #expect(throws: SignInError.self) {
            try await run(
                "\(Self.enrolled); while [ ! -e \(asked) ]; do sleep 0.05; done; \(Self.enrolled); closed window"
            ) {
                $0.broker = {
                    _ = FileManager.default.createFile(atPath: asked, contents: nil)
                    do {
                        try await Task.sleep(for: .seconds(86_400))
                    } catch {
                        note()
                        throw error
                    }
                }
            }
        }
        #expect(error?.detail.contains("the window was closed") == true && wasCancelled.withLock { $0 })
    }

    @Test func theSignInIsRepeatedOnceAfterABrokerThatFails() async throws {
        let calls = Mutex(0)
        let log = Log()
        let fail: @Sendable () async throws -> Void = {
            calls.withLock { $0 += 1 }
            throw DeviceManagementError(.brokerRequired, "it has no account")
        }
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run("\(Self.enrolled); hear; \(Self.enrolled); \(Self.ends)", log: log) { $0.broker = fail }
        }
        #expect(error?.detail.contains("again and again") == true && calls.withLock { $0 } == 1)
        #expect(heard("main").dropFirst() == [Self.authorize, #"{"type":"cancel"}"#])
        #expect(
            log.events.contains(
                .unavailable("the identity broker does not go on with the sign-in: it has no account")))
    }

    @Test func aPersonWhoCancelsInTheBrokerEndsTheSignIn() async throws {
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run("\(Self.enrolled); \(Self.ends)") {
                $0.broker = { throw SignInError(.cancelled, "no account was chosen") }
            }
        }
        #expect(error?.detail == "no account was chosen")
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#])
    }

    // MARK: The second window

    private static let installs =
        "special 'msauth://installProfile?url=https://mdm.example/p&requireASWebAuthenticationSession=true'"

    private struct Installer: ProfileInstalling {
        let installed: @Sendable ([UInt8], String) throws -> String
        func install(_ document: [UInt8], from host: String, for signIn: String) async throws -> String {
            try installed(document, "\(signIn) from \(host)")
        }
    }

    @Test func aProfileIsInstalledAndTheCallbackGoesToTheWindow() async throws {
        let log = Log()
        try await run(
            "\(Self.installs); hear; say '{\"type\":\"redirect\",\"url\":\"com.example.app:/cb?state=good\"}'; \(Self.ends)",
            second: """
                say '{"content":"PHBsaXN0Lz4=","type":"profile","url":"https://mdm.example/p"}'; hear; hear
                special 'msauth://profileInstalled'; \(Self.ends)
                """, log: log
        ) {
            $0.installer = Installer { document, name in
                "\(String(decoding: document, as: UTF8.self)) for \(name)"
            }
        }
        #expect(heard("main").dropFirst() == [Self.authorize, #"{"type":"close"}"#])
        let second = heard("second")
        #expect(second[0].contains(#""profileFolder":""#) && second[0].contains(#""specialURLs":true"#))
        #expect(second.last == #"{"type":"close"}"# && second.count == 4)
        let sentence = "The profile was installed. <plist/> for work from mdm.example"
        #expect(second.contains(#"{"type":"showMessage","text":"\#(sentence)"}"#))
        #expect(log.events.contains(.profileInstalled("<plist/> for work from mdm.example")))
        #expect(log.events.contains(.sessionOpened(url: "https://mdm.example/p", installsProfile: true)))
        #expect(log.events.contains(.sessionEnded))
    }

    /// The window's process has ended in the middle of a download.
    @Test func aWindowThatDiesLeavesNoFile() async throws {
        let error = await #expect(throws: SignInError.self) {
            try await run(
                "\(Self.installs); hear; closed cancel",
                second: """
                    folder=$(printf '%s' "$line" | sed 's/.*"profileFolder":"\\([^"]*\\)".*/\\1/')
                    stat -c '%a %F' "$folder" > \(folder.file("mode")); echo part > "$folder/profile-1"; exit 7
                    """)
        }
        #expect(error?.detail == "the second window ended unexpectedly")
        #expect(TextFile.lines(folder.file("mode")) == ["700 directory"])
        #expect(try deliveries() == [])
    }

    /// The next profile removes the folder of a killed process; a folder in use stays.
    @Test func anAbandonedFolderIsRemoved() throws {
        let environment = ["XDG_RUNTIME_DIR": folder.path]
        let used = try LockedFolder.delivery(environment)
        let abandoned = folder.file("countersign-profile-abcdef")
        try FileManager.default.createDirectory(atPath: abandoned, withIntermediateDirectories: false)
        for name in ["lock", "profile-1"] {
            _ = FileManager.default.createFile(atPath: "\(abandoned)/\(name)", contents: nil)
        }
        let next = try LockedFolder.delivery(environment)
        #expect(try deliveries().sorted() == [used, next].map { $0.path.split(separator: "/").last ?? "" }.sorted())
        #expect(FileManager.default.fileExists(atPath: used.path + "/lock"))
    }

    private func deliveries() throws -> [Substring] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasPrefix("countersign-profile-") }.map { $0[...] }
    }

    @Test(arguments: [true, false])
    func aClosedSecondWindowEndsTheSignInUnlessItsProfileIsInstalled(isInstalled: Bool) async throws {
        func start() async throws {
            try await run(
                "\(Self.installs); hear; case $line in *cancel*) closed cancel;; esac; "
                    + "say '{\"type\":\"redirect\",\"url\":\"com.example.app:/cb?state=good\"}'; \(Self.ends)",
                second: """
                    say '{"content":"PHBsaXN0Lz4=","type":"profile","url":"https://mdm.example/p"}'; hear; hear
                    closed window
                    """
            ) {
                $0.installer = Installer { _, _ in
                    guard isInstalled else { throw DeviceManagementError(.malformed, "declined") }
                    return "done"
                }
            }
        }
        if isInstalled {
            try await start()
        } else {
            let error = await #expect(throws: DeviceManagementError.self) { try await start() }
            #expect(error?.detail == "the configuration profile was not installed: declined")
            #expect(
                heard("second").contains(#"{"type":"showMessage","text":"The profile was not installed: declined."}"#))
        }
        #expect(heard("main").count == (isInstalled ? 3 : 2))
    }

    /// The page's callback does not hide that the person has declined.
    @Test func aDeclinedProfileEndsTheSignInThoughThePageGoesOn() async throws {
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run(
                "\(Self.installs); hear; case $line in *cancel*) closed cancel;; esac; "
                    + "say '{\"type\":\"redirect\",\"url\":\"com.example.app:/cb?state=good\"}'; \(Self.ends)",
                second: """
                    say '{"content":"PHBsaXN0Lz4=","type":"profile","url":"https://mdm.example/p"}'; hear; hear
                    special 'msauth://profileInstalled'; \(Self.ends)
                    """
            ) { $0.installer = Installer { _, _ in throw DeviceManagementError(.malformed, "declined") } }
        }
        #expect(error?.detail == "the configuration profile was not installed: declined")
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#])
    }

    /// The first window is closed while the second is open.
    @Test func theSecondWindowIsClosedWithTheSignIn() async throws {
        let error = await #expect(throws: SignInError.self) {
            try await run(
                "\(Self.installs); while [ ! -s \(folder.file("second")) ]; do sleep 0.05; done; closed window",
                second: "hear; closed cancel")
        }
        #expect(error?.detail.contains("the window was closed") == true)
        #expect(heard("second").last == #"{"type":"cancel"}"#)
    }

    /// The question about a profile ends with the sign-in.
    @Test(arguments: ["window", "timeLimit"])
    func aQuestionAboutAProfileDoesNotKeepAnEndedSignIn(reason: String) async throws {
        await #expect(throws: SignInError.self) {
            try await run(
                "\(Self.installs); while [ ! -s \(folder.file("asked")) ]; do sleep 0.05; done; closed \(reason)",
                second: """
                    say '{"content":"PHBsaXN0Lz4=","type":"profile","url":"https://mdm.example/p"}'; hear
                    echo asked > \(folder.file("asked")); hear; closed cancel
                    """
            ) { $0.installer = PatientInstaller() }
        }
        #expect(heard("second").last == #"{"type":"cancel"}"#)
    }

    /// The person has closed the window that delivered the profile.
    @Test(.timeLimit(.minutes(15))) func aQuestionAboutAProfileEndsWithItsWindow() async throws {
        let error = await #expect(throws: SignInError.self) {
            try await run(
                "\(Self.installs); hear; closed cancel",
                second: """
                    say '{"content":"PHBsaXN0Lz4=","type":"profile","url":"https://mdm.example/p"}'; hear; closed window
                    """
            ) { $0.installer = PatientInstaller() }
        }
        #expect(error?.detail.contains("the window was closed") == true)
    }

    /// Waits for an answer that does not come.
    private struct PatientInstaller: ProfileInstalling {
        func install(_ document: [UInt8], from host: String, for signIn: String) async throws -> String {
            try await Task.sleep(for: .seconds(86_400))
            return ""
        }
    }

    // MARK: A shared session

    private static func cookies(_ values: [String: String]) -> String {
        let cookies = values.sorted { $0.key < $1.key }.map { name, value in
            #"{"name":"\#(name)","value":"\#(value)","domain":"login.example","path":"/","secure":true,"#
                + #""httpOnly":true,"sameSite":"lax"}"#
        }
        return #"{"cookies":[\#(cookies.joined(separator: ","))],"omitted":0,"type":"session"}"#
    }

    /// The page asks for another browser without asking for a private one.
    @Test func aSecondWindowWithoutPrivacyHasTheCookiesOfTheFirstAndGivesThemBack() async throws {
        let switches = "com.example.app:/cb/switch_browser?action_uri=https://mdm.example/p&code=c&state=good"
        try await run(
            """
            say '{"type":"redirect","url":"\(switches)"}'; hear; say '\(Self.cookies(["a": "1", "b": "2"]))'
            hear; \(Self.ends)
            """,
            second: """
                say '{"type":"redirect","url":"com.example.app:/cb?state=good&code=1"}'; hear
                say '\(Self.cookies(["b": "2", "c": "3"]))'; closed close
                """)
        let main = heard("main")
        #expect(main.count == 4 && main[1] == #"{"type":"reportSession"}"# && main[3] == #"{"type":"close"}"#)
        #expect(
            main[2].hasPrefix(#"{"type":"addCookies","cookies":[{"name":"c","value":"3","#)
                && main[2].contains(#"{"name":"a","value":"","#) && main[2].hasSuffix(#""expires":1}]}"#), "\(main)")
        let second = heard("second")
        #expect(second[0].contains(#""cookies":[{"name":"a","value":"1","#), "\(second)")
        #expect(second[0].contains(#""reportsSession":true"#))
    }

    /// Even if a page's headers say that the session should not be private.
    @Test func theWindowOfAProfileHasNoCookies() async throws {
        let log = Log()
        try await run(
            "\(Self.installs); hear; say '{\"type\":\"redirect\",\"url\":\"com.example.app:/cb?state=good\"}'; \(Self.ends)",
            second: "special 'msauth://profileInstalled'; \(Self.ends)", log: log)
        #expect(heard("main").dropFirst() == [Self.authorize, #"{"type":"close"}"#])
        #expect(!heard("second")[0].contains("cookies") && !heard("second")[0].contains("reportsSession"))
    }

    // MARK: The device

    /// Also in a second window. Nothing proves the device here.
    @Test func everyWindowAnswersAQuestionForTheDevice() async throws {
        let asks = #"{"type":"deviceChallenge","url":"urn:http-auth:PKeyAuth?nonce=n&Context=c&Version=1.0&SubmitUrl="#
        try await run(
            "say '\(asks)https://login.example/a\"}'; hear; \(Self.installs); hear; "
                + "say '{\"type\":\"redirect\",\"url\":\"com.example.app:/cb?state=good\"}'; \(Self.ends)",
            second: "say '\(asks)https://mdm.example/b\"}'; hear; special 'msauth://profileInstalled'; \(Self.ends)")
        func answer(_ url: String) -> String {
            #"{"type":"load","url":"\#(url)","headers":{"#
                + #""Authorization":"PKeyAuth Context=\"c\", Version=\"1.0\"","x-ms-PKeyAuth":"1.0"}}"#
        }
        #expect(heard("main")[1] == answer("https://login.example/a"))
        #expect(heard("second")[1] == answer("https://mdm.example/b"))
        #expect(heard("main").count == 4 && !heard("main")[0].contains("announcesDevice"))
    }

    @Test(arguments: [true, false]) func aQuestionFromElsewhereEndsTheSignIn(inSecond: Bool) async throws {
        let asks = #"{"type":"deviceChallenge","url":"urn:http-auth:PKeyAuth?nonce=n&Context=c&Version=1.0&SubmitUrl="#
        let error = await #expect(throws: DeviceManagementError.self) {
            try await run(
                inSecond ? "\(Self.installs); \(Self.ends)" : "say '\(asks)https://evil.example/\"}'; \(Self.ends)",
                second: "say '\(asks)https://evil.example/\"}'; hear")
        }
        #expect(error?.code == .foreignPage)
        #expect(heard("main").dropFirst() == [#"{"type":"cancel"}"#])
    }

    // MARK: Headers

    private final class Doors: Sendable {
        let feed = Mutex<ResponseFeed?>(nil)
        let closings = Mutex(0)

        func send(_ fields: [(name: String, value: String)], from host: String) {
            let status = fields.contains { $0.name == "Location" } ? 302 : 200
            feed.withLock { $0 }?.received(
                PageResponse(
                    origin: Origin(scheme: .https, host: host, port: 443), status: status,
                    headers: ResponseHeaders(fields)))
        }
    }

    /// Shows a page to a main window that runs `main` after the proxy has seen `responses`.
    @discardableResult
    private func run(
        _ main: String, failing detail: String = "closed",
        handler: (@Sendable (any InteractiveWebviewHandler) -> any InteractiveWebviewHandler)? = nil,
        after responses: @escaping @Sendable (Doors) -> Void
    ) async throws -> Doors {
        let doors = Doors()
        let go = folder.file("go")
        let path = try folder.write(
            program: "webview",
            """
            #!/bin/sh
            say() { printf '%s\\n' "$1"; }
            say '{"protocolVersion":1,"type":"ready","webKit":"2"}'
            IFS= read -r line; printf '%s\\n' "$line" >> \(folder.file("seen"))
            case $line in
            *'"title":"Sign in'*)
            say '{"type":"loadStarted","url":"https://login.example/"}'
            count=0
            while [ ! -e \(go) ] && [ $count -lt 1200 ]; do sleep 0.05; count=$((count + 1)); done
            \(main)
            IFS= read -r line; say '{"reason":"cancel","type":"closed"}';;
            *) say '{"reason":"window","type":"closed"}';;
            esac
            """)
        let profile = try SignInProfile(
            Array(
                """
                {"issuer": "https://login.example", "client_id": "c",
                "special_urls": {"hosts": ["mdm.example"], "handoff_hosts": ["mdm.example"]}}
                """.utf8))
        var support = SpecialURLSupport(try #require(profile.specialURLs), signIn: "work")
        support.handler = handler
        support.openDoors = { origins, feed in
            #expect(origins.map(\.host) == ["login.example", "mdm.example"])
            doors.feed.withLock { $0 = feed }
            return SpecialURLSupport.Doors(
                main: EmbeddedAgent.Door(proxy: Secret(utf8: "http://a:b@127.0.0.1:1"), bundle: "/main"),
                session: EmbeddedAgent.Door(proxy: Secret(utf8: "http://a:b@127.0.0.1:2"), bundle: "/session")
            ) { doors.closings.withLock { $0 += 1 } }
        }
        let agent = EmbeddedAgent(
            environment: ["COUNTERSIGN_WEBVIEW": path, "PATH": "/usr/bin:/bin"],
            door: EmbeddedAgent.Door(proxy: Secret(utf8: "http://a:b@127.0.0.1:3"), bundle: "/plain"),
            specialURLs: support)
        let page = SignInPage(
            url: try EndpointURL("https://login.example/authorize", "page"),
            redirect: try RedirectURI("com.example.app:/cb"),
            origins: [Origin(scheme: .https, host: "login.example", port: 443)], limit: .seconds(600), messages: nil,
            report: { event in
                guard case .loadStarted = event else { return }
                responses(doors)
                _ = FileManager.default.createFile(atPath: go, contents: nil)
            }, judge: { _ in .foreign }, answer: { _ in nil })
        let error = await #expect(throws: (any Error).self) { try await agent.show(page) }
        #expect("\(error.map { "\($0)" } ?? "")".contains(detail), "\(String(describing: error))")
        return doors
    }

    private var second: String { TextFile.lines(folder.file("seen")).last ?? "" }

    /// Not those of an earlier response, or of a host that is not the sign-in's.
    @Test func theHeadersOfTheLastResponseDecide() async throws {
        let doors = try await run("say '{\"type\":\"specialURL\",\"url\":\"msauth://installProfile\"}'") { doors in
            doors.send(
                [("X-Install-Url", "https://mdm.example/old"), ("X-Intune-AuthToken", "old")], from: "mdm.example")
            doors.send(
                [("x-install-url", "https://mdm.example/new"), ("X-Intune-AuthToken", "secret")], from: "mdm.example")
            doors.send([("X-Install-Url", "https://mdm.example/evil")], from: "evil.example")
        }
        #expect(second.contains(#""url":"https://mdm.example/new""#), "\(second)")
        #expect(second.contains(#""headers":{"X-Intune-AuthToken":"secret"}"#), "\(second)")
        #expect(second.contains("127.0.0.1:2"))
        #expect(TextFile.lines(folder.file("seen"))[0].contains("127.0.0.1:1"))
        #expect(doors.closings.withLock { $0 } == 1)
    }

    /// Holds the first response until it is released.
    private final class SlowHandler: InteractiveWebviewHandler {
        let own: any InteractiveWebviewHandler
        let gate: DispatchSemaphore

        init(own: any InteractiveWebviewHandler, gate: DispatchSemaphore) { (self.own, self.gate) = (own, gate) }

        func responseReceived(_ headers: ResponseHeaders) {
            gate.wait()
            gate.signal()
        }

        func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction { .noop }

        func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String { "" }

        func confirmsHandOff(of url: String) async -> Bool { true }

        func openExternalBrowser(_ url: String) async throws {}
    }

    @Test func responsesWithoutEndEndTheSignIn() async throws {
        let gate = DispatchSemaphore(value: 0)
        try await run(
            "", failing: "without end", handler: { SlowHandler(own: $0, gate: gate) },
            after: { doors in
                for _ in 0..<(2 * SpecialURLFlow.maximumInputs) { doors.send([], from: "mdm.example") }
                gate.signal()
            })
    }

    /// Another page of the window was on its way already.
    @Test func theHeadersOfTheRedirectToTheURLDecide() async throws {
        try await run("say '{\"type\":\"specialURL\",\"url\":\"msauth://installProfile?a=b\"}'") { doors in
            doors.send(
                [
                    ("Location", "msauth://installProfile?a=b"), ("X-Install-Url", "https://mdm.example/right"),
                    ("X-Intune-AuthToken", "secret"),
                ], from: "mdm.example")
            doors.send(
                [("X-Install-Url", "https://mdm.example/wrong"), ("X-Intune-AuthToken", "wrong")], from: "mdm.example")
        }
        #expect(second.contains(#""url":"https://mdm.example/right""#), "\(second)")
        #expect(second.contains(#""headers":{"X-Intune-AuthToken":"secret"}"#), "\(second)")
    }

    @Test func handoffHeadersOpenTheSecondWindow() async throws {
        _ = try await run("") { doors in
            doors.send([("x-ms-aswebauth-handoff-url", "https://mdm.example/no")], from: "login.example")
            doors.send(
                [
                    ("x-ms-aswebauth-handoff-url", "https://mdm.example/install"),
                    ("x-ms-aswebauth-handoff-include-headers", "true"),
                    ("x-ms-aswebauth-handoff-attach-headers", "x-ms-aswebauth-handoff-token,cookie"),
                    ("x-ms-aswebauth-handoff-token", "secret"), ("cookie", "a=b"),
                    ("x-ms-aswebauth-handoff-purpose", "download-profile"),
                ], from: "mdm.example")
        }
        #expect(second.contains(#""url":"https://mdm.example/install""#), "\(second)")
        #expect(second.contains(#""headers":{"x-ms-aswebauth-handoff-token":"secret"}"#), "\(second)")
        #expect(second.contains(#""profileFolder":""#))
        #expect(TextFile.lines(folder.file("seen")).count == 2)
    }

    @Test func aHeaderThatNoRequestCanHaveEndsTheSignIn() async throws {
        _ = try await run(
            "say '{\"type\":\"specialURL\",\"url\":\"msauth://installProfile\"}'", failing: "not printable ASCII"
        ) { doors in
            doors.send(
                [("X-Install-Url", "https://mdm.example/new"), ("X-Intune-AuthToken", "se\u{e9}cret")],
                from: "mdm.example")
        }
        #expect(TextFile.lines(folder.file("seen")).count == 1)
    }
}
