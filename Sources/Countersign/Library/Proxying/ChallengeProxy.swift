// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Logging
import CountersignProxy
import ServiceLifecycle
import NIOConcurrencyHelpers

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
        case running(Address, ProxyRuntime)
        case ended((any Error)?)
    }

    private let controller: ChallengeController
    private let port: Int
    private let serverTrustDelegate: (any ServerTrustDelegate)?
    private let credentialDelegate: (any CredentialDelegate)?
    private let state = NIOLockedValueBox<(State, hasBegun: Bool)>((.new, false))
    /// Comes when there is an address, or will be none.
    private let settled = Gate()
    private let yeses = NIOLockedValueBox(0)

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
            case .running(let address, _): return address
            case .ended(let error?): throw error
            case .ended(nil), .new:
                throw ChallengeError(.proxyFailed, "the proxy has stopped", hint: "make another one")
            }
        }
    }

    /// The PEM file of everything that clients of the proxy have to trust: the system's anchors, those of the home,
    /// and the interception CA's root. It is there while the proxy runs and a listed site is https.
    public var trustBundlePath: String { controller.keeper.home.bundle.path }

    /// A connection that this process makes itself, as a socket that the caller closes; nil when the proxy does not run.
    /// It goes by no port: once the proxy has stopped, another process may be listening at that.
    package func connect() -> Int32? {
        // Under the lock the proxy cannot begin to stop.
        state.withLockedValue { state in
            if case .running(_, let runtime) = state.0 { runtime.connect() } else { nil }
        }
    }

    /// How often the delegate has let a request go on to a server that does not verify. Whoever counts one more than before
    /// may be using a connection that is agreed to.
    package var serversAgreedTo: Int { yeses.withLockedValue { $0 } }

    /// Serves until the task is cancelled or the service group shuts down; what is in flight then may take ten
    /// seconds to finish. To be called once. Throws ``ChallengeError`` with the code `proxyFailed`.
    public func run() async throws {
        let isFirst = state.withLockedValue { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else {
            throw ChallengeError(.proxyFailed, "run() was called twice", hint: "make another proxy", fault: .caller)
        }
        await controller.proxyBegins()
        let runtime: ProxyRuntime
        do {
            runtime = try await start()
        } catch {
            await controller.proxyEnded()
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
        await Task.detached { [controller] in
            await runtime.stop()
            await controller.proxyEnded()
        }.value
    }

    private func start() async throws(ChallengeError) -> ProxyRuntime {
        guard (0...65535).contains(port) else {
            throw ChallengeError(
                .proxyFailed, "\(port) is not a port", hint: "ports are 1 to 65535, 0 is a free one",
                fault: .caller)
        }
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: port)]
        do {
            let runtime = try await ProxyRuntime(
                keeper: controller.keeper, configuration: configuration, accessLog: nil, threads: 1,
                hasControlSocket: false, breaker: controller.breaker,
                serverTrustDelegate: serverTrustDelegate.map { delegate in
                    AskedServerTrust(delegate: delegate) { [yeses] in yeses.withLockedValue { $0 += 1 } }
                },
                suppliedCredentials: credentialDelegate.map { delegate in
                    ReplacementCredentials(
                        delegate: AskedCredential(
                            delegate: delegate, keeper: controller.keeper, logger: controller.logger),
                        policy: controller.keeper.policy)
                }, observer: controller.observer, renewals: controller.renewals, logger: controller.logger)
            guard let port = runtime.addresses.first?.split(separator: ":").last.flatMap({ Int($0) }) else {
                await runtime.stop()
                throw ChallengeError(.proxyFailed, "the proxy does not know its port")
            }
            settle(.running(Address(host: "127.0.0.1", port: port), runtime))
            return runtime
        } catch let error as ChallengeError {
            throw error
        } catch {
            let diagnostic = Diagnostic.all(in: error).first
            throw ChallengeError(
                .proxyFailed, diagnostic?.message ?? "\(error)", hint: "choose another `port:`; 0 picks a free one")
        }
    }

    private func settle(_ new: State) {
        state.withLockedValue { $0.0 = new }
        settled.open()
    }
}
