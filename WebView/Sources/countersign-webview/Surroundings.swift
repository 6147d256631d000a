// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK
import Glibc

/// The environment that this process and WebKit's processes inherit.
enum Surroundings {
    /// Called before any thread starts and before GTK reads the environment.
    static func restrict() {
        umask(0o077)
        // Memory has passwords and cookies.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        signal(SIGPIPE, SIG_IGN)
        for name in removed { unsetenv(name) }
        for (name, value) in set { setenv(name, value, 1) }
        if !hasSessionBus { setenv("DBUS_SESSION_BUS_ADDRESS", "disabled:", 1) }
        // Messages of the libraries may quote a page's content or addresses.
        g_log_set_writer_func({ _, _, _, _ in G_LOG_WRITER_HANDLED }, nil, nil)
    }

    /// Without one, GLib would start a bus for the display (`dbus-launch --autolaunch`), and on it the services for
    /// screen readers. None of them would end with the window. GLib looks in the same places.
    private static var hasSessionBus: Bool {
        if let address = getenv("DBUS_SESSION_BUS_ADDRESS"), address[0] != 0 { return true }
        guard let folder = getenv("XDG_RUNTIME_DIR").map({ String(cString: $0) }), folder.hasPrefix("/") else {
            return false
        }
        var status = stat()
        return stat("\(folder)/bus", &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }

    /// After a fault of its own, the process ends at once. If `SWIFT_BACKTRACE` enables it, the Swift runtime would
    /// stop the process instead, and print parts of its memory. `COUNTERSIGN_BACKTRACE=1` keeps the runtime's handlers.
    /// Must be called first.
    static func restoreFatalSignals() {
        let kept = getenv("COUNTERSIGN_BACKTRACE").map { String(cString: $0).lowercased() }
        if let kept, ["1", "yes", "true"].contains(kept) { return }
        var fatal = sigset_t()
        sigemptyset(&fatal)
        for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS] {
            signal(number, SIG_DFL)
            sigaddset(&fatal, number)
        }
        // The thread that has started this process may have blocked some of them.
        pthread_sigmask(SIG_UNBLOCK, &fatal, nil)
    }

    /// Variables that open the page to inspection, weaken the sandbox, or write keys and traffic to files.
    private static let removed = [
        "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS", "WEBKIT_INSPECTOR_SERVER", "WEBKIT_INSPECTOR_HTTP_SERVER",
        "WEBKIT_DEBUG", "WEBKIT_FORCE_SANDBOX", "GTK_DEBUG", "GDK_DEBUG", "G_MESSAGES_DEBUG", "SSLKEYLOGFILE",
        "SOUP_LOGGER", "G_TLS_GNUTLS_PRIORITY", "GNUTLS_DEBUG_LEVEL", "GNUTLS_NO_EXPLICIT_INIT",
    ]

    /// Rendering on the CPU takes less memory than llvmpipe: 187 instead of 317 MB in all.
    private static let set = [
        ("GTK_A11Y", "none"), ("GSK_RENDERER", "cairo"), ("WEBKIT_DISABLE_DMABUF_RENDERER", "1"),
    ]
}
