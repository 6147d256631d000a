// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON

/// The metadata of a protected resource (RFC 9728), to which a Bearer challenge refers (§5.1): which scopes its tokens
/// may have, and that it accepts those of the issuer that a person has signed in at.
///
/// The resource chooses the text, so it is a hint for the next request to the provider and nothing more. Does not
/// implement signed metadata (§2.2).
package struct ProtectedResourceMetadata: Equatable, Sendable {
    /// The value for the parameter `resource` (RFC 8707).
    package let resource: String
    /// `authorization_servers`, as received.
    package let servers: [String]
    /// Those of `scopes_supported` that can be sent, none twice; empty if the resource does not say.
    package let scopes: [String]

    /// The largest document, in bytes.
    package static let maximumBytes = 64 << 10
    private static let maximumScopes = 64
    private static let maximumServers = 64

    /// Where the metadata is, as the parameter `resource_metadata` of a challenge says. `challenged` is the request
    /// that was challenged. Throws `otherOrigin` for an address elsewhere, because a site could otherwise make this
    /// program send requests to any host.
    package static func location(
        _ parameter: String, of challenged: EndpointURL
    ) throws(ProtectedResourceError) -> EndpointURL {
        let location: EndpointURL
        do throws(OAuthError) {
            location = try EndpointURL(parameter, "resource_metadata")
        } catch {
            throw ProtectedResourceError(.malformed, error.detail)
        }
        guard location.origin == challenged.origin else {
            throw ProtectedResourceError(
                .otherOrigin,
                "\(challenged.origin) refers to metadata at \(location.origin), which is another origin")
        }
        return location
    }

    /// Where the metadata of a resource is if its challenges do not say so (§3.1): with the path of the resource, and
    /// without.
    package static func wellKnownLocations(of resource: EndpointURL) -> [EndpointURL] {
        let root = "/.well-known/oauth-protected-resource"
        let path = resource.path == "/" ? "" : resource.path
        return path.isEmpty
            ? [resource.replacing(path: root)]
            : [resource.replacing(path: root + path), resource.replacing(path: root)]
    }

    /// Reads the document for the request `challenged`, to find out about tokens of `issuer`; nil for those of any.
    /// Throws:
    ///
    /// - `malformed` for another text than JSON, and for a member of the wrong type.
    /// - `otherResource` unless `resource` covers the request: it has the same origin, and its path is the request's or
    ///   above it. §3.3 demands the request's own URL, which a site with more than one URL cannot give;
    ///   draft-mcguinness-oauth-rfc9728bis relaxes that in this way.
    /// - `otherIssuer` unless `authorization_servers` contains the issuer, byte by byte.
    /// - `noField` if the resource accepts no token in `Authorization`.
    package init(
        parsing body: [UInt8], for challenged: EndpointURL, issuer: Issuer?
    ) throws(ProtectedResourceError) {
        let members: Members
        do throws(JSONError) {
            members = try Members(body)
        } catch {
            throw ProtectedResourceError(
                .malformed, "the metadata of \(challenged.origin) cannot be used: \(error.detail)")
        }
        guard let resource = try? EndpointURL(members.resource, "resource"), resource.query == nil,
            resource.covers(challenged)
        else {
            throw ProtectedResourceError(
                .otherResource,
                "the metadata of \(challenged.origin) is that of another resource, "
                    + PrintableText.longer(members.resource))
        }
        if let issuer, !members.servers.contains(where: { $0.utf8.elementsEqual(issuer.text.utf8) }) {
            throw ProtectedResourceError(
                .otherIssuer, "\(challenged.origin) does not accept tokens of \(issuer), as its metadata says")
        }
        guard members.methods?.contains("header") ?? true else {
            throw ProtectedResourceError(
                .noField, "\(challenged.origin) accepts no token in Authorization, as its metadata says")
        }
        self.resource = members.resource
        servers = members.servers
        var scopes: [String] = []
        for scope in members.scopes where scopes.count < Self.maximumScopes && !scopes.contains(scope) {
            if (try? SignInRequest.check(scope: scope)) != nil { scopes.append(scope) }
        }
        self.scopes = scopes
    }

    /// The members by type, before their values are checked.
    private struct Members {
        let resource: String
        let servers: [String]
        let methods: [String]?
        let scopes: [String]

        init(_ body: [UInt8]) throws(JSONError) {
            let value = try JSONParser.parse(body, limits: JSONLimits(bytes: maximumBytes, depth: 8))
            var reader = try JSONReader(value, "the document", .lenient)
            resource = try reader.string("resource")
            servers = try reader.stringsIfPresent("authorization_servers") ?? []
            methods = try reader.stringsIfPresent("bearer_methods_supported")
            scopes = try reader.stringsIfPresent("scopes_supported") ?? []
            guard servers.count <= maximumServers else {
                throw reader.invalid("authorization_servers", "has more than \(maximumServers) entries")
            }
        }
    }
}

/// Why the metadata of a protected resource is not used. The resource is at fault.
package struct ProtectedResourceError: CodedError {
    package enum Code: Equatable, Sendable {
        case malformed
        /// The metadata is at another origin than the resource.
        case otherOrigin
        case otherResource
        case otherIssuer
        /// The resource accepts tokens in the body or the query only (RFC 6750 §2.2, §2.3).
        case noField
        /// The resource does not send its metadata.
        case unavailable
    }

    package let code: Code
    package let detail: String

    package init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension EndpointURL {
    /// Whether `other` is this resource or below it, by whole segments. A path with dot segments, in any spelling, is
    /// below nothing.
    fileprivate func covers(_ other: EndpointURL) -> Bool {
        guard origin == other.origin else { return false }
        if target == other.target { return true }
        let (own, path) = (Substring(self.path), other.path)
        let folder = own.hasSuffix("/") ? own : own + "/"
        guard path == own || path.hasPrefix(folder) else { return false }
        return !path.split(separator: "/").contains { segment in
            let text = segment.lowercased().replacing("%2e", with: ".")
            return text == "." || text == ".." || text.contains("%2f") || text.contains("%5c")
        }
    }
}
