// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import Glibc

/// Write leases (fcntl(2), F_SETLEASE) on files of a folder. The kernel grants one only for a file that no other
/// process has open, and delays other openers of the file until the lease is released.
final class FileLeases {
    private var descriptors: [String: Int32] = [:]

    // F_SETLEASE, F_GETLEASE and F_SETSIG of <fcntl.h>, which are invisible to Swift.
    private static let (setLease, getLease, setSignal): (Int32, Int32, Int32) = (1024, 1025, 10)

    private init() {}

    /// Leases on those files that exist. Returns nil if another program has one of them open, if one is not a regular
    /// file with a single name, or if the file system has no leases. Waits up to 0.2 seconds for a program that has a
    /// file open for a moment only, such as a child that has not closed its copy of a descriptor yet.
    static func taken(on names: [String], in folder: OpenFolder) -> FileLeases? {
        for _ in 0..<10 {
            let leases = FileLeases()
            if names.allSatisfy({ leases.take($0, in: folder) }) { return leases }
            usleep(20_000)
        }
        return nil
    }

    /// Returns whether the file has a lease, or does not exist.
    private func take(_ name: String, in folder: OpenFolder) -> Bool {
        guard folder.has(name) else { return true }
        guard folder.hasFile(name) else { return false }
        let descriptor = folder.open(reading: name)
        guard descriptor >= 0 else { return false }
        descriptors[name] = descriptor
        // The kernel signals the holder of a lease if another process waits: SIGIO would end the process, SIGURG does
        // not.
        _ = fcntl(descriptor, Self.setSignal, SIGURG)
        return fcntl(descriptor, Self.setLease, Int32(F_WRLCK)) == 0
    }

    deinit { for descriptor in descriptors.values { close(descriptor) } }

    /// Whether no other process has tried to open one of the files since.
    var areIntact: Bool { descriptors.values.allSatisfy { fcntl($0, Self.getLease) == Int32(F_WRLCK) } }

    /// The names of the files.
    var names: Set<String> { Set(descriptors.keys) }

    /// The permissions and the owner.
    func status(of name: String) -> stat? {
        var found = stat()
        return descriptors[name].flatMap { fstat($0, &found) == 0 ? found : nil }
    }

    /// Nil if it cannot be read, or has more than `limitBytes`. Another descriptor would have to wait for the lease.
    func contents(of name: String, upTo limitBytes: Int) -> [UInt8]? {
        guard let descriptor = descriptors[name], let size = status(of: name)?.st_size,
            lseek(descriptor, 0, SEEK_SET) == 0
        else { return nil }
        return try? HomeFile(path: name).contents(of: descriptor, about: Int(size), upTo: limitBytes)
    }
}
