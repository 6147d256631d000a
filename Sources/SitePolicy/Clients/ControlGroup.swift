// SPDX-License-Identifier: Apache-2.0

/// The control group of a process (cgroups(7), version 2), and the unit and the container that its path names.
///
/// A process can move itself only to groups below one that was delegated to its user. So the outermost unit and the
/// outermost container count: what a path says further in is the word of whoever the outer group was delegated to.
package struct ControlGroup: Hashable, Sendable {
    /// Absolute, as in `/system.slice/backup.service`.
    package let path: String

    /// Nil for a path that does not begin at the root of the reader's cgroup namespace, and for one of a removed group.
    package init?(path: String) {
        let parts = path.utf8.split(separator: UInt8(ascii: "/"))
        guard path.utf8.first == UInt8(ascii: "/"), !parts.contains(where: { $0.elementsEqual("..".utf8) }),
            !path.hasSuffix(" (deleted)")
        else { return nil }
        self.path = path
    }

    /// Reads /proc/PID/cgroup: the line of version 2 begins with `0::`.
    package init?(contents: String) {
        let prefix = "0::".utf8
        let line = contents.utf8.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix) }
        guard let line else { return nil }
        self.init(path: String(Substring(line.dropFirst(prefix.count))))
    }

    /// Whether this is the group `ancestor` or one below it. `ancestor` is an absolute path without a slash at its end.
    package func isWithin(_ ancestor: String) -> Bool {
        path == ancestor || path.hasPrefix(ancestor + "/")
    }

    /// The unit of the system's manager, such as `backup.service`.
    package var unit: String? { Self.unit(in: components)?.name }

    /// The unit of a user's manager, such as `app-editor.service`.
    package var userUnit: String? {
        guard let (name, rest) = Self.unit(in: components), name.hasPrefix("user@"), name.hasSuffix(".service") else {
            return nil
        }
        return Self.unit(in: rest)?.name
    }

    /// The 64 hexadecimal digits that podman or docker gave to the container.
    package var containerID: String? {
        let parts = components
        for (index, part) in parts.enumerated() {
            var name = part
            if name.hasSuffix(".scope") { name = name.dropLast(".scope".count) }
            if name.hasPrefix("libpod-") || name.hasPrefix("docker-") {
                name = name.dropFirst("docker-".count)
            } else if index == 0 || parts[index - 1] != "docker" {
                continue
            }
            if name.utf8.count == 64, name.utf8.allSatisfy(Self.isHexDigit) { return String(name) }
        }
        return nil
    }

    static func isHexDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// The endings of units that have processes.
    static let unitEndings = [".service", ".scope", ".socket", ".mount", ".swap"]

    private var components: ArraySlice<Substring> { path.split(separator: "/")[...] }

    /// The first component that is not a slice, if it is a unit, and those after it. systemd puts `_` before a name
    /// that the kernel could take for one of its own files.
    private static func unit(in parts: ArraySlice<Substring>) -> (name: String, rest: ArraySlice<Substring>)? {
        let rest = parts.drop { $0.hasSuffix(".slice") }
        guard var name = rest.first else { return nil }
        if name.hasPrefix("_") { name = name.dropFirst() }
        guard unitEndings.contains(where: { name.hasSuffix($0) }) else { return nil }
        return (String(name), rest.dropFirst())
    }
}
