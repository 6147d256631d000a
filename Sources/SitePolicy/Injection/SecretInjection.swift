// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// `inject=` of a line: the place in each request for the token, at an API that expects it and never challenges.
///
/// The client needs no key. If it insists on one, it gets a ``placeholder``, which the token replaces there and nowhere
/// else. ``Place/aws`` is no place for a token: the request is signed again with keys.
package struct SecretInjection: Equatable, Sendable {
    package enum Place: Equatable, Sendable {
        /// A field whose value is the `prefix`, the token and the `suffix`.
        case header(name: String, prefix: String, suffix: String)
        /// `Authorization: Basic` with the Base64 of the `prefix`, the token and the `suffix` (RFC 7617 §2). One of the
        /// two has a colon: the token is the password, or the user name.
        case basic(prefix: String, suffix: String)
        /// A parameter of the query (`application/x-www-form-urlencoded`).
        case query(name: String)
        /// A cookie (RFC 6265 §4.2.1).
        case cookie(name: String)
        /// The signature of a request to AWS, which a client makes with the ``placeholder`` as its access key ID. The
        /// credential is a user name and a password: an access key ID and its secret.
        case aws
    }

    package let place: Place
    /// What clients send in place of the token; nil for nothing.
    package let placeholder: String?
    /// Whether the token is replaced by asterisks in the site's responses.
    package let isRedacted: Bool

    package init(_ place: Place, placeholder: String? = nil, isRedacted: Bool = false) {
        self.place = place
        self.placeholder = placeholder
        self.isRedacted = isRedacted
    }

    /// The word that stands for the token in the list.
    static let token = "{secret}"

    /// `the field X-Api-Key`, `the field Authorization (Basic)`, `the query's key`, `the cookie session` or `the AWS
    /// signature`.
    package var description: String {
        switch place {
        case .header(let name, _, _): "the field \(name)"
        case .basic: "the field Authorization (Basic)"
        case .query(let name): "the query's \(name)"
        case .cookie(let name): "the cookie \(name)"
        case .aws: "the AWS signature"
        }
    }
}

extension SecretInjection {
    /// The value of `inject=`.
    package var placeText: String {
        switch place {
        case .header(let name, let prefix, let suffix): "header:\(name): \(prefix)\(Self.token)\(suffix)"
        case .basic(let prefix, let suffix): "basic:\(prefix)\(Self.token)\(suffix)"
        case .query(let name): "query:\(name)=\(Self.token)"
        case .cookie(let name): "cookie:\(name)=\(Self.token)"
        case .aws: "aws"
        }
    }

    /// The options of a line that mean the same.
    package var words: [String] {
        [
            "inject=\(placeText)", placeholder.map { "placeholder=\($0)" }, isRedacted ? "redact=yes" : nil,
        ].compactMap(\.self)
    }
}

// MARK: Placeholders

extension SecretInjection {
    /// Whether `value`, which a client has sent in the place of the token, only stands for it: it is the placeholder,
    /// with or without what the line puts around it, encoded if the place is ``Place/basic(prefix:suffix:)``. The name
    /// of a scheme before it may have another case.
    package func isPlaceholder(_ value: some Sequence<UInt8>) -> Bool {
        guard let placeholder else { return false }
        let value = Array(value)
        if value.elementsEqual(placeholder.utf8) { return true }
        if case .basic(let prefix, let suffix) = place {
            return Self.isBasic(value, with: placeholder, or: prefix + placeholder + suffix)
        }
        guard case .header(_, let prefix, let suffix) = place,
            value.count == prefix.utf8.count + placeholder.utf8.count + suffix.utf8.count
        else { return false }
        func lowercased(_ octet: UInt8) -> UInt8 { (0x41...0x5A).contains(octet) ? octet | 0x20 : octet }
        let start = value.prefix(prefix.utf8.count)
        return start.map(lowercased).elementsEqual(prefix.utf8.map(lowercased))
            && value.dropFirst(start.count).elementsEqual((placeholder + suffix).utf8)
    }

    /// Whether a client has put the placeholder into its Authorization, with or without a scheme: a mistake if the line
    /// names another place.
    package func hasPlaceholder(inAuthorization values: [String]) -> Bool {
        guard let placeholder, values.count == 1 else { return false }
        let words = values[0].split(separator: " ")
        return (1...2).contains(words.count) && words.last.map(String.init) == placeholder
    }

    /// Whether `value` is `Basic` with the placeholder as it is, or with the Base64 of `credentials`.
    private static func isBasic(_ value: [UInt8], with placeholder: String, or credentials: String) -> Bool {
        let words = value.split(separator: UInt8(ascii: " "))
        guard words.count == 2, String(decoding: words[0], as: UTF8.self).lowercased() == "basic" else { return false }
        return words[1].elementsEqual(placeholder.utf8)
            || words[1].elementsEqual(Base64.encode(Array(credentials.utf8)).utf8)
    }

    /// What becomes of a request's target.
    package enum Target: Equatable, Sendable {
        /// The text before the token, and after it.
        case changed(before: [UInt8], after: [UInt8])
        /// The client has sent a value of its own.
        case own
    }

    /// The place of the parameter `name` in a target in origin-form: its value if that is the placeholder, otherwise
    /// the end of the query.
    package func target(_ target: some Collection<UInt8>, parameter name: String) -> Target {
        let target = Array(target)
        guard let mark = target.firstIndex(of: UInt8(ascii: "?")) else {
            return .changed(before: target + "?\(name)=".utf8, after: [])
        }
        var found: Range<Int>?
        var start = mark + 1
        for pair in target[start...].split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false) {
            start = pair.startIndex
            let equals = pair.firstIndex(of: UInt8(ascii: "="))
            guard Self.decoded(pair[..<(equals ?? pair.endIndex)]).elementsEqual(name.utf8) else { continue }
            let value = equals.map { pair[($0 + 1)...] } ?? pair[pair.endIndex...]
            // Two readers of two values may read different ones.
            guard found == nil, equals != nil, isPlaceholder(Self.decoded(value)) else { return .own }
            found = value.startIndex..<value.endIndex
        }
        if let found {
            return .changed(before: Array(target[..<found.lowerBound]), after: Array(target[found.upperBound...]))
        }
        let separator = target.last == UInt8(ascii: "?") || target.last == UInt8(ascii: "&") ? "" : "&"
        return .changed(before: target + "\(separator)\(name)=".utf8, after: [])
    }

    /// Without percent-encoding. A plus sign is a space.
    private static func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            let octet = text[index]
            if octet == UInt8(ascii: "%"), index + 2 < text.endIndex, text[index + 1] != UInt8(ascii: "+"),
                let value = UInt8(String(decoding: text[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                result.append(value)
                index += 3
                continue
            }
            result.append(octet == UInt8(ascii: "+") ? UInt8(ascii: " ") : octet)
            index += 1
        }
        return result
    }
}
