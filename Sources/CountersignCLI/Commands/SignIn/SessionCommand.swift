// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Countersign
import CountersignCookies
import CountersignCryptography
import CountersignHome
import Glibc

/// `countersign session`.
struct SessionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session",
        abstract: "Show and end the sign-in sessions that the clients of a group share.",
        discussion: """
            A line of the list of sites with session=GROUP and cookies=NAME,… shares the cookies of these names that \
            its host sets: `enroll` adds such a line if the profile has a \"session\". They are stored in the vault, and \
            added to the requests that your clients send to that host, and to no other.
            """,
        subcommands: [List.self, Clear.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the shared sessions, without the values of their cookies.",
            discussion: """
                EXAMPLES:
                  countersign session list
                  countersign session list --json | jq -r '.[].cookies[].name'
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var output: ListOptions
        @OptionGroup var secrets: SecretOption

        func run() throws {
            let home = try homeOption.located()
            let sessions = try VaultAccess(home: home, secrets: secrets.input).session().perform(ListSessions())
            if output.json { return try Console.result(json: sessions.map(Row.init)) }
            if sessions.isEmpty {
                ListOptions.empty(
                    "no session is shared", in: home,
                    hint: "a site with session=GROUP cookies=NAME shares one once the site has set the cookies")
            }
            let rows = sessions.flatMap { session in
                session.cookies.map { cookie in
                    [
                        session.group, session.host, cookie.name,
                        cookie.expires.map(WallClock.rfc3339) ?? "after a day", WallClock.rfc3339(cookie.stored),
                    ]
                }
            }
            output.show(["GROUP", "HOST", "COOKIE", "EXPIRES", "STORED"], rows)
        }
    }

    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear",
            abstract: "Remove the shared sessions of a group, or all.",
            discussion: """
                The provider is not told: a browser that has the cookies itself stays signed in. `countersign unenroll` \
                removes the session of its profile, too.

                EXAMPLES:
                  countersign session clear corp
                """)

        @OptionGroup var homeOption: HomeOption
        @OptionGroup var secrets: SecretOption
        @Argument(help: ArgumentHelp("The group. (default: all groups)", valueName: "group"))
        var group: String?

        func run() throws {
            let home = try homeOption.located()
            let session = try VaultAccess(home: home, secrets: secrets.input).session()
            let removed = try session.perform(ClearSessions(group: group, host: nil))
            if removed.count == 0, let group {
                throw CountersignError.unknown(
                    "session of group", group, known: removed.known, addedBy: "enroll PROFILE")
            }
            Console.result(removed.count == 1 ? "1 session removed\n" : "\(removed.count) sessions removed\n")
        }
    }

    private struct Row: Encodable {
        let group: String
        let host: String
        let cookies: [CookieRow]

        init(_ session: ListedSession) {
            group = session.group
            host = session.host
            cookies = session.cookies.map(CookieRow.init)
        }
    }

    private struct CookieRow: Encodable {
        let name: String
        let domain: String
        let path: String
        let isHostOnly: Bool
        let isSecure: Bool
        let isHTTPOnly: Bool
        let sameSite: String?
        let expires: String?
        let stored: String

        init(_ cookie: ListedCookie) {
            name = cookie.name
            domain = cookie.domain
            path = cookie.path
            isHostOnly = cookie.isHostOnly
            isSecure = cookie.isSecure
            isHTTPOnly = cookie.isHTTPOnly
            sameSite =
                switch cookie.sameSite {
                case .unspecified: nil
                case .none: "None"
                case .lax: "Lax"
                case .strict: "Strict"
                }
            expires = cookie.expires.map(WallClock.rfc3339)
            stored = WallClock.rfc3339(cookie.stored)
        }
    }
}
