// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import Dispatch
import Glibc
import Synchronization

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
    /// `KRB5_CLIENT_KTNAME`), the library uses it to obtain a missing or expired ticket first, and then blocks until a
    /// KDC has responded. Throws `noLibrary`, or the reason for the missing ticket.
    static func read() throws(KerberosError) -> UserTicket {
        guard csn_gss_is_available() == 1 else { throw .noLibrary }
        try checkCaches()
        var minor: OM_uint32 = 0
        var seconds: OM_uint32 = 0
        var name: gss_name_t?
        let major = csn_gss_inquire_user(&minor, &name, &seconds)
        defer { csn_gss_release_name(&name) }
        guard csn_gss_error(major) == 0 else {
            let error = KerberosError(major: major, minor: minor, service: "")
            if error.code == .noTicket { try checkClientKeytab() }
            throw error
        }
        guard name != nil else { throw .noTicket }
        guard seconds > 0 else { throw .ticketExpired }
        var text = gss_buffer_desc()
        guard csn_gss_error(csn_gss_display_name(&minor, name, &text)) == 0 else { throw .noTicket }
        defer { csn_gss_release(&text) }
        return UserTicket(principal: String(decoding: text.bytes, as: UTF8.self), remainingSeconds: Int64(seconds))
    }

    /// Obtains tickets for ``look()``. Not those that answer, because a KDC that does not respond keeps threads busy.
    private static let workers = KerberosWorkers(threadLimit: 2, timeLimit: .seconds(5))

    /// As ``read()``, on another thread, and for a few seconds only: throws `timedOut` then. Calls that wait for a KDC
    /// at the same time wait for the same one.
    package static func look() throws(KerberosError) -> UserTicket {
        try waiting { () throws(KerberosError) in try read() }
    }

    /// The ticket in the user's default cache if it is valid at `now`, in seconds since 1970. Obtains none and asks no
    /// KDC. Waits for a few seconds at most.
    package static func cached(at now: Int64) -> UserTicket? {
        try? waiting { () throws(KerberosError) in
            guard let found = Identity.read() else { throw .noTicket }
            guard found.end > now else { throw .ticketExpired }
            return UserTicket(principal: found.principal, remainingSeconds: found.end - now)
        }
    }

    private static func waiting(
        for read: @escaping @Sendable () throws(KerberosError) -> UserTicket
    ) throws(KerberosError) -> UserTicket {
        let found = Mutex<Result<UserTicket, KerberosError>?>(nil)
        let done = DispatchSemaphore(value: 0)
        workers.run(for: "the user's ticket") { () throws(KerberosError) in
            try read()
        } done: { result in
            found.withLock { $0 = result }
            done.signal()
        }
        done.wait()
        guard let result = found.withLock({ $0 }) else { throw .noTicket }
        return try result.get()
    }

    // MARK: Faults

    /// Throws `cache` or `configuration` if the user's ticket caches cannot be read; not if they do not exist. GSS-API
    /// reports both as a missing ticket, for which another scheme may answer.
    static func checkCaches() throws(KerberosError) {
        var sentence: UnsafeMutablePointer<CChar>?
        let code = csn_krb5_check_user_caches(&sentence)
        defer { free(sentence) }
        if let fault = KerberosError(lookingForCaches: code, sentence.map { String(cString: $0) }) { throw fault }
    }

    /// Throws `keytab` if there is no ticket because the user's client keytab cannot be read.
    static func checkClientKeytab() throws(KerberosError) {
        let code = csn_krb5_check_client_keytab()
        let name = getenv("KRB5_CLIENT_KTNAME").map { String(cString: $0) }
        // Without a keytab of their own, many users may not look into the folder of the default one.
        guard code != 0, code != EACCES || name != nil else { return }
        let reason = code == EACCES ? String(cString: strerror(code)) : "it is not a keytab"
        throw KerberosError(
            .keytab, "the client keytab\(name.map { " \($0.debugDescription)" } ?? "") cannot be read: \(reason)",
            hint: "check KRB5_CLIENT_KTNAME")
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
