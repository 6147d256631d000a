// SPDX-License-Identifier: Apache-2.0

package import CountersignParents

/// A script that has been read.
package struct ScriptContents: Equatable, Sendable {
    /// In UTF-8.
    package let bytes: [UInt8]
    /// How long it may be used before it is read again.
    package let lifetime: Duration

    /// `contentType` is the field of an HTTP response.
    package init(_ bytes: [UInt8], contentType: String? = nil, lifetime: Duration) {
        self.bytes = ScriptText.utf8(bytes, contentType: contentType)
        self.lifetime = lifetime
    }

    /// How long a script from an HTTP response may be used (RFC 9111 §5.2.2.1, §5.3), within bounds. `expires` and
    /// `date` are in seconds since 1970.
    package static func lifetime(cacheControl: String?, expires: Int64?, date: Int64) -> Duration {
        var seconds = expires.map { $0 - date }
        for directive in (cacheControl ?? "").lowercased().split(whereSeparator: { $0 == "," || $0 == " " }) {
            if directive == "no-cache" || directive == "no-store" { return shortest }
            if directive.hasPrefix("max-age=") { seconds = Int64(directive.dropFirst("max-age=".count)) ?? 0 }
        }
        guard let seconds else { return usual }
        return .seconds(min(max(seconds, shortest.components.seconds), longest.components.seconds))
    }

    /// For a response that does not say how long it may be used.
    static let usual = Duration.seconds(3600)
    static let shortest = Duration.seconds(300)
    static let longest = Duration.seconds(86_400)
    /// For a file.
    package static let file = Duration.seconds(60)
    /// After a script could not be read.
    static let retry = Duration.seconds(60)
}

/// Returns the contents of a script, on a thread that may block.
package typealias ScriptReader = @Sendable (ScriptSource) -> Result<ScriptContents, ScriptError>

/// Keeps the last script of each source that could be loaded, so that a start without network has one.
package struct ScriptStorage: Sendable {
    package let read: @Sendable (ScriptSource) -> [UInt8]?
    package let write: @Sendable (ScriptSource, [UInt8]) -> Void

    package init(
        read: @escaping @Sendable (ScriptSource) -> [UInt8]?,
        write: @escaping @Sendable (ScriptSource, [UInt8]) -> Void
    ) {
        self.read = read
        self.write = write
    }

    package static let none = ScriptStorage(read: { _ in nil }, write: { _, _ in })
}
