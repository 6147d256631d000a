// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a person can do about a refusal of the system, where the operation itself suggests nothing better.
package enum SystemFault {
    /// A hint for the number of a failed system call, errno(3); nil if the sentence of the error says all there is.
    package static func remedy(for number: Int32) -> String? {
        switch number {
        case ENOSPC, EDQUOT: "make room on the disk: `df -h` shows which one is full"
        case EROFS: "name a folder that can be written: this one is mounted read-only"
        case EBADF: "it is closed: run the command with standard input and output open"
        case ELOOP: "the links lead in a circle: `namei PATH` shows them"
        case ENAMETOOLONG: "use a shorter path"
        case EISDIR: "a file is expected: move the folder away, or name another path"
        case ENOTDIR: "a part of the path is a file and not a folder: `namei PATH` shows which"
        case EMFILE, ENFILE: "too many files are open: `ulimit -n 4096` permits more"
        case EIO: "the disk may be damaged: `dmesg` says more"
        default: nil
        }
    }
}
