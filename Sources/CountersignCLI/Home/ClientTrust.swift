// SPDX-License-Identifier: Apache-2.0

import Countersign
import CountersignCertificates
import CountersignClientSetup
import CountersignCryptography
import CountersignHome
import CountersignProxy
import FoundationEssentials
import Glibc

/// The trust anchors and environment variables for clients of a home's proxy.
struct ClientTrust {
    let home: Home
    let access: VaultAccess

    /// The interception CA's root. Creates the CA if the home has none.
    func root() throws -> Certificate {
        if let root = try InterceptionStore(home: home).root() { return root }
        return try access.session(creates: true).perform(EnsureAuthority())
    }

    /// Writes the bundles and the files of clients, and returns the variables that point programs at them and at the
    /// proxy on `address`, to be applied to the `inherited` environment.
    func environment(
        for address: ProxyConfiguration.ListeningAddress, token: Secret?, files: ClientFiles,
        inherited: [String: String]
    ) throws -> ClientEnvironment {
        try writeBundle()
        guard case .tcp(let host, let port) = address else {
            throw CountersignError(.configuration, "a proxy variable needs HOST:PORT")
        }
        let proxy = ClientEnvironment.Proxy(host: host, port: port, token: token.flatMap(\.utf8Text))
        let bundle = try absolute(home.bundle.path)
        return ClientEnvironment(
            proxy: proxy, bundlePath: bundle, javaBundlePath: try absolute(home.javaBundle.path),
            files: try files.write(proxy: proxy, bundlePath: bundle, inherited: inherited), inherited: inherited)
    }

    /// The files for the clients of the proxy with this name.
    func files(named name: String) throws -> ClientFiles {
        try home.prepare()
        return ClientFiles(home: Home(path: try absolute(home.path)), name: name)
    }

    /// Writes the CA bundles for the current root and anchors.
    func writeBundle() throws {
        let bundle = TrustBundle(home: home, environment: ProcessInfo.processInfo.environment)
        try bundle.write(root: try root(), anchors: try home.anchors())
    }

    private func absolute(_ name: String) throws -> String {
        guard let path = realpath(name, nil) else {
            throw CountersignError(.environment, "cannot find \(name)")
        }
        defer { free(path) }
        return String(cString: path)
    }
}
