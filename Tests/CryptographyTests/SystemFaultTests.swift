// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc
import Testing

@Suite struct SystemFaultTests {
    @Test(arguments: [
        (ENOSPC, "df -h"), (EDQUOT, "df -h"), (EROFS, "read-only"), (EBADF, "closed"), (ELOOP, "namei"),
        (ENAMETOOLONG, "shorter"), (EISDIR, "folder"), (ENOTDIR, "namei"), (EMFILE, "ulimit"), (EIO, "dmesg"),
    ])
    func aRefusalOfTheSystemHasARemedy(number: Int32, word: String) {
        #expect(SystemFault.remedy(for: number)?.contains(word) == true)
    }

    @Test func whatTheSentenceSaysNeedsNone() {
        #expect(SystemFault.remedy(for: ENOENT) == nil && SystemFault.remedy(for: EACCES) == nil)
    }
}
