// SPDX-License-Identifier: Apache-2.0
import CountersignAddresses
import CountersignOAuth
import Synchronization
import Testing

@testable import CountersignDeviceManagement

/// A handler whose answers the test determines, and which records the questions to it.
private final class ScriptedHandler: InteractiveWebviewHandler {
    struct Script {
        var isInBrokerContext = false
        var wantsToken = true
        /// Whether each attempt to obtain a token succeeds; later ones fail.
        var attempts: [Bool] = []
        var continues = true
        var retriesInBroker = false
        var brokerFails = false
        var continuesInView = true
    }

    private let script: Script
    private let calls = Mutex<[String]>([])

    init(_ script: Script) { self.script = script }

    var called: [String] { calls.withLock { $0 } }
    private func note(_ call: String) { calls.withLock { $0.append(call) } }

    var isInBrokerContext: Bool { script.isInBrokerContext }

    func shouldAcquireBrokerRefreshToken(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool {
        script.wantsToken
    }

    func acquireBrokerRefreshToken() async throws {
        let count = called.count { $0 == "token" }
        note("token")
        guard script.attempts.indices.contains(count), script.attempts[count] else {
            throw DeviceManagementError(.brokerToken, "none")
        }
    }

    func continuesWithoutBrokerRefreshToken(after error: any Error) -> Bool { script.continues }

    func shouldRetryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) -> Bool { script.retriesInBroker }

    func retryInBroker(for url: SpecialURL, _ state: InteractiveWebviewState) async throws {
        note("broker")
        if script.brokerFails { throw DeviceManagementError(.brokerRequired, "none") }
    }

    func continuesInView(after error: any Error) -> Bool { script.continuesInView }

    func viewAction(forSpecialURL url: String, state: InteractiveWebviewState) -> WebviewAction {
        note("action")
        return (try? Enrolment.action(url, state)) ?? .noop
    }

    func responseReceived(_ headers: ResponseHeaders) { note("response") }

    func openSystemWebview(_ request: AuthenticationSessionRequest) async throws -> String {
        note("open \(request.url)")
        // Ends only by cancellation, unless the page is that of a profile.
        guard request.purpose == .unknown else { return "msauth://profileInstalled" }
        try await withTaskCancellationHandler {
            try await Task.sleep(for: .seconds(600))
        } onCancel: {
            note("closed")
        }
        return ""
    }

    func openExternalBrowser(_ url: String) async throws {}

    func dismissView() { note("dismiss") }
}

@Suite struct InteractiveWebviewControllerTests {
    private let enroll = "msauth://enroll?cpurl=https://mdm.example/e"

    private func run(
        _ script: ScriptedHandler.Script, times: Int = 1
    ) async throws -> (ScriptedHandler, InteractiveWebviewState, WebviewAction) {
        let handler = ScriptedHandler(script)
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        var action = WebviewAction.noop
        for _ in 0..<times { action = await controller.action(for: enroll) }
        return (handler, await controller.state, action)
    }

    @Test func noTokenIsAskedForInABrokerContext() async throws {
        let (handler, state, action) = try await run(.init(isInBrokerContext: true, attempts: [true]))
        #expect(handler.called == ["action"])
        #expect(state.brtAttemptCount == 0)
        #expect(try action == Enrolment.load("https://mdm.example/e"))
    }

    @Test func oneAttemptIsMadeIfItSucceeds() async throws {
        let (handler, state, _) = try await run(.init(attempts: [true]), times: 2)
        #expect(handler.called == ["token", "action", "action"])
        #expect(state.brtAttemptCount == 1)
        #expect(state.brtAcquired)
    }

    @Test func theSecondAttemptMaySucceed() async throws {
        let (handler, state, _) = try await run(.init(attempts: [false, true]))
        #expect(handler.called == ["token", "token", "action"])
        #expect(state.brtAcquired)
    }

    @Test func theFlowContinuesAfterTwoFailures() async throws {
        let (handler, state, action) = try await run(.init(attempts: []), times: 3)
        #expect(handler.called == ["token", "token", "action", "action", "action"])
        #expect(state.brtAttemptCount == 2)
        #expect(!state.brtAcquired)
        #expect(try action == Enrolment.load("https://mdm.example/e"))
    }

    @Test func theFlowFailsAfterTwoFailuresIfThePolicySaysSo() async throws {
        let (handler, _, action) = try await run(.init(attempts: [], continues: false))
        #expect(handler.called == ["token", "token"])
        #expect(action.failure == .brokerToken)
    }

