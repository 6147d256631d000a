// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses

/// The area that a credential gives access to: a site, its realm if it has one, and the method of authentication.
///
/// The initialiser does not validate anything. ``ChallengeController/canHandle(_:)`` throws if the space does not
/// identify a site.
public struct ProtectionSpace: Hashable, Sendable {
    /// `https` or `http`.
    public var scheme: String
    /// A host name or address, without a port. Names are compared as RFC 5890 A-labels, ignoring case.
    public var host: String
    /// The port, from 1 to 65535.
    public var port: Int
    /// The realm as sent by the server (RFC 9110 §11.5), or nil.
    public var realm: String?
    /// The method of authentication.
    public var authenticationMethod: AuthenticationMethod
    /// The DER-encoded names of the certification authorities whose client certificates the server accepts (RFC 8446
    /// §4.2.4). Empty if it accepts any.
    public var acceptableIssuers: [[UInt8]] = []
    /// The verdict on the server's certificate, if the challenge is about server trust.
    public var serverTrust: ServerTrustVerdict?

    /// Creates a protection space. `port` defaults to the scheme's default port.
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

    /// The site in canonical form.
    package func origin() throws(ChallengeError) -> Origin {
        guard let scheme = Origin.Scheme(rawValue: scheme.lowercased()), scheme != .proxy else {
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
    /// `https://git.corp.example:443 Basic "realm"`, on one line. Parts longer than 200 characters are truncated.
    public var description: String {
        let words =
            ["\(scheme)://\(HostText.joined(host, port))", "\(authenticationMethod)"] + (realm.map { [$0] } ?? [])
        var printed = words.map { word in
            let escaped = String(word.prefix(200)).debugDescription
            return word.count > 200 ? escaped.dropLast() + "…\"" : escaped[...]
        }
        for index in 0..<2 { printed[index] = printed[index].dropFirst().dropLast() }
        return printed.joined(separator: " ")
    }
}
