// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Synchronization
import Testing

@testable import CountersignSignIn

/// curl is the browser.
@Suite struct RedirectListenerTests {
    private let scratch: TemporaryFolder

    init() throws { scratch = try TemporaryFolder() }

    private func curl(_ arguments: String...) throws -> CommandResult {
        try Command.run(
            try Tool.path("curl"), ["-sS", "--noproxy", "*", "-w", "\n%{http_code} %{num_redirects}"] + arguments,
            in: scratch)
    }

    /// A wait that does not need a thread of the pool, which other tests may occupy.
    private final class Waiting: Sendable {
        private let result = Mutex<Result<String, SignInError>?>(nil)

        init(_ listener: RedirectListener) {
            listener.start(within: .seconds(120), judge: RedirectListenerTests.judge) { [self] in
                let outcome = $0
                result.withLock { $0 = outcome }
            }
        }

        /// The listener's result; nil if it is still waiting after a minute.
        var response: String? {
            get throws { try poll { result.withLock { $0 } }?.get() }
        }
    }

    private func listener(_ host: RedirectAddress.Host = .ipv4, port: UInt16 = 0) throws -> RedirectListener {
        try RedirectListener(RedirectAddress(host: host, port: port, path: "/"))
    }

    fileprivate static func judge(_ parameters: String) -> RedirectVerdict {
        parameters.contains("state=good") ? parameters.contains("error=") ? .failed : .accepted : .foreign
    }

    @Test(arguments: RedirectAddress.Host.allCases)
    func theBrowserSeesThatTheWindowCanBeClosed(host: RedirectAddress.Host) throws {
        let listener = try listener(host)
        let waiting = Waiting(listener)
        let shown = try curl("-L", "\(listener.uri)?code=c&state=good")
        #expect(try waiting.response == "code=c&state=good")
        #expect(shown.output.contains("You can close this window"), "\(shown.said)")
        #expect(shown.output.hasSuffix("\n200 1"), "\(shown.said)")
        listener.finish()
    }

    @Test func localhostHasBothAddresses() throws {
        let listener = try listener(.localhost)
        let waiting = Waiting(listener)
        let six = try curl("-6", "\(listener.uri)?state=bad")
        let four = try curl("-4", "-L", "\(listener.uri)?state=good")
        #expect(six.output.hasSuffix("\n400 0") && four.output.hasSuffix("\n200 1"), "\(six.said)\n\(four.said)")
        #expect(try waiting.response == "state=good")
    }

    @Test func strayAndForeignRequestsDoNotEndTheWait() throws {
        let listener = try listener()
        let waiting = Waiting(listener)
        #expect(try curl("\(listener.uri)favicon.ico").output.hasSuffix("\n404 0"))
        #expect(try curl("\(listener.uri)?code=evil&state=bad").output.hasSuffix("\n400 0"))
        #expect(try curl("\(listener.uri)signed-in").output.hasSuffix("\n404 0"))
        #expect(try curl("-H", "Host: evil.example", "\(listener.uri)?state=good").output.hasSuffix("\n421 0"))
        let posted = try curl("-L", "-d", "code=c&state=good", listener.uri)
        #expect(posted.output.hasSuffix("\n200 1"), "\(posted.said)")
        #expect(try waiting.response == "code=c&state=good")
    }

    @Test func aFailedSignInIsShownAsOne() throws {
        let listener = try listener()
        let waiting = Waiting(listener)
        let shown = try curl("-L", "\(listener.uri)?error=access_denied&state=good")
        #expect(shown.output.contains("has failed") && !shown.output.contains("access_denied"))
        #expect(try waiting.response == "error=access_denied&state=good")
    }

    /// Idle connections are closed in favour of new ones.
    @Test func idleConnectionsDoNotBlockTheBrowser() throws {
        let listener = try listener()
        let waiting = Waiting(listener)
        let port = listener.uri.dropLast().split(separator: ":").last ?? ""
        let script =
            "import socket,subprocess,sys; "
            + "s=[socket.create_connection(('127.0.0.1',\(port))) for _ in range(64)]; "
            + "sys.exit(subprocess.call(['curl','-sSL','--noproxy','*','\(listener.uri)?state=good']))"
        let result = try Command.run(Tool.path("python3"), ["-c", script], in: scratch)
        #expect(result.status == 0 && result.output.contains("You can close"), "\(result.said)")
        #expect(try waiting.response == "state=good")
    }

