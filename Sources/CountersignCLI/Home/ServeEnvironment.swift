// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome

/// The file `serve.env` of a home: options of `serve` as variables. The systemd unit reads it (`EnvironmentFile=`), and
/// so can a shell. `serve` itself does not.
struct ServeEnvironment {
    /// The names of options without dashes, and their values.
    let options: [(name: String, value: String)]

    static let name = "serve.env"

    static func file(of home: Home) -> HomeFile { home.file(name) }

    /// `COUNTERSIGN_NO_PROXY="localhost,10.0.0.0/8"` and the like, in the grammar that systemd and sh share.
    var assignments: [String] {
        options.map { "\(Self.variable($0.name))=\(Self.quoted($0.value))" }
    }

    /// `origin` says where the settings are from.
    func text(origin: String, home: Home) -> String {
        let path = Self.file(of: home).path
        let lines =
            [
                "# Options of `countersign serve`, \(PrintableText.line(origin, limit: 80)). The service reads them; "
                    + "in a shell:",
                "#   set -a; . \(ShellWord.quoted(path)); set +a",
            ] + assignments
        return lines.map { $0 + "\n" }.joined()
    }

    /// `countersign serve` with these options.
    var command: String {
        (["countersign", "serve"] + options.flatMap { ["--\($0.name)", ShellWord.quoted($0.value)] })
            .joined(separator: " ")
    }

    static func variable(_ option: String) -> String {
        "COUNTERSIGN_" + option.uppercased().replacing("-", with: "_")
    }

    private static func quoted(_ value: String) -> String {
        "\"" + value.map { "\"\\`$".contains($0) ? "\\\($0)" : String($0) }.joined() + "\""
    }
}
