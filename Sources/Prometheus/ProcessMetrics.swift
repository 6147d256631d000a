// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the kernel reports about this process, read from `/proc`: the only file of this module that does I/O.
package struct ProcessMetrics: Equatable, Sendable {
    package let cpuSeconds: Double
    package let residentBytes: Double
    /// Unix time.
    package let startSeconds: Double
    package let openFileDescriptors: Int?

    /// Of this process. Nil without `/proc`.
    package static func current() -> ProcessMetrics? {
        guard let stat = contents(of: "/proc/self/stat"), let system = contents(of: "/proc/stat") else { return nil }
        return ProcessMetrics(
            stat: stat, systemStat: system, ticksPerSecond: sysconf(Int32(_SC_CLK_TCK)),
            pageBytes: sysconf(Int32(_SC_PAGESIZE)), openFileDescriptors: openFileDescriptorCount())
    }

    /// `stat` is `/proc/PID/stat`, and `systemStat` is `/proc/stat` (proc(5)). Nil if they are not.
    init?(stat: String, systemStat: String, ticksPerSecond: Int, pageBytes: Int, openFileDescriptors: Int?) {
        // The second field is the name in parentheses, which may contain blanks and parentheses.
        guard let name = stat.lastIndex(of: ")"), ticksPerSecond > 0 else { return nil }
        let fields = stat[name...].dropFirst().split(whereSeparator: \.isWhitespace)
        let boot = systemStat.split(separator: "\n").first { $0.hasPrefix("btime ") }?.dropFirst("btime ".count)
        guard fields.count > 21, let user = Double(fields[11]), let kernel = Double(fields[12]),
            let start = Double(fields[19]), let pages = Double(fields[21]), let booted = boot.flatMap({ Double($0) })
        else { return nil }
        cpuSeconds = (user + kernel) / Double(ticksPerSecond)
        residentBytes = pages * Double(pageBytes)
        startSeconds = booted + start / Double(ticksPerSecond)
        self.openFileDescriptors = openFileDescriptors
    }

    package func write(to scrape: inout Scrape) {
        scrape.counter("process.cpu", cpuSeconds)
        scrape.gauge("process.resident_memory", residentBytes)
        scrape.gauge("process.start_time", startSeconds)
        if let openFileDescriptors { scrape.gauge("process.open_fds", Double(openFileDescriptors)) }
    }

    private static func contents(of path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        while true {
            let part = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
                count = max(0, read(file, buffer.baseAddress, buffer.count))
            }
            if part.isEmpty { return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self) }
            bytes += part
        }
    }

    private static func openFileDescriptorCount() -> Int? {
        guard let folder = opendir("/proc/self/fd") else { return nil }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        // `.`, `..` and the descriptor of the folder itself.
        return max(0, count - 3)
    }
}