    // MARK: Other users

    /// A process of another user gets 403 with the right answer, too, and the wait goes on.
    @Test func anotherUserCannotAnswer() throws {
        let refused = Mutex<[UInt32?]>([])
        let user = getuid() == 0 ? 65534 : getuid()
        // Without the right to become another user, this process pretends that another user listens.
        let served = getuid() == 0 ? 0 : getuid() + 1
        let admission = RedirectListener.Admission(
            user: served, refused: { user in refused.withLock { $0.append(user) } })
        let listener = try RedirectListener(RedirectAddress(host: .ipv4, port: 0, path: "/"), admission)
        let waiting = Waiting(listener)
        let words = getuid() == 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] : ["env"]
        for _ in 0..<2 {
            let other = try Command.run(
                Tool.path(words[0]),
                Array(words.dropFirst()) + [
                    "curl", "-q", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}",
                    "\(listener.uri)?code=evil&state=good",
                ], in: scratch)
            #expect(other.output == "403", "\(other.said)")
        }
        #expect(refused.withLock { $0 } == [user])
        guard getuid() == 0 else { return listener.end() }
        #expect(try curl("-L", "\(listener.uri)?code=c&state=good").output.hasSuffix("\n200 1"))
        #expect(try waiting.response == "code=c&state=good")
    }

    @Test(arguments: [(1000, true), (0, false), (1001, false), (nil, false)] as [(UInt32?, Bool)])
    func onlyThePersonsOwnConnectionsAreAdmitted(owner: UInt32?, isAdmitted: Bool) {
        let admission = RedirectListener.Admission(user: 1000, owner: { _ in owner })
        #expect(admission.admits(3) == (isAdmitted, owner))
    }

    /// They are refused, in any number.
    @Test func otherUsersDoNotPushOutTheBrowser() throws {
        let count = Mutex(0)
        // The first connection is the browser's.
        let admission = RedirectListener.Admission(
            user: 7,
            owner: { _ in
                count.withLock { count in
                    count += 1
                    return count == 1 ? 7 : 8
                }
            })
        let listener = try RedirectListener(RedirectAddress(host: .ipv4, port: 0, path: "/"), admission)
        let waiting = Waiting(listener)
        let port = listener.uri.dropLast().split(separator: ":").last ?? ""
        let script = """
            import socket
            new = lambda: socket.create_connection(("127.0.0.1", \(port)))
            browser = new()
            others = [new() for _ in range(64)]
            browser.sendall(b"GET /?state=good HTTP/1.1\\r\\nHost: 127.0.0.1:\(port)\\r\\n\\r\\n")
            print(browser.recv(12).decode())
            """
        let result = try Command.run(Tool.path("python3"), ["-c", script], in: scratch)
        #expect(result.output == "HTTP/1.1 303\n", "\(result.said)")
        #expect(try waiting.response == "state=good")
    }

    /// Another connection of the browser takes the place of one that is refused, and not that of the oldest one.
    @Test func theBrowserDoesNotPushItselfOut() throws {
        let count = Mutex(0)
        // The first and the last connection are the browser's.
        let admission = RedirectListener.Admission(
            user: 7,
            owner: { _ in
                count.withLock { count in
                    count += 1
                    return count == 1 || count == 1 + RedirectLoop.maximumConnections ? 7 : 8
                }
            })
        let listener = try RedirectListener(RedirectAddress(host: .ipv4, port: 0, path: "/"), admission)
        let waiting = Waiting(listener)
        let port = listener.uri.dropLast().split(separator: ":").last ?? ""
        let script = """
            import socket
            new = lambda: socket.create_connection(("127.0.0.1", \(port)))
            ask = lambda browser, path: browser.sendall(
                f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:\(port)\\r\\n\\r\\n".encode())
            browser = new()
            others = [new() for _ in range(\(RedirectLoop.maximumConnections - 1))]
            second = new()
            ask(second, "/favicon.ico")
            print(second.recv(12).decode())
            ask(browser, "/?state=good")
            print(browser.recv(12).decode())
            """
        let result = try Command.run(Tool.path("python3"), ["-c", script], in: scratch)
        #expect(result.output == "HTTP/1.1 404\nHTTP/1.1 303\n", "\(result.said)")
        #expect(try waiting.response == "state=good")
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
