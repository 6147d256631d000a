// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCryptography
import CountersignDemo
import CountersignHome
import FoundationEssentials
import Glibc

/// The output of the demo, which fits a terminal of 80 columns and 24 lines.
struct DemoPage {
    /// Whether to use colours.
    let isColoured: Bool

    /// A terminal that has colours, unless `NO_COLOR` is set (no-color.org).
    static func coloursTerminal(_ environment: [String: String]) -> Bool {
        isatty(STDOUT_FILENO) == 1 && environment["NO_COLOR", default: ""].isEmpty
            && !["", "dumb"].contains(environment["TERM", default: ""])
    }

    let introduction = """

        One request of each kind, sent by a client that has no credentials:


        """

    func line(for kind: DemoSite.Kind, _ response: CurlClient.Response) -> String {
        let name = kind.rawValue.padded(to: 9)
        let result: String
        if let failure = response.failure {
            result = styled("---", .yellow) + "  \(failure)"
        } else {
            let text = response.body.split(separator: "\n").first ?? ""
            // basic.demo.localhost: welcome: Basic, as demo
            let how = text.split(separator: ": ", maxSplits: 2).last ?? text
            result = styled("\(response.status)", response.status == 200 ? .green : .yellow) + "  \(how)"
        }
        return "  \(styled(name, .bold))  \(result)\n"
    }

    /// The commands for another terminal.
    func invitation(to sites: [(kind: DemoSite.Kind, url: String)], _ address: String, _ home: Home) -> String {
        let path = home.rootCertificate.path
        let rootPath = HomeFile.absolutePath(path) ?? path
        var text = """

            The last certificate does not verify. With -k, curl shows the site's challenge.

            Try it from another terminal (Ctrl-C here ends the demo):

              ca=\(ShellWord.quoted(rootPath))
              demo() { curl --noproxy '' -x http://\(address) --cacert "$ca" "$@"; }

            """
        for site in sites where site.kind != .token {
            text += "  demo \(site.kind == .untrusted ? "-k " : "")\(site.url)\n"
        }
        for site in sites where site.kind == .token {
            let place = HomeFile.absolutePath(home.path) ?? home.path
            let profile = ShellWord.quoted("\(place)/\(DemoHome.profileName)")
            text += "  \(Self.program) enroll --home \(ShellWord.quoted(place)) \(profile)\n"
            text += "  demo \(site.url)\n"
        }
        return text
    }

    /// `countersign`, or its path if the shell does not find it.
    private static var program: String {
        let folders = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":")
        let isFound = folders.contains { access("\($0)/countersign", X_OK) == 0 }
        let path = HomeFile.absolutePath(CommandLine.arguments[0])
        return isFound ? "countersign" : ShellWord.quoted(path ?? CommandLine.arguments[0])
    }

    private enum Style: String {
        case bold = "1"
        case green = "32"
        case yellow = "33"
    }

    private func styled(_ text: String, _ style: Style) -> String {
        isColoured ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
