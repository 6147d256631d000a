// SPDX-License-Identifier: Apache-2.0

import Glibc

extension AuditFile {
    /// Signatures that are made while others write. The one after them is made while nobody can write.
    private static let attempts = 8

    /// Signs the records after `lastSigned`, in a checkpoint after the last one.
    ///
    /// A checkpoint names the hash of the record before it. The signature is made while others write records; if they
    /// have, it is made again. A checkpoint may therefore stand some records after the one that made it due.
    func sign(after lastSigned: UInt64) {
        for _ in 0..<Self.attempts {
            guard let before = change({ $0.needsSignature(after: lastSigned) ? $0.chain : nil }) else { break }
            var chain = before
            guard let line = chain.checkpoint(at: clock(), key: key) else { break }
            let isWritten = change { [chain] state in
                guard state.needsSignature(after: lastSigned), state.chain == before else { return false }
                state.isSigning = false
                _ = put(line, then: chain, &state)
                return true
            }
            if isWritten { return }
        }
        change { state in
            state.isSigning = false
            if state.needsSignature(after: lastSigned) { checkpoint(&state) }
        }
    }
}

extension AuditFile.State {
    /// The number of the last signed record, if a checkpoint can be made after it; it must be made then.
    mutating func beginCheckpoint(now: UInt64) -> UInt64? {
        guard !isSigning, needsSignature(after: chain.lastSigned) else { return nil }
        isSigning = true
        lastCheckpoint = now
        return chain.lastSigned
    }

    /// Whether a checkpoint can be written now, and there was none after that record.
    fileprivate func needsSignature(after lastSigned: UInt64) -> Bool {
        !isClosed && rest.isEmpty && lost == 0 && chain.unsigned > 0 && chain.lastSigned == lastSigned
    }
}
