// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
package import CountersignHome
import Glibc

/// Configuration files for programs that prefer a proxy of their own configuration to the environment, or that read no
/// variable for trust anchors. Each begins with a copy of the user's own configuration.
///
/// | Program | Variable | The file replaces | Documented in |
/// |---|---|---|---|
/// | wget | `WGETRC` | `~/.wgetrc`; `/etc/wgetrc` is still read before it | wget(1) |
/// | curl | `CURL_HOME` | `~/.curlrc`, only if there is one; without its `preproxy` | curl(1), --config |
/// | apt | `APT_CONFIG` | `/etc/apt/apt.conf`, which is read last | apt.conf(5) |
/// | PHP | `PHP_INI_SCAN_DIR` | nothing: it is read last. PHP's curl reads no variable for anchors | PHP, "php.ini" |
/// | Mercurial | `HGRCPATH` | nothing: it is read last. Only if there is another one | hg(1), "Files" |
///
/// The folder has mode 0700. Root's is below `/run`, with mode 0755, because apt reads its trust anchors as another
/// user; the files that may contain a token have mode 0600.
package struct ClientFiles: Sendable {
    private static let rootFolder = "/run/countersign"
    private static let fileLimitBytes = 1 << 20

    /// The folder with the files.
    package let folder: String
    private let isRoots: Bool
    /// The folders to create before ``folder``.
    private let above: [String]

    /// The files of clients that use one proxy. `name` distinguishes this proxy from the user's others, such as
    /// `exec-1234`.
    package init(home: Home, name: String, isRoot: Bool = geteuid() == 0) {
        above = isRoot ? [Self.rootFolder] : ["\(home.path)/run", "\(home.path)/run/clients"]
        let base = above[above.count - 1]
        folder = "\(base)/\(name)"
        isRoots = isRoot
        if name.hasPrefix(Self.processPrefix) { Self.removeAbandoned(in: base) }
    }

    /// Writes the files and returns the variables that make programs read them.
    package func write(
        proxy: ClientEnvironment.Proxy, bundlePath: String, inherited: [String: String]
    ) throws(CountersignError) -> [(name: String, value: String)] {
        let mode: mode_t = isRoots ? 0o755 : 0o700
        for folder in above + [folder] { try HomeFile.makeFolder(folder, mode: mode) }
        // The variables of an earlier call lead to our own files.
        let own = ReplacedSettings(savedIn: inherited)
        func variable(_ name: String) -> String? {
            let value = own.map { $0.names.contains(name) ? $0.values[name] : inherited[name] } ?? inherited[name]
            return value.flatMap { $0.isEmpty ? nil : $0 }
        }
        var variables: [(name: String, value: String)] = []

        let user = inherited["HOME"] ?? ""
        let wget = Self.text(variable("WGETRC") ?? "\(user)/.wgetrc")
        try write("wgetrc", (wget ?? "") + Self.wget(proxy, bundlePath))
        variables.append(("WGETRC", "\(folder)/wgetrc"))

        if let curl = Self.curlFiles(user, variable).lazy.compactMap(Self.text).first {
            try write(".curlrc", Self.withoutPreproxy(curl) + Self.curl(proxy, bundlePath))
            variables.append(("CURL_HOME", folder))
        }

        if access("/etc/apt", F_OK) == 0 {
            try variables.append(("APT_CONFIG", writeApt(proxy, bundlePath, previous: variable("APT_CONFIG"))))
        }

        try write("php.ini", Self.php(bundlePath))
        variables.append(("PHP_INI_SCAN_DIR", "\(variable("PHP_INI_SCAN_DIR") ?? ""):\(folder)"))

        let mercurial = Self.mercurialFiles(user, variable)
        if mercurial.contains(where: { access($0, F_OK) == 0 }) {
            try write("hgrc", Self.mercurial(proxy, bundlePath))
            variables.append(("HGRCPATH", (mercurial + ["\(folder)/hgrc"]).joined(separator: ":")))
        }
        return variables
    }

    /// Removes the files.
    package func remove() {
        for name in Self.names { _ = unlink("\(folder)/\(name)") }
        _ = rmdir(folder)
    }

    private static let names = ["wgetrc", ".curlrc", "apt.conf", "apt-main.conf", "ca.pem", "php.ini", "hgrc"]

    private func write(_ name: String, _ text: String) throws(CountersignError) {
        try HomeFile(path: "\(folder)/\(name)").replace(with: Array(text.utf8), mode: 0o600, isDurable: false)
    }

    /// The content of a user's file, which ends with a line end; nil if it cannot be read.
    private static func text(_ path: String) -> String? {
        guard let bytes = try? HomeFile(path: path).readIfThere(upTo: fileLimitBytes) else { return nil }
        return String(decoding: bytes, as: UTF8.self) + "\n"
    }

    // MARK: The files

    private static func wget(_ proxy: ClientEnvironment.Proxy, _ bundle: String) -> String {
        var lines = [
            "use_proxy = on", "http_proxy = \(proxy.url)", "https_proxy = \(proxy.url)", "no_proxy =",
            "ca_certificate = \(bundle)",
        ]
        // The user's own login would replace the one in the URL.
        if let token = proxy.token { lines += ["proxy_user = countersign", "proxy_password = \(token)"] }
        return lines.map { $0 + "\n" }.joined()
    }

    /// The files that curl looks for, in its order.
    private static func curlFiles(_ user: String, _ variable: (String) -> String?) -> [String] {
        var folders: [String] = []
        if let own = variable("CURL_HOME") { folders.append(own) }
        if let own = variable("XDG_CONFIG_HOME") { folders.append(own) }
        return folders.flatMap { ["\($0)/.curlrc", "\($0)/curlrc"] }
            + (user.isEmpty ? [] : ["\(user)/.curlrc", "\(user)/.config/curlrc"])
    }

    /// A `preproxy` would be between curl and our proxy. Not every version of curl accepts an empty one.
    private static func withoutPreproxy(_ text: String) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).filter { line in
            let word = line.drop { $0.isWhitespace || $0 == "-" }
            return !word.hasPrefix("preproxy")
        }.joined(separator: "\n")
    }

    private static func curl(_ proxy: ClientEnvironment.Proxy, _ bundle: String) -> String {
        func quoted(_ text: String) -> String {
            "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        }
        var lines = ["proxy = \(quoted(proxy.url))", "noproxy = \"\"", "cacert = \(quoted(bundle))"]
        if let token = proxy.token { lines.append("proxy-user = \(quoted("countersign:\(token)"))") }
        return lines.map { $0 + "\n" }.joined()
    }

    /// PHP's own streams read `SSL_CERT_FILE` too, unless its configuration names other anchors.
    private static func php(_ bundle: String) -> String {
        let quoted = "\"" + bundle.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        return "curl.cainfo = \(quoted)\nopenssl.cafile = \(quoted)\n"
    }

    /// The files and folders that Mercurial reads without the variable, in its order, which the variable replaces. The
    /// first has the merge tools that it knows.
    private static func mercurialFiles(_ user: String, _ variable: (String) -> String?) -> [String] {
        if let own = variable("HGRCPATH") { return own.split(separator: ":").map(String.init) }
        let settings = variable("XDG_CONFIG_HOME") ?? "\(user)/.config"
        let known = "/usr/lib/python3/dist-packages/mercurial/defaultrc/mergetools.rc"
        return (access(known, R_OK) == 0 ? [known] : [])
            + ["/etc/mercurial/hgrc", "/etc/mercurial/hgrc.d"]
            + (user.isEmpty ? [] : ["\(user)/.hgrc", "\(settings)/hg/hgrc"])
    }

    private static func mercurial(_ proxy: ClientEnvironment.Proxy, _ bundle: String) -> String {
        var lines = ["[http_proxy]", "host = \(HostText.joined(proxy.host, proxy.port))", "no =", "always = True"]
        if let token = proxy.token { lines += ["user = countersign", "passwd = \(token)"] }
        lines += ["[web]", "cacerts = \(bundle)"]
        return lines.map { $0 + "\n" }.joined()
    }

    /// `APT_CONFIG` is read first, and `Dir::Etc::Main` last: only the latter can replace a proxy from
    /// `/etc/apt/apt.conf.d`.
    private func writeApt(
        _ proxy: ClientEnvironment.Proxy, _ bundle: String, previous: String?
    ) throws(CountersignError) -> String {
        var anchors = bundle
        if isRoots {
            // The user _apt may not be able to read the home.
            anchors = "\(folder)/ca.pem"
            try HomeFile(path: anchors).replace(
                with: HomeFile(path: bundle).read(upTo: 4 * Home.fileLimitBytes), mode: 0o644, isDurable: false)
        }
        func included(_ path: String?) -> String {
            path.map { access($0, R_OK) == 0 ? "#include \"\($0)\";\n" : "" } ?? ""
        }
        try write(
            "apt-main.conf",
            included("/etc/apt/apt.conf")
                + """
                #clear Acquire::http::Proxy;
                #clear Acquire::https::Proxy;
                #clear Acquire::http::Proxy-Auto-Detect;
                #clear Acquire::http::ProxyAutoDetect;
                Acquire::http::Proxy "\(proxy.url)";
                Acquire::https::Proxy "\(proxy.url)";
                Acquire::https::CAInfo "\(anchors)";

                """)
        try write("apt.conf", included(previous) + "Dir::Etc::Main \"\(folder)/apt-main.conf\";\n")
        return "\(folder)/apt.conf"
    }

    // MARK: Processes that were killed

    private static let processPrefix = "exec-"

    /// The name for the files of a process that removes them when it ends.
    package static func nameOfThisProcess() -> String { "\(processPrefix)\(getpid())" }

    /// Removes the folders of processes that no longer run.
    private static func removeAbandoned(in base: String) {
        for name in entries(of: base) {
            guard name.hasPrefix(processPrefix), let process = Int32(name.dropFirst(processPrefix.count)), process > 1,
                kill(process, 0) != 0, errno == ESRCH
            else { continue }
            for file in entries(of: "\(base)/\(name)") where isOurs(file) { _ = unlink("\(base)/\(name)/\(file)") }
            _ = rmdir("\(base)/\(name)")
        }
    }

    /// One of ``names``, or the remains of a killed writer (`wgetrc.1234.1.new`).
    private static func isOurs(_ file: String) -> Bool {
        names.contains { file == $0 || file.hasPrefix("\($0).") && file.hasSuffix(".new") }
    }

    private static func entries(of folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var entries: [String] = []
        while let entry = readdir(stream) {
            entries.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return entries
    }
}
