// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Synchronization

/// Lends the session of the sign-in's window, which is its cookies, to a second window, and takes it back when that
/// closes. The windows are separate processes: neither sees the cookies that the other sets meanwhile.
final class SessionLoan: Sendable {
    /// The cookies of a window, and how many more it has.
    struct Report: Equatable, Sendable {
        var cookies: [WebViewCookie]
        var omitted: Int64
    }

    private struct State {
        var send: (@Sendable (WebViewCommand) -> Void)?
        var waiting: CheckedContinuation<Report?, Never>?
    }

    private let state = Mutex(State())

    /// `send` reaches the sign-in's window.
    func connect(_ send: @escaping @Sendable (WebViewCommand) -> Void) { state.withLock { $0.send = send } }

    /// The sign-in's window has answered.
    func reported(_ report: Report) { resume(with: report) }

    /// The sign-in's window is gone.
    func end() {
        state.withLock { $0.send = nil }
        resume(with: nil)
    }

    /// The session of the sign-in's window; nil if that is gone, or the task is cancelled.
    func take() async -> Report? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let send = state.withLock { state in
                    guard !Task.isCancelled else { return nil as (@Sendable (WebViewCommand) -> Void)? }
                    if state.send != nil { state.waiting = continuation }
                    return state.send
                }
                guard let send else { return continuation.resume(returning: nil) }
                send(.reportSession)
            }
        } onCancel: {
            resume(with: nil)
        }
    }

    /// Puts the second window's final cookies into the sign-in's window, and removes those of `taken` that the second
    /// window no longer had.
    func giveBack(_ report: Report, taken: Report) {
        var changes = report.cookies.filter { !taken.cookies.contains($0) }
        if report.omitted == 0 {
            changes += taken.cookies.filter { cookie in !report.cookies.contains { $0.isSame(as: cookie) } }
                .map(\.expired)
        }
        // As many as the window takes at once.
        while !changes.isEmpty {
            state.withLock { $0.send }?(.addCookies(Array(changes.prefix(Self.maximumCookies))))
            changes.removeFirst(min(Self.maximumCookies, changes.count))
        }
    }

    private static let maximumCookies = 64

    private func resume(with report: Report?) {
        let waiting = state.withLock { state in
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: report)
    }
}

extension WebViewCookie {
    /// Whether one takes the other's place (RFC 6265 §5.3).
    fileprivate func isSame(as other: Self) -> Bool {
        name == other.name && domain == other.domain && path == other.path
    }

    /// A cookie that removes this one.
    fileprivate var expired: WebViewCookie {
        WebViewCookie(
            name: name, value: Secret(utf8: ""), domain: domain, path: path, expires: 1, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite)
    }
}
