// SPDX-License-Identifier: Apache-2.0

import Certificates
import Countersign
import Cryptography
import Foundation
import Proxy

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

    /// Writes the bundle as it should be now; gives its absolute path.
    func writeBundle() throws -> String {
        let bundle = TrustBundle(home: home, environment: ProcessInfo.processInfo.environment)
        try bundle.write(root: try root(), anchors: try home.anchors())
        guard let path = realpath(home.bundle.path, nil) else {
            throw CountersignError(.environment, "cannot find \(home.bundle.path)")
        }
        defer { free(path) }
        return String(cString: path)
    }
}

/// A proxy as a variable names it.
struct ProxyURL {
    let door: ProxyConfiguration.Door
    let token: Secret?

    var text: String {
        guard case .tcp(let host, let port) = door else { return "" }
        let login = token.flatMap(\.utf8Text).map { "countersign:\($0)@" } ?? ""
        return "http://\(login)\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }
}
