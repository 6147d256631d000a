// SPDX-License-Identifier: Apache-2.0

/// The variables by which programs are told of the proxy and of whom to trust.
package struct ClientEnvironment: Equatable, Sendable {
    /// In the order in which they are printed.
    package let set: [(name: String, value: String)]
    /// What must not be inherited: `NO_PROXY` in both cases, because a list that names a site would lead past the proxy, and
    /// `HTTP_PROXY`, which some programs prefer to `http_proxy` and CGI programs take from a request's `Proxy` field.
    package static let unset = ["HTTP_PROXY", "NO_PROXY", "no_proxy"]

    /// Those that name the proxy. `http_proxy` is in lower case only: see ``unset``.
    private static let proxyNames = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    /// Those that name a file of trust anchors: OpenSSL and its kin, curl, git, Python, Node, AWS, Cargo, Deno, gRPC.
    private static let anchorNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
        "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    ]

    /// `proxy` is the proxy's URL; `bundlePath` an absolute path.
    package init(proxy: String, bundlePath: String) {
        set = Self.proxyNames.map { ($0, proxy) } + Self.anchorNames.map { ($0, bundlePath) }
    }

    /// `inherited` as a child process is to have it.
    package func applied(to inherited: [String: String]) -> [String: String] {
        var environment = inherited
        for name in Self.unset { environment[name] = nil }
        for (name, value) in set { environment[name] = value }
        return environment
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.set.elementsEqual(right.set) { $0 == $1 }
    }

    // MARK: For a shell

    package enum Shell: String, CaseIterable, Sendable {
        /// Every shell with POSIX syntax.
        case sh
        case fish
    }

    /// Commands that set the variables, one a line.
    package func script(for shell: Shell) -> String {
        var lines: [String] = []
        switch shell {
        case .sh:
            lines.append("unset \(Self.unset.joined(separator: " "))")
            lines += set.map { "export \($0.name)=\(Self.quoted($0.value, escapes: ["'": "'\\''"]))" }
        case .fish:
            lines.append("set -e \(Self.unset.joined(separator: " "))")
            lines += set.map { "set -gx \($0.name) \(Self.quoted($0.value, escapes: ["'": "\\'", "\\": "\\\\"]))" }
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func quoted(_ value: String, escapes: [Character: String]) -> String {
        "'" + value.map { escapes[$0] ?? String($0) }.joined() + "'"
    }
}
