// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin
import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import CountersignProxy

@Suite struct ContentSpoolTests {
    private static let record = SpoolFile.recordBytes
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("spool") }

    private static func content(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }

    /// Runs `body` with a spool on an event loop, and waits for the promise that it completes.
    private func onLoop<Value: Sendable>(
        budget: SpoolBudget, folders: [String]? = nil,
        _ body: @escaping @Sendable (ContentSpool, EventLoopPromise<Value>) -> Void
    ) async throws -> Value {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: Value.self)
        let folders = folders ?? [folder.path]
        loop.execute { body(ContentSpool(folders: folders, budget: budget, loop: loop), promise) }
        return try await promise.futureResult.get()
    }

    private static func readAll(
        _ spool: ContentSpool, from number: Int = 0, _ seen: [UInt8] = [], _ promise: EventLoopPromise<[UInt8]>
    ) {
        guard number < spool.recordCount else {
            return promise.succeed(seen + spool.rest.readableBytesView)
        }
        spool.read(number) { result in
            switch result {
            case .success(let piece): readAll(spool, from: number + 1, seen + piece.readableBytesView, promise)
            case .failure(let failure): promise.fail(failure)
            }
        }
    }

    @Test(arguments: [1, 4096, 100_000, 300_000, 700_000])
    func contentInPiecesOfAnySizeIsReadBack(_ size: Int) async throws {
        let content = Self.content(3 * Self.record + 12345)
        let seen = try await onLoop(budget: SpoolBudget(limitBytes: 1 << 30)) { spool, promise in
            var rest = content[...]
            while !rest.isEmpty {
                let isKept = spool.append(ByteBuffer(bytes: rest.prefix(size == 1 ? max(1, rest.count / 7) : size)))
                #expect(isKept)
                rest = rest.dropFirst(size == 1 ? max(1, rest.count / 7) : size)
            }
            Self.readAll(spool, [], promise)
        }
        #expect(seen == content)
    }

    @Test func fileHasNoNameAndIsEncrypted() async throws {
        let marker = Array("kanarie-spool-91c2".utf8)
        let folder = folder.path
        let content = Array((0..<Self.record / marker.count + 1).map { _ in marker }.joined())
        let (names, file) = try await onLoop(budget: SpoolBudget(limitBytes: 1 << 30)) {
            (spool: ContentSpool, promise: EventLoopPromise<([String], [UInt8])>) in
            _ = spool.append(ByteBuffer(bytes: content))
            spool.read(0) { _ in
                let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? ["?"]
                // The file is closed with the spool.
                withExtendedLifetime(spool) { promise.succeed((names, Self.openFile(in: folder))) }
            }
        }
        #expect(names.isEmpty)
        #expect(file.count > Self.record)
        #expect(file.firstRange(of: marker) == nil)
    }

    /// The content of the open file that once was in `folder`.
    private static func openFile(in folder: String) -> [UInt8] {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for name in descriptors {
            let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) ?? ""
            guard target.hasPrefix(folder + "/"), let number = Int32(name) else { continue }
            var bytes = [UInt8](repeating: 0, count: 4 << 20)
            return Array(bytes.prefix(max(0, pread(number, &bytes, bytes.count, 0))))
        }
        return []
    }

    @Test func recordsThatWereAlteredAreNotRead() throws {
        let file = SpoolFile(folders: [folder.path])
        try file.write([ByteBuffer(repeating: 1, count: Self.record)], asRecord: 0)
        try file.write([ByteBuffer(repeating: 2, count: Self.record)], asRecord: 1)
        #expect(try file.read(record: 1) == ByteBuffer(repeating: 2, count: Self.record))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        for name in descriptors {
            let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) ?? ""
            guard target.hasPrefix(folder.path + "/"), let number = Int32(name) else { continue }
            #expect(pwrite(number, [7, 7, 7, 7], 4, 1000) == 4)
        }
        #expect(throws: SpoolFile.Failure.self) { try file.read(record: 0) }
        #expect(throws: SpoolFile.Failure.self) { try file.read(record: 2) }
    }

    @Test func budgetIsSharedAndGivenBack() async throws {
        let budget = SpoolBudget(limitBytes: 3 * Self.record)
        let kept = try await onLoop(budget: budget) { (spool: ContentSpool, promise: EventLoopPromise<[Bool]>) in
            let other = ContentSpool(folders: [], budget: budget, loop: promise.futureResult.eventLoop)
            var kept: [Bool] = []
            for _ in 0..<2 { kept.append(spool.append(ByteBuffer(repeating: 0, count: Self.record))) }
            for _ in 0..<2 { kept.append(other.append(ByteBuffer(repeating: 0, count: Self.record))) }
            #expect(budget.takenBytes == 3 * Self.record && !other.canKeepMore && spool.canKeepMore)
            promise.succeed(kept)
        }
        #expect(kept == [true, true, true, false])
        let isGivenBack: Bool? = poll { budget.takenBytes == 0 ? true : nil }
        #expect(isGivenBack == true)
    }

    @Test func failureIsReported() async throws {
        let failure = try await onLoop(budget: SpoolBudget(limitBytes: 1 << 30), folders: [folder.file("none")]) {
            (spool: ContentSpool, promise: EventLoopPromise<String?>) in
            spool.changed = { promise.succeed(spool.failure) }
            #expect(spool.append(ByteBuffer(repeating: 0, count: Self.record)))
        }
        #expect(failure == "No such file or directory")
    }

    @Test func spoolThatHasFailedTakesNothingMoreFromTheBudget() async throws {
        let budget = SpoolBudget(limitBytes: 1 << 30)
        let taken = try await onLoop(budget: budget, folders: [folder.file("none")]) {
            (spool: ContentSpool, promise: EventLoopPromise<Int>) in
            spool.changed = {
                spool.changed = {}
                #expect(!spool.append(ByteBuffer(repeating: 0, count: Self.record)))
                promise.succeed(budget.takenBytes)
            }
            #expect(spool.append(ByteBuffer(repeating: 0, count: Self.record)))
        }
        #expect(taken == Self.record)
        let isGivenBack: Bool? = poll { budget.takenBytes == 0 ? true : nil }
        #expect(isGivenBack == true)
    }

    @Test func folderThatCannotBeUsedIsSkipped() throws {
        let file = SpoolFile(folders: [folder.file("none"), "/proc", folder.path])
        try file.write([ByteBuffer(repeating: 1, count: Self.record)], asRecord: 0)
        #expect(try file.read(record: 0).readableBytes == Self.record)
    }
}
