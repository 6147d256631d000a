// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The path from a symbolic link to its final target: the folders and further links whose change would redirect it.
struct LinkWay {
    /// A symbolic link on the path, and its folder.
    struct Link {
        let path: String
        let folder: String
    }

    /// The resolved path of the link's target.
    let target: String
    /// The further links on the path.
    let links: [Link]
    /// The resolved paths of the folders in which a name is looked up.
    private let folders: [String]

    /// The kernel's limit (path_resolution(7)).
    private static let linkLimit = 40

    /// Nil if the link leads nowhere.
    init?(from link: String) {
        guard var current = HomeFile.resolved(HomeFile.folder(of: link)), let first = Self.destination(of: link)
        else { return nil }
        var rest = first
        var (folders, links): ([String], [Link]) = ([], [])
        if first.isAbsolute { current = "/" }
        while let name = rest.parts.popLast() {
            if name == ".." {
                current = HomeFile.folder(of: current)
                continue
            }
            if !folders.contains(current) { folders.append(current) }
            let path = current == "/" ? "/\(name)" : "\(current)/\(name)"
            var found = stat()
            guard lstat(path, &found) == 0 else { return nil }
            guard found.st_mode & S_IFMT == S_IFLNK else {
                current = path
                continue
            }
            guard links.count < Self.linkLimit, let next = Self.destination(of: path) else { return nil }
            links.append(Link(path: path, folder: current))
            rest.parts += next.parts
            if next.isAbsolute { current = "/" }
        }
        target = current
        self.links = links
        self.folders = folders
    }

    /// The target, the folders of the path and all folders above these, without duplicates. Excludes folders above
    /// `end`.
    func places(upTo end: String) -> [String] {
        var places = [target]
        for start in [target] + folders {
            var current = start
            while true {
                if !places.contains(current) { places.append(current) }
                if current == end || current == "/" { break }
                current = HomeFile.folder(of: current)
            }
        }
        return places
    }

    /// The parts of the path in a link, the first one at the end.
    private static func destination(of link: String) -> (parts: [Substring], isAbsolute: Bool)? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) { chars in
                chars.baseAddress.map { readlink(link, $0, chars.count) } ?? -1
            }
        }
        guard count > 0 else { return nil }
        let text = String(decoding: buffer.prefix(count), as: UTF8.self)
        return (text.split(separator: "/").filter { $0 != "." }.reversed(), text.hasPrefix("/"))
    }
}
