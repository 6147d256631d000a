// SPDX-License-Identifier: Apache-2.0

/// Why a request has no response.
package struct ProviderFailure: Error, Sendable, Equatable {
    /// A sentence in lower case without a full stop, printable and without secrets.
    package let detail: String
    package let hint: String?
    /// There was no response within the time limit (RFC 8628 §3.5 wants slower polling then).
    package let timedOut: Bool
    /// A repetition may succeed. False for an untrusted certificate.
    package let isTransient: Bool

    package init(_ detail: String, hint: String? = nil, timedOut: Bool = false, isTransient: Bool = true) {
        self.detail = detail
        self.hint = hint
        self.timedOut = timedOut
        self.isTransient = isTransient
    }
}
