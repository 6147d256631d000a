// SPDX-License-Identifier: Apache-2.0

/// `JAVA_TOOL_OPTIONS`: how a Java runtime is told of the proxy and of whom to trust, as it reads neither `https_proxy` nor a PEM
/// file (JVM Tool Interface, "The JAVA_TOOL_OPTIONS Environment Variable"; Java networking and proxies; JSSE Reference Guide).
struct JavaOptions {
    /// The variable's value.
    let text: String

    private static let first = "-Djavax.net.ssl.trustStore="
    private static let last = "-Dhttp.nonProxyHosts="

    /// `trustStore` is a path. `inherited` is what the variable says already; it stays, but for what an earlier value of this
    /// type added. `asksForPassword`: the proxy does, and programs with a java.net.Authenticator may answer it with Basic, which
    /// a runtime otherwise keeps from tunnels.
    init(trustStore: String, host: String, port: Int, asksForPassword: Bool, after inherited: String?) {
        var options = [
            Self.quoted(Self.first + trustStore), "-Djavax.net.ssl.trustStoreType=PKCS12",
            "-Dhttp.proxyHost=\(host)", "-Dhttp.proxyPort=\(port)", "-Dhttps.proxyHost=\(host)",
            "-Dhttps.proxyPort=\(port)",
        ]
        if asksForPassword { options.append("-Djdk.http.auth.tunneling.disabledSchemes=") }
        // Empty: without it, hosts of this machine are asked for past the proxy.
        options.append(Self.last)
        let kept = inherited.map(Self.withoutOwn) ?? ""
        text = ((kept.isEmpty ? [] : [kept]) + options).joined(separator: " ")
    }

    /// An option as the runtime parses it: in single or double quotes where it has a space, and both kinds in turn where it
    /// has one of them.
    private static func quoted(_ option: String) -> String {
        guard option.contains(where: { $0.isWhitespace || $0 == "'" || $0 == "\"" }) else { return option }
        return option.split(separator: "'", omittingEmptySubsequences: false).map { $0.isEmpty ? "" : "'\($0)'" }
            .joined(separator: "\"'\"")
    }

    private static func withoutOwn(_ inherited: String) -> String {
        var words = inherited[...]
        for marker in ["'\(first)", first] {
            guard let start = words.firstRange(of: marker)?.lowerBound,
                let end = words[start...].firstRange(of: last)?.upperBound
            else { continue }
            words = words[..<start] + words[end...]
        }
        return words.split(separator: " ").joined(separator: " ")
    }
}
