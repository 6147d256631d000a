// SPDX-License-Identifier: Apache-2.0

import CountersignAudit
import CountersignCryptography
import Glibc

/// A record of the audit, in a file of a temporary folder. The time of a checkpoint, one for each 1,000 records, is not
/// in the figures: the proxy does not make it on an event loop.
enum AuditBenchmarks {
    static let groups = [BenchmarkGroup(prefix: "audit-record", make: records)]

    private static func records() throws -> [Benchmark] {
        let folder = try Checkout.temporaryFolder()
        let path = "\(folder)/audit"
        let key = try require(ES256Key(scalar: Secret([UInt8](repeating: 1, count: 32))), "a key is not valid")
        let audit = try AuditFile(path: path, key: AuditKey(key), run: { _ in }) { _ in }
        // The file stays until the process ends.
        guard unlink(path) == 0, rmdir(folder) == 0 else { throw SetUpFailure("cannot remove \(folder)") }
        let site = "https://intranet.acme.example:443"
        return [
            Benchmark("audit-record", .atMost) {
                let use = CredentialUse(
                    time: Timestamp(WallClock.now()), uid: 1000, pid: 41234, program: "/usr/bin/git",
                    cgroup: "/user.slice/user-1000.slice/user@1000.service/app.slice/app-shell.scope", site: site,
                    scheme: "ntlm", credential: "enrollment", generation: 3, method: "GET", status: 200,
                    result: .accepted)
                guard audit.append(use) else { throw SetUpFailure("a use is not recorded") }
            }
        ]
    }
}
