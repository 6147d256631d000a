// SPDX-License-Identifier: Apache-2.0

public import Countersign

extension SignInWindows {
    /// The requests of a window go through a proxy of your process, which answers the challenges of listed sites, and
    /// verifies servers with the system's anchors and those of the home. It listens on a port of 127.0.0.1, and serves
    /// only programs that your process has started and that know its password. A provider with an http URL is reached
    /// directly.
    ///
    /// The first such window creates the home's interception CA.
    public static let proxied = SignInWindows { keeper, isTemporary, renewals, logger in
        let proxy = try await WindowProxy.start(
            keeper, isTemporary: isTemporary, renewals: renewals, logger: logger)
        return Proxy(
            door: proxy.door, observing: { try await proxy.observing($0, $1) }, stop: { await proxy.stop() })
    }
}
