// SPDX-License-Identifier: Apache-2.0

package import Dispatch
import Glibc

/// Reports when a file of a home is written, added, replaced or removed, by this process or another one, within
/// milliseconds (inotify(7)). Where the system has no watch left, it reports nothing: whoever needs the newest state
/// also looks at it when it is used.
package final class HomeWatcher: Sendable {
    /// Dispatch objects may be used from any thread.
    nonisolated(unsafe) private let source: any DispatchSourceRead

    /// The folders with files that are read, relative to the home. The first is the home itself.
    private static let folders = [
        "", Home.sitesFolder, "Certs", Home.anchorsFolder, Home.identitiesFolder, Home.interceptionFolder,
    ]
    private static let events =
        UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO) | UInt32(IN_MOVED_FROM) | UInt32(IN_DELETE) | UInt32(IN_CREATE)

    /// `changed` is called on `queue`. Several changes in a row may be one call. Nil if the system refuses.
    package init?(_ home: Home, on queue: DispatchQueue, changed: @escaping @Sendable () -> Void) {
        let file = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard file >= 0 else { return nil }
        let watch = { @Sendable in
            // A folder that is watched already keeps its number, so that a new one can be found by adding all again.
            for folder in Self.folders {
                _ = inotify_add_watch(file, folder.isEmpty ? home.path : "\(home.path)/\(folder)", Self.events)
            }
        }
        watch()
        source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        source.setEventHandler {
            guard Self.drain(file) else { return }
            watch()
            changed()
        }
        source.setCancelHandler { close(file) }
        source.activate()
    }

    deinit { source.cancel() }

    /// Reads and discards all events. Returns whether there were any.
    private static func drain(_ file: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var hasRead = false
        while read(file, &buffer, buffer.count) > 0 { hasRead = true }
        return hasRead
    }
}
