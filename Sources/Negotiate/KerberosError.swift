// SPDX-License-Identifier: Apache-2.0

import CountersignCGSSAPI
import CountersignChallenges
import CountersignCryptography
import Glibc

/// Why Kerberos cannot answer. Errors with the same code are equal.
package struct KerberosError: CodedError {
    package enum Code: Equatable, Sendable {
        /// MIT's GSS-API is not installed.
        case noLibrary
        /// The user has no ticket.
        case noTicket
        case ticketExpired
        /// The KDC did not accept the password or the keys of a principal.
        case wrongPassword
        case passwordExpired
        /// The KDC has locked or disabled the principal.
        case locked
        case unknownPrincipal
        /// The breaker does not permit an attempt at the KDC.
        case blocked
        /// A keytab cannot be read, or has no key of the principal.
        case keytab
        /// The user's ticket cache exists and cannot be read, or its name is wrong.
        case cache
        /// The clock of this machine and that of the KDC or the server differ too much.
        case clockSkew
        /// The KDC does not know the service.
        case unknownService
        /// No KDC responds, or none is known for the realm.
        case unreachableKDC
        /// krb5.conf cannot be read or parsed.
        case configuration
        /// The KDC and this machine have no encryption type in common.
        case encryptionType
        /// The server cannot use the ticket, because its key is another one.
        case wrongServiceKey
        /// The server's token is not the expected one.
        case malformed
        /// The server did not accept the token, or did not prove that it has the service's key.
        case refused
        /// All threads are busy, and too many requests are waiting.
        case overloaded
        case timedOut
        /// Any other error of the library.
        case failed
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    /// The sentence for `Proxy-Status`, the log and `explain`: the fault and its remedy.
    package var sentence: String { hint.map { "\(detail); \($0)" } ?? detail }
}

extension KerberosError {
    static let noLibrary = KerberosError(
        .noLibrary, "Kerberos is not available, because \(MissingLibrary.gssapi.detail)",
        hint: MissingLibrary.gssapi.hint)

    /// The error for a status of the library. `service` is the name for which a ticket was needed.
    init(major: OM_uint32, minor: OM_uint32, service: String) {
        switch csn_gss_error(major) {
        case csn_GSS_S_CREDENTIALS_EXPIRED: self = .ticketExpired
        // A ticket that has expired is reported as missing, too, and so are a faulty configuration and a client keytab
        // that leads to no ticket.
        default:
            self = Self.known(Int32(bitPattern: minor), service) ?? KerberosError(.failed, Self.text(of: minor))
        }
    }

    /// The error for a status of the library, with its sentence, while it looked for the user's ticket caches. Nil for
    /// success.
    init?(lookingForCaches code: Int32, _ sentence: String?) {
        switch code {
        case 0, Int32(KRB5_CC_NOTFOUND), Int32(KRB5_FCC_NOFILE):
            return nil
        case Int32(KRB5_KCM_NO_SERVER):
            self.init(
                .noTicket, "there is no Kerberos ticket, because no KCM server is running",
                hint: "start it, or set KRB5CCNAME")
        default:
            self =
                Self.known(code, "")
                ?? KerberosError(
                    .cache, "the Kerberos ticket cache cannot be read: \(sentence ?? "status \(code)")",
                    hint: "check KRB5CCNAME and the cache, or run kinit")
        }
    }

    static let noTicket = KerberosError(.noTicket, "there is no Kerberos ticket", hint: "run kinit")
    static let ticketExpired = KerberosError(.ticketExpired, "the Kerberos ticket has expired", hint: "run kinit")

    /// The error for a status of the library while it obtained a ticket for `credential`.
    init(_ code: Int32, obtaining credential: PrincipalCredential) {
        let principal = credential.principal
        let set = "`countersign credential set \(credential.name) --principal \(principal)`"
        switch code {
        case Int32(KRB5KDC_ERR_PREAUTH_FAILED), Int32(KRB5KRB_AP_ERR_BAD_INTEGRITY), Int32(KRB5_KT_NOTFOUND):
            switch credential.proof {
            case .password:
                self.init(
                    .wrongPassword, "the KDC rejected the password of \(principal)", hint: "\(set) stores another")
            case .keys:
                self.init(
                    .wrongPassword, "the KDC rejected the keys of \(principal)",
                    hint: "\(set) --keytab FILE stores others")
            }
        case Int32(KRB5KDC_ERR_KEY_EXP):
            self.init(
                .passwordExpired, "the password of \(principal) has expired",
                hint: "change it with kpasswd; then \(set)")
        case Int32(KRB5KDC_ERR_CLIENT_REVOKED):
            self.init(
                .locked, "the KDC has locked or disabled \(principal)",
                hint: "when it is unlocked, run `countersign credential retry \(credential.name)`")
        case Int32(KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN), Int32(KRB5KDC_ERR_NAME_EXP):
            self.init(
                .unknownPrincipal, "the KDC does not know \(principal)", hint: "check the name and the realm")
        default:
            self =
                Self.known(code, "krbtgt/\(credential.realm)")
                ?? KerberosError(.failed, Self.text(of: UInt32(bitPattern: code)))
        }
    }

    /// Whether the KDC has judged the password or the keys, so that they must not be sent again.
    var isRejection: Bool {
        switch code {
        case .wrongPassword, .passwordExpired, .locked, .unknownPrincipal: true
        default: false
        }
    }

    /// Whether it means that no ticket for the service is available here: no server has rejected anything, and nothing
    /// on this machine is faulty. Only then may another scheme answer instead.
    package var meansNoTicket: Bool {
        switch code {
        case .noLibrary, .noTicket, .ticketExpired, .unknownService, .unreachableKDC, .timedOut: true
        case .wrongPassword, .passwordExpired, .locked, .unknownPrincipal, .blocked, .keytab, .cache,
            .clockSkew, .configuration, .encryptionType, .wrongServiceKey, .malformed, .refused, .overloaded, .failed:
            false
        }
    }

    private static func known(_ code: Int32, _ service: String) -> KerberosError? {
        switch code {
        case Int32(KRB5KRB_AP_ERR_TKT_EXPIRED):
            .ticketExpired
        case Int32(KRB5_FCC_NOFILE), Int32(KRB5_CC_NOTFOUND), csn_KG_EMPTY_CCACHE:
            .noTicket
        case Int32(KRB5KRB_AP_ERR_SKEW), Int32(KRB5_KDCREP_SKEW), Int32(KRB5KRB_AP_ERR_TKT_NYV):
            KerberosError(
                .clockSkew, "the clock of this machine differs too much from that of the KDC or the server",
                hint: "set the clock")
        case Int32(KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN), Int32(KRB5_ERR_HOST_REALM_UNKNOWN):
            KerberosError(
                .unknownService, "the KDC does not know the service \(service)",
                hint: "write spn= in the site's line if the service has another name")
        case Int32(KRB5_KDC_UNREACH):
            KerberosError(
                .unreachableKDC, "no KDC responds", hint: "check the network, the VPN, and the KDCs in krb5.conf")
        case Int32(KRB5_REALM_UNKNOWN), Int32(KRB5_REALM_CANT_RESOLVE):
            KerberosError(
                .unreachableKDC, "no KDC is known for the realm",
                hint: "name one in krb5.conf, or in the realm's DNS")
        case Int32(KRB5_CONFIG_BADFORMAT):
            KerberosError(
                .configuration, "\(configurationFiles) has a syntax error",
                hint: "correct it, or a file that it includes")
        case Int32(KRB5_CONFIG_CANTOPEN):
            KerberosError(.configuration, "\(configurationFiles) cannot be read", hint: "check its permissions")
        case Int32(KRB5KDC_ERR_ETYPE_NOSUPP), Int32(KRB5_PROG_ETYPE_NOSUPP), Int32(KRB5_CONFIG_ETYPE_NOSUPP),
            Int32(KRB5_CC_NOT_KTYPE):
            KerberosError(
                .encryptionType, "the KDC, the server and this machine have no encryption type in common",
                hint: "compare permitted_enctypes in krb5.conf with the keys of the service")
        case Int32(KRB5KRB_AP_ERR_NOT_US), Int32(KRB5KRB_AP_ERR_MODIFIED), Int32(KRB5KRB_AP_ERR_BAD_INTEGRITY),
            Int32(KRB5KRB_AP_ERR_BADKEYVER):
            KerberosError(
                .wrongServiceKey, "the server cannot decrypt the ticket, because its key for \(service) does not fit",
                hint: "the server's administrator must renew its keytab")
        default:
            nil
        }
    }

    /// The paths from which the library reads its configuration.
    private static var configurationFiles: String {
        getenv("KRB5_CONFIG").map { String(cString: $0) } ?? "/etc/krb5.conf"
    }

    /// The library's own sentence.
    static func text(of minor: OM_uint32) -> String {
        var buffer = gss_buffer_desc()
        guard csn_gss_error(csn_gss_describe(minor, &buffer)) == 0 else {
            return "Kerberos failed with status \(minor)"
        }
        defer { csn_gss_release(&buffer) }
        return "Kerberos: \(String(decoding: buffer.bytes, as: UTF8.self))"
    }
}

extension gss_buffer_desc {
    /// A copy of the content.
    var bytes: [UInt8] { Array(UnsafeRawBufferPointer(start: value, count: length)) }
}
