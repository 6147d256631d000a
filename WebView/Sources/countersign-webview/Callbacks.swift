// SPDX-License-Identifier: Apache-2.0

import CWebKitGTK

/// A closure for a C callback's data.
final class Callback<Value> {
    private let body: (Value) -> Void

    init(_ body: @escaping (Value) -> Void) {
        self.body = body
    }

    /// The pointer owns the callback until `take`.
    func retained() -> gpointer {
        Unmanaged.passRetained(self).toOpaque()
    }

    static func take(_ data: gpointer?) -> (Value) -> Void {
        guard let data else { return { _ in } }
        return Unmanaged<Callback<Value>>.fromOpaque(data).takeRetainedValue().body
    }
}

/// Calls `body` on the main loop.
func after(_ duration: Duration, _ body: @escaping () -> Void) {
    let milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    let data = Callback<Void>(body).retained()
    g_timeout_add(
        guint(clamping: milliseconds),
        { data in
            Callback<Void>.take(data)(())
            return 0
        }, data)
}

/// Connects a signal whose last argument is `object`. The compiler does not check `callback`: it must have the C
/// signature of the signal.
func connect<Callback>(_ instance: gpointer?, _ signal: String, to object: AnyObject, _ callback: Callback) {
    csn_connect(
        instance, signal, unsafeBitCast(callback, to: GCallback.self), Unmanaged.passUnretained(object).toOpaque())
}
