// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignDeviceManagement
import CountersignProxy
import CountersignSignIn
import FoundationEssentials
import Glibc
import Logging

/// The proxy of a sign-in window, which answers the challenges of listed sites: in the home's running server if that
/// has the vault open, else in this process.
struct SignInDoor {
    /// What the window has to know.
    let door: EmbeddedAgent.Door
    private let runtime: ProxyRuntime?
    private let server: ServerProxy?
    /// Of a proxy in this process.
    private let keeper: PolicyKeeper?

    /// Starts the proxy. `access` remembers the passphrase if this process has asked for it already. `isOwn`: in this
    /// process, because the running server does not report responses.
    static func open(_ home: Home, _ access: VaultAccess, isOwn: Bool = false) async throws -> SignInDoor {
        let trust = ClientTrust(home: home, access: access)
        try trust.writeBundle()
        guard let bundle = realpath(home.bundle.path, nil) else {
            throw CountersignError(.environment, "cannot find \(home.bundle.path)")
        }
        defer { free(bundle) }
        let path = String(cString: bundle)
        if !isOwn, let server = try serverProxy(home, access) {
            let door = door(server.address, server.token, path)
            return SignInDoor(door: door, runtime: nil, server: server, keeper: nil)
        }
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: EnrollCommand.now, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        let (runtime, token) = try await start(keeper)
        return SignInDoor(
            door: door(runtime.addresses.first ?? "", token, path), runtime: runtime, server: nil, keeper: keeper)
    }

    /// Stops the proxy.
    func close() async {
        await runtime?.stop()
        _ = server?.end()
    }

    /// Starts another proxy, which reports the responses to the pages of the sign-in's window, whose hosts are
    /// `origins`. Only a window that has its bundle trusts its certificates.
    func observing(_ origins: [Origin], _ feed: ResponseFeed) async throws -> SpecialURLSupport.Doors {
        guard let keeper else {
            throw CountersignError(.environment, "the running server does not report the responses of pages")
        }
        let responses = ResponseObserver { response in
            feed.received(
                ResponseFeed.Response(origin: response.origin, headers: ResponseHeaders(response.fields)))
        }
        let (runtime, token) = try await Self.start(keeper, observed: (origins, responses))
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

    private static var logger: Logger { ConsoleLogHandler.logger(.warning) }

    /// A proxy of this process alone, and its password.
    private static func start(
        _ keeper: PolicyKeeper, observed: (origins: [Origin], responses: ResponseObserver)? = nil
    ) async throws -> (ProxyRuntime, Secret) {
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientToken = token
        configuration.admittedAncestor = getpid()
        configuration.drainSeconds = 0
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            isTemporary: observed != nil, observed: observed, logger: logger)
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

    private static func door(_ address: String, _ token: Secret, _ bundle: String) -> EmbeddedAgent.Door {
        EmbeddedAgent.Door(
            proxy: Secret(utf8: "http://countersign:\(token.utf8Text ?? "")@\(address)"), bundle: bundle)
    }

    private static func serverProxy(_ home: Home, _ access: VaultAccess) throws -> ServerProxy? {
        guard !access.secrets.isStandardInput, let server = access.server(failed: VaultAccess.opensVault),
            access.hasSameTickets(server, for: try home.sites().rules)
        else { return nil }
        return try server.openProxy(spoolBytes: 0, declined: VaultAccess.opensVault)
    }
}
