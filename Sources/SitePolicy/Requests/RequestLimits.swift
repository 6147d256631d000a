// SPDX-License-Identifier: Apache-2.0

/// The requests that a line is for: `methods=`, `paths=` and `case=`, and `deny=` for all others.
package struct RequestLimits: Equatable, Sendable {
    /// As written, none twice; empty for all.
    package var methods: [String] = []
    /// Of these paths; empty for all.
    package var paths: [PathPattern] = []
    /// But not of these, which are written with `!`.
    package var exceptions: [PathPattern] = []
    /// `case=ignore`.
    package var ignoresCase = false
    /// `deny=yes`: requests for which the site has no line are refused, in place of being forwarded unanswered.
    package var refusesOthers = false

    package init() {}

    /// Whether there are requests that it is not for.
    var isLimited: Bool { !methods.isEmpty || comparesPaths }

    /// Whether the path of a request matters.
    package var comparesPaths: Bool { !paths.isEmpty || !exceptions.isEmpty }

    /// Whether the method is among them. Methods are compared as they are (RFC 9110 §9.1).
    func permits(method: String) -> Bool { methods.isEmpty || methods.contains(method) }

    /// The value of `paths=`.
    package var pathsText: String {
        (paths.map(\.text) + exceptions.map { "!\($0.text)" }).joined(separator: ",")
    }

    /// The options, as in the list.
    package var words: [String] {
        var words = methods.isEmpty ? [] : ["methods=\(methods.joined(separator: ","))"]
        if comparesPaths { words.append("paths=\(pathsText)") }
        if ignoresCase { words.append("case=ignore") }
        if refusesOthers { words.append("deny=yes") }
        return words
    }

    /// The requests that a line is for, however it is written.
    struct Requests: Hashable {
        let methods: Set<String>
        let paths: Set<PathPattern>
        let exceptions: Set<PathPattern>
        let ignoresCase: Bool
    }

    var requests: Requests {
        Requests(
            methods: Set(methods), paths: Set(paths), exceptions: Set(exceptions), ignoresCase: ignoresCase)
    }
}

/// What a line can depend on in a request.
package struct SiteRequest: Equatable, Sendable {
    package let method: String
    /// The target in origin-form, as the client has written it: path and query; or `*` (RFC 9112 §3.2).
    package let target: ArraySlice<UInt8>

    package init(method: String, target: ArraySlice<UInt8>) {
        self.method = method
        self.target = target
    }
}
