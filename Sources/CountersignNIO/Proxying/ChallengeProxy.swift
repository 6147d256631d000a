// SPDX-License-Identifier: Apache-2.0

public import Countersign
import CountersignCryptography
import CountersignHome
import Logging
import CountersignAnswering
import CountersignProxy
import NIOConcurrencyHelpers

/// An HTTP proxy inside a Swift program. It answers challenges of listed sites for all its clients, using the home of a
/// `ChallengeController`.
///
/// It listens on 127.0.0.1 and serves only processes of this user. Call ``run()`` in a task. The product
/// `CountersignNIO` makes it a service of swift-service-lifecycle.
public final class ChallengeProxy: Sendable {
    /// The address on which a proxy listens.
    public struct Address: Hashable, Sendable, CustomStringConvertible {
        /// `127.0.0.1`.
        public let host: String
        /// The port, which is never 0.
        public let port: Int

        /// The address as a proxy URL: `http://127.0.0.1:3128`.
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
    /// Opens when the proxy listens, or has failed.
    private let settled = Gate()
    private let acceptances = NIOLockedValueBox(0)
    /// Opens when the proxy is to stop.
    private let end = Gate()

    /// Creates a proxy, which does not run yet. Port 0 selects a free port.
    ///
    /// `serverTrustDelegate` decides about listed servers that cannot be verified; without it, they are refused as by
    /// `countersign serve`. `credentialDelegate` supplies a password if a site rejects the stored one; without it, the
    /// 401 is delivered.
    public init(
        _ controller: ChallengeController, port: Int = 0, serverTrustDelegate: (any ServerTrustDelegate)? = nil,
        credentialDelegate: (any CredentialDelegate)? = nil
    ) {
        self.controller = controller
        self.port = port
        self.serverTrustDelegate = serverTrustDelegate
        self.credentialDelegate = credentialDelegate
    }

    /// The address on which the proxy listens. Waits until it does. Throws the errors of ``run()``, `ChallengeError`
    /// with the code `proxyFailed` if the proxy has stopped, and `CancellationError`.
    public var address: Address {
        get async throws {
            await settled.wait()
            try Task.checkCancellation()
            switch state.withLockedValue({ $0.0 }) {
            case .running(let address, _): return address
            case .ended(let error?): throw error
            case .ended(nil), .new:
                throw ChallengeError(.proxyFailed, "the proxy has stopped", hint: "create another one")
            }
        }
    }

    /// The path of a PEM file with all certificates that clients of the proxy must trust: the system's anchors, those
    /// of the home, and the interception CA's root. The file exists while the proxy runs and a listed site is
    /// intercepted.
    public var trustBundlePath: String { controller.keeper.home.bundle.path }

    /// Connects to the proxy through a socket pair, and returns the descriptor, which the caller closes; nil if the
    /// proxy is not running. Does not use the port, because another process could be listening there after the proxy
    /// has stopped.
    package func connect() -> Int32? {
        // While the lock is held, the proxy cannot begin to stop.
        state.withLockedValue { state in
            if case .running(_, let runtime) = state.0 { runtime.connect() } else { nil }
        }
    }

    /// Returns when the passwords that sites have accepted so far are in the vault, or could not be stored.
    func finishStoringPasswords() async {
        guard case .running(_, let runtime) = state.withLockedValue({ $0.0 }) else { return }
        await runtime.delegateCredentials?.finishStoring()
    }

    /// How often the delegate has accepted an unverified server. If it has increased since a request was sent, its
    /// connection may be one for which the delegate has accepted a server.
    package var acceptedServerCount: Int { acceptances.withLockedValue { $0 } }

    /// Stops the proxy: ``run()`` returns when the requests in progress have finished, after ten seconds at most. A
    /// proxy that does not run yet will not.
    public func stop() { end.open() }

    /// Serves until the task is cancelled or ``stop()`` is called. Requests in progress then have ten seconds to
    /// finish. Call it once. Throws `ChallengeError` with the code `proxyFailed`.
    public func run() async throws {
        let isFirst = state.withLockedValue { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else {
            throw ChallengeError(.proxyFailed, "run() was called twice", hint: "create another proxy", fault: .caller)
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
        // Returns when the task is cancelled, too.
        await end.wait()
        settle(.ended(nil))
        // Detached, because a cancelled task could not wait for requests in progress.
        await Task.detached { [controller] in
            await runtime.stop()
            await controller.proxyEnded()
        }.value
    }

    private func start() async throws(ChallengeError) -> ProxyRuntime {
        guard (0...65535).contains(port) else {
            throw ChallengeError(
                .proxyFailed, "\(port) is not a port", hint: "use 1 to 65535, or 0 for a free port",
                fault: .caller)
        }
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: port)]
        do {
            let runtime = try await ProxyRuntime(
                keeper: controller.keeper, configuration: configuration, accessLog: nil, threads: 1,
                hasControlSocket: false,
                serverTrustDelegate: serverTrustDelegate.map { delegate in
                    AskedServerTrust(delegate: delegate) { [acceptances] in acceptances.withLockedValue { $0 += 1 } }
                },
                delegateCredentials: credentialDelegate.map { delegate in
                    ReplacementCredentials(
                        delegate: AskedCredential(
                            delegate: delegate, keeper: controller.keeper, logger: controller.logger),
                        policy: controller.keeper.policy, breaker: controller.breaker)
                }, observer: controller.observer, renewals: controller.renewals,
                scopeAsker: controller.scopeAsker, logger: controller.logger)
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
                .proxyFailed, diagnostic?.message ?? "\(error)", hint: "choose another `port:`; 0 selects a free one")
        }
    }

    private func settle(_ new: State) {
        state.withLockedValue { $0.0 = new }
        settled.open()
    }
}
