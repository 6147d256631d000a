// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
package import CountersignHome

/// The options that make Subversion use the proxy. It reads no variable, and a configuration of its own would hide the
/// user's passwords from it.
package struct SubversionOptions {
    /// The options for a proxy at `host` and `port` without a password, and for the CA in the file at
    /// `rootPath`, as a shell reads them. Subversion reads only the first certificate of a file.
    static func text(host: String, port: Int, rootPath: String) -> String {
        [("http-proxy-host", host), ("http-proxy-port", "\(port)"), ("ssl-authority-files", rootPath)]
            .map { "--config-option servers:global:\($0)=\(ShellWord.quoted($1))" }.joined(separator: " ")
    }

    /// The warning before `words` run; nil unless they run Subversion without these options.
    package static func warning(for words: [String], rootPath: String) -> Diagnostic? {
        guard let program = words.first, program.split(separator: "/").last == "svn",
            !words.contains(where: { $0.contains("http-proxy-host") || $0.hasPrefix("--config-dir") })
        else { return nil }
        let options = text(host: "127.0.0.1", port: 3128, rootPath: rootPath)
        return Diagnostic(
            "svn reads no variable for a proxy, so that it connects directly",
            hint: "start `countersign serve`, and run svn \(options)")
    }
}
