// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Glibc
import Testing

@testable import Countersign
@testable import CountersignHome

/// A home that other users can write to, with chmod(1) and the printed command as a user would run them.
@Suite(.waiting) struct WriteProtectionTests {
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
            try WriteProtection(home: home, user: user, sudoUser: sudoUser) { group, _ in
                privateGroup && group != 65_534
            }.check()
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

    // MARK: Access control lists

    /// As `setfacl` writes it: version 2, then tag, permissions and number of each entry.
    private func setList(_ entries: [(tag: UInt16, permissions: UInt16, number: UInt32)]) throws {
        var list: [UInt8] = [2, 0, 0, 0]
        for entry in entries {
            withUnsafeBytes(of: entry.tag.littleEndian) { list += $0 }
            withUnsafeBytes(of: entry.permissions.littleEndian) { list += $0 }
            withUnsafeBytes(of: entry.number.littleEndian) { list += $0 }
        }
        try folder.write("list", list)
        let set = "os.setxattr('home/AllowedSites/a.sites', 'system.posix_acl_access', open('list', 'rb').read())"
        try sh("/usr/bin/python3 -c \"import os; \(set)\"")
    }

    private static let (owner, user, owningGroup, group, mask, others) = (
        UInt16(1), UInt16(2), UInt16(4), UInt16(8), UInt16(16), UInt16(32)
    )

    /// With a list, the group's bits of the mode are the mask (acl(5)), so they say nothing about the group.
    @Test(arguments: [user, group])
    func theEntryOfAnAccessListIsNamed(_ tag: UInt16) throws {
        try setList(
            [
                (Self.owner, 6, .max), (tag, 6, 65_534), (Self.owningGroup, 4, .max), (Self.mask, 6, .max),
                (Self.others, 4, .max),
            ].sorted { $0.0 < $1.0 })
        let found = error(privateGroup: true)
        let who =
            tag == Self.user
            ? "user \(SystemAccounts.userName(of: 65_534))"
            : "the members of group \(SystemAccounts.groupName(of: 65_534))"
        let text = "AllowedSites/a.sites can be written by \(who) through its access control list, who could"
        #expect(found?.detail.hasPrefix(text) == true, "\(found?.detail ?? "accepted")")
        try sh(command(in: found))
        #expect(error(privateGroup: true) == nil)
    }

    @Test func theOwningGroupOfAnAccessListIsNamed() throws {
        try setList([
            (Self.owner, 6, .max), (Self.user, 4, 65_534), (Self.owningGroup, 6, .max), (Self.mask, 6, .max),
            (Self.others, 4, .max),
        ])
        #expect(error(privateGroup: true) == nil)
        let text = "AllowedSites/a.sites can be written by the members of group"
        #expect(error()?.detail.hasPrefix(text) == true, "\(error()?.detail ?? "accepted")")
    }

    /// Entries for the user and for root, and entries that the mask makes harmless.
    @Test func anAccessListThatAddsNobodyIsAccepted() throws {
        for (user, mask) in [(0, 6), (geteuid(), 6), (65_534, 4)] as [(UInt32, UInt16)] {
            try setList([
                (Self.owner, 6, .max), (Self.user, 6, user), (Self.owningGroup, 4, .max), (Self.mask, mask, .max),
                (Self.others, 4, .max),
            ])
            #expect(error() == nil, "\(error()?.detail ?? "")")
        }
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

    /// Each link of a chain can be replaced by those who may write to its folder.
    @Test func everyLinkOfAChainIsChecked() throws {
        try folder.write("lists/c.sites", "https://c.example\n")
        try sh("mkdir -p hop/one hop/two; ln -s ../one/c.sites hop/two/c.sites; ln -s ../../lists hop/one/all")
        try sh("ln -s all/c.sites hop/one/c.sites; ln -s ../../hop/two/c.sites home/AllowedSites/c.sites")
        try sh("chmod -R go-w hop lists")
        try #require(error() == nil)
        for name in ["hop/two", "hop/one", "hop", "lists", "lists/c.sites"] {
            try sh("chmod o+w \(name)")
            let found = error()
            try #require(found != nil, "\(name) is accepted")
            #expect(try command(in: found) == "chmod go-w \(folder.file(name))")
            try sh(command(in: found))
            #expect(error() == nil)
        }
    }

    /// The owner of a sticky folder may replace its entries, and the owner of a link there may replace the link.
    @Test(.enabled(if: geteuid() == 0, "only root can give files away"))
    func aStickyFolderProtectsOnlyFromThoseWhoOwnNothingOfIt() throws {
        try folder.write("open/lists/c.sites", "https://c.example\n")
        try sh("ln -s lists open/link; ln -s ../../open/link/c.sites home/AllowedSites/c.sites")
        try sh("chmod -R go-w open; chmod a+rwxt open")
        #expect(error() == nil)
        for (name, flag) in [("open", ""), ("open/link", "-h"), ("open/lists", "")] {
            try sh("chown \(flag) 65534 \(name)")
            let found = error()
            #expect(found?.detail.contains("\(folder.file(name)) belongs to user") == true, "\(name)")
            #expect(found?.hint?.contains("replace \(folder.file("home/AllowedSites/c.sites")) with a copy") == true)
            try sh("chown \(flag) 0 \(name)")
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
