// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignHome
import FoundationEssentials

/// The systemd unit that runs `countersign serve` for one user. Its text is Scripts/countersign.service, which the
/// Debian package installs, too.
struct ServiceUnit {
    /// An absolute path.
    let executable: String
    /// Nil for the one that the service finds by itself.
    let home: String?

    static let name = "countersign.service"
    /// The unit of the Debian package.
    static let packaged = "/usr/lib/systemd/user/\(name)"
    private static let mark = "# Written by `countersign service install`; `countersign service uninstall` removes it."

    /// The unit's file in the user's folder of units.
    static func file(_ environment: [String: String]) throws(CountersignError) -> HomeFile {
        let base = environment["XDG_CONFIG_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        guard let folder = base ?? environment["HOME"].flatMap({ $0.isEmpty ? nil : "\($0)/.config" }) else {
            throw CountersignError(
                .environment, "there is no folder for units: HOME is not set", hint: "set HOME to your home folder")
        }
        return HomeFile(path: "\(folder)/systemd/user/\(name)")
    }

    /// For this program and `home`, which `environment` may name.
    init(_ home: Home, environment: [String: String]) throws(CountersignError) {
        guard let executable = HomeFile.absolutePath("/proc/self/exe"), !executable.hasSuffix(" (deleted)") else {
            throw CountersignError(
                .environment, "the program's own file cannot be found", hint: "run the command by its path")
        }
        self.executable = executable
        let rest = environment.filter { $0.key != "COUNTERSIGN_HOME" }
        let path = home.path.hasPrefix("/") ? home.path : "\(FileManager.default.currentDirectoryPath)/\(home.path)"
        self.home = (try? Home.locate(flag: nil, environment: rest))?.path == path ? nil : path
        for text in [executable, path] where text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw CountersignError(
                .environment, "the path \(text.debugDescription) cannot be in a unit", hint: "use another folder")
        }
    }

    init(executable: String, home: String?) {
        self.executable = executable
        self.home = home
    }

    var text: String {
        let template = String(decoding: PackageResources.countersign_service, as: UTF8.self)
        let lines = template.split(separator: "\n", omittingEmptySubsequences: false)
        // The comment at the top is for somebody who copies the file.
        let unit = lines.drop { $0.hasPrefix("#") }.map { line in
            if line.hasPrefix("ExecStart=") {
                return "ExecStart=\(Self.word(executable)) serve" + (home.map { " --home \(Self.word($0))" } ?? "")
            }
            if line.hasPrefix("EnvironmentFile="), let home {
                return "EnvironmentFile=-\(home.replacing("%", with: "%%"))/\(ServeEnvironment.name)"
            }
            return String(line)
        }
        return ([Self.mark] + unit).joined(separator: "\n")
    }

    /// Whether this command has written `text`.
    static func isOwn(_ text: [UInt8]) -> Bool { text.starts(with: mark.utf8) }

    /// Whether somebody has changed a unit that this command has written: more than the program and the home differ.
    func isChanged(_ present: [UInt8]) -> Bool {
        func rest(_ text: String) -> [Substring] {
            text.split(separator: "\n", omittingEmptySubsequences: false).filter {
                !$0.hasPrefix("ExecStart=") && !$0.hasPrefix("EnvironmentFile=")
            }
        }
        return rest(String(decoding: present, as: UTF8.self)) != rest(text)
    }

    /// A word of a command in a unit (systemd.service(5)): in quotes, `%` and `$` doubled.
    private static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x2D...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
        if isPlain { return text }
        let escaped = text.map { character in
            switch character {
            case "\"", "\\": "\\\(character)"
            case "%", "$": "\(character)\(character)"
            default: String(character)
            }
        }
        return "\"\(escaped.joined())\""
    }
}
