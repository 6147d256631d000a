// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Glibc
import Testing

@testable import Countersign

/// A home that other users can write to, with chmod(1) and the printed command as a user would run them.
@Suite struct WriteProtectionTests {
    private let folder: TemporaryFolder
    private var home: Home { Home(path: folder.file("home")) }

    init() throws {
        folder = try TemporaryFolder("protection")
        try folder.write("home/AllowedSites/a.sites", "https://a.example\n")
        try folder.write("home/AllowedSites/b.sites", "https://b.example\n")
        try folder.write("home/Certs/anchors/a.pem", "")
        try sh("chmod -R go-w home")
    }

    private func sh(_ command: String) throws {
        let result = try Command.run("/bin/sh", ["-c", command], folder: folder.path, in: folder)
        try #require(result.status == 0, "\(command): \(result.said)")
    }

    private func error(
        privateGroup: Bool = false, user: uid_t = geteuid(), sudoUser: uid_t? = nil
    ) -> CountersignError? {
        do throws(CountersignError) {
            try WriteProtection(home: home, user: user, sudoUser: sudoUser) { _, _ in privateGroup }.check()
            return nil
        } catch {
            return error
        }
    }

    /// The command between the hint's back quotes.
    private func command(in error: CountersignError?) throws -> String {
        let parts = try #require(error?.hint).split(separator: "`", omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        return String(parts[1])
    }

    private static let names = [
        "home", "home/AllowedSites", "home/AllowedSites/a.sites", "home/Certs", "home/Certs/anchors",
        "home/Certs/anchors/a.pem",
    ]

    @Test func aHomeThatOnlyItsUserCanWriteToIsAccepted() throws {
        #expect(error() == nil)
        #expect(try home.siteFiles().count == 2)
        try sh("rm -r home/Certs home/AllowedSites")
        #expect(error() == nil)
        try sh("rmdir home")
        #expect(error() == nil)
    }

    @Test(arguments: names, ["o+w", "g+w", "go+w"])
    func eachPlaceIsCheckedAndTheCommandRepairsIt(name: String, mode: String) throws {
        try sh("chmod \(mode) \(name)")
        let found = error()
        #expect(found?.code == .configuration)
        let who = mode == "g+w" ? "the members of group" : "every user"
        #expect(found?.detail.contains("can be written by \(who)") == true, "\(found?.detail ?? "accepted")")
        #expect(try command(in: found) == "chmod go-w \(folder.file(name))")
        try sh(command(in: found))
        #expect(error() == nil)
    }

    @Test func oneCommandRepairsEverything() throws {
        try folder.write("home/AllowedSites/it's mine.sites", "")
        try sh("chmod -R a+rwX home")
        let found = error()
        try sh(command(in: found))
        #expect(error() == nil)
    }

    @Test func otherFilesAreNotChecked() throws {
        try folder.write("home/AllowedSites/a.sites.bak", "")
        try folder.write("home/notes", "")
        try sh("chmod a+w home/AllowedSites/a.sites.bak home/notes; chmod a+rwxt .")
        #expect(error() == nil)
    }

    @Test func theListAndTheAnchorsAreNotRead() throws {
        try sh("chmod o+w home/AllowedSites/a.sites")
        #expect(throws: CountersignError.self) { try home.siteFiles() }
        #expect(throws: CountersignError.self) { try home.anchorFiles() }
        #expect(throws: (any Error).self) { try SiteFiles(home: home).add("https://c.example", to: "a") }
    }

    // MARK: Owners and groups

    @Test func anotherOwnerIsRefused() throws {
        // Seen by a user who does not own the files; those of root are accepted.
        let owner = geteuid()
        if owner == 0 {
            #expect(error(user: 1) == nil)
            try sh("chown 65534 home/AllowedSites/a.sites")
        }
        let found = error(user: 1)
        #expect(found?.detail.contains("belongs to user") == true, "\(found?.detail ?? "accepted")")
        #expect(try command(in: found).hasPrefix("sudo chown "))
    }

    @Test func rootAcceptsTheFilesOfTheUserWhoRanSudo() throws {
        let owner = geteuid() == 0 ? 65_534 : geteuid()
        if geteuid() == 0 { try sh("chown -R \(owner) home") }
        #expect(error(user: 0, sudoUser: owner) == nil)
        #expect(error(user: 0, sudoUser: owner + 1)?.detail.contains("belongs to user") == true)
        #expect(error(user: 0) != nil)
        // The variable only counts for root.
        #expect(error(user: owner + 1, sudoUser: owner) != nil)
    }

