// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc
import WebViewProtocol

/// Checks the requirements on the machine. WebKit aborts the process without it.
enum Installation {
    static var webKitVersion: String {
        "\(webkit_get_major_version()).\(webkit_get_minor_version()).\(webkit_get_micro_version())"
    }

    /// WebKit starts bubblewrap for the page's process.
    static func checkSandbox() throws(StartFailure) {
        guard let bubblewrap = bubblewrap() else {
            throw StartFailure(
                code: .noBubblewrap, sentence: "bubblewrap, which the page's sandbox needs, is not installed",
                remedy: "install it: apt-get install bubblewrap")
        }
        guard succeeds([bubblewrap, "--ro-bind", "/", "/", "true"]) else {
            throw StartFailure(
                code: .noUserNamespaces, sentence: "bubblewrap cannot create the page's sandbox",
                remedy: "permit user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces), "
                    + "or use another user agent")
        }
    }

    static func checkDisplay() throws(StartFailure) {
        guard gtk_init_check() != 0 else {
            throw StartFailure(
                code: .noDisplay, sentence: "there is no display (DISPLAY, WAYLAND_DISPLAY)",
                remedy: "run it in a desktop session, or use another user agent")
        }
    }

    static func bubblewrap() -> String? {
        guard let path = g_find_program_in_path("bwrap") else { return nil }
        defer { g_free(path) }
        return String(cString: path)
    }

    /// Runs a program without input and output.
    private static func succeeds(_ arguments: [String]) -> Bool {
        var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { pointers.forEach { free($0) } }
        var status: Int32 = 0
        let flags = GSpawnFlags(
            rawValue: G_SPAWN_SEARCH_PATH.rawValue | G_SPAWN_STDOUT_TO_DEV_NULL.rawValue
                | G_SPAWN_STDERR_TO_DEV_NULL.rawValue)
        let isStarted = g_spawn_sync(nil, &pointers, nil, flags, nil, nil, nil, nil, &status, nil)
        return isStarted != 0 && status == 0
    }
}
