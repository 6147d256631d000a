// SPDX-License-Identifier: Apache-2.0

import CountersignVault

/// The effects of installing a configuration profile. Show them to the person.
public struct ConfigurationProfilePlan: Sendable {
    /// A step of the installation.
    public struct Step: Equatable, Sendable {
        /// The kind of step. Later versions may add kinds, so include a `default` in a `switch`.
        public enum Kind: Hashable, Sendable {
            /// A CA certificate is trusted for all listed sites, or is trusted already.
            case anchor
            /// A client certificate with its key is stored, or exists already.
            case identity
            /// A client certificate is requested from an EST service.
            case enrollment
            /// The payload would have an effect, but cannot be installed.
            case refused
            /// The payload has no effect here.
            case skipped
        }

        /// The kind of step.
        public let kind: Kind
        /// A sentence for display, with the reason of a refusal. It contains the profile's own texts unchanged.
        public let text: String
    }

    let plan: ProfilePlan

    init(_ plan: ProfilePlan) { self.plan = plan }

    /// Identifies the profile: a later version replaces an installed one with the same identifier.
    public var identifier: String { plan.read.profile.identifier }

    /// The profile's name for display.
    public var name: String { plan.read.profile.name }

    /// Who has made the profile, as it says itself; nil if it does not.
    public var organization: String? { plan.read.profile.organization }

    /// The signers of the profile, one sentence each; one sentence if it is unsigned.
    public var signatures: [String] { plan.read.signatures }

    /// Whether the profile is signed, and all signers are trusted here.
    public var isTrusted: Bool { plan.read.isTrusted }

    /// In the order of the profile.
    public var steps: [Step] {
        zip(plan.items, plan.itemRows).map { item, row in
            let kind: Step.Kind =
                switch item.step {
                case .anchor: .anchor
                case .identity: .identity
                case .enrollment: .enrollment
                case .refused: .refused
                case .skipped: .skipped
                }
            return Step(kind: kind, text: row.value)
        }
    }

    /// The installed version that is replaced; nil without one.
    public var replaced: InstalledConfigurationProfile? { plan.former.map { InstalledConfigurationProfile($0) } }
}

/// An installed configuration profile.
public struct InstalledConfigurationProfile: Equatable, Sendable {
    /// Identifies the profile.
    public let identifier: String
    /// The profile's name for display.
    public let name: String
    /// Who has made the profile, as it says itself; nil if it does not.
    public let organization: String?
    /// When it was installed, in seconds since 1970.
    public let installed: Int64
    /// A sentence about its signer, or that it is unsigned.
    public let signature: String
    /// Whether its signer was trusted when it was installed.
    public let isTrusted: Bool
    /// The name of the sign-in that has installed it; nil if a person or a program has installed it.
    public let signIn: String?
    /// The files that it has added to the home's trust anchors, such as `Certs/anchors/corp.pem`.
    public let anchorFiles: [String]
    /// The names of the identities that it has installed, without those that existed before.
    public let identities: [String]
    /// The name of the identity that it enrols over EST; nil if it has no enrolment.
    public let enrolledIdentity: String?

    init(_ record: ProfileRecord) {
        identifier = record.identifier
        name = record.name
        organization = record.organization.isEmpty ? nil : record.organization
        installed = record.installed
        signature = record.signatureText
        isTrusted = record.signer?.isTrusted ?? false
        signIn = record.owner?.signIn
        anchorFiles = record.anchors.compactMap(\.file)
        identities = record.identities.filter(\.isBrought).map(\.name)
        enrolledIdentity = record.enrollment?.name
    }
}

/// The result of ``ConfigurationProfiles/remove(_:)``.
public struct RemovedConfigurationProfile: Equatable, Sendable {
    /// The profile's name for display.
    public let name: String
    /// The files that were removed from the home's trust anchors.
    public let anchorFiles: [String]
    /// The names of the identities that were removed.
    public let identities: [String]
    /// Sentences about the items that stay, because something else needs them.
    public let kept: [String]

    init(_ removed: RemovedProfile) {
        name = removed.name
        anchorFiles = removed.anchors
        identities = removed.identities
        kept = removed.kept
    }
}
