// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignEnrollment
import Glibc
import NIOCore
import CountersignProxy
import CountersignSitePolicy
import CountersignVault

/// An error as a person is told of it: what is wrong, and what to do about it. Neither ends in a full stop or has a secret.
package struct Complaint: Equatable, Sendable {
    package let message: String
    package let hint: String?

    package init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    /// What `error` has to say, one complaint for each fault that it found.
    package static func all(in error: any Error) -> [Complaint] {
        switch error {
        case let error as SiteListError: error.problems.map { Complaint($0.description, hint: $0.hint) }
        case let error as VaultError: [Complaint(error.detail, hint: error.hint)]
        case let error as CountersignError: [Complaint(error.detail, hint: error.hint)]
        case let error as CertificateError: [Complaint(error.detail)]
        case let error as EnrollmentError: [Complaint(error.detail, hint: error.hint)]
        case let error as CredentialRefused:
            [
                Complaint(
                    "\(error.server) refused the credential \"\(error.name)\": \(error.reason)",
                    hint: "it is not tried again until it changes: `countersign credential set \(error.name) --user …`")
            ]
        case let error as HostNameError: [Complaint(error.detail)]
        case let error as AccessLogError: [Complaint(error.detail)]
        case let error as IOError: [Complaint(String(cString: strerror(error.errnoCode)))]
        default: [Complaint(String(describing: error))]
        }
    }
}
