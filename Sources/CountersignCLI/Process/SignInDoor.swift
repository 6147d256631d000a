// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignChallenges
import CountersignCryptography
import CountersignProxy
import CountersignSignIn
import FoundationEssentials
import Glibc

/// The proxy of a sign-in window, which answers the challenges of listed sites: in the home's running server if that
/// has the vault open, else in this process.
struct SignInDoor {
    /// What the window has to know.
    let door: EmbeddedAgent.Door
    private let runtime: ProxyRuntime?
    private let server: ServerProxy?

    /// Starts the proxy. `access` remembers the passphrase if this process has asked for it already.
    static func open(_ home: Home, _ access: VaultAccess) async throws -> SignInDoor {
        let trust = ClientTrust(home: home, access: access)
        try trust.writeBundle()
        guard let bundle = realpath(home.bundle.path, nil) else {
            throw CountersignError(.environment, "cannot find \(home.bundle.path)")
        }
        defer { free(bundle) }
        let path = String(cString: bundle)
        if let server = try serverProxy(home, access) {
            let door = door(server.address, server.token, path)
            return SignInDoor(door: door, runtime: nil, server: server)
        }
        let logger = ConsoleLogHandler.logger(.warning)
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: EnrollCommand.now, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        let token = Secret(utf8: Hex.encode(Randomness.bytes(16)))
        var configuration = ProxyConfiguration()
        configuration.listeningAddresses = [.tcp(host: "127.0.0.1", port: 0)]
        configuration.clientToken = token
        configuration.admittedAncestor = getpid()
        configuration.drainSeconds = 0
        let runtime = try await ProxyRuntime(
            keeper: keeper, configuration: configuration, accessLog: nil, threads: 1, hasControlSocket: false,
            logger: logger)
        return SignInDoor(door: door(runtime.addresses.first ?? "", token, path), runtime: runtime, server: nil)
    }

    /// Stops the proxy.
    func close() async {
        await runtime?.stop()
        _ = server?.end()
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
