// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses

/// The environment variables that configure programs to use the proxy and to trust its CA, without changing a trust
/// store or a user's configuration.
///
/// | Variable | Read by | Documented in |
/// |---|---|---|
/// | `http_proxy`, `https_proxy`, `all_proxy` | most programs | curl(1), "ENVIRONMENT" |
/// | `ws_proxy`, `wss_proxy` | WebSocket clients: curl, Python's websockets | curl(1); websockets, "Proxies" |
/// | `PIP_PROXY` | pip, before pip.conf | pip, "Configuration" |
/// | `CARGO_HTTP_PROXY` | Cargo, before its configuration and git's | cargo, http.proxy |
/// | `npm_config_proxy`, `npm_config_https_proxy` | npm, pnpm and yarn 1, before .npmrc | npm, "config" |
/// | `npm_config_noproxy` | the same; npm ignores an empty value, so this one fits no host | npm, "config" |
/// | `YARN_HTTP_PROXY`, `YARN_HTTPS_PROXY` | yarn 2 and later, which reads no other variable | yarn, .yarnrc.yml |
/// | `PERL_LWP_ENV_PROXY` | Perl's LWP, to enable `https_proxy` | LWP::UserAgent(3pm) |
/// | `GIT_CONFIG_COUNT` and its keys | git, before `http.proxy` of its configuration files | git-config(1) |
/// | `SSL_CERT_FILE` | OpenSSL and its users: Python, Ruby, PHP, .NET | SSL_CTX_load_verify_locations(3) |
/// | | Go | crypto/x509, root_unix.go |
/// | | Rust: rustls-native-certs, native-tls; uv | openssl-probe; uv, "TLS certificates" |
/// | `CURL_CA_BUNDLE` | curl | curl(1), --cacert |
/// | `GIT_SSL_CAINFO` | git | git-config(1), http.sslCAInfo |
/// | `REQUESTS_CA_BUNDLE` | Python's requests; poetry, conda | requests, "SSL Cert Verification" |
/// | `PIP_CERT` | pip | pip, --cert |
/// | `NODE_EXTRA_CA_CERTS` | Node, npm, yarn | node(1) |
/// | `npm_config_cafile` | npm, pnpm and yarn 1, before .npmrc | npm, "config" |
/// | `YARN_HTTPS_CA_FILE_PATH` | yarn 2 and later | yarn, .yarnrc.yml |
/// | `CONDA_SSL_VERIFY` | conda, before .condarc | conda, ssl_verify |
/// | `PERL_LWP_SSL_CA_FILE` | Perl's LWP | LWP::UserAgent(3pm) |
/// | `HTTPLIB2_CA_CERTS` | Python's httplib2 | httplib2, certs.py |
/// | `HEX_CACERTS_PATH` | Elixir's and Erlang's packages | hex, "mix hex.config" |
/// | `DENO_CERT` | Deno | deno, "Environment variables" |
/// | `CARGO_HTTP_CAINFO` | Cargo | cargo, http.cainfo |
/// | `AWS_CA_BUNDLE` | the AWS command line and SDKs | AWS, ca_bundle |
/// | `CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE` | gcloud | gcloud, core/custom_ca_certs_file |
/// | `GRPC_DEFAULT_SSL_ROOTS_FILE_PATH` | gRPC | grpc, environment_variables.md |
/// | `NIX_SSL_CERT_FILE` | programs of Nixpkgs, before `SSL_CERT_FILE` | Nix, nix.conf(5) |
/// | `NODE_USE_ENV_PROXY` | Node 24 and later, to enable `https_proxy` | node(1) |
/// | `JAVA_TOOL_OPTIONS` | Java | ``JavaOptions`` |
/// | `WGETRC`, `CURL_HOME`, `APT_CONFIG` | wget, curl, apt | ``ClientFiles`` |
/// | `PHP_INI_SCAN_DIR`, `HGRCPATH` | PHP, Mercurial | ``ClientFiles`` |
///
/// Node before version 24 (22.21) reads no variable for a proxy. The proxies of git's configuration that are for one
/// URL or one remote (`http.<url>.proxy`, `remote.<name>.proxy`) take precedence over this one. Subversion reads no
/// variable at all (``SubversionOptions``).
package struct ClientEnvironment: Equatable, Sendable {
    /// In the order in which they are printed.
    package let set: [(name: String, value: String)]
    /// The variables to remove: `NO_PROXY` in both spellings, because sites that it lists would bypass the proxy, and
    /// `HTTP_PROXY`, which some programs prefer to `http_proxy`, and which CGI sets from a request's `Proxy` field.
    package static let unset = ["HTTP_PROXY", "NO_PROXY", "no_proxy"]
    /// The user's own settings of a proxy that ``set`` and ``unset`` replace.
    package let replaced: ReplacedSettings

    /// The variables that name the proxy. `http_proxy` in lower case only: see ``unset``.
    static let proxyNames = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "ws_proxy", "WS_PROXY", "wss_proxy",
        "WSS_PROXY", "PIP_PROXY", "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
    ]
    private static let anchorNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
        "DENO_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE", "npm_config_cafile", "YARN_HTTPS_CA_FILE_PATH",
        "CONDA_SSL_VERIFY", "PERL_LWP_SSL_CA_FILE", "HTTPLIB2_CA_CERTS", "HEX_CACERTS_PATH",
    ]
    private static let switches = [
        ("NODE_USE_ENV_PROXY", "1"), ("npm_config_noproxy", ".invalid"), ("PERL_LWP_ENV_PROXY", "1"),
    ]

    /// The proxy's address for clients.
    package struct Proxy: Equatable, Sendable {
        package let host: String
        package let port: Int
        /// The password that clients must send for the user `countersign`, if any.
        package let token: String?

        package init(host: String, port: Int, token: String?) {
            self.host = host
            self.port = port
            self.token = token
        }

        package var url: String {
            let login = token.map { "countersign:\($0)@" } ?? ""
            return "http://\(login)\(HostText.joined(host, port))"
        }
    }

    /// `bundlePath` and `javaBundlePath` are absolute. `files` are the variables of ``ClientFiles``. `inherited` is the
    /// environment that will be extended.
    package init(
        proxy: Proxy, bundlePath: String, javaBundlePath: String, files: [(name: String, value: String)] = [],
        inherited: [String: String]
    ) {
        let java = JavaOptions(
            trustStore: javaBundlePath, host: proxy.host, port: proxy.port, asksForPassword: proxy.token != nil,
            after: inherited[JavaOptions.variable])
        let settings =
            Self.proxyNames.map { ($0, proxy.url) } + Self.anchorNames.map { ($0, bundlePath) }
            + Self.switches + [(JavaOptions.variable, java.text)] + files
        let replaced = ReplacedSettings(
            inherited, names: settings.map(\.0).filter { $0 != JavaOptions.variable } + Self.unset)
        let git = GitSettings(proxy: proxy.url, after: inherited, replacesOwn: replaced.isRepeated)
        self.replaced = replaced
        set = settings + git.variables + replaced.variables
    }

    /// The environment for a child process.
    package func applied(to inherited: [String: String]) -> [String: String] {
        var environment = inherited
        for name in Self.unset { environment[name] = nil }
        for (name, value) in set { environment[name] = value }
        return environment
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.set.elementsEqual(right.set) { $0 == $1 }
    }

    // MARK: Shells

    package enum Shell: String, CaseIterable, Sendable {
        /// Any shell with POSIX syntax.
        case sh
        case bash
        case zsh
        case fish

        /// Commands that remove `unset` and set `set`, one per line.
        func script(unset: [String], set: [(name: String, value: String)]) -> String {
            var lines: [String] = []
            switch self {
            case .sh, .bash, .zsh:
                if !unset.isEmpty { lines.append("unset \(unset.joined(separator: " "))") }
                lines += set.map { "export \($0.name)=\(Self.quoted($0.value, escapes: ["'": "'\\''"]))" }
            case .fish:
                if !unset.isEmpty { lines.append("set -e \(unset.joined(separator: " "))") }
                lines += set.map { "set -gx \($0.name) \(Self.quoted($0.value, escapes: ["'": "\\'", "\\": "\\\\"]))" }
            }
            return lines.map { $0 + "\n" }.joined()
        }

        private static func quoted(_ value: String, escapes: [Character: String]) -> String {
            "'" + value.map { escapes[$0] ?? String($0) }.joined() + "'"
        }
    }

    /// Shell commands that set the variables, one per line.
    package func script(for shell: Shell) -> String { shell.script(unset: Self.unset, set: set) }

    /// Shell commands that undo ``script(for:)``; nil if `inherited` was not made by it.
    package static func scriptOff(for shell: Shell, inherited: [String: String]) -> String? {
        guard let saved = ReplacedSettings(savedIn: inherited) else { return nil }
        var unset = saved.names.filter { saved.values[$0] == nil } + saved.variables.map(\.name)
        var set = saved.names.compactMap { name in saved.values[name].map { (name: name, value: $0) } }
        let java = JavaOptions.withoutOwn(inherited[JavaOptions.variable] ?? "")
        if java.isEmpty { unset.append(JavaOptions.variable) } else { set.append((JavaOptions.variable, java)) }
        let git = GitSettings.off(in: inherited)
        return shell.script(unset: unset + git.unset, set: set + git.set)
    }
}
