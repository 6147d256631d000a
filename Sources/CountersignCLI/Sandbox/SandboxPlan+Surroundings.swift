// SPDX-License-Identifier: Apache-2.0

import CountersignHome
import FoundationEssentials
import Glibc

extension SandboxPlan.Surroundings {
    /// Those of this process. `homes` are paths of homes of Countersign, which need not be there.
    static func current(homes: [String], environment: [String: String]) throws(CountersignError) -> Self {
        var persons: [String] = []
        if let entry = getpwuid(getuid()), let folder = entry.pointee.pw_dir { persons.append(String(cString: folder)) }
        if let folder = environment["HOME"] { persons.append(folder) }
        persons = persons.filter { $0.hasPrefix("/") }.map { Home(path: $0).path }
        persons += persons.compactMap(realPath)
        guard let folder = realPath("."), let executable = realPath("/proc/self/exe") else {
            throw .system(
                errno, "cannot find the working folder or this program",
                hint: "change to a folder that is there, and run this again")
        }
        return Self(
            system: systemFolders(), personFolders: Array(Set(persons)).sorted(),
            homes: Array(Set(homes.compactMap(realPath))).sorted(), workingFolder: folder, executable: executable)
    }

    /// The absolute path of what is at `path`, without symbolic links; nil if nothing is.
    static func realPath(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    private static func systemFolders() -> [SandboxPlan.SystemFolder] {
        let paths: [String] = SandboxPlan.systemFolders.map { "/\($0)" }.filter { realPath($0) != nil }
        let folders = paths.filter { realPath($0) == $0 }
        return paths.map { path in
            // On a merged system, /bin is a link to usr/bin.
            guard let real = realPath(path), folders.contains(where: { SandboxPlan.isInside(real, $0) }) else {
                return SandboxPlan.SystemFolder(path: path)
            }
            let link = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
            return SandboxPlan.SystemFolder(path: path, link: link)
        }
    }
}
