// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import CountersignChallenges
import CountersignCryptography

/// A ticket that this process has obtained for an enrolled principal, with the tickets for services that it leads to.
/// All are in memory only.
///
/// Unchecked: the objects are never replaced, and GSS-API permits several threads to use a credential. The library's
/// context is used only when the ticket is obtained and released.
final class ObtainedTicket: @unchecked Sendable {
    private var ticket: csn_krb5_ticket

    /// Seconds since 1970.
    let end: Int64
    /// When it was obtained, in seconds since 1970.
    let start: Int64

    var credential: gss_cred_id_t? { ticket.credential }

    /// Why no ticket was obtained.
    struct Failure: Error {
        let error: KerberosError
        /// How the attempt ended for the breaker.
        let result: Breaker.Result
    }

    /// Obtains a ticket from a KDC. Sends the password or the keys once. Blocks until the KDC has responded, or the
    /// library has given up.
    init(for credential: PrincipalCredential, at now: Int64) throws(Failure) {
        guard csn_gss_is_available() == 1 else { throw Failure(error: .noLibrary, result: .inconclusive) }
        var ticket = csn_krb5_ticket()
        guard let code = Self.obtain(&ticket, credential) else {
            let error = KerberosError(
                .failed, "the password or the keys of \(credential.principal) cannot be used",
                hint: "enrol the principal again")
            throw Failure(error: error, result: .inconclusive)
        }
        guard code == 0 else {
            let messages = ticket.messages
            csn_krb5_release(&ticket)
            let error = KerberosError(code, obtaining: credential)
            // The first message contains no proof of the password. If there was a second one, it may have arrived.
            let isLost = error.code == .unreachableKDC && messages > 1
            throw Failure(error: error, result: error.isRejection ? .rejected : isLost ? .unknown : .inconclusive)
        }
        self.ticket = ticket
        end = ticket.end
        start = now
    }

    /// The library's status; nil if the password or the keys cannot be passed to it.
    private static func obtain(_ ticket: inout csn_krb5_ticket, _ credential: PrincipalCredential) -> Int32? {
        switch credential.proof {
        case .password(let password):
            var text = password.withBytes { Array($0) + [0] }
            defer { text.wipe() }
            guard text.firstIndex(of: 0) == text.count - 1 else { return nil }
            return text.withUnsafeBytes {
                csn_krb5_obtain(
                    &ticket, credential.principal, $0.baseAddress?.assumingMemoryBound(to: CChar.self), nil, 0)
            }
        case .keys(let secret):
            return KeytabKeys.with(secret) { keys in
                csn_krb5_obtain(&ticket, credential.principal, nil, keys, keys.count)
            }
        }
    }

    deinit { csn_krb5_release(&ticket) }

    /// Whether a new ticket should replace it: in the last quarter of its life, but at most ten minutes before its end.
    func isAgeing(at now: Int64) -> Bool { now >= end - min(600, max(0, end - start) / 4) }

    func isOver(at now: Int64) -> Bool { now >= end }
}