    @Test func aTokenThatIsNotWantedIsNotAskedFor() async throws {
        let (handler, _, _) = try await run(.init(wantsToken: false))
        #expect(handler.called == ["action"])
    }

    @Test func theBrokerTakesOverAndTheViewIsDismissed() async throws {
        let (handler, state, action) = try await run(.init(wantsToken: false, retriesInBroker: true))
        #expect(handler.called == ["broker", "dismiss"])
        #expect(state.isTransferredToBroker)
        #expect(action == .dismiss)
    }

    @Test func aBrokerThatFailsIsNotTriedAgainAndTheViewGoesOn() async throws {
        let (handler, state, action) = try await run(
            .init(wantsToken: false, retriesInBroker: true, brokerFails: true), times: 2)
        #expect(handler.called == ["broker", "action", "action"])
        #expect(!state.isTransferredToBroker)
        #expect(state.brokerFailure?.code == .brokerRequired)
        #expect(try action == Enrolment.load("https://mdm.example/e"))
    }

    @Test func aBrokerThatFailsEndsTheSignInIfTheHandlerSaysSo() async throws {
        let (handler, state, action) = try await run(
            .init(wantsToken: false, retriesInBroker: true, brokerFails: true, continuesInView: false))
        #expect(handler.called == ["broker"])
        #expect(state.brokerFailure == nil)
        #expect(action.failure == .brokerRequired)
    }

    @Test func aMalformedURLAsksForNothing() async throws {
        let handler = ScriptedHandler(.init())
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        #expect(await controller.action(for: "msauth://user@enroll").failure == .malformed)
        #expect(handler.called == [])
    }

    @Test func theHeadersOfTheResponseBeforeTheURLCount() async throws {
        let handler = ScriptedHandler(.init(wantsToken: false))
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        let origin = try Origin(url: "https://mdm.example")
        let first = ResponseHeaders([
            (name: "X-Install-Url", value: "https://mdm.example/p"), (name: "X-Intune-AuthToken", value: "T"),
        ])
        let response = PageResponse(origin: origin, status: 200, headers: first)
        #expect(await controller.responseReceived(response) == .noop)
        #expect(
            try await controller.action(for: "msauth://installProfile", after: response)
                == Enrolment.session("https://mdm.example/p", [AdditionalHeader("X-Intune-AuthToken", "T")]))
        let empty = PageResponse(origin: origin, status: 200, headers: ResponseHeaders())
        _ = await controller.responseReceived(empty)
        #expect(await controller.action(for: "msauth://installProfile", after: empty).failure == .malformed)
        #expect(handler.called == ["response", "action", "response", "action"])
    }

    @Test func theDevicesIdentifierIsRemembered() async throws {
        let handler = ScriptedHandler(.init(wantsToken: false))
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        _ = await controller.action(
            for: "msauth://profile_download_complete?continueUrl=https://mdm.example/n&intuneDeviceId=d1")
        #expect(
            try await controller.action(for: "msauth://enroll?intuneRedirectUrl=https://mdm.example/e")
                == Enrolment.load("https://mdm.example/e?in-app=true&webauthn=1&intuneDeviceId=d1"))
    }

    @Test func theSessionsCallbackIsTheViewsNextNavigation() async throws {
        let handler = ScriptedHandler(.init(wantsToken: false))
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        let url = "msauth://installProfile?url=https://mdm.example/p&requireASWebAuthenticationSession=true"
        guard case .openAuthenticationSession(let request) = await controller.action(for: url) else {
            Issue.record("no session was opened")
            return
        }
        let callback = try await controller.run(request)
        #expect(await controller.action(for: callback) == .complete("msauth://profileInstalled"))
    }

    @Test func theEndOfTheFlowClosesItsSession() async throws {
        let handler = ScriptedHandler(.init())
        let controller = InteractiveWebviewController(handler, try Enrolment.rules())
        let request = AuthenticationSessionRequest(try EndpointURL("https://mdm.example/p", "url"))
        let session = Task { try await controller.run(request) }
        while !handler.called.contains("open https://mdm.example/p") { await Task.yield() }
        await controller.end()
        await #expect(throws: CancellationError.self) { try await session.value }
        #expect(handler.called == ["open https://mdm.example/p", "closed"])
    }
}
