// SPDX-License-Identifier: Apache-2.0

/// Turns WebKit's load signals of the main frame into events.
///
/// WebKit signals the end of every load, including one that failed. It signals a load that this program cancelled as a
/// failure, which is not an event.
package struct LoadProgress: Equatable, Sendable {
    package private(set) var isLoading = false
    /// Whether a response is on its way. The program that started this one may have seen it already, in a proxy, but
    /// WebKit does not have its cookies yet.
    package private(set) var awaitsResponse = false

    package init() {}

    package mutating func started(url: String) -> Event? {
        isLoading = true
        awaitsResponse = true
        return .loadStarted(url: url)
    }

    /// The response to the last request has arrived, and the page is shown.
    package mutating func committed() { awaitsResponse = false }

    package mutating func finished(url: String) -> Event? {
        awaitsResponse = false
        guard isLoading else { return nil }
        isLoading = false
        return .loadFinished(url: url)
    }

    /// - Parameter code: Nil if this program cancelled the load.
    package mutating func failed(url: String, code: LoadFailure?, message: String) -> Event? {
        isLoading = false
        awaitsResponse = false
        return code.map { .loadFailed(url: url, code: $0, message: message) }
    }
}
