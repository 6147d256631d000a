// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault

/// `countersign profile`.
struct ProfileCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "profile",
        abstract: "Install, list, show or remove configuration profiles.",
        discussion: """
            A configuration profile is an XML property list, plain or in signed CMS, as Apple's devices get them \
            (.mobileconfig). Its CA certificates become trust anchors, its PKCS#12 files client identities, and a payload \
            of the type "countersign.est" enrols a certificate over EST. Other payloads are named and skipped; SCEP, \
            ACME and MDM are refused. Documentation/DeviceManagement.md describes them.
            """,
        subcommands: [ProfileInstallCommand.self, List.self, ProfileShowCommand.self, Remove.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the installed configuration profiles.",
            discussion: """
                EXAMPLES:
                  countersign profile list
                  countersign profile list --json | jq -r '.[].identifier'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            let profiles = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListProfiles())
            if output.json { return try Console.result(json: profiles.map(InstalledProfile.init)) }
            if profiles.isEmpty {
                ListOptions.empty(
                    "no profile is installed", in: home, hint: "`countersign profile install FILE` installs one")
            }
            output.show(
                ["IDENTIFIER", "NAME", "INSTALLED", "SIGNATURE", "SIGN-IN"],
                profiles.map { profile in
                    [
                        profile.identifier, Console.printable(profile.name), Day.text(profile.installed),
                        Console.printable(profile.signatureText), profile.owner?.signIn ?? "-",
                    ]
                })
        }
    }

    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Remove a configuration profile with what it has brought.",
            discussion: """
                Trust anchors and identities that were there before stay, and so does what another profile contains or \
                an enrolment uses. If the command is interrupted, the next one completes it.

                EXAMPLES:
                  countersign profile remove example.corp.vpn
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The profile's identifier, or its name.", valueName: "name"))
        var name: String

        func run() throws {
            let home = try homeOption.located()
            let session = try VaultAccess(home: home, secrets: secrets.input).session()
            let profile = try session.profile(named: name)
            guard let removed = try session.perform(RemoveProfile(identifier: profile.identifier)).done else {
                throw session.unknownProfile(name, among: [])
            }
            Self.report(removed)
            session.refreshServer()
        }

        static func report(_ removed: RemovedProfile) {
            Console.result("profile \"\(Console.printable(removed.name))\" removed\n")
            for file in removed.anchors { Console.result("  \(file)\n") }
            for name in removed.identities { Console.result("  identity \"\(name)\"\n") }
            for sentence in removed.kept { Console.log("info", sentence) }
        }
    }
}

extension VaultSession {
    /// The installed profile with that identifier, or the only one with that name.
    func profile(named name: String) throws -> ProfileRecord {
        let known = try perform(ListProfiles())
        if let found = known.first(where: { $0.identifier == name }) { return found }
        let found = known.filter { $0.name == name }
        guard let only = found.first else { throw unknownProfile(name, among: known) }
        guard found.count == 1 else {
            throw CountersignError.unknown(
                "several profiles are named \(name.debugDescription)", known: found.map(\.identifier),
                addedBy: "profile install FILE")
        }
        return only
    }

    func unknownProfile(_ name: String, among known: [ProfileRecord]) -> CountersignError {
        .unknown("profile", name, known: known.map(\.identifier), addedBy: "profile install FILE")
    }
}

/// An installed profile as JSON.
struct InstalledProfile: Encodable {
    let identifier: String
    let name: String
    let organization: String?
    let installed: String
    let signer: SignerRow?
    /// The sign-in that has installed it.
    let signIn: String?
    let anchors: [AnchorRow]
    let identities: [IdentityRow]
    let enrollment: EnrollmentRow?

    struct SignerRow: Encodable {
        let subject: String
        let fingerprint: String
        let trusted: Bool
    }

    struct AnchorRow: Encodable {
        let fingerprint: String
        /// Nil if it was an anchor before.
        let file: String?
    }

    struct IdentityRow: Encodable {
        let name: String
        let fingerprint: String
        /// False if it was there before.
        let brought: Bool
    }

    struct EnrollmentRow: Encodable {
        let name: String
        let server: String
    }

    init(_ record: ProfileRecord) {
        identifier = record.identifier
        name = record.name
        organization = record.organization.isEmpty ? nil : record.organization
        installed = WallClock.rfc3339(record.installed)
        signer = record.signer.map {
            SignerRow(subject: $0.subject, fingerprint: CertificateFingerprint.text($0.sha256), trusted: $0.isTrusted)
        }
        signIn = record.owner?.signIn
        anchors = record.anchors.map {
            AnchorRow(fingerprint: CertificateFingerprint.text($0.sha256), file: $0.file)
        }
        identities = record.identities.map {
            IdentityRow(
                name: $0.name, fingerprint: CertificateFingerprint.text($0.leafSHA256), brought: $0.isBrought)
        }
        enrollment = record.enrollment.map { EnrollmentRow(name: $0.name, server: $0.server) }
    }
}
