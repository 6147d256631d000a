// SPDX-License-Identifier: Apache-2.0

package import Countersign
package import CountersignAddresses
package import CountersignCryptography
import CountersignDeviceManagement
import CountersignAnswering
package import CountersignHome
import CountersignProxy
import CountersignRouting
package import CountersignSignIn
import FoundationEssentials
import Glibc
package import Logging

/// The proxy of a sign-in's window in this process, which answers the challenges of listed sites. It listens on a port
/// of the loopback interface, and serves only descendants of this process that know its password.
package final class WindowProxy: Sendable {
    /// The window's way to the proxy.
    package let door: EmbeddedAgent.Door
    private let runtime: ProxyRuntime
    private let keeper: PolicyKeeper
    private let logger: Logger

    private init(_ door: EmbeddedAgent.Door, _ runtime: ProxyRuntime, _ keeper: PolicyKeeper, _ logger: Logger) {
        self.door = door
        self.runtime = runtime
        self.keeper = keeper
        self.logger = logger
    }

    /// Starts the proxy. `keeper` always has an interception CA. `isTemporary`: `keeper` is not for this window alone.
    package static func start(
        _ keeper: PolicyKeeper, isTemporary: Bool = false, renewals: RenewalKeeper? = nil, logger: Logger
    ) async throws -> WindowProxy {
        let bundle = try bundle(of: keeper.home)
        let (runtime, token) = try await runtime(keeper, isTemporary: isTemporary, renewals: renewals, logger: logger)
        let device = DeviceProof(policy: keeper.policy, now: { Int64(time(nil)) })
        return WindowProxy(door(runtime.addresses.first ?? "", token, bundle, device), runtime, keeper, logger)
    }

    /// Stops the proxy.
    package func stop() async { await runtime.stop() }

    /// Starts another proxy, which reports the responses to the pages of the sign-in's window, whose hosts are
    /// `origins`. Only a window that has its bundle trusts its certificates.
    package func observing(_ origins: [Origin], _ feed: ResponseFeed) async throws -> SpecialURLSupport.Doors {
        let responses = ResponseObserver { response in
            let headers = CountersignDeviceManagement.ResponseHeaders(response.fields)
            feed.received(PageResponse(origin: response.origin, status: response.status, headers: headers))
        }
        let (runtime, token) = try await Self.runtime(
            keeper, isTemporary: true, observed: (origins, responses), logger: logger)
        do {
            let bundle = try Self.temporaryBundle(adding: runtime.ownAuthority?.root.pem ?? "", to: door.bundle)
            return SpecialURLSupport.Doors(
                main: Self.door(runtime.addresses.first ?? "", token, bundle), session: door
            ) {
                await runtime.stop()
                unlink(bundle)
            }
        } catch {
            await runtime.stop()
            throw error
        }
    }

    /// The absolute path of the home's bundle. Throws without one.
    package static func bundle(of home: Home) throws(CountersignError) -> String {
        guard let path = realpath(home.bundle.path, nil) else {
            throw CountersignError(.environment, "cannot find \(home.bundle.path)")
        }
        defer { free(path) }
        return String(cString: path)
    }

    /// The window's settings for the proxy on `address`.
    package static func door(
        _ address: String, _ token: Secret, _ bundle: String, _ device: DeviceProof? = nil
    ) -> EmbeddedAgent.Door {
        EmbeddedAgent.Door(
            proxy: Secret(utf8: "http://countersign:\(token.utf8Text ?? "")@\(address)"), bundle: bundle,
            device: device)
    }

    /// A proxy of this process alone, and its password.
    private static func runtime(
        _ keeper: PolicyKeeper, isTemporary: Bool, renewals: RenewalKeeper? = nil,
        observed: (origins: [Origin], responses: ResponseObserver)? = nil, logger: Logger
    ) async throws -> (ProxyRuntime, Secret) {
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientTokens = [ClientToken(token)]
        configuration.admittedAncestor = getpid()
        configuration.drainSeconds = 0
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            isTemporary: isTemporary, renewals: renewals, observed: observed,
            routes: try await ControlRoutes.finder(), logger: logger)
        return (runtime, token)
    }

    /// A file of this user's alone with the certificates of `bundle` and one more. Returns its path.
    private static func temporaryBundle(adding certificate: String, to bundle: String) throws -> String {
        let folder = FileManager.default.temporaryDirectory.path
        var template = Array("\(folder)/countersign-window-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard descriptor >= 0 else { throw CountersignError(.environment, "cannot create a file in \(folder)") }
        Glibc.close(descriptor)
        let known = try Data(contentsOf: URL(fileURLWithPath: bundle))
        try (known + Data("\n\(certificate)".utf8)).write(to: URL(fileURLWithPath: path))
        return path
    }
}
