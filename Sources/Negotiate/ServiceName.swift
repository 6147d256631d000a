// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import Synchronization

/// The name of a service, `HTTP/host`, as GSS-API needs it. The host is not resolved and not replaced.
///
/// Unchecked: the name is never changed, and GSS-API permits several threads to use it.
final class ServiceName: @unchecked Sendable {
    let text: String
    private(set) var name: gss_name_t?

    /// Throws `noLibrary`, or `failed` if krb5.conf cannot be read.
    private init(_ text: String) throws(KerberosError) {
        guard csn_gss_is_available() == 1 else { throw .noLibrary }
        self.text = text
        let halves = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2 else { throw KerberosError(.failed, "\"\(text)\" is not a service principal name") }
        var minor: OM_uint32 = 0
        let major = csn_gss_import_service(&minor, halves[0], halves[1], &name)
        guard csn_gss_error(major) == 0 else { throw KerberosError(major: major, minor: minor, service: text) }
    }

    deinit { csn_gss_release_name(&name) }

    // MARK: Recently used names

    /// Importing a name reads krb5.conf. A name is reused for a minute, because the realm in it comes from that file.
    private static let lifetime = Duration.seconds(60)
    private static let limit = 256
    private static let recent = Mutex<[String: (name: ServiceName, since: ContinuousClock.Instant)]>([:])

    /// The name of the service `text`, which has the form `HTTP/host`. Throws as GSS-API does.
    static func named(
        _ text: String, at now: ContinuousClock.Instant = .now
    ) throws(KerberosError) -> ServiceName {
        let known = recent.withLock { $0[text] }
        if let known, now < known.since + lifetime { return known.name }
        let name = try ServiceName(text)
        recent.withLock { recent in
            if recent.count >= limit { recent.removeAll() }
            recent[text] = (name, now)
        }
        return name
    }
}
