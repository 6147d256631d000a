// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Dispatch
import Testing

@testable import CountersignSignIn

/// curl is the browser.
@Suite struct RedirectListenerTests {
    private let scratch: TemporaryFolder

    init() throws { scratch = try TemporaryFolder() }

    private func curl(_ arguments: String...) async throws -> CommandResult {
        try await run("curl", ["-sS", "--noproxy", "*", "-w", "\n%{http_code} %{num_redirects}"] + arguments)
    }

    /// Waits on another thread: the listener needs one of the pool's.
    private func run(_ program: String, _ arguments: [String]) async throws -> CommandResult {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "browser").async {
                continuation.resume(
                    with: Result { try Command.run(try Tool.path(program), arguments, in: scratch) })
            }
        }
    }

    private func listener(_ host: RedirectAddress.Host = .ipv4, port: UInt16 = 0) throws -> RedirectListener {
        try RedirectListener(RedirectAddress(host: host, port: port, path: "/"))
    }

    private static func judge(_ parameters: String) -> RedirectListener.Verdict {
        parameters.contains("state=good") ? parameters.contains("error=") ? .failed : .accepted : .foreign
    }

    @Test(arguments: RedirectAddress.Host.allCases)
    func theBrowserSeesThatTheWindowCanBeClosed(host: RedirectAddress.Host) async throws {
        let listener = try listener(host)
        async let response = listener.response(within: .seconds(60), judge: Self.judge)
        let shown = try await curl("-L", "\(listener.uri)?code=c&state=good")
        #expect(try await response == "code=c&state=good")
        #expect(shown.output.contains("You can close this window") && shown.output.hasSuffix("\n200 1"), "\(shown.said)")
        listener.finish()
    }

    @Test func localhostHasBothAddresses() async throws {
        let listener = try listener(.localhost)
        async let response = listener.response(within: .seconds(60), judge: Self.judge)
        let six = try await curl("-6", "\(listener.uri)?state=bad")
        let four = try await curl("-4", "-L", "\(listener.uri)?state=good")
        #expect(six.output.hasSuffix("\n400 0") && four.output.hasSuffix("\n200 1"), "\(six.said)\n\(four.said)")
        #expect(try await response == "state=good")
    }

    @Test func strayAndForeignRequestsDoNotEndTheWait() async throws {
        let listener = try listener()
        async let response = listener.response(within: .seconds(60), judge: Self.judge)
        #expect(try await curl("\(listener.uri)favicon.ico").output.hasSuffix("\n404 0"))
        #expect(try await curl("\(listener.uri)?code=evil&state=bad").output.hasSuffix("\n400 0"))
        #expect(try await curl("\(listener.uri)signed-in").output.hasSuffix("\n404 0"))
        #expect(try await curl("-H", "Host: evil.example", "\(listener.uri)?state=good").output.hasSuffix("\n421 0"))
        let posted = try await curl("-L", "-d", "code=c&state=good", listener.uri)
        #expect(posted.output.hasSuffix("\n200 1"), "\(posted.said)")
        #expect(try await response == "code=c&state=good")
    }

    @Test func aFailedSignInIsShownAsOne() async throws {
        let listener = try listener()
        async let response = listener.response(within: .seconds(60), judge: Self.judge)
        let shown = try await curl("-L", "\(listener.uri)?error=access_denied&state=good")
        #expect(shown.output.contains("has failed") && !shown.output.contains("access_denied"))
        #expect(try await response == "error=access_denied&state=good")
    }

    /// Idle connections are closed in favour of new ones.
    @Test func idleConnectionsDoNotBlockTheBrowser() async throws {
        let listener = try listener()
        async let response = listener.response(within: .seconds(60), judge: Self.judge)
        let port = listener.uri.dropLast().split(separator: ":").last ?? ""
        let script = "import socket,subprocess,sys; "
            + "s=[socket.create_connection(('127.0.0.1',\(port))) for _ in range(64)]; "
            + "sys.exit(subprocess.call(['curl','-sSL','--noproxy','*','\(listener.uri)?state=good']))"
        let result = try await run("python3", ["-c", script])
        #expect(result.status == 0 && result.output.contains("You can close"), "\(result.said)")
        #expect(try await response == "state=good")
    }

    @Test func theWaitEndsInTime() async throws {
        let listener = try listener()
        await #expect(throws: SignInError(.timedOut, "")) {
            try await listener.response(within: .milliseconds(50), judge: Self.judge)
        }
        listener.finish()
    }

    @Test func aCancelledTaskEndsTheWait() async throws {
        let listener = try listener()
        let task = Task { try await listener.response(within: .seconds(600), judge: Self.judge) }
        task.cancel()
        await #expect(throws: SignInError(.cancelled, "")) { try await task.value }
    }

    @Test func aPortInUseIsReported() throws {
        let first = try listener()
        let port = try #require(UInt16(first.uri.dropLast().split(separator: ":").last ?? ""))
        #expect(throws: SignInError(.environment, "")) { try listener(.ipv4, port: port) }
    }
}
