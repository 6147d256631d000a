// SPDX-License-Identifier: Apache-2.0

/// The value of `JAVA_TOOL_OPTIONS`, which configures a Java runtime's proxy and trust store: Java reads neither
/// `https_proxy` nor PEM files (JVM Tool Interface, "The JAVA_TOOL_OPTIONS Environment Variable"; Java networking and
/// proxies; JSSE Reference Guide).
struct JavaOptions {
    /// The variable's value.
    let text: String

    static let variable = "JAVA_TOOL_OPTIONS"
    private static let first = "-Djavax.net.ssl.trustStore="
    private static let last = "-Dhttp.nonProxyHosts="

    /// `trustStore` is a path. `inherited` is the variable's current value, which is kept except for options added by
    /// an earlier value of this type. With `asksForPassword`, programs may answer the proxy with Basic through a
    /// `java.net.Authenticator`, which Java otherwise disables for tunnels.
    init(trustStore: String, host: String, port: Int, asksForPassword: Bool, after inherited: String?) {
        var options = [
            Self.quoted(Self.first + trustStore), "-Djavax.net.ssl.trustStoreType=PKCS12",
            "-Dhttp.proxyHost=\(host)", "-Dhttp.proxyPort=\(port)", "-Dhttps.proxyHost=\(host)",
            "-Dhttps.proxyPort=\(port)",
        ]
        if asksForPassword { options.append("-Djdk.http.auth.tunneling.disabledSchemes=") }
        // Must be set although it is empty: by default, Java bypasses the proxy for local hosts.
        options.append(Self.last)
        let kept = inherited.map(Self.withoutOwn) ?? ""
        text = ((kept.isEmpty ? [] : [kept]) + options).joined(separator: " ")
    }

    /// Quotes an option for the runtime's parser if it contains spaces or quotes. Single quotes are put in double
    /// quotes and all else in single quotes.
    private static func quoted(_ option: String) -> String {
        guard option.contains(where: { $0.isWhitespace || $0 == "'" || $0 == "\"" }) else { return option }
        return option.split(separator: "'", omittingEmptySubsequences: false).map { $0.isEmpty ? "" : "'\($0)'" }
            .joined(separator: "\"'\"")
    }

    /// `inherited` without the options that an earlier value of this type has added.
    static func withoutOwn(_ inherited: String) -> String {
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
