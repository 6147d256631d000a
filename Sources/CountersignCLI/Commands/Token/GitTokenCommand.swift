// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignHome

extension TokenCommand {
    struct Git: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "git",
            abstract: "Give git the access token for a listed site: a credential helper.",
            discussion: """
                Answers if the list of sites gives the https site the access token of a sign-in, and you have \
                permitted to give it out. For all other sites, git asks its next helper, or you. git 2.46 and later \
                send the token as Bearer, earlier ones as the password of --user. `store` and `erase` do nothing.

                A link `git-credential-countersign` to this program in the PATH is the same command, which git finds \
                as the helper `countersign`.

                EXAMPLES:
                  git config --global credential.helper '!countersign token git'
                  git -c credential.helper='!countersign token git --user jdoe' fetch
                """)

        @OptionGroup var homeOption: HomeOption

        @Option(help: ArgumentHelp("Give out the token of this sign-in only. (default: any)", valueName: "name"))
        var name: String?

        @Option(
            help: ArgumentHelp(
                "The user name beside the token, if the URL has none. (default: oauth2)", valueName: "user"))
        var user: String?

        @Argument(help: ArgumentHelp("What git wants: get, store or erase.", valueName: "operation"))
        var operation: String

        func validate() throws {
            guard user.map(GitCredential.isValue) ?? true else {
                throw ValidationError("the user name is empty or has a control character")
            }
        }

        func run() throws {
            // Helpers ignore what they do not know (gitcredentials(7)).
            guard operation == "get" else { return }
            let asked = try GitCredential(try ProtocolInput.read(endsAtBlankLine: true))
            guard let site = asked.site else { return }
            let source = TokenSource(home: try homeOption.located(), secrets: SecretInput(isStandardInput: false))
            guard let token = try source.token(for: site, name: name) else { return }
            Console.result(unchanged: asked.answer(with: token, user: user))
        }
    }
}

/// The description of a credential that git wants, in the format of git-credential(1).
struct GitCredential {
    private var values: [String: String] = [:]
    /// Whether git sends a credential of any scheme.
    private var acceptsSchemes = false

    /// Throws for a line that is not `key=value`.
    init(_ input: String) throws {
        for line in input.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "="), equals > line.startIndex else {
                throw CountersignError(
                    .configuration, "standard input has a line that is not key=value",
                    hint: "git runs this command; `countersign token git --help` says how to set that up")
            }
            let (key, value) = (String(line[..<equals]), String(line[line.index(after: equals)...]))
            if key == "capability[]" { acceptsSchemes = acceptsSchemes || value == "authtype" }
            if !key.hasSuffix("[]") { values[key] = value }
        }
    }

    /// The https site; nil for another protocol.
    var site: String? {
        guard values["protocol"] == "https", let host = values["host"], !host.isEmpty,
            host.utf8.allSatisfy(Self.isOfAuthority)
        else { return nil }
        return "https://\(host)"
    }

    /// Git decodes percent escapes: a slash would end the host of the URL before the host that git asks for.
    private static func isOfAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...0xFF:
            true
        default: ".-_:[]".utf8.contains(byte)
        }
    }

    /// `user` is the name beside the token if git names none.
    func answer(with token: GivenToken, user: String?) -> String {
        var lines: [String] = []
        if acceptsSchemes {
            lines = ["capability[]=authtype", "authtype=Bearer", "credential=\(token.accessToken)", "ephemeral=1"]
        } else {
            let asked = values["username"].flatMap { $0.isEmpty ? nil : $0 }
            lines = ["username=\(asked ?? user ?? "oauth2")", "password=\(token.accessToken)"]
        }
        if let expires = token.expires { lines.append("password_expiry_utc=\(expires)") }
        return lines.map { "\($0)\n" }.joined()
    }

    /// Whether a line can have the value.
    static func isValue(_ text: String) -> Bool {
        !text.isEmpty && !text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }
}
