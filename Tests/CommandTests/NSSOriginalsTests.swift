// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignHome
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignClientSetup

/// The original files of an NSS database: restored byte for byte, but never over a change by another program.
@Suite(.waiting) final class NSSOriginalsTests: StoreBench {
    private let place = ".pki/nssdb"

    /// The names of the files of the database.
    private func names() -> [String] { listing(folder.file("user/\(place)")).keys.sorted() }

    private static let databaseFiles = ["cert9.db", "key4.db", "pkcs11.txt"]

    // MARK: Restoring

    @Test(arguments: ["sql", "dbm"])
    func uninstallRestoresAllFilesByteForByte(_ method: String) throws {
        let place = ".mozilla/firefox/abc.default"
        try makeDatabase(place, method: method)
        try addRoot(of: "client-a-root.pem", to: place, method: method)
        let before = digests(folder.file("user"))
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(digests(folder.file("user")) != before)
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(digests(folder.file("user")) == before)
        #expect(run(installer(), .absent(root), .nss) == [.unchanged])
    }

    @Test func lastOfSeveralRootsRestoresTheFiles() throws {
        try makeDatabase(".pki/nssdb")
        let before = digests(folder.file("user"))
        let other = try InterceptionAuthority.create(at: Int64(time(nil))).root
        let elsewhere = installer(home: Home(path: folder.file("elsewhere")))
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(run(elsewhere, .present(other), .nss) == [.done])
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(try certutilLists(".pki/nssdb").contains("countersign-"))
        #expect(run(elsewhere, .absent(other), .nss) == [.done])
        #expect(digests(folder.file("user")) == before)
    }

    @Test(arguments: [true, false])
    func changesOfOthersSurvive(_ isCreated: Bool) throws {
        let place = isCreated ? ".local/share/pki/nssdb" : ".pki/nssdb"
        chmod(try folder.write("tree/bin/chromium", "#!/bin/sh\n"), 0o755)
        if !isCreated { try makeDatabase(place) }
        let installer = installer(path: "\(tree)/bin:/usr/bin:/bin")
        #expect(run(installer, .present(root), .nss) == [.done])
        try addRoot(of: "client-a-root.pem", to: place)
        #expect(run(installer, .absent(root), .nss) == [.done])
        let list = try certutilLists(place)
        #expect(list.contains("client-a-root.pem") && !list.contains("countersign"))
        #expect(listing(folder.file("user/\(place)")).keys.sorted() == ["cert9.db", "key4.db", "pkcs11.txt"])
        #expect(run(installer, .absent(root), .nss) == [.unchanged])
    }

    @Test func databaseThatTheUserMayReadAndWriteKeepsItsPermissions() throws {
        try makeDatabase(place)
        for (name, mode) in [("cert9.db", 0o640), ("key4.db", 0o600)] as [(String, mode_t)] {
            #expect(chmod(folder.file("user/\(place)/\(name)"), mode) == 0)
        }
        func modes() -> [mode_t] {
            Self.databaseFiles.map { name in
                var found = stat()
                return stat(folder.file("user/\(place)/\(name)"), &found) == 0 ? found.st_mode & 0o7777 : 0
            }
        }
        let before = modes()
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(modes() == before)
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(modes() == before)
    }

    // MARK: Other programs

    /// A program that changes the database while certutil runs for Countersign, in the database or in the folder that
    /// certutil is given.
    @Test(arguments: ["-A", "-D"], [true, false])
    func changeDuringACommandSurvives(_ command: String, _ isInPlace: Bool) throws {
        try makeDatabase(place)
        let foreign = "certutil -A -n foreign -t C,, -a -i \(Tool.fixture("client-a-root.pem")) -d"
        try script(
            "certutil",
            """
            PATH=/usr/bin:/bin
            certutil "$@"; status=$?
            for folder; do :; done
            [ "$1" != \(command) ] || \(foreign) \(isInPlace ? "sql:\(folder.file("user/\(place)"))" : "\"$folder\"")
            [ "$1" != \(command) ] || : > \(folder.file("changed"))
            exit $status
            """)
        let wrapped = installer(path: "\(folder.file("bin")):/usr/bin:/bin")
        #expect(run(wrapped, .present(root), .nss) == [.done])
        #expect(try certutilLists(place).contains(name))
        #expect(run(wrapped, .absent(root), .nss) == [.done])
        let list = try certutilLists(place)
        #expect(!list.contains("countersign-"))
        let isChanged = StoreLayout.exists(folder.file("changed"))
        #expect(isChanged || command == "-D")
        #expect(list.contains("foreign") == isChanged, "\(list)")
        #expect(names() == Self.databaseFiles)
    }

