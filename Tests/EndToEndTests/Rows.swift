// SPDX-License-Identifier: Apache-2.0

import CountersignTestOrigin

/// One kind of challenge at one kind of site, and the response that a client must receive.
struct Row: Sendable, CustomStringConvertible {
    enum Outcome: Sendable {
        /// The final response with this body; over https with a certificate from the interception CA.
        case answered(String)
        /// The final response; over https with the origin's own certificate.
        case untouched(String)
        /// The origin's 401, unchanged.
        case handedBack
    }

    let name: String
    let site: String
    let port: KeyPath<Origins, Int> & Sendable
    let path: String
    /// The options of the site's line, or nil if the site is not listed.
    let options: String?
    let outcome: Outcome

    init(
        _ name: String, _ site: String, _ port: KeyPath<Origins, Int> & Sendable, _ path: String, _ options: String?,
        _ outcome: Outcome
    ) {
        self.name = name
        self.site = site
        self.port = port
        self.path = path
        self.options = options
        self.outcome = outcome
    }

    var description: String { name }

    func siteURL(_ origins: Origins) -> String { "\(site):\(origins[keyPath: port])" }

    func url(_ origins: Origins, query: String) -> String { "\(siteURL(origins))\(path)?\(query)" }

    static let all: [Row] = [
        Row(
            "basic https", "https://basic.test.localhost", \.apache.httpsPort, "/basic/index", "answer=basic",
            .answered("apache basic/index\n")),
        Row(
            "basic http", "http://basic.test.localhost", \.apache.httpPort, "/basic/index",
            "answer=basic plaintext=yes", .answered("apache basic/index\n")),
        Row(
            "ntlm https", "https://ntlm.test.localhost", \.ntlm.port, "/file", "answer=ntlm domain=ACME",
            .answered(Origins.fileText)),
        Row(
            "ntlm https, SHA-384 certificate", "https://ntlm384.test.localhost", \.ntlm384.port, "/file",
            "answer=ntlm domain=ACME", .answered(Origins.fileText)),
        Row(
            "ntlm in negotiate https", "https://negotiate.test.localhost", \.negotiate.port, "/file",
            "answer=ntlm domain=ACME", .answered(Origins.fileText)),
        Row(
            "ntlm http", "http://ntlm.test.localhost", \.ntlmHTTP.port, "/file",
            "answer=ntlm domain=ACME plaintext=yes", .answered(Origins.fileText)),
        Row(
            "certificate TLS 1.2", "https://cert12.test.localhost", \.nginx.mutual12Port, "/who", "answer=certificate",
            .answered("TLSv1.2 CN=laptop,O=Test\n")),
        Row(
            "certificate TLS 1.3", "https://cert13.test.localhost", \.nginx.mutual13Port, "/who", "answer=certificate",
            .answered("TLSv1.3 CN=laptop,O=Test\n")),
        Row(
            "certificate of the other CA", "https://certb.test.localhost", \.nginx.mutualBPort, "/who",
            "answer=certificate", .answered("TLSv1.3 CN=badge,O=Test\n")),
        Row(
            "optional certificate", "https://optional.test.localhost", \.nginx.optionalPort, "/who",
            "answer=certificate", .answered("SUCCESS CN=laptop,O=Test\n")),
        Row(
            "certificate by post-handshake authentication", "https://post.test.localhost", \.apache.postHandshakePort,
            "/certificate/index", "answer=certificate", .answered("apache certificate/index\n")),
        Row(
            "certificate by renegotiation", "https://again.test.localhost", \.apache.renegotiatingPort,
            "/certificate/index", "answer=certificate", .answered("apache certificate/index\n")),
        Row(
            "open site on the list", "https://open.test.localhost", \.nginx.httpsPort, "/who", "",
            .answered("open https\n")),
        Row(
            "site on the list with intercept=no", "https://own.test.localhost", \.nginx.httpsPort, "/who",
            "intercept=no", .untouched("open https\n")),
        Row(
            "unlisted https", "https://unlisted.test.localhost", \.nginx.httpsPort, "/who", nil,
            .untouched("open https\n")),
        Row(
            "unlisted http", "http://unlisted.test.localhost", \.nginx.httpPort, "/who", nil,
            .untouched("open http\n")),
        Row(
            "unlisted basic https", "https://unlisted.test.localhost", \.apache.httpsPort, "/basic/index", nil,
            .handedBack),
        Row(
            "unlisted basic http", "http://unlisted.test.localhost", \.apache.httpPort, "/basic/index", nil,
            .handedBack),
        Row(
            "basic http without plaintext=yes", "http://careful.test.localhost", \.apache.httpPort, "/basic/index",
            "answer=basic", .handedBack),
        Row(
            "digest https", "https://digest.test.localhost", \.apache.httpsPort, "/digest/index", "",
            .answered("apache digest/index\n")),
        Row(
            "digest https with answer=basic", "https://undigested.test.localhost", \.apache.httpsPort, "/digest/index",
            "answer=basic", .handedBack),
        Row(
            "basic https with answer=ntlm", "https://only.test.localhost", \.apache.httpsPort, "/basic/index",
            "answer=ntlm", .handedBack),
    ]
}
