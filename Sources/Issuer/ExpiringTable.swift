// SPDX-License-Identifier: Apache-2.0

/// Values by name, each for a limited time. When the table is full, the value that expires next makes room.
struct ExpiringTable<Value: Sendable>: Sendable {
    private var entries: [String: (value: Value, expires: Int64)] = [:]

    /// More than an issuer on one machine needs.
    private static var maximumCount: Int { 1024 }

    /// Times are in seconds since 1970.
    mutating func insert(_ value: Value, _ name: String, expires: Int64, now: Int64) {
        if entries.count >= Self.maximumCount { entries = entries.filter { $0.value.expires > now } }
        if entries.count >= Self.maximumCount, let next = entries.min(by: { $0.value.expires < $1.value.expires }) {
            entries[next.key] = nil
        }
        entries[name] = (value, expires)
    }

    func value(_ name: String, now: Int64) -> Value? {
        guard let entry = entries[name], entry.expires > now else { return nil }
        return entry.value
    }

    /// Changes an existing value.
    mutating func update(_ name: String, _ change: (inout Value) -> Void) {
        guard var entry = entries[name] else { return }
        change(&entry.value)
        entries[name] = entry
    }

    /// The name of a value that is `wanted`; nil without one.
    func name(now: Int64, where wanted: (Value) -> Bool) -> String? {
        entries.first { $0.value.expires > now && wanted($0.value.value) }?.key
    }

    mutating func remove(_ name: String) { entries[name] = nil }

    mutating func removeAll(where unwanted: (Value) -> Bool) {
        entries = entries.filter { !unwanted($0.value.value) }
    }
}
