// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a setting about parent proxies, a script's result or a parent's reply cannot be used. Never contains a user name
/// or a password.
package struct ParentsError: CodedError {
    package enum Code: Equatable, Sendable {
        /// The configuration's fault: the text of a setting does not match its grammar.
        case malformedSetting
        /// The configuration's fault: a setting contains a user name or a password.
        case userInfo
        /// The configuration's fault: a kind of proxy that is not supported, such as SOCKS4.
        case unsupportedKind
        /// The configuration's fault: an element of `--no-proxy` that matches nothing.
        case malformedNoProxy
        /// The script's fault: a result that is not a list of proxies.
        case malformedResult
        /// The configuration's fault: the parent is this proxy.
        case loop
        /// No setting or script permits any next hop.
        case noHop
        /// The parent's fault: a reply that the protocol does not permit.
        case malformedReply
        /// The parent wants an authentication that is not available, or rejects the credential.
        case notAuthenticated
        /// The parent does not open the connection.
        case refused
    }

    package let code: Code
    /// Begins with the setting or the parent at fault.
    package let detail: String
    package let hint: String?
    /// The status of an HTTP response that is incomplete or refused, if it was read.
    package let status: Int?

    package init(_ code: Code, _ detail: String, hint: String? = nil, status: Int? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
        self.status = status
    }
}
