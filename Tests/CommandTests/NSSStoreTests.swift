// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignTestOrigin
import Foundation
import Testing

@testable import CountersignClientSetup

/// The root in the NSS databases of Firefox and Chromium, using certutil.
@Suite(.waiting) final class NSSStoreTests: StoreBench {
    @Test func rootIsAddedToAllDatabasesOfTheUser() throws {
        let places = [
            ".mozilla/firefox/abc.default", "snap/firefox/common/.mozilla/firefox/def.default",
            ".var/app/org.mozilla.firefox/.mozilla/firefox/ghi.default", ".pki/nssdb",
            "snap/chromium/current/.pki/nssdb",
        ]
        for place in places { try makeDatabase(place) }
        try folder.write("user/.mozilla/firefox/Crash Reports/events", "")
        #expect(run(installer(), .present(root), .nss) == places.map { _ in .done })
        for place in places {
            let list = try certutilLists(place)
            #expect(list.split(separator: "\n").contains { $0.hasPrefix(name) && $0.contains(" C,, ") }, "\(list)")
            let check = try tool(
                "certutil", "-V", "-n", name, "-u", "L", "-d", "sql:\(folder.file("user/\(place)"))")
            #expect(check.output.contains("certificate is valid"), "\(check.said)")
        }
        #expect(run(installer(), .present(root), .nss) == places.map { _ in .unchanged })
        #expect(run(installer(), .absent(root), .nss) == places.map { _ in .done })
        for place in places { #expect(try !certutilLists(place).contains("ountersign")) }
        #expect(run(installer(), .absent(root), .nss) == places.map { _ in .unchanged })
    }

    @Test func legacyDatabaseIsSupported() throws {
        let place = ".mozilla/firefox/old.default"
        try makeDatabase(place, method: "dbm")
        try #require(FileManager.default.fileExists(atPath: folder.file("user/\(place)/cert8.db")))
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(try certutilLists(place, method: "dbm").contains(name))
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(try !certutilLists(place, method: "dbm").contains(name))
    }

    @Test func manuallyImportedRootIsFoundByItsFingerprint() throws {
        try makeDatabase(".pki/nssdb")
        let database = "sql:\(folder.file("user/.pki/nssdb"))"
        let nickname = "Countersign interception root by hand"
        try tool("certutil", "-A", "-n", nickname, "-t", ",,", "-a", "-d", database, input: root.pem)
        // It was present but not trusted; now it is trusted under its existing name.
        #expect(run(installer(), .present(root), .nss) == [.done])
        #expect(
            try certutilLists(".pki/nssdb").split(separator: "\n").contains {
                $0.hasPrefix(nickname) && $0.contains("C,,")
            })
        #expect(run(installer(), .absent(root), .nss) == [.done])
        #expect(try !certutilLists(".pki/nssdb").contains(nickname))
    }

    @Test func chromiumsDatabaseIsCreatedOnlyIfChromiumIsInstalled() throws {
        #expect(installer(path: "/nowhere").steps(to: .present(root), in: []).isEmpty)
        #expect(installer().steps(to: .present(root), in: []).isEmpty)
        chmod(try folder.write("tree/bin/chromium", "#!/bin/sh\n"), 0o755)
        let installer = installer(path: "\(tree)/bin:/usr/bin:/bin")
        #expect(run(installer, .absent(root), .nss) == [.unchanged])
        #expect(listing(folder.file("user")).isEmpty)
        #expect(run(installer, .present(root), .nss) == [.done])
        #expect(try certutilLists(".local/share/pki/nssdb").contains(name))
        #expect(run(installer, .present(root), .nss) == [.unchanged])
    }

    // MARK: The places of Chromium's database

    @Test func databaseIsCreatedWhereChromiumReadsItAndRemovedWithItsFolders() throws {
        chmod(try folder.write("tree/bin/chromium", "#!/bin/sh\n"), 0o755)
        let path = "\(tree)/bin:/usr/bin:/bin"
        let user = folder.file("user")
        for (data, existing, place) in [
            (nil, nil, ".local/share/pki/nssdb"), ("\(user)/data", nil, "data/pki/nssdb"),
            ("relative", nil, ".local/share/pki/nssdb"), (nil, ".pki", ".local/share/pki/nssdb"),
            (nil, ".pki/nssdb", ".pki/nssdb"), ("\(user)/data", ".pki/nssdb", ".pki/nssdb"),
        ] as [(String?, String?, String)] {
            if let existing {
                try FileManager.default.createDirectory(
                    atPath: "\(user)/\(existing)", withIntermediateDirectories: true)
            }
            let before = digests(user)
            let installer = installer(path: path, data: data)
            #expect(run(installer, .present(root), .nss) == [.done])
            #expect(try certutilLists(place).contains(name), "\(place)")
            #expect(StoreLayout.isFolder("\(user)/.pki/nssdb") == (existing == ".pki/nssdb"))
            #expect(run(installer, .present(root), .nss) == [.unchanged])
            #expect(run(installer, .absent(root), .nss) == [.done])
            #expect(digests(user) == before, "\(place)")
            if existing != nil { try FileManager.default.removeItem(atPath: "\(user)/.pki") }
        }
    }

    @Test func usersOwnRootsInTheNewPlaceAreNotHidden() throws {
        chmod(try folder.write("tree/bin/chromium", "#!/bin/sh\n"), 0o755)
        try makeDatabase(".local/share/pki/nssdb")
        try addRoot(of: "client-a-root.pem", to: ".local/share/pki/nssdb")
        let installer = installer(path: "\(tree)/bin:/usr/bin:/bin")
        #expect(run(installer, .present(root), .nss) == [.done])
        #expect(!StoreLayout.exists(folder.file("user/.pki")))
        let list = try certutilLists(".local/share/pki/nssdb")
        #expect(list.contains(name) && list.contains("client-a-root.pem"))
    }

    @Test func errorNamesThePackageOfAMissingCertutil() throws {
        try makeDatabase(".pki/nssdb")
        guard case .failed(let diagnostic)? = run(installer(path: "/nowhere"), .present(root), .nss).first else {
            Issue.record("it did not fail")
            return
        }
        #expect(diagnostic.message.hasSuffix("requires certutil, which is not installed"))
        #expect(diagnostic.hint?.contains("libnss3-tools") == true)
    }

    @Test func unreadableDatabaseFailsAndTheNextIsWritten() throws {
        try makeDatabase(".mozilla/firefox/good.default")
        try folder.write("user/.mozilla/firefox/broken.default/cert9.db", "this is no database, by any means\n")
        let outcomes = run(installer(), .present(root), .nss)
        guard outcomes.count == 2, case .failed(let diagnostic) = outcomes[0] else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(diagnostic.message.contains("certutil failed with"), "\(diagnostic.message)")
        #expect(outcomes[1] == .done)
    }
}
