// SPDX-License-Identifier: Apache-2.0

import CountersignOAuth

// Conditional access: a provider issues no token until the device applies the organisation's protection policy. The
// profile names a compliance service, which knows whether it does, and on which page a person can apply it.
//
//  - ComplianceService: the service as the profile describes it, and which pages it may have opened
//  - ComplianceRequest: one request to it, which registers, enrols and applies in one call, or asks about that again
//  - ComplianceReply: the reply, read with limits
//  - ComplianceRemediation: the dialogue from the first request to the outcome, a machine like those of OAuth
//  - ComplianceOutcome: a status, with texts for a person that are never missing
//
// Documentation/DeviceManagement.md describes the service for those who run one. Nothing here does I/O.

/// Whether a device complies, or why that is not known. The numbers are those that the Intune App SDK uses.
package enum ComplianceStatus: UInt8, CaseIterable, Sendable {
    /// The token can be requested again.
    case compliant = 0
    case notCompliant = 1
    /// The service answers, but not as it should.
    case serviceFailure = 2
    /// The service cannot be reached.
    case networkFailure = 3
    /// A person has to do something: remediate again, not silently.
    case interactionRequired = 4
    case userCancelled = 5

    /// As the library and the commands write it.
    package var name: String {
        switch self {
        case .compliant: "compliant"
        case .notCompliant: "notCompliant"
        case .serviceFailure: "serviceFailure"
        case .networkFailure: "networkFailure"
        case .interactionRequired: "interactionRequired"
        case .userCancelled: "userCancelled"
        }
    }

    /// The title for a person, if the service has sent none.
    package var title: String {
        switch self {
        case .compliant: "This device complies"
        case .notCompliant: "This device does not comply"
        case .serviceFailure: "The compliance service has failed"
        case .networkFailure: "The compliance service cannot be reached"
        case .interactionRequired: "You have something to do"
        case .userCancelled: "Cancelled"
        }
    }

    /// The message for a person, if the service has sent none.
    package var message: String {
        switch self {
        case .compliant: "The organisation's policy is applied."
        case .notCompliant: "The organisation's policy is not applied on this device."
        case .serviceFailure: "Try again later, or ask the organisation's help desk."
        case .networkFailure: "Check the connection and try again."
        case .interactionRequired: "Open the organisation's page and follow it."
        case .userCancelled: "The organisation's policy was not applied."
        }
    }
}

/// A requirement that the device does not meet.
package struct ComplianceRule: Equatable, Sendable {
    package let setting: String
    package let expected: String
    package let title: String
    package let description: String
    /// An https URL, for a person to open.
    package let moreInformation: String?
}

/// The end of a remediation.
package struct ComplianceOutcome: Equatable, Sendable {
    package let status: ComplianceStatus
    /// One line in the person's language; never empty.
    package let title: String
    /// In the person's language; never empty.
    package let message: String
    /// The page on which a person can make the device comply; nil if the service names none.
    package let page: EndpointURL?
    package let rules: [ComplianceRule]
    /// No protection policy is assigned to the account, so that it will never get a token.
    package let hasNoPolicy: Bool
    /// The program has to start again for the policy to take effect.
    package let restarts: Bool

    package init(
        _ status: ComplianceStatus, title: String? = nil, message: String? = nil, page: EndpointURL? = nil,
        rules: [ComplianceRule] = [], hasNoPolicy: Bool = false, restarts: Bool = false
    ) {
        self.status = status
        self.title = title ?? status.title
        self.message = message ?? status.message
        self.page = page
        self.rules = rules
        self.hasNoPolicy = hasNoPolicy
        self.restarts = restarts
    }
}
