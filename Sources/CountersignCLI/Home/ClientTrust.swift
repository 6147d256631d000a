// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignCryptography
import CountersignProxy
import FoundationEssentials
import Glibc

/// The trust anchors and environment variables for clients of a home's proxy.
struct ClientTrust {
    let home: Home
    let access: VaultAccess

    /// The interception CA's root. Creates the CA if the home has none.
    func root() throws -> Certificate {
        let store = InterceptionStore(home: home)
        if let root = try store.root() { return root }
        let hosts = InterceptionStore.hosts(of: try home.sites())
        return try store.authority(for: hosts, in: try access.openOrCreate(), at: Int64(time(nil))).authority.root
    }

    /// Writes the bundles, and returns the variables that point programs at them and at the proxy on `address`, to be
    /// applied to the `inherited` environment.
    func environment(
        for address: ProxyConfiguration.ListeningAddress, token: Secret?, inherited: [String: String]
    ) throws -> ClientEnvironment {
        try writeBundle()
        guard case .tcp(let host, let port) = address else {
            throw CountersignError(.configuration, "a proxy variable needs HOST:PORT")
        }
        return ClientEnvironment(
            proxy: .init(host: host, port: port, token: token.flatMap(\.utf8Text)),
            bundlePath: try absolute(home.bundle), javaBundlePath: try absolute(home.javaBundle), inherited: inherited)
    }

    /// Writes the CA bundles for the current root and anchors.
    func writeBundle() throws {
        let bundle = TrustBundle(home: home, environment: ProcessInfo.processInfo.environment)
        try bundle.write(root: try root(), anchors: try home.anchors())
    }

    private func absolute(_ file: HomeFile) throws -> String {
        guard let path = realpath(file.path, nil) else {
            throw CountersignError(.environment, "cannot find \(file.path)")
        }
        defer { free(path) }
        return String(cString: path)
    }
}
