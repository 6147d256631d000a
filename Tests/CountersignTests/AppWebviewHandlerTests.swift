// SPDX-License-Identifier: Apache-2.0

import CountersignDeviceManagement
import CountersignHome
import CountersignOAuth
import CountersignTestOrigin
import Synchronization
import Testing

@testable import Countersign

/// An app's handler in the place of a sign-in's own.
@Suite(.waiting) struct AppWebviewHandlerTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("handler") }

    private struct Own: CountersignDeviceManagement.InteractiveWebviewHandler {
        var action: CountersignDeviceManagement.WebviewAction = .noop

        func viewAction(
            forSpecialURL url: String, state: CountersignDeviceManagement.InteractiveWebviewState
        ) -> CountersignDeviceManagement.WebviewAction { action }

        func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String { "callback" }

        func openExternalBrowser(_ url: String) async throws {}
    }

    /// Decides nothing itself.
    private struct Silent: Countersign.InteractiveWebviewHandler {}

    private final class Deciding: Countersign.InteractiveWebviewHandler {
        let chosen: Countersign.WebviewAction
        let seen = Mutex<[String]>([])
        init(_ chosen: Countersign.WebviewAction) { self.chosen = chosen }

        func viewAction(
            forSpecialURL url: String, _ state: Countersign.InteractiveWebviewState, proposed: Countersign.WebviewAction
        ) -> Countersign.WebviewAction {
            seen.withLock { $0.append("\(url) \(state.responseHeaders["X-A"] ?? "") \(proposed)") }
            return chosen
        }
        func responseReceived(_ headers: Countersign.ResponseHeaders) {
            seen.withLock { $0.append(headers.fields.map { "\($0.name): \($0.value)" }.joined(separator: ", ")) }
        }
        func acquireBrokerRefreshToken() async throws {}
        func installProfile(_ document: [UInt8], signIn: String) async throws -> String { "\(document) \(signIn)" }
    }

    private var state: CountersignDeviceManagement.InteractiveWebviewState {
        var state = CountersignDeviceManagement.InteractiveWebviewState()
        state.responseHeaders = CountersignDeviceManagement.ResponseHeaders([(name: "X-A", value: "b")])
        return state
    }

    @Test func aHandlerThatDecidesNothingChangesNothing() async throws {
        let session = AuthenticationSessionRequest(
            try EndpointURL("https://mdm.example/p", "p"), headers: [AdditionalHeader("A", "b")],
            purpose: .installProfile)
        let actions: [CountersignDeviceManagement.WebviewAction] = [
            .noop, .dismiss, .complete("msauth://x"), .openExternalBrowser("https://a.example/", keepsView: true),
            .loadRequest(
                WebviewRequest(try EndpointURL("https://mdm.example/", "p"), headers: [AdditionalHeader("A", "b")])),
            .openAuthenticationSession(session), .fail(DeviceManagementError(.notCompliant, "no")),
        ]
        for action in actions {
            let handler = AppWebviewHandler(app: Silent(), own: Own(action: action))
            #expect(handler.viewAction(forSpecialURL: "msauth://x", state: state) == action)
        }
        let handler = AppWebviewHandler(app: Silent(), own: Own())
        let error = await #expect(throws: DeviceManagementError.self) { try await handler.acquireBrokerRefreshToken() }
        #expect(error?.code == .brokerToken && error?.detail.contains("issues no refresh token") == true)
        #expect(handler.continuesWithoutBrokerRefreshToken(after: DeviceManagementError(.brokerToken, "none")))
        let refused = await #expect(throws: DeviceManagementError.self) {
            let installer = AppProfileInstaller(app: Silent(), home: Home(path: folder.path))
            _ = try await installer.install([1], from: "mdm.example", for: "work")
        }
        #expect(refused?.detail == "this program does not install configuration profiles")
    }

    /// Decides the opposite of each proposal.
    private final class Contrary: Countersign.InteractiveWebviewHandler {
        let isDismissed = Mutex(false)

        var isInBrokerContext: Bool { true }
        var genericError: ChallengeError { ChallengeError(.providerRefused, "the app's own", hint: "hint") }
        func shouldAcquireBrokerRefreshToken(
            for url: String, _ state: Countersign.InteractiveWebviewState, proposed: Bool
        ) -> Bool { !proposed }
        func continuesWithoutBrokerRefreshToken(after error: any Error, proposed: Bool) -> Bool { !proposed }
        func shouldRetryInBroker(
            for url: String, _ state: Countersign.InteractiveWebviewState, proposed: Bool
        ) -> Bool { !proposed }
        func dismissView() { isDismissed.withLock { $0 = true } }
    }

    @Test func eachQuestionReachesTheApp() throws {
        let app = Contrary()
        let own = Own()
        let handler = AppWebviewHandler(app: app, own: own)
        let url = try #require(try SpecialURL("msauth://enroll"))
        let error = DeviceManagementError(.brokerToken, "none")
        #expect(handler.isInBrokerContext && !own.isInBrokerContext)
        #expect(handler.genericError == DeviceManagementError(.enrollmentFailed, "the app's own", hint: "hint"))
        #expect(
            handler.shouldAcquireBrokerRefreshToken(for: url, state)
                != own.shouldAcquireBrokerRefreshToken(for: url, state))
        #expect(
            handler.continuesWithoutBrokerRefreshToken(after: error)
                != own.continuesWithoutBrokerRefreshToken(after: error))
        #expect(handler.shouldRetryInBroker(for: url, state) != own.shouldRetryInBroker(for: url, state))
        handler.dismissView()
        #expect(app.isDismissed.withLock { $0 })
    }

    @Test func anAppsDecisionsAreCarriedOut() async throws {
        let app = Deciding(.loadRequest(url: "https://app.example/", headers: ["B": "c", "A": "b"]))
        let handler = AppWebviewHandler(app: app, own: Own(action: .complete("msauth://y")))
        #expect(
            handler.viewAction(forSpecialURL: "msauth://x", state: state)
                == .loadRequest(
                    WebviewRequest(
                        try EndpointURL("https://app.example/", "p"),
                        headers: [AdditionalHeader("A", "b"), AdditionalHeader("B", "c")])))
        handler.responseReceived(state.responseHeaders)
        #expect(app.seen.withLock { $0 } == [#"msauth://x b complete(url: "msauth://y")"#, "x-a: b"])
        try await handler.acquireBrokerRefreshToken()
        let installer = AppProfileInstaller(app: app, home: Home(path: folder.path))
        #expect(try await installer.install([1], from: "mdm.example", for: "work") == "[1] work")
    }

    /// Shows the second window itself, and has a broker of its own.
    private final class Showing: Countersign.InteractiveWebviewHandler {
        let seen = Mutex<[String]>([])

        func openSystemWebview(
            _ session: AuthenticationSession, proposed: @Sendable () async throws -> String
        ) async throws -> String {
            seen.withLock { $0.append("\(session.url) \(session.headers) \(session.installsProfile)") }
            return "own, not \(try await proposed())"
        }

        func retryInBroker(
            for url: String, _ state: Countersign.InteractiveWebviewState,
            proposed: @Sendable () async throws -> Void
        ) async throws {
            seen.withLock { $0.append("\(url) \(state.responseHeaders["X-A"] ?? "")") }
            throw ChallengeError(.signInDenied, "the app's broker is closed", hint: "open it")
        }
    }

    @Test func anAppCanShowTheSecondWindowAndGoOnInABroker() async throws {
        let request = AuthenticationSessionRequest(
            try EndpointURL("https://mdm.example/p", "p"), headers: [AdditionalHeader("A", "b")],
            purpose: .installProfile)
        let silent = AppWebviewHandler(app: Silent(), own: Own())
        #expect(try await silent.openSystemWebview(request) == "callback")
        let app = Showing()
        let handler = AppWebviewHandler(app: app, own: Own())
        #expect(try await handler.openSystemWebview(request) == "own, not callback")
        let url = try #require(try SpecialURL("msauth://profileComplete"))
        let error = await #expect(throws: DeviceManagementError.self) {
            try await handler.retryInBroker(for: url, state)
        }
        #expect(error?.code == .brokerRequired && error?.detail == "the app's broker is closed")
        #expect(error?.hint == "open it")
        #expect(
            app.seen.withLock { $0 } == [
                #"https://mdm.example/p ["A": "b"] true"#, "msauth://profileComplete b",
            ])
    }

    @Test func anAddressThatIsNoneFails() throws {
        let handler = AppWebviewHandler(app: Deciding(.loadRequest(url: "file:///etc", headers: [:])), own: Own())
        guard case .fail(let error) = handler.viewAction(forSpecialURL: "msauth://x", state: state) else {
            Issue.record("it does not fail")
            return
        }
        #expect(error.code == .malformed)
    }
}
