// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import Countersign
import CountersignCryptography
import FoundationEssentials
import Glibc
import CountersignProxy

/// What clients of a home's proxy are to trust.
struct ClientTrust {
    let home: Home
    let door: VaultDoor

    /// The interception CA's root; the CA is made where there is none.
    func root() throws -> Certificate {
        let store = InterceptionStore(home: home)
        if let root = try store.root() { return root }
        let hosts = InterceptionStore.hosts(of: try home.sites())
        return try store.authority(for: hosts, in: try door.openOrCreate(), at: Int64(time(nil))).authority.root
    }

    /// Writes the bundles as they should be now; gives the variables that tell programs of them and of the proxy behind
    /// `door`, for an environment that is `inherited` otherwise.
    func environment(
        for door: ProxyConfiguration.ListeningAddress, token: Secret?, inherited: [String: String]
    ) throws -> ClientEnvironment {
        try writeBundle()
        guard case .tcp(let host, let port) = door else {
            throw CountersignError(.configuration, "a proxy variable takes HOST:PORT")
        }
        return ClientEnvironment(
            proxy: .init(host: host, port: port, token: token.flatMap(\.utf8Text)),
            bundlePath: try absolute(home.bundle), javaBundlePath: try absolute(home.javaBundle), inherited: inherited)
    }

    /// Writes the bundles as they should be now.
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
