// SPDX-License-Identifier: Apache-2.0

import Certificates
import Challenges
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TLS

/// The server contexts that intercepted clients are shown, one a host, minted off the event loops and kept.
///
/// All leaves share one P-256 key, which lives in memory only and goes with the process.
final class LeafCache: Sendable {
    private struct Key: Hashable {
        let host: String
        /// The issuing certificate, so that a new one makes new leaves.
        let issuer: [UInt8]
    }

    private struct Entry {
        let context: TLSServerContext
        let expires: Int64
        var used: UInt64
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        var uses: UInt64 = 0
        var key: PrivateKey?
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    private let threads: NIOThreadPool

    init(limit: Int = 1024, threads: NIOThreadPool = .singleton) {
        self.limit = limit
        self.threads = threads
    }

    /// The context for `host`, at once if it is cached.
    func cached(host: String, authority: InterceptionAuthority, now: Int64) -> TLSServerContext? {
        state.withLockedValue { state in
            let key = Key(host: host, issuer: authority.issuing.sha256Fingerprint)
            guard let entry = state.entries[key], entry.expires > now else { return nil }
            state.uses += 1
            state.entries[key]?.used = state.uses
            return entry.context
        }
    }

    /// Mints a leaf for `host` on a thread.
    func mint(
        host: String, authority: InterceptionAuthority, now: Int64, loop: any EventLoop
    ) -> EventLoopFuture<TLSServerContext> {
        threads.runIfActive(eventLoop: loop) {
            let leafKey = try self.leafKey()
            let chain = try authority.mintLeaf(host: host, key: leafKey, at: now)
            let context = try TLSServerContext(chain: chain, key: leafKey, host: host)
            // An hour short of its end, so that no client sees one expire during a session.
            let expires = (chain.first?.notAfter ?? now) - 3600
            self.keep(context, Key(host: host, issuer: authority.issuing.sha256Fingerprint), expires: expires)
            return context
        }
    }

    /// A leaf with the names and dates of an origin's that is not trusted, from an issuer that nobody trusts and whose name says
    /// why. Never cached.
    func mirror(
        of trust: ServerTrust, host: String, now: Int64, loop: any EventLoop
    ) -> EventLoopFuture<TLSServerContext> {
        threads.runIfActive(eventLoop: loop) {
            let leafKey = try self.leafKey()
            let reason = trust.reasons.first.map(String.init(describing:)) ?? "certificate not verified"
            let chain = try InterceptionAuthority.throwaway(
                mirroring: trust.chain.first, host: host, key: leafKey,
                issuerName: "Not trusted by Countersign: \(reason)",
                at: now)
            return try TLSServerContext(chain: chain, key: leafKey, host: host)
        }
    }

    private func leafKey() throws -> PrivateKey {
        if let key = state.withLockedValue({ $0.key }) { return key }
        let made = try PrivateKey.generateP256()
        return state.withLockedValue { state in
            if let key = state.key { return key }
            state.key = made
            return made
        }
    }

    private func keep(_ context: TLSServerContext, _ key: Key, expires: Int64) {
        state.withLockedValue { state in
            if state.entries.count >= limit, let oldest = state.entries.min(by: { $0.value.used < $1.value.used })?.key
            {
                state.entries[oldest] = nil
            }
            state.uses += 1
            state.entries[key] = Entry(context: context, expires: expires, used: state.uses)
        }
    }
}
