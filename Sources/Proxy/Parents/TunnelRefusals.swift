// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The parents that open no tunnel to a port. Many permit CONNECT to port 443 alone, which is squid's default.
///
/// Each refusal is believed for a while, because the parent's settings may change.
struct TunnelRefusals {
    private struct Place: Hashable {
        let parent: Origin
        let port: UInt16
    }

    /// How long a refusal is believed.
    static let seconds: UInt64 = 600
    private static let capacity = 256
    private var ends: [Place: UInt64] = [:]

    /// `parent` is the parent's origin in the list; `now` is in seconds.
    mutating func add(_ parent: Origin, port: UInt16, now: UInt64) {
        if ends.count >= Self.capacity { ends = [:] }
        ends[Place(parent: parent, port: port)] = now + Self.seconds
    }

    func contains(_ parent: Origin, port: UInt16) -> Bool {
        !ends.isEmpty && ends[Place(parent: parent, port: port)] != nil
    }

    /// Forgets the refusals that are too old. Returns whether there were any.
    mutating func timePassed(now: UInt64) -> Bool {
        guard !ends.isEmpty else { return false }
        let count = ends.count
        ends = ends.filter { $0.value > now }
        return ends.count != count
    }
}
