// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads requests through the proxy of one ``SessionRoute``.
final class ProxiedLoading<Number: RouteNumber>: URLProtocol {
    private let running = Mutex(Running())

    private struct Running: Sendable {
        var transfer: URLSessionTransfer.Handle?
        var isStopped = false
        /// The client has received the response's head, and receives its body in pieces.
        var isPassing = false
    }

    override class func canInit(with request: URLRequest) -> Bool {
        ["http", "https"].contains(request.url?.scheme?.lowercased())
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        let route = SessionRoutes.route(Number.value)
        do {
            let own = SessionTask(task)
            let inPieces = own.reportsToDelegate
            switch try own.body() {
            case .inRequest: try begin(nil, along: route, inPieces: inPieces)
            case .own(let content): try begin(content, along: route, inPieces: inPieces)
            case .atDelegate:
                let loading = SendableReference(self)
                try own.bodyStream { loading.value.begin(with: $0, along: route, inPieces: inPieces) }
            }
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    /// Sends the request with the stream of the session's delegate.
    private func begin(with stream: InputStream?, along route: SessionRoute, inPieces: Bool) {
        do {
            guard let stream else { throw URLError(.requestBodyStreamExhausted) }
            stream.open()
            try begin(.stream(ContentStream(start: Data(), rest: stream)), along: route, inPieces: inPieces)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    /// Sends the request with this content, or with its own.
    private func begin(_ content: RequestContent?, along route: SessionRoute, inPieces: Bool) throws {
        let message = try ProxiedRequest(request, with: route.settings, content: content)
        send(message, along: route, inPieces: inPieces, by: .now() + route.settings.patience, redirects: 0)
    }

    override func stopLoading() {
        let transfer = running.withLock { running in
            running.isStopped = true
            return running.transfer
        }
        transfer?.cancel()
    }

    private func send(
        _ message: ProxiedRequest, along route: SessionRoute, inPieces: Bool, by deadline: NIODeadline, redirects: Int
    ) {
        let loading = SendableReference(self)
        var pieces: (@Sendable (URLSessionTransfer.Piece) -> Bool)?
        if inPieces {
            pieces = { piece in
                loading.value.received(piece, to: message, along: route)
                return true
            }
        }
        let transfer = route.link.newHandle()
        let isStopped = running.withLock { running in
            running.transfer = transfer
            return running.isStopped
        }
        guard !isStopped else { return }
        route.link.send(message, by: deadline, as: transfer, pieces: pieces) { result in
            loading.value.received(
                result, to: message, along: route, inPieces: inPieces, by: deadline, redirects: redirects)
        }
    }

    /// Passes the head and the pieces of a response to the client, unless it is a redirect or the proxy's own.
    private func received(_ piece: URLSessionTransfer.Piece, to message: ProxiedRequest, along route: SessionRoute) {
        let (isStopped, isPassing) = running.withLock { ($0.isStopped, $0.isPassing) }
        guard !isStopped else { return }
        switch piece {
        case .head(let response):
            guard response.failure(at: message.url) == nil, !Self.isRedirect(response, to: message),
                let http = try? response.foundation(for: message.url, hidesChallenges: true)
            else { return }
            if let cookies = route.settings.cookies { response.storeCookies(of: message.url, in: cookies) }
            running.withLock { $0.isPassing = true }
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
        let (isStopped, isPassing) = running.withLock { ($0.isStopped, $0.isPassing) }
        guard !isStopped else { return }
        do {
            let response = try result.get()
            if isPassing {
                client?.urlProtocolDidFinishLoading(self)
                return
            }
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
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    /// Unchecked because URLProtocol is not Sendable. The session's thread, which starts and stops loading, and the
    /// event loop, which reports the end, share only `running`, which has a lock, and `client`, which is set before the
    /// start and accepts calls from any thread.
    private struct SendableReference: @unchecked Sendable {
        let value: ProxiedLoading
        init(_ value: ProxiedLoading) { self.value = value }
    }
}
