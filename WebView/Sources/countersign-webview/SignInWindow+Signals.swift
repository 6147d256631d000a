// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

// The types of these callbacks are the C signatures in WebKitGTK's documentation of the signals.

private typealias View = UnsafeMutablePointer<WebKitWebView>?
private typealias Request = @convention(c) (View, gpointer?, gpointer?) -> gboolean

extension SignInWindow {
    func connectSignals() {
        connect(view, "decide-policy", to: self, Self.decidePolicy)
        connect(view, "create", to: self, Self.create)
        connect(view, "load-changed", to: self, Self.loadChanged)
        connect(view, "load-failed", to: self, Self.loadFailed)
        connect(view, "close", to: self, Self.closed)
        connect(view, "web-process-terminated", to: self, Self.processTerminated)
        connect(view, "authenticate", to: self, Self.authenticate)
        connect(view, "context-menu", to: self, Self.contextMenu)
        connect(view, "permission-request", to: self, Self.permission)
        connect(view, "query-permission-state", to: self, Self.permissionState)
        connect(view, "run-file-chooser", to: self, Self.chooseFile)
        connect(view, "run-color-chooser", to: self, Self.suppress)
        connect(view, "print", to: self, Self.suppress)
        connect(view, "show-notification", to: self, Self.suppress)
        connect(gpointer(session.pointer), "download-started", to: self, Self.downloadStarted)
    }

    private static let decidePolicy:
        @convention(c) (
            View, UnsafeMutablePointer<WebKitPolicyDecision>?, WebKitPolicyDecisionType, gpointer?
        ) -> gboolean = { _, decision, type, data in
            let window = SignInWindow.from(data)
            if type == WEBKIT_POLICY_DECISION_TYPE_RESPONSE, csn_is_main_response(decision) != 0,
                window.profiles.expects(csn_response(decision))
            {
                webkit_policy_decision_download(decision)
                return 1
            }
            if type == WEBKIT_POLICY_DECISION_TYPE_RESPONSE, csn_is_main_response(decision) != 0,
                !window.isPage(csn_response(decision))
            {
                webkit_policy_decision_ignore(decision)
                return 1
            }
            let mayContinue =
                type == WEBKIT_POLICY_DECISION_TYPE_RESPONSE
                ? window.mayShow(csn_response(decision), isTypeSupported: csn_is_type_supported(decision) != 0)
                : window.decide(
                    csn_navigation_action(decision),
                    opensWindow: type == WEBKIT_POLICY_DECISION_TYPE_NEW_WINDOW_ACTION)
            if mayContinue { webkit_policy_decision_use(decision) } else { webkit_policy_decision_ignore(decision) }
            return 1
        }

    /// `window.open`: there is never a second window.
    private static let create: @convention(c) (View, OpaquePointer?, gpointer?) -> gpointer? = { _, action, data in
        _ = SignInWindow.from(data).decide(action, opensWindow: true)
        return nil
    }

    private static let loadChanged: @convention(c) (View, WebKitLoadEvent, gpointer?) -> Void = { _, event, data in
        SignInWindow.from(data).loadChanged(event)
    }

    private static let loadFailed:
        @convention(c) (
            View, WebKitLoadEvent, UnsafePointer<CChar>?, UnsafeMutablePointer<GError>?, gpointer?
        ) -> gboolean = { _, _, url, error, data in
            SignInWindow.from(data).loadFailed(url, error)
            // Without a page of WebKit's about the failure, which could replace the caller's next page.
            return 1
        }

    private static let closed: @convention(c) (View, gpointer?) -> Void = { _, data in
        SignInWindow.from(data).program.end(.page)
    }

    private static let processTerminated: @convention(c) (View, WebKitWebProcessTerminationReason, gpointer?) -> Void =
        { _, _, data in
            SignInWindow.from(data).program.fail(
                .webProcess, "WebKit's process for the page ended unexpectedly", remedy: "sign in again")
        }

    /// HTTP authentication is the proxy's task. The page is shown as the server sends it without.
    private static let authenticate: Request = { _, request, _ in
        let request = OpaquePointer(request)
        if webkit_authentication_request_is_for_proxy(request) != 0 {
            webkit_authentication_request_cancel(request)
        } else {
            webkit_authentication_request_authenticate(request, nil)
        }
        return 1
    }

    private static let permission: Request = { _, request, _ in
        webkit_permission_request_deny(csn_permission_request(request))
        return 1
    }

    private static let permissionState: Request = { _, query, _ in
        webkit_permission_state_query_finish(OpaquePointer(query), WEBKIT_PERMISSION_STATE_DENIED)
        return 1
    }

    private static let chooseFile: Request = { _, request, _ in
        webkit_file_chooser_request_cancel(OpaquePointer(request))
        return 1
    }

    private static let suppress: Request = { _, _, _ in 1 }

    private static let downloadStarted: @convention(c) (OpaquePointer?, OpaquePointer?, gpointer?) -> Void = {
        _, download, data in
        if SignInWindow.from(data).profiles.starts(download) { return }
        let url = webkit_uri_request_get_uri(webkit_download_get_request(download))
        SignInWindow.from(data).refused(url.map { String(cString: $0) } ?? "", .download)
        webkit_download_cancel(download)
    }

    /// Only the items for filling in a form.
    private static let contextMenu: @convention(c) (View, OpaquePointer?, OpaquePointer?, gpointer?) -> gboolean = {
        _, menu, _, _ in
        var index: guint = 0
        while index < webkit_context_menu_get_n_items(menu) {
            let item = webkit_context_menu_get_item_at_position(menu, index)
            switch webkit_context_menu_item_get_stock_action(item) {
            case WEBKIT_CONTEXT_MENU_ACTION_COPY, WEBKIT_CONTEXT_MENU_ACTION_CUT,
                WEBKIT_CONTEXT_MENU_ACTION_PASTE, WEBKIT_CONTEXT_MENU_ACTION_DELETE,
                WEBKIT_CONTEXT_MENU_ACTION_SELECT_ALL:
                index += 1
            default: webkit_context_menu_remove(menu, item)
            }
        }
        return 0
    }
}

extension SignInWindow {
    private func decide(_ action: OpaquePointer?, opensWindow: Bool) -> Bool {
        let request = webkit_navigation_action_get_request(action)
        let url = webkit_uri_request_get_uri(request)
        // Nil for schemes other than http and https.
        if let url, let method = webkit_uri_request_get_http_method(request) {
            if String(cString: method) != "GET" { postedURL = String(cString: url) }
        }
        return decide(
            url.map { String(cString: $0) } ?? "", opensWindow: opensWindow,
            isRedirect: webkit_navigation_action_is_redirect(action) != 0)
    }

    private func mayShow(_ response: OpaquePointer?, isTypeSupported: Bool) -> Bool {
        let headers = webkit_uri_response_get_http_headers(response)
        let disposition = headers.flatMap { soup_message_headers_get_one($0, "Content-Disposition") }
        let isAttachment = disposition.map { String(cString: $0).lowercased().hasPrefix("attachment") } ?? false
        if isTypeSupported && !isAttachment { return true }
        refused(webkit_uri_response_get_uri(response).map { String(cString: $0) } ?? "", .download)
        return false
    }
}
