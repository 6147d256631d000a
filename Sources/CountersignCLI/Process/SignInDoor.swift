// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignAddresses
import CountersignHome
import CountersignNIO
import CountersignSignIn
import FoundationEssentials

/// The proxy of a window for a sign-in or for its compliance service, which answers the challenges of listed sites: in
/// the home's running server if that has the vault open, else in this process.
struct SignInDoor: Sendable {
    /// The window's way to the proxy.
    let door: EmbeddedAgent.Door
    /// In this process.
    private let own: WindowProxy?
    private let server: ServerProxy?

    /// Starts the proxy for the profile's pages; returns nil if the agent shows them without one. `access` remembers
    /// the passphrase if this process has asked for it already. `managesDevice`: the pages may manage the device.
    static func open(
        for profile: SignInProfile, in agent: UserAgentKind, _ home: Home, _ access: VaultAccess,
        managesDevice: Bool = false
    ) async throws -> SignInDoor? {
        // WebKit sends no plain http through a proxy with a password.
        guard agent == .embedded, profile.transport == .secure else { return nil }
        // The running server neither reports responses nor proves the device to pages.
        let isOwn = try managesDevice || provesDevice(profile, in: home)
        return try await open(home, access, isOwn: isOwn)
    }

    private static func open(_ home: Home, _ access: VaultAccess, isOwn: Bool) async throws -> SignInDoor {
        try ClientTrust(home: home, access: access).writeBundle()
        if !isOwn, let server = try serverProxy(home, access) {
            let door = WindowProxy.door(server.address, server.token, try WindowProxy.bundle(of: home))
            return SignInDoor(door: door, own: nil, server: server)
        }
        let logger = ConsoleLogHandler.logger(.warning)
        let keeper = try PolicyKeeper(
            home: home, interception: .always, environment: ProcessInfo.processInfo.environment, logger: logger,
            now: EnrollCommand.now, again: access.again, passphrase: access.passphrase)
        if let shut = keeper.vaultErrorAtStart { throw shut }
        let own = try await WindowProxy.start(keeper, logger: logger)
        return SignInDoor(door: own.door, own: own, server: nil)
    }

    /// Whether pages of the profile's own hosts may ask for this device's certificate.
    private static func provesDevice(_ profile: SignInProfile, in home: Home) throws -> Bool {
        let sites = try home.sites()
        let origins = [profile.issuer.url.origin] + profile.navigationOrigins + (profile.compliance?.pageOrigins ?? [])
        return origins.contains { origin in
            // The window's requests are not known, so that no line which is for some only answers them.
            guard case .answer(let rule) = sites.verdict(for: origin, request: nil) else { return false }
            return rule.answer.contains(.pkeyauth)
        }
    }

    /// Stops the proxy, also in a task that was cancelled.
    func close() async {
        await Task.detached { [self] in
            await own?.stop()
            _ = server?.end()
        }.value
    }

    /// Starts another proxy, which reports the responses to the pages of the sign-in's window.
    func observing(_ origins: [Origin], _ feed: ResponseFeed) async throws -> SpecialURLSupport.Doors {
        guard let own else {
            throw CountersignError(.environment, "the running server does not report the responses of pages")
        }
        return try await own.observing(origins, feed)
    }

    private static func serverProxy(_ home: Home, _ access: VaultAccess) throws -> ServerProxy? {
        guard !access.secrets.isStandardInput, let server = access.server(failed: VaultAccess.opensVault),
            access.hasSameTickets(server, for: try home.sites().rules)
        else { return nil }
        return try server.openProxy(spoolBytes: 0, declined: VaultAccess.opensVault)
    }
}
