// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import WebViewProtocol

/// WebKit's cookies, storage and connections for one sign-in.
struct NetworkSession {
    let pointer: OpaquePointer?
    let cookies: CookieJar

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
        if let proxy = signIn.proxy {
            let settings = webkit_network_proxy_settings_new(Self.proxyURL(proxy), nil)
            webkit_network_session_set_proxy_settings(pointer, WEBKIT_NETWORK_PROXY_MODE_CUSTOM, settings)
            webkit_network_proxy_settings_free(settings)
        } else {
            webkit_network_session_set_proxy_settings(pointer, WEBKIT_NETWORK_PROXY_MODE_NO_PROXY, nil)
        }
        cookies = CookieJar(manager: webkit_network_session_get_cookie_manager(pointer))
    }

    /// If the relay cannot start, nothing can listen at the address: no request bypasses the proxy.
    private static func proxyURL(_ proxy: ProxyAddress) -> String {
        proxy.password == nil ? proxy.url : "http://127.0.0.1:\(ProxyRelay(proxy)?.port ?? 0)"
    }
}
