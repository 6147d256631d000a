// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

// MARK: Navigation and loading

extension SignInWindow {
    /// Applies the policy. Returns whether the load may continue.
    func decide(_ text: String, opensWindow: Bool, isRedirect: Bool) -> Bool {
        let decision = signIn.policy.decide(text, opensWindow: opensWindow)
        switch decision {
        case .allow: return !isRedirectWithHeaders(text, isRedirect: isRedirect)
        case .redirect: program.report(.redirect(url: text))
        case .specialURL: program.report(.specialURL(url: text))
        case .deviceChallenge: program.report(.deviceChallenge(url: text))
        case .refuse(let why): refused(text, why)
        }
        return false
    }

    func refused(_ text: String, _ why: Refusal) {
        program.report(.navigationRefused(url: PageURL(text)?.withoutSecrets ?? "", why: why))
    }

    /// WebKit would send the fields of the first request with a redirect, too. This load starts again without them.
    private func isRedirectWithHeaders(_ text: String, isRedirect: Bool) -> Bool {
        guard isRedirect, hasHeaders else { return false }
        hasHeaders = false
        webkit_web_view_load_uri(view, text)
        return true
    }

    func loadChanged(_ event: WebKitLoadEvent) {
        let url = Self.withoutSecrets(webkit_web_view_get_uri(view))
        switch event {
        case WEBKIT_LOAD_STARTED:
            showMessage("")
            if let event = progress.started(url: url) { program.report(event) }
        case WEBKIT_LOAD_REDIRECTED: reportAwaitedSession()
        case WEBKIT_LOAD_COMMITTED:
            progress.committed()
            reportAwaitedSession()
            hasHeaders = false
            bridge.forget()
            showOrigin(webkit_web_view_get_uri(view).map { String(cString: $0) } ?? "")
        case WEBKIT_LOAD_FINISHED:
            if let event = progress.finished(url: url) {
                program.report(event)
                captureCookies()
            }
            reportAwaitedSession()
        default: break
        }
    }

    func loadFailed(_ url: UnsafePointer<CChar>?, _ error: UnsafeMutablePointer<GError>?) {
        guard let error = error?.pointee else { return }
        let domain = g_quark_to_string(error.domain).map { String(cString: $0) } ?? ""
        let code: LoadFailure? =
            switch (domain, error.code) {
            // The policy cancelled the load (WEBKIT_POLICY_ERROR_FRAME_LOAD_INTERRUPTED_BY_POLICY_CHANGE).
            case ("WebKitPolicyError", 102): nil
            case ("WebKitNetworkError", 302): .stopped
            case ("g-tls-error-quark", 2): .certificate
            case ("WebKitPolicyError", _): .other
            default: .network
            }
        let message = error.message.map { String(cString: $0) } ?? ""
        if let event = progress.failed(url: Self.withoutSecrets(url), code: code, message: message) {
            program.report(event)
            showFailure(url.map { String(cString: $0) } ?? "", message)
        }
        reportAwaitedSession()
    }

    /// Whether a response of the main frame is a page. One that the proxy has made is a failure of the load, and so is
    /// an error without content.
    func isPage(_ response: OpaquePointer?) -> Bool {
        let url = webkit_uri_response_get_uri(response).map { String(cString: $0) } ?? ""
        guard let (code, reason) = failure(response, url) else { return true }
        if let event = progress.failed(url: PageURL(url)?.withoutSecrets ?? "", code: code, message: reason) {
            program.report(event)
        }
        showFailure(url, reason)
        return false
    }

    private func failure(_ response: OpaquePointer?, _ url: String) -> (LoadFailure, String)? {
        let headers = webkit_uri_response_get_http_headers(response)
        func field(_ name: String) -> String? {
            headers.flatMap { soup_message_headers_get_list($0, name) }.map { String(cString: $0) }
        }
        let status = webkit_uri_response_get_status_code(response)
        if status >= 400, field("Content-Type") == nil, let reason = session.tunnelFailure(url) {
            return (.proxy, reason)
        }
        // Without a proxy, the field could only be the server's.
        let said = signIn.proxy == nil ? nil : field("Proxy-Status").flatMap { ProxyFailure($0) }
        let details = said?.details ?? ""
        let clause = "the response has the status \(status)"
        if said?.isError == true { return (.proxy, details.isEmpty ? clause : details) }
        guard status >= 400, field("Content-Length") == "0" else { return nil }
        return (.other, details.isEmpty ? "\(clause) and no page" : "\(clause) and no page: \(details)")
    }

    private static func withoutSecrets(_ text: UnsafePointer<CChar>?) -> String {
        text.flatMap { PageURL(String(cString: $0)) }?.withoutSecrets ?? ""
    }
}
