// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import CountersignVault
import Dispatch
import Synchronization

extension HomeManager {
    /// A new stream of the changes to the home from now on, by this process and by others, within milliseconds. Buffers
    /// the newest 256. It ends when the manager is released.
    ///
    /// While the vault is not open in this process, its changes are only reported as such, without names.
    public var changes: AsyncStream<HomeChange> {
        watch.begin { [weak self] in self?.look() }
        return watch.streams.stream()
    }

    /// Compares the home with its state before, and reports the differences. Called one at a time.
    private func look() {
        let opened = vault.openedSilently
        let isLocked = controller?.isVaultLocked ?? (opened == nil)
        let new = HomeState(home, vault: isLocked ? nil : opened, isLocked: isLocked)
        for change in watch.replace(with: new) { watch.streams.tell(change) }
    }
}

/// The watcher of a manager, which begins with its first stream.
final class ChangeWatch: Sendable {
    let streams = EventStreams<HomeChange>()
    private let queue = DispatchQueue(label: "countersign.changes")
    private let home: Home
    private let state = Mutex<(watcher: HomeWatcher?, known: HomeState?)>((nil, nil))

    init(_ home: Home) { self.home = home }

    /// Calls `look` now and after every change. Only the first call has an effect.
    func begin(_ look: @escaping @Sendable () -> Void) {
        // Before the stream is returned, so that no later change is missed.
        queue.sync {
            guard state.withLock({ $0.watcher == nil }) else { return }
            try? home.prepare()
            let watcher = HomeWatcher(home, on: queue, changed: look)
            state.withLock { $0.watcher = watcher }
            look()
        }
    }

    /// The changes since the state before; none for the first.
    func replace(with new: HomeState) -> [HomeChange] {
        state.withLock { state in
            defer { state.known = new }
            return state.known?.changes(to: new) ?? []
        }
    }
}
