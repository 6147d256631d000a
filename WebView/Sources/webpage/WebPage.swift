// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc

/// `webpage PROXY URL` shows a page in a window, through the proxy of another program, and prints its title. An example
/// for the article "Show a page in a web view", which says how to start it.
@main
struct WebPage {
    static func main() {
        guard CommandLine.arguments.count == 3, gtk_init_check() != 0 else {
            say("usage: webpage http://127.0.0.1:PORT URL    with a display\n", on: 2)
            exit(2)
        }
        let window = csn_window(gtk_window_new())
        let view = newView(through: CommandLine.arguments[1])
        _ = csn_connect(view, "notify::title", unsafeBitCast(titleChanged, to: GCallback.self), nil)
        gtk_window_set_default_size(window, 800, 600)
        gtk_window_set_child(window, csn_widget(view))
        gtk_window_present(window)
        webkit_web_view_load_uri(view, CommandLine.arguments[2])
        g_main_loop_run(g_main_loop_new(nil, 0))
    }

    static func newView(through proxy: String) -> UnsafeMutablePointer<WebKitWebView>? {
        let session = webkit_network_session_new_ephemeral()
        let settings = webkit_network_proxy_settings_new(proxy, nil)
        webkit_network_session_set_proxy_settings(session, WEBKIT_NETWORK_PROXY_MODE_CUSTOM, settings)
        webkit_network_proxy_settings_free(settings)
        webkit_network_session_set_tls_errors_policy(session, WEBKIT_TLS_ERRORS_POLICY_FAIL)
        let preferences = webkit_settings_new()
        webkit_settings_set_enable_webrtc(preferences, 0)
        return csn_web_view_new(session, webkit_user_content_manager_new(), preferences, nil)
    }

    private static func say(_ text: String, on file: Int32) { write(file, text, text.utf8.count) }

    /// The signal's C signature.
    private typealias TitleChanged =
        @convention(c) (
            UnsafeMutablePointer<WebKitWebView>?, gpointer?, gpointer?
        ) -> Void

    private static let titleChanged: TitleChanged = { view, _, _ in
        guard let title = webkit_web_view_get_title(view), title.pointee != 0 else { return }
        say("title: \(String(cString: title))\n", on: 1)
    }
}
