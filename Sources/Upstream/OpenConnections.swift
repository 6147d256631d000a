// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The connections of one event loop to parents and origins, including those that are being opened.
package final class OpenConnections {
    private var channels: [ObjectIdentifier: any Channel] = [:]
    private var attempts: [ObjectIdentifier: ConnectionAttempt] = [:]

    package init() {}

    func add(_ attempt: ConnectionAttempt) { attempts[ObjectIdentifier(attempt)] = attempt }

    func remove(_ attempt: ConnectionAttempt) { attempts[ObjectIdentifier(attempt)] = nil }

    func add(_ channel: any Channel) {
        let key = ObjectIdentifier(channel)
        channels[key] = channel
        channel.closeFuture.assumeIsolated().whenComplete { [weak self] _ in self?.channels[key] = nil }
    }

    /// The route to the origins may have changed. Restarts attempts that have not reached a peer, and closes the
    /// connections from addresses that this machine no longer has: they receive nothing any longer, without an error.
    /// Their exchanges get `networkGone`.
    package func networkChanged(ownAddresses: Set<String>?) {
        guard let ownAddresses else { return }
        for attempt in attempts.values { attempt.networkChanged(ownAddresses) }
        for channel in channels.values {
            guard let address = channel.localAddress?.ipAddress, !ownAddresses.contains(address) else { continue }
            let place = channel.remoteAddress.map { "\($0.ipAddress ?? ""):\($0.port ?? 0)" } ?? "the connection"
            channel.pipeline.fireErrorCaught(
                UpstreamError(.networkGone, "\(place): this machine no longer has the address \(address)"))
            channel.close(promise: nil)
        }
    }

    /// The addresses of this machine's interfaces; nil if the system does not say.
    package static func ownAddresses() -> Set<String>? {
        let addresses = try? System.enumerateDevices().compactMap { $0.address?.ipAddress }
        return addresses.flatMap { $0.isEmpty ? nil : Set($0) }
    }
}
