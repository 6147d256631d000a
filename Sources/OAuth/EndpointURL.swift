// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignCryptography

/// The address of an endpoint: https, without user information and fragment (RFC 6749 §3.1, §3.2). `http` is accepted
/// for a loopback host only, and only if the caller permits it, for providers on the developer's own machine.
package struct EndpointURL: Hashable, Sendable, CustomStringConvertible {
    package let origin: Origin
    /// Path and query, at least `/`.
    package let target: String

    /// The longest address, in bytes.
    static let maximumBytes = 4096

    /// `name` is the key of the address in its document, for the message: `token_endpoint`. Throws `configuration`;
    /// see ``init(provided:_:_:)``.
    package init(_ text: String, _ name: String, _ transport: Transport = .secure) throws(OAuthError) {
        do throws(EndpointFault) {
            self = try Self.parse(text, transport)
        } catch {
            throw .profile("\(PrintableText.quote(name)) is not an address that can be used: \(error.reason)")
        }
    }

    /// An address from a document of the provider. Throws `malformedResponse`.
    init(provided text: String, _ name: String, _ transport: Transport) throws(OAuthError) {
        do throws(EndpointFault) {
            self = try Self.parse(text, transport)
        } catch {
            throw .malformed("the provider's \(name)", error.reason)
        }
    }

    private init(origin: Origin, target: String) {
        self.origin = origin
        self.target = target
    }

    /// Which addresses may be plain http.
    package enum Transport: Sendable, Equatable {
        case secure
        /// Also http to `localhost`, 127.0.0.0/8 and `::1`.
        case secureOrLoopback
    }

    package var description: String { "\(origin.scheme.rawValue)://\(origin.authority)\(target)" }

    /// The query without its question mark; nil without one.
    package var query: Substring? {
        target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[target.utf8.index(after: $0)...] }
    }

    /// The path without the query.
    package var path: Substring { target.prefix { $0 != "?" } }

    /// The same address with more parameters. `encoded` is form-encoded and not empty.
    func adding(query encoded: String) -> EndpointURL {
        let separator = query.map { $0.isEmpty || $0.hasSuffix("&") ? "" : "&" } ?? "?"
        return EndpointURL(origin: origin, target: target + separator + encoded)
    }

    /// The same address with more parameters, in order.
    package func adding(_ parameters: [(name: String, value: String)]) -> EndpointURL {
        guard !parameters.isEmpty else { return self }
        var form = FormParameters()
        for (name, value) in parameters { form.append(name, value) }
        return adding(query: form.text)
    }

    /// The same origin with another path.
    func replacing(path: String) -> EndpointURL { EndpointURL(origin: origin, target: path) }

    private struct EndpointFault: Error {
        let reason: String
    }

    private static func parse(_ text: String, _ transport: Transport) throws(EndpointFault) -> EndpointURL {
        guard text.utf8.count <= maximumBytes else { throw EndpointFault(reason: "it is too long") }
        // The characters that RFC 3986 §2 permits, without the fragment.
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"\"<>\\^`{|}".utf8.contains($0) }) else {
            throw EndpointFault(reason: "a character is not permitted in \(PrintableText.quote(text))")
        }
        guard !text.utf8.contains(UInt8(ascii: "#")) else {
            throw EndpointFault(reason: "it has a fragment: \(PrintableText.quote(text))")
        }
        let url: AbsoluteURL
        do {
            url = try AbsoluteURL(parsing: text)
        } catch {
            throw EndpointFault(reason: error.detail)
        }
        guard url.origin.scheme == .https || transport == .secureOrLoopback && isLoopback(url.origin.host) else {
            throw EndpointFault(reason: "it is not https: \(PrintableText.quote(text))")
        }
        return EndpointURL(origin: url.origin, target: url.path)
    }

    private static func isLoopback(_ host: String) -> Bool {
        // A name below localhost is resolved like any other by some resolvers.
        host == "localhost" || HostText.isLoopbackAddress(host)
    }
}
