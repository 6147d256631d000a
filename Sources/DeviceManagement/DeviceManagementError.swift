// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Why a request of device management cannot be carried out. Never contains a token or a parameter's value.
package struct DeviceManagementError: CodedError {
    package enum Code: Equatable, Sendable {
        /// A special URL, or a header, does not have the required form.
        case malformed
        /// A page to load is not https, or not on the profile's hosts.
        case foreignPage
        /// The provider wants this device to be registered with it.
        case deviceRegistrationRequired
        /// The provider wants a registration with stronger protection, such as a key in a TPM.
        case strongerRegistrationRequired
        /// The provider wants its broker, or its app for device management, which this machine does not have.
        case brokerRequired
        /// The device does not comply with the organisation's policy.
        case notCompliant
        /// The provider offers a page that helps to find out why enrolment failed.
        case troubleshootingRequired
        /// The enrolment that the provider started has not succeeded.
        case enrollmentFailed
        /// No token of the broker could be obtained.
        case brokerToken
    }

    package let code: Code
    package let detail: String
    package let hint: String?

    package init(_ code: Code, _ detail: String, hint: String? = nil) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }
}
