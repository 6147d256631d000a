// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads requests through the proxy of one ``SessionRoute``.
///
/// Its task's queue starts and stops it, and calls to the client are made there, as Foundation's own protocols do.
/// URLSession on Linux finds out which task a call belongs to, and whether that has ended, on this queue only: from
/// another thread, it completes a task twice, or searches for one that it no longer knows.
final class ProxiedLoading<Number: RouteNumber>: URLProtocol {
    private var queue: DispatchQueue?
    private var hasBegun = false
    private var transfer: URLSessionTransfer.Handle?
    /// The task was cancelled, or the client knows how the loading has ended. It gets no further call.
    private var hasEnded = false
    /// The client has received the response's head, and receives its body in pieces.
    private var isPassing = false
    /// The events that have arrived while the task was suspended, until ``startLoading()`` for its next resumption.
    private var held: [@Sendable (ProxiedLoading) -> Void] = []

    override class func canInit(with request: URLRequest) -> Bool {
        ["http", "https"].contains(request.url?.scheme?.lowercased())
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Called for each resumption of the task, on its queue.
    override func startLoading() {
        guard !hasBegun else { return goOn() }
        hasBegun = true
        let route = SessionRoutes.route(Number.value)
        do {
            let own = SessionTask(task)
            queue = try own.queue()
            let inPieces = own.reportsToDelegate
            switch try own.body() {
            case .inRequest: try begin(nil, along: route, inPieces: inPieces)
            case .own(let content): try begin(content, along: route, inPieces: inPieces)
            case .atDelegate:
                let deliver = delivery()
                try own.bodyStream { stream in
                    let stream = SendableStream(value: stream)
                    deliver { $0.begin(with: stream.value, along: route, inPieces: inPieces) }
                }
            }
        } catch {
            fail(error)
        }
    }

    /// On the queue, unless the loading has ended by then.
    private typealias Delivery = @Sendable (@escaping @Sendable (ProxiedLoading) -> Void) -> Void

    private func delivery() -> Delivery {
        let loading = SendableReference(value: self)
        let queue = queue
        return { call in
            queue?.async { loading.value.deliver(call) }
        }
    }

    private func deliver(_ call: @escaping @Sendable (ProxiedLoading) -> Void) {
        // A task that is being cancelled gets its error from Foundation, and no other end before.
        guard !hasEnded, task?.state != .canceling else { return }
        if task?.state == .suspended || !held.isEmpty { held.append(call) } else { call(self) }
    }

    private func goOn() {
        let held = held
        self.held = []
        for call in held { deliver(call) }
    }

    private func fail(_ error: any Error) {
        hasEnded = true
        client?.urlProtocol(self, didFailWithError: error)
    }

    /// Sends the request with the stream of the session's delegate.
    private func begin(with stream: InputStream?, along route: SessionRoute, inPieces: Bool) {
        do {
            guard let stream else { throw URLError(.requestBodyStreamExhausted) }
            stream.open()
            try begin(.stream(ContentStream(start: Data(), rest: stream)), along: route, inPieces: inPieces)
        } catch {
            fail(error)
        }
    }

    /// Sends the request with this content, or with its own.
    private func begin(_ content: RequestContent?, along route: SessionRoute, inPieces: Bool) throws {
        let message = try ProxiedRequest(request, with: route.settings, content: content)
        send(message, along: route, inPieces: inPieces, by: .now() + route.settings.patience, redirects: 0)
    }

    /// Also called for a suspension, which ``deliver(_:)`` detects itself: while URLSession checks its cache, this call
    /// may come after ``startLoading()`` for the next resumption.
    override func stopLoading() {
        if let task, [.suspended, .running].contains(task.state) { return }
        hasEnded = true
        held = []
        transfer?.cancel()
    }

    private func send(
        _ message: ProxiedRequest, along route: SessionRoute, inPieces: Bool, by deadline: NIODeadline, redirects: Int
    ) {
        let deliver = delivery()
        var pieces: (@Sendable (URLSessionTransfer.Piece) -> Bool)?
        if inPieces {
            pieces = { piece in
                deliver { $0.received(piece, to: message, along: route) }
                return true
            }
        }
        let transfer = route.link.newHandle()
        self.transfer = transfer
        route.link.send(message, by: deadline, as: transfer, pieces: pieces) { result in
            deliver {
                $0.received(
                    result, to: message, along: route, inPieces: inPieces, by: deadline, redirects: redirects)
            }
        }
    }

    /// Passes the head and the pieces of a response to the client, unless it is a redirect or the proxy's own.
    private func received(_ piece: URLSessionTransfer.Piece, to message: ProxiedRequest, along route: SessionRoute) {
        switch piece {
        case .head(let response):
            guard response.failure(at: message.url) == nil, !Self.isRedirect(response, to: message),
                let http = try? response.foundation(for: message.url, hidesChallenges: true)
            else { return }
            if let cookies = route.settings.cookies { response.storeCookies(of: message.url, in: cookies) }
            isPassing = true
            client?.urlProtocol(self, didReceive: http, cacheStoragePolicy: .notAllowed)
        case .content(let data):
            if isPassing { client?.urlProtocol(self, didLoad: data) }
        }
    }

    /// Whether the response redirects, possibly to an address that is not supported.
    private static func isRedirect(_ response: ProxiedResponse, to message: ProxiedRequest) -> Bool {
        do {
            return try message.redirected(by: response, cookies: nil) != nil
        } catch {
            return true
        }
    }

    private func received(
        _ result: Result<ProxiedResponse, any Error>, to message: ProxiedRequest, along route: SessionRoute,
        inPieces: Bool, by deadline: NIODeadline, redirects: Int
    ) {
        do {
            let response = try result.get()
            if isPassing { return finish() }
            if let failure = response.failure(at: message.url) { throw failure }
            let http = try response.foundation(for: message.url, hidesChallenges: true)
            if let cookies = route.settings.cookies { response.storeCookies(of: message.url, in: cookies) }
            if let next = try message.redirected(by: response, cookies: route.settings.cookies) {
                guard redirects < 20 else { throw URLError(.httpTooManyRedirects) }
                return send(next, along: route, inPieces: inPieces, by: deadline, redirects: redirects + 1)
            }
            client?.urlProtocol(self, didReceive: http, cacheStoragePolicy: .notAllowed)
            // In one piece: a task with a completion handler keeps only the last piece.
            client?.urlProtocol(self, didLoad: response.body)
            finish()
        } catch {
            fail(error)
        }
    }

    private func finish() {
        hasEnded = true
        client?.urlProtocolDidFinishLoading(self)
    }

    /// Unchecked because URLProtocol is not Sendable. The value is used on the task's queue only.
    private struct SendableReference: @unchecked Sendable {
        let value: ProxiedLoading
    }

    /// Unchecked because InputStream is not Sendable. The delegate gives it away.
    private struct SendableStream: @unchecked Sendable {
        let value: InputStream?
    }
}