    @Test func aPrivateGroupMayWrite() throws {
        try sh("chmod -R g+w home")
        #expect(error(privateGroup: true) == nil)
        #expect(error() != nil)
        try sh("chmod o+w home/AllowedSites")
        #expect(error(privateGroup: true) != nil)
    }

    @Test(
        arguments: [
            ("jdoe:x:1000:1000::/home/jdoe:/bin/sh\nroot:x:0:0::/root:/bin/sh\n", true),
            ("jdoe:x:1000:1000::/:/bin/sh\nbob:x:1001:1000::/:/bin/sh\n", false),
            ("bob:x:1000:1000\n", false), ("+::::::\n\nbroken\n", true), ("", true),
        ])
    func aGroupWithAnotherMemberIsNotPrivate(accounts: String, expected: Bool) {
        #expect(PrivateGroup.isPrivate(group: 1000, name: "jdoe", accounts: accounts) == expected)
    }

    /// `id` is the oracle for the system's own accounts.
    @Test func theSystemsAccountsAreFound() throws {
        let name = try Command.run("/usr/bin/id", ["-un"], in: folder).output
        let group = try Command.run("/usr/bin/id", ["-gn"], in: folder).output
        #expect(SystemAccounts.userName(of: geteuid()) + "\n" == name)
        #expect(SystemAccounts.groupName(of: getegid()) + "\n" == group)
        #expect(SystemAccounts.userName(of: 4_000_000_000) == "4000000000")
        #expect(SystemAccounts.groupName(of: 4_000_000_000) == "4000000000")
        #expect(!PrivateGroup.isPrivate(group: 4_000_000_000, owner: geteuid()))
    }

    @Test func anAccessListIsNotAPrivateGroup() throws {
        // As `setfacl -m u:65534:rw` writes it: version 2, then tag, permissions and number of each entry.
        let entries: [(tag: UInt16, permissions: UInt16, number: UInt32)] = [
            (1, 6, .max), (2, 6, 65_534), (4, 4, .max), (16, 6, .max), (32, 4, .max),
        ]
        var list: [UInt8] = [2, 0, 0, 0]
        for entry in entries {
            withUnsafeBytes(of: entry.tag.littleEndian) { list += $0 }
            withUnsafeBytes(of: entry.permissions.littleEndian) { list += $0 }
            withUnsafeBytes(of: entry.number.littleEndian) { list += $0 }
        }
        try folder.write("list", list)
        let set = "os.setxattr('home/AllowedSites/a.sites', 'system.posix_acl_access', open('list', 'rb').read())"
        try sh("/usr/bin/python3 -c \"import os; \(set)\"")
        let found = error(privateGroup: true)
        #expect(found != nil)
        try sh(command(in: found))
        #expect(error(privateGroup: true) == nil)
    }

    // MARK: Symbolic links

    @Test func aLinksTargetIsCheckedWithTheFoldersAboveIt() throws {
        try folder.write("shared/lists/c.sites", "https://c.example\n")
        try sh("ln -s ../../shared/lists/c.sites home/AllowedSites/c.sites; chmod -R go-w shared")
        #expect(error() == nil)
        for name in ["shared/lists/c.sites", "shared/lists", "shared"] {
            try sh("chmod o+w \(name)")
            let found = error()
            #expect(try command(in: found).hasSuffix(name))
            try sh(command(in: found))
            #expect(error() == nil)
        }
    }

    @Test func aTargetBelowAStickyFolderIsAccepted() throws {
        try folder.write("open/lists/c.sites", "https://c.example\n")
        try sh("ln -s ../../open/lists/c.sites home/AllowedSites/c.sites; chmod -R go-w open; chmod a+rwxt open")
        #expect(error() == nil)
        try sh("chmod a-t open")
        #expect(error() != nil)
    }

    @Test func linkedFoldersAreChecked() throws {
        try sh("mkdir real; chmod go-w real; mv home/AllowedSites home/Certs real; ln -s ../real/AllowedSites home")
        try sh("ln -s ../real/Certs home; mv home moved; ln -s moved home")
        #expect(error() == nil)
        for name in ["moved", "real", "real/AllowedSites", "real/AllowedSites/a.sites", "real/Certs/anchors/a.pem"] {
            try sh("chmod o+w \(name)")
            try sh(command(in: error()))
            #expect(error() == nil, "\(name)")
        }
    }

    @Test func aLinkWithoutATargetIsReportedByItsReader() throws {
        try sh("ln -s nowhere home/AllowedSites/c.sites")
        #expect(error() == nil)
        #expect(throws: CountersignError.self) { try home.siteFiles() }
    }
}