    /// A running browser may write at any time, including data that it has read before.
    @Test(arguments: ["install", "uninstall", "both"])
    func databaseThatIsOpenIsNeverRestored(_ when: String) throws {
        try makeDatabase(place)
        let file = folder.file("user/\(place)/cert9.db")
        func inode() -> ino_t {
            var found = stat()
            return stat(file, &found) == 0 ? found.st_ino : 0
        }
        let before = digests(folder.file("user"))
        var browser: Int32 = -1
        defer { close(browser) }
        if when != "uninstall" { browser = open(file, O_RDWR | O_CLOEXEC) }
        let first = inode()
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(try certutilLists(place).contains(name))
        if when != "uninstall" { #expect(inode() == first) }
        if when == "install" {
            close(browser)
            browser = -1
        }
        if when == "uninstall" { browser = open(file, O_RDWR | O_CLOEXEC) }
        let second = inode()
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(inode() == second)
        #expect(try !certutilLists(place).contains("countersign"))
        #expect(digests(folder.file("user")) != before)
        #expect(names() == Self.databaseFiles)
        #expect(run(installer(), .absent(root), .nss) == [.unchanged])
    }

    // MARK: Remains of killed processes

    @Test func remainsOfAKilledProcessAreNoObstacle() throws {
        try makeDatabase(place)
        let before = digests(folder.file("user"))
        for name in ["state.4711.1.new", "state.new", "cert9.db.4711.2.new", "cert9.db", "next/cert9.db", "next/x"] {
            try folder.write("user/\(place)/countersign-original/\(name)", "x")
        }
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(digests(folder.file("user")) == before)
        try folder.write("user/\(place)/countersign-original/next/cert9.db", "x")
        #expect(run(installer(), .absent(root), .nss) == [.unchanged])
        #expect(digests(folder.file("user")) == before)
    }

    /// A file without an original did not exist, or its original was lost: the state shows which.
    @Test(arguments: databaseFiles)
    func fileWhoseOriginalIsLostIsNotRemoved(_ file: String) throws {
        try makeDatabase(place)
        try addRoot(of: "client-a-root.pem", to: place)
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(unlink(folder.file("user/\(place)/countersign-original/\(file)")) == 0)
        #expect(run(installer(), .absent(root), .nss) == [.done])
        let list = try certutilLists(place)
        #expect(list.contains("client-a-root.pem") && !list.contains("countersign"))
        #expect(names() == Self.databaseFiles)
    }

    // MARK: Planted links

    @Test func plantedLinksAreNotFollowed() throws {
        try makeDatabase(place)
        let secret = try folder.write("secret", "secret")
        chmod(secret, 0o600)
        try folder.write("elsewhere/cert9.db", "theirs")
        let kept = folder.file("user/\(place)/countersign-original")
        // The folder itself.
        #expect(symlink(folder.file("elsewhere"), kept) == 0)
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(folder.text("elsewhere/cert9.db") == "theirs")
        #expect(listing(folder.file("elsewhere")).count == 1)
        // An original.
        #expect(unlink("\(kept)/cert9.db") == 0 && symlink(secret, "\(kept)/cert9.db") == 0)
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(try !certutilLists(place).contains("countersign"))
        #expect(names() == Self.databaseFiles)
        // A file of the database.
        let file = folder.file("user/\(place)/cert9.db")
        #expect(rename(file, folder.file("elsewhere/cert9.db")) == 0)
        #expect(symlink(folder.file("elsewhere/cert9.db"), file) == 0)
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(try !certutilLists(place).contains("countersign"))
        var found = stat()
        #expect(lstat(file, &found) == 0 && found.st_mode & S_IFMT == S_IFLNK)
        #expect(stat(secret, &found) == 0 && found.st_mode & 0o777 == 0o600 && folder.text("secret") == "secret")
    }
}
