// SPDX-License-Identifier: Apache-2.0

import Cryptography
import Logging
import Proxy
import ServiceLifecycle
import NIOConcurrencyHelpers
import TLS

/// The proxy inside a Swift program, over the home of a ``ChallengeController``: whoever uses it as HTTP proxy has
/// challenges of the listed sites answered.
///
/// It listens on 127.0.0.1 and serves processes of this user only. Run it as a service of a `ServiceGroup`, or call
/// ``run()`` in a task of your own.
public final class ChallengeProxy: Service {
    /// Where it listens.
    public struct Address: Hashable, Sendable, CustomStringConvertible {
        /// `127.0.0.1`.
        public let host: String
        /// The port, never 0.
        public let port: Int

        /// As a proxy's URL: `http://127.0.0.1:3128`.
        public var description: String { "http://\(host):\(port)" }
    }

    private enum State {
        case new
        case running(Address)
        case ended((any Error)?)
    }

    private let controller: ChallengeController
    private let port: Int
    private let serverTrustDelegate: (any ServerTrustDelegate)?
    private let credentialDelegate: (any CredentialDelegate)?
    private let state = NIOLockedValueBox<(State, hasBegun: Bool)>((.new, false))
    /// Comes when there is an address, or will be none.
    private let settled = Gate()

    /// A proxy that does not run yet. `port` 0 is a free one.
    ///
    /// `serverTrustDelegate` is asked about listed servers whose certificates do not verify; without it they are
    /// refused as by `countersign serve`. `credentialDelegate` is asked when a site refuses the stored credential;
    /// without it the 401 goes back.
    public init(
        _ controller: ChallengeController, port: Int = 0, serverTrustDelegate: (any ServerTrustDelegate)? = nil,
        credentialDelegate: (any CredentialDelegate)? = nil
    ) {
        self.controller = controller
        self.port = port
        self.serverTrustDelegate = serverTrustDelegate
        self.credentialDelegate = credentialDelegate
    }

    /// Where it listens: waits until it does. Throws what ``run()`` throws, ``ChallengeError`` with the code
    /// `proxyFailed` when it has stopped, and `CancellationError`.
    public var address: Address {
        get async throws {
            await settled.wait()
            try Task.checkCancellation()
            switch state.withLockedValue({ $0.0 }) {
            case .running(let address): return address
            case .ended(let error?): throw error
            case .ended(nil), .new:
                throw ChallengeError(.proxyFailed, "the proxy has stopped", hint: "make another one")
            }
        }
    }

    /// The PEM file of everything that clients of the proxy have to trust: the system's anchors, those of the home,
    /// and the interception CA's root. It is there while the proxy runs and a listed site is https.
    public var trustBundlePath: String { controller.keeper.home.bundle.path }

    /// For connections that this process makes itself.
    package var originTLS: TLSClientContext { controller.keeper.inForce.current.originTLS }

    /// Serves until the task is cancelled or the service group shuts down; what is in flight then may take ten
    /// seconds to finish. To be called once. Throws ``ChallengeError`` with the code `proxyFailed`.
    public func run() async throws {
        let isFirst = state.withLockedValue { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else {
            throw ChallengeError(.proxyFailed, "run() was called twice", hint: "make another proxy")
        }
        let runtime: ProxyRuntime
        do {
            runtime = try await start()
        } catch {
            settle(.ended(error))
            throw error
        }
        let end = Gate()
        await withTaskCancellationOrGracefulShutdownHandler {
            await end.wait()
        } onCancelOrGracefulShutdown: {
            end.open()
        }
        settle(.ended(nil))
        // A cancelled task could not wait for what is in flight.
        await Task.detached { await runtime.stop() }.value
    }

    private func start() async throws(ChallengeError) -> ProxyRuntime {
        guard (0...65535).contains(port) else {
            throw ChallengeError(
                .proxyFailed, "\(port) is not a port", hint: "ports are 1 to 65535, 0 is a free one")
        }
        controller.keeper.require(.whenNeeded)
        var configuration = ProxyConfiguration()
        configuration.doors = [.tcp(host: "127.0.0.1", port: port)]
        do {
            let runtime = try await ProxyRuntime(
                keeper: controller.keeper, configuration: configuration, accessLog: nil, threads: 1,
                hasControlSocket: false, breaker: controller.breaker,
                serverTrustDelegate: serverTrustDelegate.map(AskedServerTrust.init),
                suppliedCredentials: credentialDelegate.map { delegate in
                    SuppliedCredentials(
                        delegate: AskedCredential(
                            delegate: delegate, keeper: controller.keeper, logger: controller.logger))
                }, logger: controller.logger)
            guard let port = runtime.doors.first?.split(separator: ":").last.flatMap({ Int($0) }) else {
                await runtime.stop()
                throw ChallengeError(.proxyFailed, "the proxy does not know its port")
            }
            settle(.running(Address(host: "127.0.0.1", port: port)))
            return runtime
        } catch let error as ChallengeError {
            throw error
        } catch {
            let complaint = Complaint.all(in: error).first
            throw ChallengeError(.proxyFailed, complaint?.message ?? "\(error)", hint: complaint?.hint)
        }
    }

    private func settle(_ new: State) {
        state.withLockedValue { $0.0 = new }
        settled.open()
    }
}
