// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

/// The end of an audit file, where a server continues it.
struct AuditTail: Equatable {
    /// Nil if the file has no record.
    var chain: AuditChain?
    /// The bytes after the last record, without its line feed.
    var cut: [UInt8]
    /// Whether the last line has a line feed, or there is none.
    var isTerminated: Bool
    /// Whether the last record says that the file was closed.
    var isEnded: Bool

    /// Some 3,000 records: more than are between two signatures.
    static let bytes: off_t = 1 << 20

    /// Verifies the last `bytes` of `file`.
    init(of file: Int32, _ path: String, key: AuditPublicKey, bytes: off_t = bytes) throws(AuditError) {
        var status = stat()
        let size = fstat(file, &status) == 0 ? status.st_size : 0
        let isShort = size <= bytes
        var verifier = AuditVerifier(key: key, isTail: !isShort)
        var isTerminated = true
        var skipsLine = !isShort
        verifier.begin(path)
        try AuditReading.lines(of: file, path, from: isShort ? 0 : size - bytes) { line, hasLineFeed in
            isTerminated = hasLineFeed
            // Only a part of the first line is here.
            if skipsLine {
                skipsLine = false
                return true
            }
            _ = verifier.read(line, isTerminated: hasLineFeed)
            return verifier.report.fault == nil
        }
        if let fault = verifier.report.fault {
            guard !isShort else { throw AuditError(fault, in: path) }
            throw AuditError(
                try Self.firstFault(of: file, path, key)
                    ?? AuditFault(kind: fault.kind, file: path, line: 0, record: fault.record, reason: fault.reason),
                in: path)
        }
        // Nothing of it is a record: it was never an audit, and nothing may be appended to it.
        if verifier.chain == nil, !verifier.cut.isEmpty, !Self.mayBeginRecord(verifier.cut) {
            throw AuditError(
                AuditFault(kind: .malformed, file: path, line: 1, record: nil, reason: "the line is not a record"),
                in: path)
        }
        chain = verifier.chain
        cut = verifier.cut
        self.isTerminated = isTerminated
        isEnded = verifier.report.isEnded
    }

    /// Whether bytes are the beginning of a file that a server has begun to write.
    private static func mayBeginRecord(_ bytes: [UInt8]) -> Bool {
        let start = Array("{\"n\":1,".utf8)
        return start.starts(with: bytes.prefix(start.count))
    }

    private static func firstFault(
        of file: Int32, _ path: String, _ key: AuditPublicKey
    ) throws(AuditError) -> AuditFault? {
        var verifier = AuditVerifier(key: key)
        verifier.begin(path)
        try AuditReading.lines(of: file, path, from: 0) { line, hasLineFeed in
            _ = verifier.read(line, isTerminated: hasLineFeed)
            return verifier.report.fault == nil
        }
        return verifier.report.fault
    }

    /// The lines with which a server continues the file, and the chain after them.
    func opening(at time: Timestamp) -> (bytes: [UInt8], chain: AuditChain) {
        var bytes: [UInt8] = []
        var cut = cut
        if !isTerminated {
            bytes = Array(((cut.isEmpty ? "" : AuditChain.cutMark) + "\n").utf8)
            if !cut.isEmpty { cut += bytes }
        }
        let summary = AuditVerifier.summary(of: cut)
        guard var chain else {
            var chain = AuditChain()
            bytes += chain.begin(at: time, after: summary)
            return (bytes, chain)
        }
        if isEnded, isTerminated, cut.isEmpty {
            bytes += chain.start(at: time)
        } else {
            bytes += chain.interrupted(at: time, after: summary)
        }
        return (bytes, chain)
    }
}
