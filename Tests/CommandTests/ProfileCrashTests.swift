// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// `profile install` and `profile remove` that are killed, or find the disk full. The next command completes their
/// work, or there is nothing to complete.
@Suite(.waiting) struct ProfileCrashTests {
    private let bench: ProfileSandbox
    private let file: String
    private let empty: HomeState

    init() throws {
        bench = try ProfileSandbox()
        file = try bench.write([bench.root, bench.intermediate, bench.identity])
        empty = try bench.state()
    }

    /// The state after any next command: it must be one of these two.
    private func settled(_ bench: ProfileSandbox, _ comment: Comment) throws -> Bool {
        let isInstalled = try bench.succeed("profile", "list", "--no-header").contains("example.corp")
        let (files, contents) = (try bench.files(), try bench.vault)
        let leftover = files.keys.filter { $0.hasSuffix(".new") }
        #expect(leftover == [], comment)
        guard isInstalled else {
            #expect(try bench.state() == empty, comment)
            return false
        }
        #expect(contents.profiles["example.corp"]?.journal == nil, comment)
        #expect(contents.identityKeys["laptop"] != nil, comment)
        #expect(files.keys.filter { $0.hasPrefix("Certs/anchors/") }.count == 2, comment)
        #expect(files["Certs/identities/laptop.pem"] != nil, comment)
        #expect(try bench.succeed("certificate", "list", "--no-header").hasPrefix("laptop "), comment)
        return true
    }

    @Test func anInstallationMayBeKilledAnywhere() throws {
        var count = 1
        var outcomes: Set<Bool> = []
        while true {
            let calls = try bench.sandbox.callsUnlessKilled(at: "rename", count, ["profile", "install", file, "--yes"])
            let isInstalled = try settled(bench, "killed at rename \(count)")
            if isInstalled { try bench.succeed("profile", "remove", "example.corp") }
            #expect(try bench.state() == empty)
            if let calls {
                #expect(isInstalled && calls >= 7, "\(calls)")
                break
            }
            outcomes.insert(isInstalled)
            count += 1
            try #require(count < 40)
        }
        #expect(outcomes == [true, false])
    }

    @Test(arguments: [("rename", 4), ("unlink", 3)])
    func aRemovalMayBeKilledAnywhere(call: String, least: Int) throws {
        var count = 1
        while true {
            try #require(try bench.install(file).status == 0)
            let calls = try bench.sandbox.callsUnlessKilled(at: call, count, ["profile", "remove", "example.corp"])
            if try settled(bench, "killed at \(call) \(count)") {
                try bench.succeed("profile", "remove", "example.corp")
                #expect(try bench.state() == empty)
            }
            if let calls {
                #expect(calls >= least, "\(calls)")
                break
            }
            count += 1
            try #require(count < 40)
        }
    }

    /// Every `fsync` from one on fails, as on a full disk.
    @Test func aFullDiskLeavesNothingOrAll() throws {
        var count = 1
        while true {
            let done = try Command.run(
                try Tool.path("strace"),
                [
                    "-f", "-qq", "-o", bench.folder.file("calls"), "-e", "trace=fsync", "-e",
                    "inject=fsync:error=ENOSPC:when=\(count)+", try Sandbox.executable, "profile", "install", file,
                    "--yes",
                ], environment: try bench.sandbox.environment(), folder: bench.folder.path, in: bench.folder)
            let isInstalled = try settled(bench, "full at fsync \(count)")
            if done.status == 0 { #expect(isInstalled, "\(done.said)") }
            if isInstalled { try bench.succeed("profile", "remove", "example.corp") }
            #expect(try bench.state() == empty)
            if done.status == 0, !TextFile.text(bench.folder.file("calls")).contains("INJECTED") { break }
            count += 1
            try #require(count < 60)
        }
        #expect(count > 6)
    }

    /// A server finds the remains of a command when it starts.
    @Test func aServerCompletesAnInstallation() throws {
        var count = 3
        while try bench.vault.profiles["example.corp"]?.journal == nil {
            try #require(
                try bench.sandbox.callsUnlessKilled(at: "rename", count, ["profile", "install", file, "--yes"]) == nil)
            count += 1
        }
        #expect(try bench.files()["Certs/identities/laptop.pem"] == nil)
        let server = try bench.sandbox.serve()
        let isComplete = try poll {
            try bench.vault.profiles["example.corp"]?.journal == nil ? true : nil
        }
        #expect(isComplete == true, "\(server.errorOutput)")
        #expect(try bench.files()["Certs/identities/laptop.pem"] != nil)
    }

    /// The certificate is issued by then, or not; without the profile, there is no request for it either.
    @Test func anEnrolmentMayBeKilledAnywhere() throws {
        let (bench, est, file) = try ProfileTests.enrolling()
        let before = try bench.state()
        var count = 1
        while true {
            let calls = try bench.sandbox.callsUnlessKilled(at: "rename", count, ["profile", "install", file, "--yes"])
            let comment: Comment = "killed at rename \(count)"
            let isInstalled = try bench.succeed("profile", "list", "--no-header").contains("example.corp")
            if isInstalled {
                #expect(try bench.vault.identityKeys.keys.sorted() == ["bootstrap", "vpn"], comment)
                #expect(try est.identity("vpn") != nil, comment)
                try bench.succeed("profile", "remove", "example.corp")
            }
            #expect(try bench.state() == before, comment)
            if let calls {
                #expect(isInstalled && calls >= 10, "\(calls)")
                break
            }
            count += 1
            try #require(count < 60)
        }
    }
}
