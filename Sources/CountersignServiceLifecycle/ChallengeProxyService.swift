// SPDX-License-Identifier: Apache-2.0

public import CountersignNIO
public import ServiceLifecycle

extension ChallengeProxy {
    /// The proxy as a service for a `ServiceGroup`, which shuts it down together with the program's other services:
    /// requests in progress then have ten seconds to finish.
    public var service: ChallengeProxyService { ChallengeProxyService(self) }
}

/// A `ChallengeProxy` in a `ServiceGroup`.
public struct ChallengeProxyService: Service {
    private let proxy: ChallengeProxy

    init(_ proxy: ChallengeProxy) { self.proxy = proxy }

    /// Serves until the group shuts down or the task is cancelled. Throws as `ChallengeProxy.run()` does.
    public func run() async throws {
        try await withGracefulShutdownHandler {
            try await proxy.run()
        } onGracefulShutdown: {
            proxy.stop()
        }
    }
}
