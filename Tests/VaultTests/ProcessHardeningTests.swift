// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Testing

@testable import CountersignVault

@Suite struct ProcessHardeningTests {
    @Test func memoryIsKeptFromOthers() async {
        await #expect(processExitsWith: .success) {
            let warnings = ProcessHardening.apply()
            #expect(warnings.allSatisfy { $0.contains("ulimit -l") })
            #expect(ProcessHardening.hasSecureHeap)
            #expect(!ProcessHardening.isDumpable)
            var limit = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0)
            #expect(limit.rlim_cur == 0)
            #expect(ProcessHardening.apply().isEmpty)
        }
    }

    @Test func aVaultOpensInAHardenedProcess() async {
        await #expect(processExitsWith: .success) {
            _ = ProcessHardening.apply()
            let home = try TemporaryHome()
            try home.sealedVault.create(openedBy: .file).update(fill)
            #expect(try home.sealedVault.open(passphrase: unasked).contents == filled())
        }
    }
}
