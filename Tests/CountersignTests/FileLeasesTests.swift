// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Glibc
import Testing

@testable import CountersignClientSetup

/// Leases on files, and the operations of a folder that replace files while they are held.
@Suite(.waiting) struct FileLeasesTests {
    private let folder: TemporaryFolder
    private let open: OpenFolder

    init() throws {
        folder = try TemporaryFolder("leases")
        try folder.write("a", "content of a")
        try folder.write("b", "content of b")
        open = try #require(OpenFolder(folder.path))
    }

    @Test func leasesOnFreeFilesAreGranted() throws {
        let leases = try #require(FileLeases.taken(on: ["a", "b", "c"], in: open))
        #expect(leases.names == ["a", "b"] && leases.areIntact)
        #expect(leases.contents(of: "a", upTo: 100) == Array("content of a".utf8))
        #expect(leases.contents(of: "a", upTo: 5) == nil)
        #expect(leases.contents(of: "c", upTo: 5) == nil)
    }

    @Test(arguments: [O_RDONLY, O_RDWR])
    func anOpenFileHasNoLease(flags: Int32) throws {
        let descriptor = Glibc.open(folder.file("b"), flags | O_CLOEXEC)
        #expect(FileLeases.taken(on: ["a", "b"], in: open) == nil)
        close(descriptor)
        #expect(FileLeases.taken(on: ["a", "b"], in: open) != nil)
    }

    @Test func whoeverOpensAFileIsNoticed() throws {
        let leases = try #require(FileLeases.taken(on: ["a", "b"], in: open))
        #expect(Glibc.open(folder.file("a"), O_RDONLY | O_NONBLOCK | O_CLOEXEC) == -1 && errno == EAGAIN)
        #expect(!leases.areIntact)
    }

    @Test func linksAndFurtherNamesHaveNoLease() throws {
        #expect(symlink("a", folder.file("link")) == 0 && link(folder.file("b"), folder.file("second")) == 0)
        for name in ["link", "second", "b"] { #expect(FileLeases.taken(on: [name], in: open) == nil) }
    }

    // MARK: Folders

    @Test func aLinkIsNoFolder() throws {
        #expect(mkdir(folder.file("real"), 0o755) == 0 && symlink("real", folder.file("link")) == 0)
        #expect(OpenFolder(folder.file("link")) == nil && open.folder("link") == nil)
        #expect(open.makeFolder("link") == nil)
        try folder.write("real/kept", "x")
        open.removeAll("link")
        #expect(!open.has("link") && StoreLayout.exists(folder.file("real/kept")))
        open.removeAll("real")
        #expect(open.names().sorted() == ["a", "b"])
    }

    @Test func aTakenNameIsNotReplaced() throws {
        let status = try #require(open.status(of: "a"))
        #expect(symlink("nowhere", folder.file("dangling")) == 0)
        for name in ["a", "dangling"] { #expect(!open.create(name, with: [1], like: status)) }
        let other = try #require(open.makeFolder("other"))
        #expect(other.create("a", with: [1], like: status))
        #expect(!other.move("a", to: open) && folder.text("a") == "content of a")
        #expect(other.exchange("a", with: open))
        #expect(TextFile.bytes(folder.file("a")) == [1] && folder.text("other/a") == "content of a")
    }
}
