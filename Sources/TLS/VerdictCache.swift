// SPDX-License-Identifier: Apache-2.0

import Certificates
import Cryptography
import NIOConcurrencyHelpers

/// Verdicts on servers, kept so that the next connection to the same one need not verify the same signatures again.
///
/// A verdict is for exactly this chain, host and stapled response. It serves from the second for which it was found
/// until ten minutes later, and never past a date of a certificate, revocation list or response.
final class VerdictCache: Sendable {
    private struct Entry {
        let trust: ServerTrust
        let foundAt: Int64
        let lastSecond: Int64
        var used: UInt64
    }

    private struct State {
        var entries: [[UInt8]: Entry] = [:]
        var uses: UInt64 = 0
    }

    /// In seconds.
    static let lifetime: Int64 = 600
    /// Chains and responses that are longer together are judged each time.
    static let longestInputBytes = 32 * 1024

    private let state = NIOLockedValueBox(State())
    private let limit: Int

    /// Keeps up to `limit` verdicts, those that were used last.
    init(limit: Int = 512) { self.limit = limit }

    /// The verdict that is kept, or what `find` finds, at `time` in seconds since 1970.
    func verdict(
        on chain: [Certificate], host: String, staple: ChainVerifier.Staple, at time: Int64,
        _ find: () -> ChainVerifier.Appraisal
    ) -> ServerTrust {
        guard let key = Self.key(chain, host, staple) else { return find().trust }
        if let kept = kept(key, at: time) { return kept }
        let found = find()
        keep(found, key, at: time)
        return found.trust
    }

    private func kept(_ key: [UInt8], at time: Int64) -> ServerTrust? {
        state.withLockedValue { state in
            guard let entry = state.entries[key], entry.foundAt <= time, time <= entry.lastSecond else { return nil }
            state.uses += 1
            state.entries[key]?.used = state.uses
            return entry.trust
        }
    }

    private func keep(_ found: ChainVerifier.Appraisal, _ key: [UInt8], at time: Int64) {
        let (end, overflow) = time.addingReportingOverflow(Self.lifetime)
        guard !overflow else { return }
        state.withLockedValue { state in
            if state.entries[key] == nil, state.entries.count >= limit,
                let oldest = state.entries.min(by: { $0.value.used < $1.value.used })
            {
                state.entries[oldest.key] = nil
            }
            state.uses += 1
            state.entries[key] = Entry(
                trust: found.trust, foundAt: time, lastSecond: min(end, found.holdsUntil), used: state.uses)
        }
    }

    /// SHA-256 over all that the verdict is for, each part behind its length; nil when that is too long.
    private static func key(_ chain: [Certificate], _ host: String, _ staple: ChainVerifier.Staple) -> [UInt8]? {
        var parts = chain.map(\.der) + [Array(host.utf8)]
        switch staple {
        case .absent: parts.append([0])
        case .awaited: parts.append([1])
        case .received(let response): parts.append([2] + response)
        }
        let count = parts.reduce(0) { $0 + $1.count }
        guard count <= longestInputBytes else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8 * parts.count)
        for part in parts {
            withUnsafeBytes(of: UInt64(part.count).bigEndian) { bytes.append(contentsOf: $0) }
            bytes += part
        }
        return Digest.sha256.hash(bytes)
    }
}
