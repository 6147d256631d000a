// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignSitePolicy
import Glibc

/// An error for display to the user: the fault and its remedy. Neither ends in a full stop or contains a secret.
package struct Diagnostic: Equatable, Sendable, Codable {
    package let message: String
    package let hint: String?

    package init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    package init(_ remark: SiteRemark) {
        self.init(remark.message, hint: remark.hint)
    }

    /// The diagnostics for `error`, one for each fault that it describes.
    package static func all(in error: any Error) -> [Diagnostic] {
        switch error {
        case let error as ServerRefusal: error.diagnostics
        case let error as SiteListError: error.problems.map { Diagnostic($0.description, hint: $0.hint) }
        case let error as any DiagnosableError: [Diagnostic(error.detail, hint: error.hint)]
        default: [Diagnostic(String(describing: error))]
        }
    }
}

/// A running server's reasons for a failed operation.
package struct ServerRefusal: Error {
    package let diagnostics: [Diagnostic]

    package init(diagnostics: [Diagnostic]) {
        self.diagnostics = diagnostics
    }
}
