// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCryptography
import CountersignHome

extension TokenCommand {
    struct XOAuth2: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "xoauth2",
            abstract: "Print the initial response of XOAUTH2 for a mail server, in base64.",
            discussion: """
                For AUTHENTICATE in IMAP, AUTH in SMTP and POP. OAUTHBEARER is the standard for the same.

                EXAMPLES:
                  countersign token xoauth2 work --user jdoe@corp.example
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String
        @Option(help: ArgumentHelp("The mailbox.", valueName: "user"))
        var user: String

        func validate() throws { try SASLResponse.check(user: user) }

        func run() throws {
            let source = TokenSource(home: try homeOption.located(), secrets: secrets.input)
            let token = try source.token(of: name).accessToken
            Console.result(unchanged: SASLResponse.xoauth2(user: user, token: token) + "\n")
        }
    }

    struct OAuthBearer: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "oauthbearer",
            abstract: "Print the initial response of OAUTHBEARER for a mail server, in base64.",
            discussion: """
                RFC 7628, for AUTHENTICATE in IMAP, AUTH in SMTP and POP.

                EXAMPLES:
                  countersign token oauthbearer work --user jdoe@corp.example --host imap.corp.example --port 993
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The sign-in's name.", valueName: "name"))
        var name: String
        @Option(help: ArgumentHelp("The mailbox.", valueName: "user"))
        var user: String
        @Option(help: ArgumentHelp("The mail server's host.", valueName: "host"))
        var host: String
        @Option(help: ArgumentHelp("The mail server's port.", valueName: "port"))
        var port: UInt16

        func validate() throws {
            try SASLResponse.check(user: user)
            guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw ValidationError("--host \(host.debugDescription) is not a host")
            }
            guard port > 0 else { throw ValidationError("--port must be 1 to 65535") }
        }

        func run() throws {
            let source = TokenSource(home: try homeOption.located(), secrets: secrets.input)
            let token = try source.token(of: name).accessToken
            Console.result(
                unchanged: SASLResponse.oauthbearer(user: user, host: host, port: port, token: token) + "\n")
        }
    }
}

/// The initial client responses of SASL mechanisms with a bearer token, in base64.
enum SASLResponse {
    /// Throws for a user name that the responses cannot contain.
    static func check(user: String) throws {
        guard GitCredential.isValue(user) else {
            throw ValidationError("the user name is empty or has a control character")
        }
    }

    /// Google's and Microsoft's mechanism, which has no standard.
    static func xoauth2(user: String, token: String) -> String {
        encoded("user=\(user)\u{1}auth=Bearer \(token)\u{1}\u{1}")
    }

    /// RFC 7628 §3.1; the user name is a `saslname` (RFC 5801 §4).
    static func oauthbearer(user: String, host: String, port: UInt16, token: String) -> String {
        let name = user.replacing("=", with: "=3D").replacing(",", with: "=2C")
        return encoded("n,a=\(name),\u{1}host=\(host)\u{1}port=\(port)\u{1}auth=Bearer \(token)\u{1}\u{1}")
    }

    private static func encoded(_ text: String) -> String { Base64.encode(text.utf8) }
}
