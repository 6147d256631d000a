// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignOAuth
import CountersignSignIn

/// `--key`, and what the profiles need that are built in for machines: gcp and github-app.
struct GrantOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The private key of a machine: the JSON file of gcp, or PEM. It is read once, and kept in the vault.",
            valueName: "file"))
    var key: String?

    @Option(help: ArgumentHelp("The number of the installation, for github-app.", valueName: "number"))
    var installation: String?

    @Option(
        help: ArgumentHelp(
            "The API of a GitHub Enterprise Server, for github-app. (default: https://api.github.com)", valueName: "url"
        ))
    var api: String?

    @Option(
        help: ArgumentHelp(
            "Limit the token to this repository, for github-app. May be repeated.", valueName: "name"))
    var repository: [String] = []

    @Option(
        help: ArgumentHelp(
            "Limit the token to this permission, for github-app. May be repeated.", valueName: "name=level"))
    var permission: [String] = []

    @Option(help: ArgumentHelp("The person in whose name the service account acts, for gcp.", valueName: "user"))
    var subject: String?

    private var isForApp: Bool { installation != nil || api != nil || !repository.isEmpty || !permission.isEmpty }

    /// The profile that is built in under the name `argument`, or under that of the source of the sign-in `again`, and
    /// its source; nil for another. Throws for options that it does not have.
    func read(_ argument: String, _ again: ListedSignIn?, client: String?) throws -> (SignInProfile, String)? {
        let place = again?.source ?? argument
        let machine = NamedMachine(rawValue: place)
        if isForApp, machine != .githubApp { throw Self.misplaced("--installation and its like", .githubApp, place) }
        if subject != nil, machine != .gcp { throw Self.misplaced("--subject", .gcp, place) }
        guard let machine else { return nil }
        let text: String
        switch machine {
        case .gcp:
            guard client == nil else { throw Self.misplaced("--client-id", .githubApp, place) }
            if key == nil, subject == nil, let stored = again?.profileText {
                text = stored
            } else {
                text = NamedMachine.gcp(try serviceAccount(), subject: subject)
            }
        case .githubApp:
            if client == nil, !isForApp, let stored = again?.profileText {
                text = stored
            } else {
                text = try app(client)
            }
        }
        return (try SignInProfile.parsed(Array(text.utf8), from: place), place)
    }

    private func serviceAccount() throws -> ServiceAccountKey {
        guard let key else {
            throw CountersignError(
                .configuration, "gcp needs the JSON file with the key of a service account, as --key",
                hint: "create one at https://console.cloud.google.com/iam-admin/serviceaccounts; ./gcp would be a file")
        }
        var bytes = try HomeFile(path: key).read(upTo: GrantKey.maximumBytes)
        defer { bytes.wipe() }
        return try ServiceAccountKey(bytes)
    }

    private func app(_ client: String?) throws -> String {
        guard let client, let installation else {
            throw CountersignError(
                .configuration, "github-app needs the client ID of your GitHub App as --client-id, and --installation",
                hint:
                    "the app's settings show the ID; the number is at the end of the address of its installation's page"
            )
        }
        return try NamedMachine.githubApp(
            client: client, installation: installation, api: api ?? "https://api.github.com", repositories: repository,
            permissions: permission)
    }

    private static func misplaced(_ option: String, _ machine: NamedMachine, _ place: String) -> CountersignError {
        CountersignError(
            .configuration, "\(option) is for the profile \(machine.rawValue), and \(place) is another",
            hint: "leave it out")
    }

    // MARK: The key

    /// Throws if a key is given for a profile whose client does not sign.
    func check(_ plan: SignInPlan) throws {
        guard key != nil, plan.profile.clientAuthentication != .grantKey else { return }
        throw CountersignError(
            .configuration, "--key is for machines that sign with a key of their own, and \(plan.source) has none",
            hint: "leave --key out; a client with \"private_key_jwt\" has the key of an identity")
    }

    /// Gives the plan's client its key, if it signs with one: the given one, else that of the stored sign-in if it is
    /// for the same client.
    func authenticate(_ plan: inout SignInPlan, in vault: VaultSession) throws {
        guard plan.profile.clientAuthentication == .grantKey else { return }
        if let key {
            try plan.authenticate(with: try Self.secret(key))
        } else if let stored = try vault.operations().clientSecret(of: plan) {
            try plan.authenticate(with: stored)
        } else {
            let client = Console.printable(plan.profile.request.client.identifier)
            throw CountersignError(
                .configuration, "the private key of \(client) is not stored",
                hint: "give its file with --key; the vault keeps the key, and the file is not read again")
        }
    }

    private static func secret(_ path: String) throws -> Secret {
        var bytes = try HomeFile(path: path).read(upTo: GrantKey.maximumBytes)
        return Secret(wiping: &bytes)
    }
}
