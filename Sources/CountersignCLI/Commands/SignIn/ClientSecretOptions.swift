// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignSignIn

/// `--client-secret-stdin` and `--client-secret-from`: the secret of a client that has one. It is never an argument.
struct ClientSecretOptions: ParsableArguments {
    @Flag(
        help: """
            Read secrets from standard input, one per line: the vault's passphrase, if it has one, then the client's \
            secret at the provider. (default: the one that is stored with the sign-in, else prompt on the terminal)
            """)
    var clientSecretStdin = false

    @Option(
        help: ArgumentHelp(
            "Get the client's secret from the first line that a program writes. No shell: an absolute path and its "
                + "arguments, divided by spaces.", valueName: "exec:program"))
    var clientSecretFrom: String?

    func validate() throws {
        guard let source = clientSecretFrom else { return }
        guard !clientSecretStdin else {
            throw ValidationError("--client-secret-from and --client-secret-stdin exclude each other")
        }
        guard ProgramSecret.isSource(source) else {
            throw ValidationError(
                "--client-secret-from must be exec: and the absolute path of a program, such as "
                    + "exec:/usr/bin/pass show work; a secret itself must not be an argument")
        }
    }

    var isGiven: Bool { clientSecretStdin || clientSecretFrom != nil }

    /// The input of the command's secrets.
    func input(besides secrets: SecretOption) -> SecretInput {
        clientSecretStdin ? SecretInput(isStandardInput: true, flag: "--client-secret-stdin") : secrets.input
    }

    /// Throws if a secret is given for a profile that has none.
    func check(_ plan: SignInPlan) throws {
        let method = plan.profile.clientAuthentication
        guard isGiven, !method.needsSecret || plan.profile.usesBroker || method == .grantKey else { return }
        throw CountersignError(
            .configuration, "a client secret is given, and the client of \(plan.source) has none",
            hint: "leave the option out, or ask for a profile with \"token_endpoint_auth_method\"")
    }

    /// Gives the plan's client its key, or its secret, if it needs one: the given one, else that of the sign-in
    /// `former` if it is for the same client. Returns whether it is the stored one.
    func authenticate(
        _ plan: inout SignInPlan, _ former: ListedSignIn?, in vault: VaultSession, _ input: SecretInput
    ) throws -> Bool {
        guard !plan.profile.usesBroker else { return false }
        if plan.profile.clientIdentity != nil || plan.profile.usesDPoP && plan.demand != nil {
            try vault.operations().authenticate(&plan)
        }
        // `GrantOptions` gives it its key.
        guard plan.profile.clientAuthentication != .grantKey else { return false }
        guard plan.profile.clientAuthentication.needsSecret else { return false }
        if let source = clientSecretFrom {
            let program = ProgramSecret(ProgramSecret.words(source), what: "the client secret")
            try plan.authenticate(with: try program.read())
            return false
        }
        if !clientSecretStdin, former?.hasClientSecret == true,
            let stored = try vault.operations().clientSecret(of: plan)
        {
            try plan.authenticate(with: stored)
            return true
        }
        let client = PrintableClient.name(plan)
        do {
            try plan.authenticate(with: try input.read("the secret of the client \(client)"))
        } catch let error as CountersignError where error.code == .environment {
            throw CountersignError(
                .environment, error.detail,
                hint: "pass it with --client-secret-stdin, or --client-secret-from 'exec:/path/of/a/program'")
        }
        return false
    }
}

private enum PrintableClient {
    static func name(_ plan: SignInPlan) -> String {
        "\(Console.printable(plan.profile.request.client.identifier)) at \(plan.profile.issuer)"
    }
}
