// SPDX-License-Identifier: Apache-2.0

import CountersignChallenges
import CountersignSitePolicy

/// What a credential would open: a site, a realm where there is one, and how it is asked for.
///
/// Nothing is checked when one is made. ``ChallengeController/canHandle(_:)`` throws for one that names no site.
public struct ProtectionSpace: Hashable, Sendable {
    /// `https` or `http`.
    public var scheme: String
    /// A name or an address, without a port. Names are compared as RFC 5890 A-labels without regard to case.
    public var host: String
    /// 1 to 65535.
    public var port: Int
    /// As the server wrote it (RFC 9110 §11.5); nil where there is none.
    public var realm: String?
    /// How the server asks.
    public var authenticationMethod: AuthenticationMethod
    /// The DER of the names of the authorities that the server accepts client certificates of (RFC 8446 §4.2.4); empty:
    /// any.
    public var acceptableIssuers: [[UInt8]] = []
    /// What was found of the server's certificate, where that is the question.
    public var serverTrust: ServerTrustVerdict?

    /// The space of a challenge; `port` is the scheme's own when it is left out.
    public init(
        scheme: String = "https", host: String, port: Int? = nil, realm: String? = nil,
        authenticationMethod: AuthenticationMethod
    ) {
        self.scheme = scheme
        self.host = host
        self.port = port ?? (scheme.lowercased() == "http" ? 80 : 443)
        self.realm = realm
        self.authenticationMethod = authenticationMethod
    }

    /// The site, spelled as the list and the connection have it.
    func origin() throws(ChallengeError) -> Origin {
        guard let scheme = Origin.Scheme(rawValue: scheme.lowercased()) else {
            throw .invalid(
                "the scheme \(scheme.debugDescription) is neither https nor http", "say which of the two it is")
        }
        guard !host.isEmpty else {
            throw .invalid("the protection space has no host", "take it from the request's URL")
        }
        guard let port = UInt16(exactly: port), port > 0 else {
            throw .invalid("\(port) is not a port", "ports are 1 to 65535")
        }
        do throws(HostNameError) {
            return Origin(scheme: scheme, host: try HostName(canonicalizing: host, for: .forwarded), port: port)
        } catch {
            throw .invalid(error.detail, "the host is a name or an address, without scheme, port and path")
        }
    }
}

extension ProtectionSpace: CustomStringConvertible {
    /// `https://git.corp.example:443 Basic "realm"`, on one line; what is longer than 200 characters is cut.
    public var description: String {
        let site = host.utf8.contains(UInt8(ascii: ":")) && !host.hasPrefix("[") ? "[\(host)]" : host
        let words = ["\(scheme)://\(site):\(port)", "\(authenticationMethod)"] + (realm.map { [$0] } ?? [])
        var printed = words.map { word in
            let escaped = String(word.prefix(200)).debugDescription
            return word.count > 200 ? escaped.dropLast() + "…\"" : escaped[...]
        }
        for index in 0..<2 { printed[index] = printed[index].dropFirst().dropLast() }
        return printed.joined(separator: " ")
    }
}
