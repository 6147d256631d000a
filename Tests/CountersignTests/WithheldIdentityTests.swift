// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import CountersignCryptography
import CountersignVault
import Testing

@testable import Countersign

/// Which identities answer no challenge while the device does not comply.
@Suite(.waiting) struct WithheldIdentityTests {
    private static func contents(isCompliant: Bool) throws -> VaultContents {
        var contents = VaultContents()
        for name in ["work", "home"] {
            try contents.setSignIn(
                SignInRecord(
                    name: name, profile: "{}", source: "", issuer: "https://id.example", subject: "", account: "",
                    scope: "", sites: [], refreshToken: nil, identityToken: nil, signedIn: 1, expires: 0),
                accessToken: Secret(utf8: "t"))
        }
        try contents.setCompliance(
            ComplianceRecord(
                name: "work", homeAccount: "", status: isCompliant ? 0 : 1, title: isCompliant ? "" : "No screen lock",
                message: isCompliant ? "" : "Switch it on.", checked: 1))
        try contents.setProfile(profile("com.corp.vpn", owner: "work", brought: "vpn", found: "own", enrolled: "wifi"))
        try contents.setProfile(profile("com.other.vpn", owner: "home", brought: "other", found: "own", enrolled: nil))
        return contents
    }

    private static func profile(
        _ identifier: String, owner: String, brought: String, found: String, enrolled: String?
    ) -> ProfileRecord {
        var record = ProfileRecord(
            identifier: identifier, name: "VPN", organization: "", signer: nil, installed: 1,
            owner: ProfileRecord.Owner(signIn: owner, isPending: false))
        let hash = [UInt8](repeating: 7, count: 32)
        record.identities = [
            ProfileRecord.ContainedIdentity(name: brought, leafSHA256: hash, isBrought: true),
            ProfileRecord.ContainedIdentity(name: found, leafSHA256: hash, isBrought: false),
        ]
        record.enrollment = enrolled.map { ProfileRecord.Enrollment(name: $0, server: "https://est.corp.example") }
        return record
    }

    @Test func thoseOfAnEnrolmentsProfilesAreWithheldWithIt() throws {
        let reasons = try Self.contents(isCompliant: false).withheldIdentities
        #expect(Set(reasons.keys) == ["vpn", "wifi"])
        #expect(reasons["vpn"]?.text.contains("does not comply with the policy of \"work\"") == true)
    }

    /// The reason is in a field of the response, and many clients read at most 8 KiB of them.
    @Test func theReasonIsShortWhateverTheServiceSays() throws {
        var record = ComplianceRecord(
            name: "work", homeAccount: "", status: 1, title: "No screen lock.", message: "Switch it on.",
            page: "https://mdm.example/comply", checked: 1)
        #expect(
            record.reason
                == "the device does not comply with the policy of \"work\": No screen lock. Switch it on. "
                + "To continue, open https://mdm.example/comply or run `countersign compliance remediate work`")
        record.message = "Switch it on"
        #expect(record.reason?.contains("Switch it on. To continue, ") == true)
        record.title = String(repeating: "ä", count: 256)
        record.message = String(repeating: "😀", count: 1000)
        record.page = "https://mdm.example/" + String(repeating: "a", count: 4000)
        let reason = try #require(record.reason)
        #expect(reason.utf8.count < 1500)
        #expect(reason.hasSuffix("... To continue, run `countersign compliance remediate work`"))
    }

    @Test func noneIsWithheldFromADeviceThatComplies() throws {
        #expect(try Self.contents(isCompliant: true).withheldIdentities.isEmpty)
    }
}
