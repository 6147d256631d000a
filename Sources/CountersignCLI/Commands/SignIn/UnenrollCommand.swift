// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome
import CountersignSignIn
import CountersignVault
import FoundationEssentials
import Glibc

/// `countersign unenroll`.
struct UnenrollCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unenroll",
        abstract: "Sign out, and remove what the profile of a sign-in has brought.",
        discussion: """
            Revokes the tokens at the provider (RFC 7009), and removes them, the profile's sites, the certificate that \
            the profile's EST service has issued, with its key and anchors, and the configuration profiles that the \
            sign-in has installed, from the home, even if the provider cannot be reached. If the command is interrupted, run it again. Your browser stays \
            signed in, if you have used it: if the provider has a page to sign out there, the command offers to open \
            it, or prints its address on a machine without a display or a terminal.

            EXAMPLES:
              countersign unenroll work
            """)

    @OptionGroup var homeOption: HomeOption
    @OptionGroup var secrets: SecretOption
    @Argument(help: ArgumentHelp("The sign-in's name. (default: the only one)", valueName: "name"))
    var name: String?

    @Flag(help: "Leave your browser signed in at the provider.")
    var noSignOut = false

    static func reportWaiting(_ progress: RenewalProgress, for name: String) {
        guard progress == .waitingForOtherProcess else { return }
        Console.log(
            "info",
            "another process is renewing the access token or the certificate of \(name.debugDescription): waiting for it"
        )
    }

    func run() throws {
        let home = try homeOption.located()
        let session = try VaultAccess(home: home, secrets: secrets.input).session()
        let name = try name ?? Self.only(session.perform(ListSignIns()))
        let result = try session.perform(
            RemoveSignIn(name: name), OperationDialogue(report: { Self.reportWaiting($0, for: name) }))
        switch result {
        case .unknown where session.completedWipes.contains(name):
            Console.result("signed out: \"\(name)\" removed\n")
        case .unknown(let known):
            throw CountersignError.unknown("sign-in", name, known: known, addedBy: "enroll PROFILE")
        case .done(let result):
            Console.result("signed out: \"\(name)\" removed\n")
            for profile in result.profiles ?? [] { ProfileCommand.Remove.report(profile) }
            if let warning = result.warning { Unrevoked.warn(warning) }
            if let page = result.page, !noSignOut { try signOut(at: page, result) }
        }
    }

    /// Opens the page in the browser of the sign-in if the person agrees, and otherwise prints its address.
    private func signOut(at page: String, _ result: SignedOut) throws {
        let environment = ProcessInfo.processInfo.environment
        let used = result.userAgent.flatMap(UserAgentKind.init)
        // These windows have taken their cookies with them.
        guard used != .systemPrivate, used != .embedded else { return }
        // An earlier version, or an app, may have used a window.
        let state = used == nil ? "your browser may still be signed in" : "your browser is still signed in"
        if used != .device, UserAgentKind.preferred(in: environment) == .system, Confirmation.hasTerminal {
            let sentence = state.prefix(1).uppercased() + state.dropFirst()
            let question = "\(sentence). Open the provider's page to sign out?"
            guard try Confirmation(isGiven: false).asks(question) else { return }
            do throws(SignInError) {
                return try SystemBrowser(environment: environment).open(page)
            } catch {
                Console.warning(error.detail, hint: error.hint)
            }
        }
        Console.log("info", "\(state); this page ends that:")
        Console.write("\(page)\n", to: STDERR_FILENO)
    }

    static func only(_ signIns: [ListedSignIn]) throws -> String {
        guard let first = signIns.first, signIns.count == 1 else {
            throw CountersignError.unknown(
                signIns.isEmpty ? "there is no sign-in" : "there are several sign-ins; name one",
                known: signIns.map(\.name), addedBy: "enroll PROFILE")
        }
        return first.name
    }
}
