// SPDX-License-Identifier: Apache-2.0

package import CountersignAddresses
import CountersignCertificates

/// The server of a trust exception: parsing and text.
package enum TrustedServer {
    /// Parses `host` or `host:port`; accepts the same hosts as the allowed-sites list.
    package static func origin(_ place: String) throws -> Origin {
        guard !place.contains("*") else {
            throw CountersignError(
                .configuration, "a trust exception is for one host, but \(place.debugDescription) contains a wildcard",
                hint: "add one exception per host")
        }
        guard !place.contains("/") else {
            throw CountersignError(
                .configuration, "\(place.debugDescription) is not HOST or HOST:PORT",
                hint: "omit the scheme and the path: git.corp.example:8443")
        }
        return try Origin(scheme: .https, authority: place, for: .listed)
    }

    package static func leaf(_ fingerprint: String, of place: String) throws -> [UInt8] {
        do {
            return try CertificateFingerprint.parse(fingerprint)
        } catch {
            throw CountersignError(
                .configuration, "\(fingerprint.debugDescription) is not a fingerprint: \(error)",
                hint: """
                    expected 64 hexadecimal digits, from the proxy's 502 response or from
                    openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -fingerprint -sha256
                    """)
        }
    }

    /// `host:port`.
    package static func text(_ origin: Origin) -> String { HostText.joined(origin.host, origin.port) }
}
