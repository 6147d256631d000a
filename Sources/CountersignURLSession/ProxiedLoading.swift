// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads the requests of the sessions of one ``Route`` through its proxy.
final class ProxiedLoading<Number: RouteNumber>: URLProtocol {
    private let running = Mutex<(transfer: URLSessionTransfer.Handle?, isStopped: Bool)>((nil, false))

    override class func canInit(with request: URLRequest) -> Bool {
        ["http", "https"].contains(request.url?.scheme?.lowercased())
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        let route = Routes.route(Number.value)
        do {
            let message = try ProxiedRequest(
                request, along: route, isUpload: task is URLSessionUploadTask,
                isDownload: task is URLSessionDownloadTask)
            send(message, along: route, by: .now() + route.patience, redirects: 0)
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

    private func send(_ message: ProxiedRequest, along route: Route, by deadline: NIODeadline, redirects: Int) {
        let loading = Loading(self)
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
        _ result: Result<ProxiedResponse, URLError>, to message: ProxiedRequest, along route: Route,
        by deadline: NIODeadline, redirects: Int
    ) {
        guard !running.withLock({ $0.isStopped }) else { return }
        do {
            let response = try result.get()
            if let failure = response.failure(at: message.url) { throw failure }
            let http = try response.foundation(for: message.url)
            if let cookies = route.cookies { response.keepCookies(of: message, in: cookies) }
            if let next = try message.redirected(by: response, cookies: route.cookies) {
                guard redirects < 20 else { throw URLError(.httpTooManyRedirects) }
                return send(next, along: route, by: deadline, redirects: redirects + 1)
            }
            client?.urlProtocol(self, didReceive: http, cacheStoragePolicy: .notAllowed)
            // Once: a task with a completion handler keeps the last piece alone.
            client?.urlProtocol(self, didLoad: response.body)
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            client?.urlProtocol(self, didFailWithError: error)
        }
    }

    /// Unchecked, as URLProtocol is not Sendable: what is shared between the session, which starts and stops, and the
    /// event loop, which reports the end, is `running`, and `client`, which is set once before the start and takes
    /// calls from any thread.
    private struct Loading: @unchecked Sendable {
        let value: ProxiedLoading
        init(_ value: ProxiedLoading) { self.value = value }
    }
}
