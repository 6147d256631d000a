// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NIOCore

/// The part of a request's content that is too large for memory, in an encrypted file, so that it can be sent again.
///
/// Content goes into the file in records; the last piece, shorter than a record, stays in memory. Files are written and
/// read on a queue of their own. Owned by its event loop, on which all callbacks run.
final class ContentSpool {
    /// How much may wait to be written before the client must pause.
    private static let unwrittenLimitBytes = 4 * SpoolFile.recordBytes

    /// The number of complete records, which are in the file or on their way to it.
    private(set) var recordCount = 0
    /// The content after the last record.
    private var tail: [ByteBuffer] = []
    private var tailBytes = 0
    private var unwrittenBytes = 0
    /// Why the file cannot be used; nil while it can.
    private(set) var failure: String?
    /// The budget is used up.
    private var isFull = false
    /// Called when more has been written, or the file has failed.
    var changed: () -> Void = {}

    private let file: SpoolFile
    private let budget: SpoolBudget
    private let loop: any EventLoop
    private lazy var queue = DispatchQueue(label: "countersign.spool")

    init(folders: [String], budget: SpoolBudget, loop: any EventLoop) {
        file = SpoolFile(folders: folders)
        self.budget = budget
        self.loop = loop
    }

    deinit {
        guard recordCount > 0 else { return }
        let (budget, count) = (budget, recordCount * SpoolFile.recordBytes)
        // Closing a large file takes time, so its last reference is dropped on the queue.
        queue.async { [file] in withExtendedLifetime(file) { budget.giveBack(count) } }
    }

    /// Whether content can be added.
    var canKeepMore: Bool { failure == nil && !isFull }

    var isEmpty: Bool { recordCount == 0 && tail.isEmpty }

    /// The content after the last record, in one piece.
    var rest: ByteBuffer {
        guard tail.count != 1 else { return tail[0] }
        var rest = ByteBufferAllocator().buffer(capacity: tailBytes)
        for piece in tail { rest.writeImmutableBuffer(piece) }
        return rest
    }

    /// The disk is slower than the client, which must pause.
    var isBehind: Bool { unwrittenBytes >= Self.unwrittenLimitBytes }

    /// Adds content at the end. False if not all of it can be kept: the budget is used up, or the file has failed. It
    /// is then still complete, in memory, but nothing more should be added.
    func append(_ piece: ByteBuffer) -> Bool {
        tail.append(piece)
        tailBytes += piece.readableBytes
        while tailBytes >= SpoolFile.recordBytes {
            if canKeepMore { isFull = !budget.take(SpoolFile.recordBytes) }
            guard canKeepMore else { return false }
            write(takeRecord())
        }
        return canKeepMore
    }

    /// Removes the first ``SpoolFile/recordBytes`` bytes from ``tail``.
    private func takeRecord() -> [ByteBuffer] {
        var record: [ByteBuffer] = []
        var missing = SpoolFile.recordBytes
        var used = 0
        while missing > 0 {
            var piece = tail[used]
            if piece.readableBytes <= missing {
                missing -= piece.readableBytes
                record.append(piece)
                used += 1
            } else if let part = piece.readSlice(length: missing) {
                record.append(part)
                tail[used] = piece
                missing = 0
            }
        }
        tail.removeFirst(used)
        tailBytes -= SpoolFile.recordBytes
        return record
    }

    private func write(_ record: [ByteBuffer]) {
        let number = recordCount
        recordCount += 1
        unwrittenBytes += SpoolFile.recordBytes
        let spool = NIOLoopBound(self, eventLoop: loop)
        queue.async { [file, loop] in
            var reason: String?
            do throws(SpoolFile.Failure) {
                try file.write(record, asRecord: number)
            } catch {
                reason = error.reason
            }
            loop.execute { [reason] in spool.value.written(reason) }
        }
    }

    private func written(_ failure: String?) {
        unwrittenBytes -= SpoolFile.recordBytes
        if let failure, self.failure == nil { self.failure = failure }
        changed()
    }

    /// Reads a record, after those before it have been written.
    func read(_ number: Int, _ completion: @escaping (Result<ByteBuffer, SpoolFile.Failure>) -> Void) {
        let done = NIOLoopBound(completion, eventLoop: loop)
        queue.async { [file, loop] in
            let result: Result<ByteBuffer, SpoolFile.Failure>
            do throws(SpoolFile.Failure) {
                result = .success(try file.read(record: number))
            } catch {
                result = .failure(error)
            }
            loop.execute { done.value(result) }
        }
    }
}
