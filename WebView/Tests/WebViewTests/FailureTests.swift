// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import WebViewProtocol

extension WebView {
    /// Pages that are not there: the window says why, and has a button to load them again.
    struct FailureTests {
        let server = PageServer.shared

        private func open(_ path: String, host: String = "login.test") throws -> WebViewProcess {
            try WebViewProcess.open("/", arguments: ["--ca-bundle", server.folder + "/bundle.pem", "--test"]) {
                $0.url = "https://\(host)\(path)"
                $0.allowedOrigins = ["https://login.test", "https://down.test"]
                $0.proxy = "http://webview:secret-token@127.0.0.1:\(PageServer.shared.proxyPort)"
            }
        }

        private func failure(_ view: WebViewProcess) throws -> Event {
            try view.event { if case .loadFailed = $0 { $0 } else { nil } }
        }

        /// A response with a page of the server's is shown, whatever its status.
        @Test func aResponseOfTheProxyIsAFailure() throws {
            for (said, type, details) in [
                (
                    "countersign; error=tls_certificate_error; details=\"it has expired\"", "application/problem+json",
                    "it has expired"
                ),
                ("countersign; error=connection_refused", "text/plain", "the response has the status 502"),
            ] {
                let view = try open("/status?status=502&body=x&said=\(said.encoded)&type=\(type.encoded)")
                #expect(
                    try failure(view) == .loadFailed(url: "https://login.test/status", code: .proxy, message: details))
                view.close()
                #expect(!view.events.contains { if case .navigationRefused = $0 { true } else { false } })
            }
            let view = try open("/status?status=502&body=x&said=\("other; error=dns_error".encoded)")
            try view.loaded()
            view.close()
        }

        @Test func aServerWithoutATunnelIsAFailureWithTheProxysReason() throws {
            let view = try open("/a", host: "down.test")
            #expect(
                try failure(view)
                    == .loadFailed(url: "https://down.test/a", code: .proxy, message: "down.test: \"no\" such host"))
            view.close()
        }

        @Test func anErrorWithoutAPageIsAFailure() throws {
            let said = "countersign; details=\"not answered: no credential\""
            for (query, reason) in [("", ""), ("&said=\(said.encoded)", ": not answered: no credential")] {
                let view = try open("/status?status=503\(query)")
                #expect(
                    try failure(view)
                        == .loadFailed(
                            url: "https://login.test/status", code: .other,
                            message: "the response has the status 503 and no page\(reason)"))
                view.close()
            }
        }

        /// Without a proxy, the field is the server's own.
        @Test func aServerCannotSpeakForTheProxy() throws {
            let view = try WebViewProcess.open(
                "/status?status=502&body=x&said=\("countersign; error=dns_error".encoded)")
            try view.loaded()
            view.close()
        }

        @Test func theButtonLoadsThePageAgain() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/status?status=503&token=kept")
            _ = try failure(view)
            view.send(.pressButton)
            let request = server.request(since: mark + 1) { $0.path.hasPrefix("/status") }
            #expect(request?.path == "/status?status=503&token=kept")
            view.close()
        }

        /// A form is not sent twice.
        @Test func theButtonDoesNotSendAFormAgain() throws {
            let mark = server.mark
            let view = try WebViewProcess.open("/go?how=form&to=\("/status?status=503".encoded)")
            _ = try failure(view)
            view.send(.pressButton)
            let again = server.request(since: mark + 2) { $0.path.hasPrefix("/go") }
            #expect(again?.method == "GET")
            view.close()
            #expect(server.requests(since: mark).prefix(3).map(\.method) == ["GET", "POST", "GET"])
        }
    }
}
