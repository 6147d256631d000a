// SPDX-License-Identifier: Apache-2.0

package import CountersignCertificates
package import CountersignDeviceManagement
package import CountersignHome

/// A configuration profile's document, with its signature verified.
package struct ReadProfile: Sendable {
    package let profile: ConfigurationProfile
    /// Empty if the document is not signed.
    package let signers: [SignedMessage.Signer]

    /// The largest document that is read: a property list in its signature.
    package static let maximumBytes = 5 << 20

    /// Reads a property list in XML, plain or in CMS SignedData. `anchors` are the trust anchors for the signers'
    /// chains, `time` is in seconds since 1970. Throws `configuration` for anything else, and for a signature that does
    /// not fit the document.
    package init(_ document: [UInt8], anchors: TrustAnchors, at time: Int64) throws(CountersignError) {
        guard document.count <= Self.maximumBytes else {
            throw CountersignError(
                .configuration,
                "the profile has \(document.count) bytes, and at most \(Self.maximumBytes) are read")
        }
        let isSigned = SignedMessage.isSigned(document)
        guard isSigned || document.first != 0x30 else {
            throw CountersignError(
                .configuration, "the profile is neither XML nor signed XML", hint: Self.encrypted)
        }
        do {
            let message = isSigned ? try SignedMessage(document, anchors: anchors, at: time) : nil
            signers = message?.signers ?? []
            profile = try ConfigurationProfile(message?.content ?? document)
        } catch let error as CertificateError {
            let detail =
                error.code == .notPermitted
                ? error.detail : "the profile's signature cannot be read: \(error.detail)"
            throw CountersignError(.configuration, detail, hint: "ask for the profile again")
        } catch let error as DeviceManagementError {
            throw CountersignError(.configuration, error.detail, hint: error.hint)
        } catch {
            throw CountersignError(.configuration, "the profile cannot be read: \(error)")
        }
    }

    private static let encrypted = "if the profile is encrypted, ask for one that is only signed"

    /// Whether all signers are trusted here.
    package var isTrusted: Bool { !signers.isEmpty && signers.allSatisfy { $0.reason == nil } }
}

extension Home {
    /// Reads a configuration profile; its signers may be trusted by the system's anchors and by those in
    /// `Certs/anchors`.
    package func readProfile(_ document: [UInt8], at time: Int64) throws -> ReadProfile {
        let anchors = try TrustAnchors(system: true, additional: try anchors())
        return try ReadProfile(document, anchors: anchors, at: time)
    }
}
