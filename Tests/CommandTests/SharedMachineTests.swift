// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import Testing

/// A home on a machine with other users.
@Suite(.waiting) struct SharedMachineTests {
    private static let list = "https://git.corp.example answer=basic\n"

    /// The checkout is a home. With umask 002, git creates its files with write permission for the user's group.
    @Test(arguments: ["002", "022", "077"]) func aCloneOfThisRepositoryIsAHome(umask: String) throws {
        let sandbox = try Sandbox()
        let made = try sandbox.sh(
            "umask \(umask); git -c safe.directory='*' clone -q '\(Tool.repository)' checkout", seconds: 300)
        try #require(made.status == 0, "\(made.said)")
        let command = "countersign sites check --home checkout https://git.corp.example"
        var result = try sandbox.sh(command)
        // Where the user's group has other members, the error is correct and its command repairs the clone.
        if result.error.contains("can be written by the members of group") {
            let parts = result.error.split(separator: "`")
            try #require(parts.count == 3, "\(result.said)")
            #expect(try sandbox.sh(String(parts[1])).status == 0)
            result = try sandbox.sh(command)
        }
        #expect(!result.error.contains("can be written"), "\(result.said)")
        #expect(result.status == 1 && result.output.contains("no site is listed"), "\(result.said)")
    }

    @Test(
        arguments: [
            "explain https://git.corp.example", "sites list", "sites check https://git.corp.example",
            "sites add https://a.example", "serve --listen 127.0.0.1:0", "exec -- true", "env",
        ])
    func everyCommandThatReadsTheListRefusesOneThatOthersCanWrite(command: String) throws {
        let sandbox = try Sandbox()
        try sandbox.folder.write("home/AllowedSites/work.sites", Self.list)
        #expect(try sandbox.sh("chmod 666 home/AllowedSites/work.sites").status == 0)
        let result = try sandbox.sh("countersign \(command)")
        let file = "\(sandbox.home)/AllowedSites/work.sites"
        #expect(result.status == 1)
        #expect(
            result.error == """
                countersign: error: AllowedSites/work.sites can be written by every user, who could change which sites \
                receive credentials
                countersign: hint: run `chmod go-w \(file)`

                """)
        #expect(TextFile.text(file) == Self.list)
    }

    @Test func aRunningServerKeepsThePreviousList() throws {
        let sandbox = try Sandbox()
        try sandbox.folder.write("home/AllowedSites/work.sites", Self.list)
        let server = try sandbox.serve()
        defer { server.stop() }
        #expect(
            try sandbox.sh("chmod 777 home/AllowedSites; echo https://evil.example > home/AllowedSites/x.sites")
                .status == 0)
        for text in ["can be written by every user", "keeping the previous list of sites"] {
            #expect(
                poll { server.errorOutput.contains(text) ? true : nil } == true, "\(server.errorOutput)")
        }
    }

    // MARK: Read-only file systems

    /// Whether this user can mount file systems in a namespace of its own.
    private static let canMount: Bool = {
        guard let sandbox = try? Sandbox() else { return false }
        return (try? sandbox.sh("unshare -rm mount -t tmpfs none /mnt").status) == 0
    }()

    /// As Kubernetes mounts a ConfigMap: a read-only file system whose folders every user may write to, with a link to
    /// the current version of the files.
    @Test(.enabled(if: canMount, "unshare(1) cannot mount here"), arguments: [true, false])
    func aReadOnlyFileSystemIsAccepted(isReadOnly: Bool) throws {
        let sandbox = try Sandbox()
        try sandbox.folder.write("home/AllowedSites/.keep", "")
        let script = """
            mount -t tmpfs none home/AllowedSites && cd home/AllowedSites && umask 0 && chmod 777 . \
            && mkdir ..2026_01 && echo 'https://git.corp.example' > ..2026_01/work.sites && ln -s ..2026_01 ..data \
            && ln -s ..data/work.sites work.sites || exit 9
            \(isReadOnly ? "mount -o remount,ro ." : ":") && cd ../.. && exec countersign sites list
            """
        try sandbox.folder.write("mount.sh", script)
        let result = try sandbox.sh("unshare -rm sh mount.sh")
        if isReadOnly {
            #expect(result.status == 0 && result.output.contains("git.corp.example"), "\(result.said)")
        } else {
            #expect(result.status == 1 && result.error.contains("can be written by every user"), "\(result.said)")
        }
    }
}
