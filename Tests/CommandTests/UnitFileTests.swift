// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// The systemd units in Scripts.
@Suite(.waiting) struct UnitFileTests {
    private static let names = [
        "countersign-refresh.service", "countersign-refresh.timer", "countersign.service", "countersign.socket",
    ]
    private static let installed = "/usr/local/bin/countersign"

    /// Copies that run the built executable.
    private func copies() throws -> (folder: TemporaryFolder, paths: [String]) {
        let folder = try TemporaryFolder("units")
        let paths = try Self.names.map { name in
            let text = TextFile.text("\(Tool.repository)/Scripts/\(name)")
            #expect(!name.hasSuffix(".service") || text.contains("ExecStart=\(Self.installed) "))
            return try folder.write(
                name, text.replacingOccurrences(of: Self.installed, with: try Sandbox.executable))
        }
        return (folder, paths)
    }

    @Test func systemdAcceptsTheUnits() throws {
        let (folder, paths) = try copies()
        let result = try Command.run(try Tool.path("systemd-analyze"), ["verify"] + paths, in: folder)
        #expect(result.status == 0 && result.error.isEmpty, "\(result.said)")
    }

    /// `ExecStart=` is a valid command of this executable.
    @Test(arguments: ["countersign-refresh.service", "countersign.service"])
    func unitCommandsExist(name: String) throws {
        let line = try #require(
            TextFile.lines("\(Tool.repository)/Scripts/\(name)").first { $0.hasPrefix("ExecStart=") })
        let words = line.dropFirst("ExecStart=".count).split(separator: " ").dropFirst().map(String.init)
        let sandbox = try Sandbox()
        let help = try Command.run(try Sandbox.executable, words + ["--help"], in: sandbox.folder)
        #expect(help.status == 0 && help.output.contains("USAGE: countersign \(words.joined(separator: " "))"))
    }

    /// The filter permits all system calls of a refresh.
    @Test func refreshMakesNoFilteredSystemCall() throws {
        let place = try EnrolledSandbox()
        try #require(try place.enroll().status == 0)
        let trace = place.sandbox.folder.file("trace")
        let result = try place.sandbox.sh("strace -f -qq -o \(trace) countersign certificate refresh laptop")
        try #require(result.status == 0, "\(result.said)")
        let used = Set(TextFile.lines(trace).compactMap(Self.call))
        #expect(used.contains("openat") && used.count > 20)

        let listed = try place.sandbox.sh("systemd-analyze syscall-filter")
        let permitted = Self.members(of: "@system-service", in: listed.output).union(
            Self.members(of: "@default", in: listed.output))
        #expect(used.subtracting(permitted).isEmpty, "\(used.subtracting(permitted))")
    }

    /// The system call in `PID name(arguments) = result`; nil for a resumed call or a signal.
    private static func call(_ line: String) -> String? {
        let rest = line.drop { $0.isNumber }.drop { $0 == " " }
        let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        return rest.dropFirst(name.count).first == "(" && !name.isEmpty ? String(name) : nil
    }

    /// The system calls of a group as listed by `systemd-analyze syscall-filter`, including nested groups.
    private static func members(of group: String, in text: String) -> Set<String> {
        var members: Set<String> = []
        var isInside = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("@") {
                isInside = line == group
            } else if isInside {
                let name = line.drop { $0 == " " }
                if name.hasPrefix("@") {
                    members.formUnion(Self.members(of: String(name), in: text))
                } else if !name.hasPrefix("#"), !name.isEmpty {
                    members.insert(String(name))
                }
            }
        }
        return members
    }
}
