// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

/// WebKit's cookies, storage and connections for one sign-in.
struct NetworkSession {
    let pointer: OpaquePointer?
    let cookies: CookieJar
    /// Before a proxy with a password.
    private let relay: ProxyRelay?

    init(_ signIn: SignIn) {
        if let folder = signIn.dataFolder {
            pointer = webkit_network_session_new(folder, folder + "/cache")
            let manager = webkit_network_session_get_cookie_manager(pointer)
            // The data folder alone does not keep cookies.
            webkit_cookie_manager_set_persistent_storage(
                manager, folder + "/cookies.sqlite", WEBKIT_COOKIE_PERSISTENT_STORAGE_SQLITE)
            // WebKit would store passwords of HTTP authentication in the keyring.
            webkit_network_session_set_persistent_credential_storage_enabled(pointer, 0)
        } else {
            pointer = webkit_network_session_new_ephemeral()
        }
        webkit_network_session_set_tls_errors_policy(pointer, WEBKIT_TLS_ERRORS_POLICY_FAIL)
        relay = signIn.proxy.flatMap { $0.password == nil ? nil : ProxyRelay($0) }
        if let proxy = signIn.proxy {
            // If the relay cannot start, nothing can listen at the address: no request bypasses the proxy.
            let url = proxy.password == nil ? proxy.url : "http://127.0.0.1:\(relay?.port ?? 0)"
            let settings = webkit_network_proxy_settings_new(url, nil)
            webkit_network_session_set_proxy_settings(pointer, WEBKIT_NETWORK_PROXY_MODE_CUSTOM, settings)
            webkit_network_proxy_settings_free(settings)
        } else {
            webkit_network_session_set_proxy_settings(pointer, WEBKIT_NETWORK_PROXY_MODE_NO_PROXY, nil)
        }
        cookies = CookieJar(manager: webkit_network_session_get_cookie_manager(pointer))
    }

    /// Why the proxy has made no tunnel to the URL's server.
    func tunnelFailure(_ url: String) -> String? {
        guard let url = PageURL(url), let host = url.host, let port = url.port else { return nil }
        return relay?.failures["\(host):\(port)"]
    }
}
