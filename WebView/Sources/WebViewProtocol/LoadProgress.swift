// SPDX-License-Identifier: Apache-2.0

/// Turns WebKit's load signals of the main frame into events.
///
/// WebKit signals the end of every load, also of one that failed. It signals a load that this program cancelled as a
/// failure, which is no event.
package struct LoadProgress: Equatable, Sendable {
    package private(set) var isLoading = false

    package init() {}

    package mutating func started(url: String) -> Event? {
        isLoading = true
        return .loadStarted(url: url)
    }

    package mutating func finished(url: String) -> Event? {
        guard isLoading else { return nil }
        isLoading = false
        return .loadFinished(url: url)
    }

    /// - Parameter code: Nil if this program cancelled the load.
    package mutating func failed(url: String, code: LoadFailure?, message: String) -> Event? {
        isLoading = false
        return code.map { .loadFailed(url: url, code: $0, message: message) }
    }
}
