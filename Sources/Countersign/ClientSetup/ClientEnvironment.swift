// SPDX-License-Identifier: Apache-2.0

/// The variables by which programs are told of the proxy and of whom to trust, without any trust store.
///
/// | variable | who reads it | where that is written |
/// |---|---|---|
/// | `SSL_CERT_FILE` | OpenSSL and what uses its defaults: Python's ssl, aiohttp, httpx; Ruby; PHP; .NET | SSL_CTX_load_verify_locations(3) |
/// | | Go | crypto/x509, root_unix.go |
/// | | Rust: rustls-native-certs, native-tls; uv | openssl-probe; uv, "TLS certificates" |
/// | `CURL_CA_BUNDLE` | curl | curl(1), --cacert |
/// | `GIT_SSL_CAINFO` | git | git-config(1), http.sslCAInfo |
/// | `REQUESTS_CA_BUNDLE` | Python's requests; poetry, conda | requests, "SSL Cert Verification" |
/// | `PIP_CERT` | pip | pip, --cert |
/// | `NODE_EXTRA_CA_CERTS` | Node, npm, yarn | node(1) |
/// | `DENO_CERT` | Deno | deno, "Environment variables" |
/// | `CARGO_HTTP_CAINFO` | Cargo | cargo, http.cainfo |
/// | `AWS_CA_BUNDLE` | the AWS command line and SDKs | AWS, ca_bundle |
/// | `CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE` | gcloud | gcloud, core/custom_ca_certs_file |
/// | `GRPC_DEFAULT_SSL_ROOTS_FILE_PATH` | gRPC | grpc, environment_variables.md |
/// | `NIX_SSL_CERT_FILE` | programs of Nixpkgs, before `SSL_CERT_FILE` | Nix, nix.conf(5) |
/// | `NODE_USE_ENV_PROXY` | Node 24 and later: heed `https_proxy` | node(1) |
/// | `JAVA_TOOL_OPTIONS` | Java | ``JavaOptions`` |
///
/// GNU Wget is built with GnuTLS on some systems and reads no variable then: `ca install` is its way.
package struct ClientEnvironment: Equatable, Sendable {
    /// In the order in which they are printed.
    package let set: [(name: String, value: String)]
    /// What must not be inherited: `NO_PROXY` in both cases, because a list that names a site would lead past the proxy, and
    /// `HTTP_PROXY`, which some programs prefer to `http_proxy` and CGI programs take from a request's `Proxy` field.
    package static let unset = ["HTTP_PROXY", "NO_PROXY", "no_proxy"]

    /// Those that name the proxy. `http_proxy` is in lower case only: see ``unset``.
    private static let proxyNames = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    private static let anchorNames = [
        "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
        "DENO_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "NIX_SSL_CERT_FILE",
    ]

    /// A proxy as clients name it.
    package struct Proxy: Equatable, Sendable {
        package let host: String
        package let port: Int
        /// What clients have to send as the password of `countersign`.
        package let token: String?

        package init(host: String, port: Int, token: String?) {
            self.host = host
            self.port = port
            self.token = token
        }

        package var url: String {
            let login = token.map { "countersign:\($0)@" } ?? ""
            return "http://\(login)\(host.contains(":") ? "[\(host)]" : host):\(port)"
        }
    }

    /// The paths are absolute: of the bundle in PEM and of the one for Java. `inherited` is where they are to be set.
    package init(proxy: Proxy, bundlePath: String, javaBundlePath: String, inherited: [String: String]) {
        let name = "JAVA_TOOL_OPTIONS"
        let java = JavaOptions(
            trustStore: javaBundlePath, host: proxy.host, port: proxy.port, asksForPassword: proxy.token != nil,
            after: inherited[name])
        set =
            Self.proxyNames.map { ($0, proxy.url) } + Self.anchorNames.map { ($0, bundlePath) }
            + [("NODE_USE_ENV_PROXY", "1"), (name, java.text)]
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
