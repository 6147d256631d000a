// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import Glibc

extension Home {
    /// Warnings about the files of `AllowedSites` that are not read because of their names.
    package var ignoredSiteFiles: [Diagnostic] {
        ignored(in: Self.sitesFolder, suffix: ".sites") { path in
            "mv \(ShellWord.quoted(path)) \(ShellWord.quoted(path.withoutExtension + ".sites"))"
        }
    }

    /// Warnings about the files of `Certs/anchors` that are not read because of their names.
    package var ignoredAnchorFiles: [Diagnostic] {
        ignored(in: Self.anchorsFolder, suffix: ".pem") { path in
            "countersign trust anchor add \(ShellWord.quoted(path)) && rm \(ShellWord.quoted(path))"
        }
    }

    /// Whether the file at `path` begins with `#!`: the kernel runs the interpreter that it names (execve(2)). False
    /// for a file that cannot be read.
    package static func isScript(_ path: String) -> Bool {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return false }
        defer { close(file) }
        var beginning = (UInt8(0), UInt8(0))
        return read(file, &beginning, 2) == 2 && beginning == (UInt8(ascii: "#"), UInt8(ascii: "!"))
    }

    private func ignored(in folder: String, suffix: String, command: (String) -> String) -> [Diagnostic] {
        // A folder that cannot be read is reported when its files are.
        ((try? ignoredFiles(in: folder, suffix: suffix)) ?? []).map { file in
            Diagnostic(
                "\(file.name) is ignored, because its name does not end in \(suffix)",
                hint: "`\(command(file.path))`")
        }
    }
}

extension String {
    /// The path without the last extension of its file name.
    fileprivate var withoutExtension: String {
        guard let dot = lastIndex(of: "."), dot > (lastIndex(of: "/") ?? startIndex) else { return self }
        return String(self[..<dot])
    }
}
