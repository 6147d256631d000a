// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignHome
import CountersignVault
import Glibc

/// `countersign profile install`.
struct ProfileInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Install a configuration profile.",
        discussion: """
            Shows who has signed the profile and what it would do, and asks. Then installs all of it, or, if that fails \
            or is interrupted, nothing. A profile with the same identifier is replaced; identities and trust anchors of \
            others are not.

            If a payload cannot be installed, none is, unless --skip-refused is given. The signature is verified with \
            the system's trust anchors and those in Certs/anchors. A profile that is not signed, or whose signer is not \
            trusted, can be installed if you agree; one that was altered after it was signed cannot.

            With --password-stdin, standard input contains the vault's passphrase, if it has one, then the passwords of \
            the profile's identities that need one; one per line.

            EXAMPLES:
              countersign profile install corp.mobileconfig
              countersign profile install corp.mobileconfig --yes
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption

    @Argument(help: ArgumentHelp("The profile, an XML property list or signed CMS.", valueName: "file"))
    var file: String

    @Flag(help: "Do what the profile says without a prompt.")
    var yes = false

    @Flag(help: "Leave out the payloads that cannot be installed.")
    var skipRefused = false

    func run() throws {
        try Self.checkIsFile(file)
        let document = try HomeFile(path: file).read(upTo: ReadProfile.maximumBytes)
        let home = try homeOption.locatedOrNew()
        let access = VaultAccess(home: home, secrets: secrets.input)
        let read = try Self.read(document, from: file, home)
        try Confirmation(isGiven: yes).check()
        let session = try access.session(creates: true)
        let installer = ProfileInstaller(session: session, home: home)
        let plan = try installer.plan(read) { name throws(CountersignError) in
            do {
                return try secrets.input.read("the password of the identity \(PrintableText.quote(name))")
            } catch let error as CountersignError {
                throw CountersignError(error.code, "it needs its password: \(error.detail)", hint: error.hint)
            } catch {
                throw CountersignError(.environment, "it needs its password")
            }
        }
        let sentence = try installer.install(plan, isAgreed: yes, skipsRefused: skipRefused, owner: nil)
        Console.result("\(sentence)\n")
    }

    /// Throws for a URL. A profile that a page delivers is installed in its sign-in.
    static func checkIsFile(_ place: String) throws(CountersignError) {
        guard place.contains("://") else { return }
        throw CountersignError(
            .configuration, "\(Console.printable(place)) is a URL, and a profile is read from a file",
            hint:
                "download the profile first, or enrol with `countersign enroll PROFILE` if a page of your organisation delivers it"
        )
    }

    static func read(_ document: [UInt8], from file: String, _ home: Home) throws -> ReadProfile {
        do {
            return try home.readProfile(document, at: Int64(time(nil)))
        } catch let error as CountersignError {
            throw CountersignError(error.code, "\(file): \(error.detail)", hint: error.hint)
        }
    }
}

/// Shows a profile to the person, asks, and installs it.
struct ProfileInstaller {
    let session: VaultSession
    let home: Home

    /// The effects of installing it.
    func plan(
        _ read: ReadProfile, password: (String) throws(CountersignError) -> Secret
    ) throws -> ProfilePlan {
        ProfilePlan(read, in: try session.profileSurroundings(of: home), password: password)
    }

    /// Throws if the person does not agree, or nothing can be installed. Returns a sentence about the result. `ask`
    /// asks the person.
    func install(
        _ plan: ProfilePlan, isAgreed: Bool, skipsRefused: Bool, owner: ProfileRecord.Owner?,
        ask: ((String) throws -> Bool)? = nil
    ) throws -> String {
        let text = Self.text(plan)
        let (new, keys): (NewProfile, Secret?)
        do {
            (new, keys) = try plan.new(skipsRefused: skipsRefused, owner: owner)
        } catch {
            Console.write(text, to: STDERR_FILENO)
            guard !plan.refusals.isEmpty, !skipsRefused, !plan.isEmpty, let error = error as? CountersignError else {
                throw error
            }
            throw CountersignError(
                error.code, error.detail,
                hint: "ask for a profile without it, or pass --skip-refused to install the rest")
        }
        let ask = ask ?? { try Confirmation(isGiven: isAgreed).asks("\($0)Install the profile?") }
        guard try ask(text) else {
            throw CountersignError(.refused, "nothing was done")
        }
        if isAgreed { Console.write(text, to: STDERR_FILENO) }
        let outcome = try session.perform(
            InstallProfile(new), secret: keys,
            OperationDialogue { progress in
                if case .asking(let server) = progress {
                    Console.log("info", "asking \(server) for the certificate")
                }
                if progress == .waitingForOtherProcess { Console.log("info", "waiting for another process") }
                if let warning = progress.warning { Console.warning(warning) }
            })
        session.refreshServer()
        var sentence = "profile \"\(Console.printable(new.record.name))\" installed"
        if let name = new.record.enrollment?.name {
            switch outcome {
            case .renewed: sentence += ", identity \"\(name)\" enrolled"
            case .pending(let until):
                sentence +=
                    ", the certificate of identity \"\(name)\" is requested, next request "
                    + WallClock.rfc3339(until)
            case nil: break
            }
        }
        return sentence
    }

    /// The profile and its effects, one line each.
    static func text(_ plan: ProfilePlan) -> String { text(plan.rows) }

    static func text(_ rows: [ProfileRow]) -> String {
        let width = rows.map(\.key.count).max() ?? 0
        return rows.map { key, value in
            "  \(key)\(String(repeating: " ", count: width - key.count))  \(Console.printable(value))\n"
        }.joined()
    }
}

extension VaultSession {
    /// The content of the home before the installation of a profile.
    func profileSurroundings(of home: Home) throws -> ProfilePlan.Surroundings {
        try ProfilePlan.Surroundings(of: home, at: Int64(time(nil)), in: self)
    }
}
