// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import Glibc

/// The ticket in the user's default cache (`kinit`, `klist`). If the cache is one of a collection, GSS-API may use the
/// ticket of another one for a site: k5identity(5) selects it by the service.
package struct UserTicket: Equatable, Sendable {
    /// `jdoe@CORP.EXAMPLE`.
    package let principal: String
    package let remainingSeconds: Int64

    package init(principal: String, remainingSeconds: Int64) {
        self.principal = principal
        self.remainingSeconds = remainingSeconds
    }

    /// Reads the cache. Blocks on one that another process keeps. If the user has a client keytab (kerberos(7),
    /// `KRB5_CLIENT_KTNAME`), the library first obtains a ticket with it if there is none or it has expired, and then
    /// blocks until a KDC has responded. Throws `noLibrary`, `noTicket`, `ticketExpired` or `configuration`.
    package static func read() throws(KerberosError) -> UserTicket {
        guard csn_gss_is_available() == 1 else { throw .noLibrary }
        var minor: OM_uint32 = 0
        var seconds: OM_uint32 = 0
        var name: gss_name_t?
        let major = csn_gss_inquire_user(&minor, &name, &seconds)
        defer { csn_gss_release_name(&name) }
        guard csn_gss_error(major) == 0 else { throw KerberosError(major: major, minor: minor, service: "") }
        guard name != nil else { throw .noTicket }
        guard seconds > 0 else { throw .ticketExpired }
        var text = gss_buffer_desc()
        guard csn_gss_error(csn_gss_display_name(&minor, name, &text)) == 0 else { throw .noTicket }
        defer { csn_gss_release(&text) }
        return UserTicket(principal: String(decoding: text.bytes, as: UTF8.self), remainingSeconds: Int64(seconds))
    }

    /// Distinguishes a ticket from the next one.
    struct Identity: Equatable, Sendable {
        let principal: String
        /// Seconds since 1970.
        let issued: Int64
        let end: Int64

        /// Reads the default cache; nil if there is no ticket. Asks no KDC, but blocks on a cache that another process
        /// keeps.
        static func read() -> Identity? {
            guard csn_gss_is_available() == 1 else { return nil }
            var principal: UnsafeMutablePointer<CChar>?
            var (issued, end): (Int64, Int64) = (0, 0)
            guard csn_krb5_inquire_user(&principal, &issued, &end) == 0, let principal else { return nil }
            defer { free(principal) }
            return Identity(principal: String(cString: principal), issued: issued, end: end)
        }
    }
}
