// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault

/// `countersign profile show`.
struct ProfileShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show an installed configuration profile, or what a file would do.",
        discussion: """
            A file is not installed, and its passwords are not asked for.

            EXAMPLES:
              countersign profile show example.corp.vpn
              countersign profile show corp.mobileconfig
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @OptionGroup var output: JSONOption

    @Argument(help: ArgumentHelp("The identifier or name of an installed profile, or a file.", valueName: "name"))
    var name: String

    func run() throws {
        try ProfileInstallCommand.checkIsFile(name)
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        if HomeFile(path: name).isRegular,
            try !session.perform(ListProfiles()).contains(where: { $0.identifier == name })
        {
            return try show(file: name, home, session)
        }
        let record = try session.profile(named: name)
        if output.json { return try Console.result(json: InstalledProfile(record)) }
        Console.result(ProfileInstaller.text(Self.rows(record)))
    }

    private func show(file: String, _ home: Home, _ session: VaultSession) throws {
        let document = try HomeFile(path: file).read(upTo: ReadProfile.maximumBytes)
        let read = try ProfileInstallCommand.read(document, from: file, home)
        let plan = ProfilePlan(read, in: try session.profileSurroundings(of: home)) {
            _ throws(CountersignError) in
            throw CountersignError(
                .environment, "its password is needed; `countersign profile install FILE` asks for it")
        }
        if output.json { return try Console.result(json: PlannedProfile(plan)) }
        Console.result(ProfileInstaller.text(plan))
    }

    private static func rows(_ record: ProfileRecord) -> [ProfileRow] {
        var rows: [ProfileRow] = [("profile", record.name), ("identifier", record.identifier)]
        if !record.organization.isEmpty { rows.append(("organization", record.organization)) }
        rows.append(("signature", record.signatureText))
        if let signer = record.signer { rows.append(("signer", CertificateFingerprint.text(signer.sha256))) }
        rows.append(("installed", WallClock.rfc3339(record.installed)))
        if let owner = record.owner { rows.append(("sign-in", owner.signIn)) }
        for anchor in record.anchors {
            let place = anchor.file ?? "which was trusted before"
            rows.append(("anchor", "\(CertificateFingerprint.text(anchor.sha256)), \(place)"))
        }
        for identity in record.identities {
            rows.append(("identity", "\"\(identity.name)\"\(identity.isBrought ? "" : ", which was there before")"))
        }
        if let enrollment = record.enrollment {
            rows.append(("enrolment", "identity \"\(enrollment.name)\" from \(enrollment.server)"))
        }
        return rows
    }

    /// The effects of a profile's file, as JSON.
    private struct PlannedProfile: Encodable {
        let identifier: String
        let name: String
        let signatures: [String]
        let trusted: Bool
        let steps: [Step]

        struct Step: Encodable {
            let kind: String
            let text: String
        }

        init(_ plan: ProfilePlan) {
            identifier = plan.read.profile.identifier
            name = plan.read.profile.name
            signatures = plan.read.signatures
            trusted = plan.read.isTrusted
            steps = plan.itemRows.map { Step(kind: $0.key, text: $0.value) }
        }
    }
}
