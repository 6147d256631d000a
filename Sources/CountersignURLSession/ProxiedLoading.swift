// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads requests through the proxy of one ``SessionRoute``.
final class ProxiedLoading<Number: RouteNumber>: URLProtocol {
    private let running = Mutex<(transfer: URLSessionTransfer.Handle?, isStopped: Bool)>((nil, false))

    override class func canInit(with request: URLRequest) -> Bool {
        ["http", "https"].contains(request.url?.scheme?.lowercased())
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        let route = SessionRoutes.route(Number.value)
        do {
            let message = try ProxiedRequest(
                request, with: route.settings, isUpload: task is URLSessionUploadTask,
                isDownload: task is URLSessionDownloadTask)
            send(message, along: route, by: .now() + route.settings.patience, redirects: 0)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    override func stopLoading() {
        let transfer = running.withLock { running in
            running.isStopped = true
            return running.transfer
        }
        transfer?.cancel()
    }

    private func send(_ message: ProxiedRequest, along route: SessionRoute, by deadline: NIODeadline, redirects: Int) {
        let loading = SendableReference(self)
        let transfer = route.link.send(message, by: deadline) { result in
            loading.value.received(result, to: message, along: route, by: deadline, redirects: redirects)
        }
        let isStopped = running.withLock { running in
            running.transfer = transfer
            return running.isStopped
        }
        if isStopped { transfer.cancel() }
    }

    private func received(
        _ result: Result<ProxiedResponse, URLError>, to message: ProxiedRequest, along route: SessionRoute,
        by deadline: NIODeadline, redirects: Int
    ) {
        guard !running.withLock({ $0.isStopped }) else { return }
        do {
            let response = try result.get()
            if let failure = response.failure(at: message.url) { throw failure }
            let http = try response.foundation(for: message.url)
            if let cookies = route.settings.cookies { response.storeCookies(of: message.url, in: cookies) }
            if let next = try message.redirected(by: response, cookies: route.settings.cookies) {
                guard redirects < 20 else { throw URLError(.httpTooManyRedirects) }
                return send(next, along: route, by: deadline, redirects: redirects + 1)
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
