// SPDX-License-Identifier: Apache-2.0

package import CountersignHome
import CountersignVault
package import Dispatch
import Glibc
import Synchronization

/// Reports when a file of a home is written, added, replaced or removed, by this process or another one: within
/// milliseconds (inotify(7)), or within a second if the system has no instance left for this user.
package final class HomeWatcher: Sendable {
    /// Dispatch objects may be used from any thread.
    nonisolated(unsafe) private let source: any DispatchSourceProtocol

    /// The folders with files that are read, relative to the home. The first is the home itself.
    private static let folders = [
        "", Home.sitesFolder, "Certs", Home.anchorsFolder, Home.identitiesFolder, Home.interceptionFolder,
    ]
    /// The files and folders of the home itself that are read. Lock files are beside them, and opening one of those is
    /// no change.
    private static let names: Set<String> = [
        "vault", "vault.key", "breaker.json", "paused", Home.sitesFolder, "Certs",
    ]
    private static let events =
        UInt32(IN_CLOSE_WRITE) | UInt32(IN_MOVED_TO) | UInt32(IN_MOVED_FROM) | UInt32(IN_DELETE) | UInt32(IN_CREATE)

    /// `changed` is called on `queue`. Several changes in a row may be one call. `polls` checks the files once per
    /// second instead of using inotify.
    package init(_ home: Home, on queue: DispatchQueue, polls: Bool = false, changed: @escaping @Sendable () -> Void) {
        let file = polls ? -1 : inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        source = file >= 0 ? Self.watching(home, file, queue, changed) : Self.polling(home, queue, changed)
        source.activate()
    }

    deinit { source.cancel() }

    private static func watching(
        _ home: Home, _ file: Int32, _ queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void
    ) -> any DispatchSourceProtocol {
        // Watching a folder again changes nothing.
        let watch = { @Sendable in
            for folder in folders {
                _ = inotify_add_watch(file, folder.isEmpty ? home.path : "\(home.path)/\(folder)", events)
            }
        }
        watch()
        let source = DispatchSource.makeReadSource(fileDescriptor: file, queue: queue)
        source.setEventHandler {
            guard drain(file) else { return }
            // A folder may be new.
            watch()
            changed()
        }
        source.setCancelHandler { close(file) }
        return source
    }

    private static func polling(
        _ home: Home, _ queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void
    ) -> any DispatchSourceProtocol {
        let timer = DispatchSource.makeTimerSource(queue: queue)
        let known = Mutex(Versions(home))
        timer.setEventHandler {
            let new = Versions(home)
            let hasChanged = known.withLock { known in
                defer { known = new }
                return known != new
            }
            if hasChanged { changed() }
        }
        timer.schedule(deadline: .now() + .seconds(1), repeating: .seconds(1))
        return timer
    }

    /// The values that polling compares.
    private struct Versions: Equatable {
        let files: HomeStamp
        let vault: [VaultItemVersion?]
        let breaker: String

        init(_ home: Home) {
            files = HomeStamp(home)
            vault = [.vault, .key].map { (item: VaultItem) in try? home.vault.storage.version(of: item) }
            var found = stat()
            let isThere = stat("\(home.path)/breaker.json", &found) == 0
            breaker = isThere ? "\(found.st_ino) \(found.st_mtim.tv_sec) \(found.st_mtim.tv_nsec)" : ""
        }
    }

    /// Reads all events. Returns whether one is about a file or folder that is read.
    private static func drain(_ file: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var matters = false
        while true {
            let count = read(file, &buffer, buffer.count)
            guard count > 0 else { return matters }
            // A lost event may have been any.
            matters = matters || Self.events(in: buffer[..<count]).contains { $0.isOfFolder || names.contains($0.name) }
        }
    }

    /// Splits the bytes of inotify(7): for each event, four numbers of 32 bits (watch, mask, cookie, length of the
    /// name) and the name, filled up with zeros. The home is the first watch, so the others are of its folders.
    static func events(in bytes: ArraySlice<UInt8>) -> [(name: String, isOfFolder: Bool)] {
        func number(_ index: Int) -> UInt32 {
            bytes[index..<index + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
        var events: [(name: String, isOfFolder: Bool)] = []
        var index = bytes.startIndex
        while index + 16 <= bytes.endIndex {
            let end = index + 16 + Int(number(index + 12))
            guard end <= bytes.endIndex else { break }
            let name = String(decoding: bytes[(index + 16)..<end].prefix { $0 != 0 }, as: UTF8.self)
            events.append((name, number(index) != 1 && !HomeFile.isTemporary(name)))
            index = end
        }
        return events
    }
}
