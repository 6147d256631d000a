// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import Glibc

/// The names of containers, in the files in which podman and docker keep them. Reads files, so it must not run on an
/// event loop.
enum ContainerNames {
    /// The names of the container with this ID, of 64 hexadecimal digits. Nil if they are not known: this user cannot
    /// read the files, or they do not mention the container.
    static func names(of id: String) -> Set<String>? {
        names(of: id, podman: podmanFolders, docker: "/var/lib/docker/containers")
    }

    static func names(of id: String, podman: [String], docker: String) -> Set<String>? {
        for folder in podman {
            for driver in ["overlay", "vfs", "btrfs", "zfs"] {
                for file in ["containers.json", "volatile-containers.json"] {
                    guard let bytes = contents(of: "\(folder)/\(driver)-containers/\(file)"),
                        let names = podmanNames(of: id, in: bytes)
                    else { continue }
                    return names
                }
            }
        }
        return contents(of: "\(docker)/\(id)/config.v2.json").flatMap { dockerName(in: $0) }.map { [$0] }
    }

    /// The folders of containers/storage, for the user that this process runs as.
    private static var podmanFolders: [String] {
        guard getuid() != 0 else { return ["/var/lib/containers/storage"] }
        var folders: [String] = []
        if let data = getenv("XDG_DATA_HOME").map({ String(cString: $0) }), data.hasPrefix("/") {
            folders.append("\(data)/containers/storage")
        }
        if let home = getenv("HOME").map({ String(cString: $0) }), home.hasPrefix("/") {
            folders.append("\(home)/.local/share/containers/storage")
        }
        return folders
    }

    /// `[{"id": "…", "names": ["web"], …}, …]`
    static func podmanNames(of id: String, in bytes: [UInt8]) -> Set<String>? {
        guard case .array(let containers)? = parse(bytes)?.content,
            case .array(let names)? = containers.first(where: { $0["id"]?.text == id })?["names"]?.content
        else { return nil }
        return Set(names.compactMap(\.text))
    }

    /// `{"Name": "/web", …}`
    static func dockerName(in bytes: [UInt8]) -> String? {
        guard let text = parse(bytes)?["Name"]?.text else { return nil }
        return text.hasPrefix("/") ? String(text.dropFirst()) : text
    }

    private static func parse(_ bytes: [UInt8]) -> JSONValue? {
        try? JSONParser.parse(bytes, limits: JSONLimits(bytes: limitBytes, depth: 32, nameBytes: 1024))
    }

    private static let limitBytes = 4 << 20

    /// Nil for a file that cannot be read, or is too long.
    private static func contents(of path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var found = stat()
        guard fstat(file, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_size <= limitBytes else {
            return nil
        }
        var bytes = [UInt8](repeating: 0, count: Int(found.st_size))
        var length = 0
        while length < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                read(file, $0.baseAddress?.advanced(by: length), $0.count - length)
            }
            guard count > 0 else { return nil }
            length += count
        }
        return bytes
    }
}

extension JSONValue {
    fileprivate var text: String? { if case .string(let text) = content { text } else { nil } }
}
