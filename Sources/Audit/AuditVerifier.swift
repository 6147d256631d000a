// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography

/// Reads the lines of an audit and finds the first fault.
///
/// It cannot find that records after the last signed one were removed together with all that follow them, nor that
/// whoever has the key wrote the audit anew. Both need a witness: a signed line that was copied elsewhere.
package struct AuditVerifier: Sendable {
    private let key: AuditPublicKey?
    /// The first line is somewhere in a file.
    private let isTail: Bool

    private var file = ""
    private var line = 0
    /// No record of this file was read yet.
    private var isAtStart = true
    /// Nil before the first record.
    package private(set) var chain: AuditChain?
    private var lastTime: Timestamp?

    /// Lines since the last record that are none, with their marks and line feeds.
    package private(set) var cut: [UInt8] = []
    private var cutLine = 0
    /// All that a kill may leave. More is no accident.
    private static let longestCutBytes = 1 << 20
    /// A clock that is set back by less may be another thread.
    private static let leastJumpMilliseconds: Int64 = 2000

    package private(set) var report = AuditReport()

    /// Without `key`, signatures are not verified.
    package init(key: AuditPublicKey?) { self.init(key: key, isTail: false) }

    init(key: AuditPublicKey?, isTail: Bool) {
        self.key = key
        self.isTail = isTail
        report.isVerifiedByKey = key != nil
    }

    /// The following lines are those of `file`.
    package mutating func begin(_ file: String) {
        self.file = file
        line = 0
        isAtStart = true
        report.files.append(file)
    }

    /// The next line, without its line feed. `isTerminated`: it has one. Returns its record. After the first fault,
    /// reads nothing.
    package mutating func read(_ bytes: [UInt8], isTerminated: Bool) -> AuditRecord? {
        guard report.fault == nil else { return nil }
        line += 1
        if isTerminated, bytes.suffix(AuditChain.cutMark.utf8.count).elementsEqual(AuditChain.cutMark.utf8) {
            addCut(bytes + [UInt8(ascii: "\n")])
            return nil
        }
        do throws(AuditLineFault) {
            let record = try AuditRecord(bytes)
            do throws(AuditFault) {
                try check(record, bytes)
                return record
            } catch {
                report.fault = error
            }
        } catch {
            switch error {
            case .changed:
                report.fault = fault(.changed, chain.map { $0.number + 1 }, "the record has been changed")
            case .malformed(let reason) where isTerminated:
                report.fault = fault(.malformed, chain.map { $0.number + 1 }, "this is not a record: \(reason)")
            case .malformed: addCut(bytes)
            }
        }
        return nil
    }

    /// What was found.
    package func finished() -> AuditReport {
        var report = report
        if report.fault == nil { report.cutBytes = cut.count }
        return report
    }

    // MARK: Checks

    private mutating func check(_ record: AuditRecord, _ bytes: [UInt8]) throws(AuditFault) {
        let last = chain ?? AuditChain(number: record.number - 1, hash: record.previous, unsigned: 0)
        if chain != nil || !isTail {
            try checkPlace(record)
            try checkCut(record)
        }
        try checkOrder(record, after: last)
        try checkSignature(record, bytes, after: last)
        var next = last
        next.follow(record)
        chain = next
        isAtStart = false
        cut = []
        if key != nil, next.unsigned > 2 * AuditChain.checkpointInterval {
            throw fault(
                .unsigned, record.number,
                "no record after \(record.number - next.unsigned) is signed, and a server signs each "
                    + "\(AuditChain.checkpointInterval)")
        }
        note(record, next)
    }

    private mutating func checkPlace(_ record: AuditRecord) throws(AuditFault) {
        switch record.kind {
        case .begin, .continue:
            guard isAtStart else {
                throw fault(.misplaced, record.number, "the first record of a file stands inside one")
            }
        case .start, .interrupted, .use, .lost, .checkpoint, .end:
            guard !isAtStart else { throw fault(.headless, record.number, "the beginning of the file is missing") }
            return
        }
        if case .continue = record.kind {
            if chain == nil { report.startsAfter = record.number - 1 }
        } else if chain != nil {
            throw fault(.unrelated, record.number, "the file begins a new audit and does not continue the other")
        } else if record.number != 1 || record.previous != AuditChain().hash {
            throw fault(.headless, record.number, "the first record of an audit has the number 1")
        }
    }

    private func checkCut(_ record: AuditRecord) throws(AuditFault) {
        let found = Self.summary(of: cut)
        switch record.kind {
        // What it names is at the end of a file that is not read.
        case .continue where chain == nil && found == nil: return
        case .begin(let recorded), .continue(let recorded), .interrupted(let recorded):
            guard recorded != found else { return }
        case .start, .use, .lost, .checkpoint, .end:
            guard found != nil else { return }
        }
        throw AuditFault(
            kind: .cut, file: file, line: found == nil ? line : cutLine, record: record.number,
            reason: "the unfinished lines before the record are not those that a server found")
    }

    private func checkOrder(_ record: AuditRecord, after last: AuditChain) throws(AuditFault) {
        if record.number > last.number + 1 {
            let missing =
                last.number + 1 == record.number - 1
                ? "record \(last.number + 1) is" : "records \(last.number + 1) to \(record.number - 1) are"
            throw fault(.removed, record.number, "\(missing) missing, or moved")
        }
        guard record.number == last.number + 1 else {
            throw fault(
                .misplaced, record.number, "the record stands after record \(last.number): it was inserted or moved")
        }
        guard record.previous == last.hash else {
            throw fault(.unlinked, record.number, "the record does not follow the one before it: one was replaced")
        }
    }

    private mutating func checkSignature(
        _ record: AuditRecord, _ bytes: [UInt8], after last: AuditChain
    ) throws(AuditFault) {
        let id: String
        let signature: [UInt8]
        switch record.kind {
        case .checkpoint(let key, let found), .end(let key, let found): (id, signature) = (key, found)
        case .begin, .continue, .start, .interrupted, .use, .lost: return
        }
        if !report.keys.contains(id) { report.keys.append(id) }
        guard let key else { return }
        guard id == key.id else {
            throw fault(.otherKey, record.number, "signed by the key \(id.prefix(16)), not by \(key.id.prefix(16))")
        }
        guard let message = AuditRecord.signedBytes(of: bytes), key.verifies(signature, of: message) else {
            let first = last.number - last.unsigned + 1
            throw fault(
                .signature, record.number,
                "the signature is not valid: one of the records \(first) to \(record.number) was replaced")
        }
    }

    private mutating func note(_ record: AuditRecord, _ chain: AuditChain) {
        report.records += 1
        report.first = report.first ?? record.number
        report.last = record.number
        report.lastHash = record.hash
        report.firstTime = report.firstTime ?? record.time.text
        report.lastTime = record.time.text
        report.unsigned = chain.unsigned
        report.isEnded = false
        switch record.kind {
        case .use: report.uses += 1
        case .lost(let count): report.lost &+= count
        case .interrupted: report.interruptions.append(record.number)
        case .checkpoint: report.signatures += 1
        case .end:
            report.signatures += 1
            report.isEnded = true
        case .begin, .continue, .start: break
        }
        if let lastTime, record.time.totalMilliseconds + Self.leastJumpMilliseconds <= lastTime.totalMilliseconds {
            report.clockSetBack.append(record.number)
        }
        lastTime = record.time
    }

    // MARK: Unfinished lines

    private mutating func addCut(_ bytes: [UInt8]) {
        if cut.isEmpty { cutLine = line }
        cut += bytes
        guard cut.count > Self.longestCutBytes else { return }
        report.fault = fault(.malformed, nil, "too many unfinished lines")
    }

    /// Nil for none.
    static func summary(of cut: [UInt8]) -> AuditRecord.Cut? {
        cut.isEmpty
            ? nil : AuditRecord.Cut(bytes: UInt64(cut.count), digest: Hex.encode(Digest.sha256.hash(cut)))
    }

    private func fault(_ kind: AuditFault.Kind, _ record: UInt64?, _ reason: String) -> AuditFault {
        AuditFault(kind: kind, file: file, line: line, record: record, reason: reason)
    }
}
